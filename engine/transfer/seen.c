#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "engine/transfer/note-i.h"
#include "engine/transfer/transfer-i.h"

#define SEEN_DIR "remote/seen"

/* 1 if it is such a note, else 0. */
static int read_seen(struct json j, struct seen *ret)
{
	const char *manifest = json_text_if(j, "manifest"), *snapshot = json_text_if(j, "snapshot");

	if (!manifest || digest_parse(manifest, &ret->manifest) < 0 || !snapshot ||
	    strlen(snapshot) >= sizeof(ret->snapshot))
		return 0;
	ret->pushed = json_kind(j, "pushed") == JSON_INT ? json_get_int(j, "pushed") : 0;
	snprintf(ret->snapshot, sizeof(ret->snapshot), "%s", snapshot);
	return 1;
}

int seen_load(struct engine *e, const struct target *t, struct seen *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *key = text_format("%s %s", t->url, t->name);
	struct json j;
	int r = key ? note_load(e, SEEN_DIR, key, &doc, &j, err) : err_nomem(err);

	return r <= 0 ? r : read_seen(j, ret);
}

struct listing {
	int fd;
	seen_fn fn;
	void *ctx;
};

static int on_note(const char *file, unsigned char type, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct listing *l = ctx;
	const char *url, *name;
	struct seen seen;
	struct json j;

	if (note_read(l->fd, file, &doc, &j) == 0 || read_seen(j, &seen) == 0)
		return 0;
	url = json_text_if(j, "remote");
	name = json_text_if(j, "name");
	return url && name ? l->fn(url, name, &seen, l->ctx) : 0;
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
	AUTO_FREE char *key = text_format("%s %s", t->url, t->name);
	struct json j = json_begin(&doc);
	char digest[DIGEST_TEXT_SIZE];

	json_set_text(j, "remote", t->url);
	json_set_text(j, "name", t->name);
	json_set_text(j, "manifest", digest_text(&seen->manifest, digest));
	json_set_text(j, "snapshot", seen->snapshot);
	json_set_int(j, "pushed", seen->pushed);
	if (key)
		note_save(e, SEEN_DIR, key, &doc);
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
