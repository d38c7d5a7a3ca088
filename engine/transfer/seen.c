#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/transfer/transfer-i.h"

#define SEEN_DIR "remote/seen"
#define SEEN_MAX ((size_t)4 << 10)

int transfer_dir(struct engine *e, const char *name, char **ret, struct err *err)
{
	AUTO_FREE char *dir = path_join(e->store_path, name);
	int r;

	if (!dir)
		return err_nomem(err);
	r = path_make_dirs(dir, 0700, err);
	if (r == 0)
		*ret = TAKE_PTR(dir);
	return r;
}

/* A file for each name: its digest is the file's, so that any url will do. */
static int seen_path(struct engine *e, const struct target *t, char **ret, struct err *err)
{
	AUTO_FREE char *key = NULL, *dir = NULL;
	char hex[SHA256_HEX_SIZE];
	struct digest d;
	int r;

	key = text_format("%s %s", t->url, t->name);
	if (!key)
		return err_nomem(err);
	d = digest_of(key, strlen(key));
	r = transfer_dir(e, SEEN_DIR, &dir, err);
	if (r < 0)
		return r;
	*ret = path_join(dir, hex_encode(d.b, sizeof(d.b), hex));
	return *ret ? 0 : err_nomem(err);
}

/* 1 if the file is such a note, else 0. */
static int read_note(int dir, const char *path, struct json_doc *doc, struct json *ret_j,
		     struct seen *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err ignored = { 0 };
	const char *manifest, *snapshot, *applied;
	struct json j;

	if (fdio_read_file(dir, path, SEEN_MAX, &text, &ignored) < 0 ||
	    json_parse(doc, (const char *)text.data, text.len, &j, &ignored) < 0)
		return 0;
	manifest = json_text_if(j, "manifest");
	snapshot = json_text_if(j, "snapshot");
	if (!manifest || digest_parse(manifest, &ret->manifest) < 0 || !snapshot ||
	    strlen(snapshot) >= sizeof(ret->snapshot))
		return 0;
	applied = json_text_if(j, "applied");
	ret->pushed = json_kind(j, "pushed") == JSON_INT ? json_get_int(j, "pushed") : 0;
	snprintf(ret->snapshot, sizeof(ret->snapshot), "%s", snapshot);
	snprintf(ret->applied, sizeof(ret->applied), "%s", applied ? applied : "");
	*ret_j = j;
	return 1;
}

int seen_load(struct engine *e, const struct target *t, struct seen *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *path = NULL;
	struct json unused;
	int r;

	if (!engine_has_store(e))
		return 0;
	r = seen_path(e, t, &path, err);
	return r < 0 ? r : read_note(AT_FDCWD, path, &doc, &unused, ret);
}

struct listing {
	int fd;
	seen_fn fn;
	void *ctx;
};

static int on_note(const char *name, unsigned char type, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct listing *l = ctx;
	const char *url, *of;
	struct seen seen;
	struct json j;

	if (read_note(l->fd, name, &doc, &j, &seen) == 0)
		return 0;
	url = json_text_if(j, "remote");
	of = json_text_if(j, "name");
	return url && of ? l->fn(url, of, &seen, l->ctx) : 0;
}

int seen_each(struct engine *e, seen_fn fn, void *ctx, struct err *err)
{
	struct listing l = { .fn = fn, .ctx = ctx };
	AUTO_FREE char *dir = NULL;
	AUTO_CLOSE int fd = -1;
	int r = engine_has_store(e) ? transfer_dir(e, SEEN_DIR, &dir, err) : 0;

	if (r < 0 || !dir)
		return r;
	l.fd = fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, "opening '%s'", dir) : sys_each_name(fd, on_note, &l);
}

void seen_save(struct engine *e, const struct target *t, const struct seen *seen)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j = json_begin(&doc);
	char digest[DIGEST_TEXT_SIZE];
	AUTO_FREE char *path = NULL;
	struct err err = { 0 };
	int r;

	json_set_text(j, "remote", t->url);
	json_set_text(j, "name", t->name);
	json_set_text(j, "manifest", digest_text(&seen->manifest, digest));
	json_set_text(j, "snapshot", seen->snapshot);
	json_set_text(j, "applied", seen->applied);
	json_set_int(j, "pushed", seen->pushed);
	r = json_append(&doc, &text, &err);
	if (r == 0)
		r = seen_path(e, t, &path, &err);
	if (r == 0)
		r = fdio_swap_file(AT_FDCWD, path, text.data, text.len, 0600, &err);
	if (r < 0)
		engine_warn(e, "%s, continuing", err.msg);
}

int meter_moved(uint64_t bytes, void *ctx)
{
	struct meter *m = ctx;
	struct engine_progress p = { .doing = m->doing };

	LOCKED(&m->lock);
	m->bytes += bytes;
	p.files = m->files;
	p.bytes = m->bytes;
	p.done = m->by_files ? m->files : m->bytes;
	p.total = m->total;
	if (m->watch->fn)
		m->watch->fn(&p, m->watch->ctx);
	return 0;
}
