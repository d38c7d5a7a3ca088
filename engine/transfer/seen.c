#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/path.h"
#include "engine/transfer/transfer-i.h"

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

	if (asprintf(&key, "%s %s", t->url, t->name) < 0) {
		key = NULL;
		return err_nomem(err);
	}
	d = digest_of(key, strlen(key));
	r = transfer_dir(e, "remote/seen", &dir, err);
	if (r < 0)
		return r;
	*ret = path_join(dir, hex_encode(d.b, sizeof(d.b), hex));
	return *ret ? 0 : err_nomem(err);
}

int seen_load(struct engine *e, const struct target *t, struct seen *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = NULL;
	struct err ignored = { 0 };
	const char *manifest, *snapshot, *applied;
	struct json j;
	int r;

	if (!engine_has_store(e))
		return 0;
	r = seen_path(e, t, &path, err);
	if (r < 0)
		return r;
	if (fdio_read_file(AT_FDCWD, path, SEEN_MAX, &text, &ignored) < 0 ||
	    json_parse(&doc, (const char *)text.data, text.len, &j, &ignored) < 0)
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
	return 1;
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

	pthread_mutex_lock(&m->lock);
	m->bytes += bytes;
	p.files = m->files;
	p.bytes = m->bytes;
	p.done = m->by_files ? m->files : m->bytes;
	p.total = m->total;
	if (m->watch->fn)
		m->watch->fn(&p, m->watch->ctx);
	pthread_mutex_unlock(&m->lock);
	return 0;
}
