#include "engine/act/receive-lazy-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "cowfs/store/settle.h"
#include "engine/find/engine-i.h"
#include "engine/host/promising-i.h"
#include "snapshot/capture/capture.h"

void receive_lazy_done(struct receive_lazy *l)
{
	supply_free(l->supply);
	buf_done(&l->promised);
	buf_done(&l->source);
	digest_table_done(&l->known);
}

static int read_source(struct receive_lazy *l, const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "opening '%s'", path);
	return fdio_read_file(fd, ENGINE_LAZY_SOURCE, ENGINE_LAZY_SOURCE_MAX, &l->source, err);
}

int receive_lazy_open(struct receive_lazy *l, struct store *s,
		      const struct engine_receive_options *o, struct err *err)
{
	AUTO_FREE char *all = path_join(store_path(s), ENGINE_LAZY_DIR);
	AUTO_FREE char *path = NULL;
	int r;

	if (hex_decode(o->lazy, strlen(o->lazy), l->record.id.b, sizeof(l->record.id.b)) < 0)
		return err_set(err, -EINVAL, "'%s' is no id of a fetch", o->lazy);
	path = all ? path_join(all, o->lazy) : NULL;
	if (!path)
		return err_nomem(err);
	l->store = s;
	r = supply_open(path, o->packs, o->n_packs, &l->supply, err);
	return r < 0 ? r : read_source(l, path, err);
}

/* A row for each distinct promise. */
static int promise(void *ctx, enum object_kind kind, const struct digest *digest, uint64_t size,
		   struct object_id *ret, struct err *err)
{
	struct receive_lazy *l = ctx;
	struct digest key = { { 0 } };
	int r;

	if (size >> 56 != 0)
		return err_set(err, -EBADMSG, "a file in a pack has an impossible size");
	*ret = settle_promise_remote(store_key(l->store), &l->record.id, kind, size, digest->b);
	memcpy(key.b, ret->b, sizeof(ret->b));
	r = digest_table_add(&l->known, OBJECT_CHUNK, &key, 0);
	if (r > 0)
		return 0;
	if (r < 0 || buf_append_u64(&l->promised, (uint64_t)kind << 56 | size) < 0 ||
	    buf_append(&l->promised, digest->b, sizeof(digest->b)) < 0)
		return err_nomem(err);
	l->record.files++;
	l->record.bytes += size;
	return 0;
}

void receive_lazy_options(struct receive_lazy *l, struct inbound_options *o)
{
	o->packs = supply_packs(l->supply);
	o->promise = promise;
	o->promise_ctx = l;
	o->at_once = capture_needs_bytes;
}

int receive_lazy_put(struct receive_lazy *l, struct batch *b, const struct snapshot *s,
		     struct err *err)
{
	if (l->record.files == 0)
		return 0;
	l->record.project = s->project;
	l->record.snapshot = s->id;
	l->record.created = s->created;
	l->record.passing = 1;
	l->record.remote = 1;
	return promises_put_remote(b, &l->record, &l->promised, &l->source, err);
}
