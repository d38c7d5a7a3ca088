#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/transfer/lazy-i.h"
#include "remote/pack/pack.h"

/* --- the directory ------------------------------------------------------------------------ */

void lazy_dir_done(struct lazy_dir *d)
{
	free(d->path);
	cleanup_close(&d->fd);
	cleanup_close(&d->lock);
}

int lazy_dir_open(struct engine *e, const char *id, bool create, struct lazy_dir *d,
		  struct err *err)
{
	AUTO_FREE char *all = path_join(e->store_path, ENGINE_LAZY_DIR);
	int r = 0;

	snprintf(d->id, sizeof(d->id), "%s", id);
	d->path = all ? path_join(all, d->id) : NULL;
	if (!d->path)
		return err_nomem(err);
	if (create)
		r = path_make_dirs(d->path, 0700, err);
	if (r < 0)
		return r;
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(err, "opening '%s'", d->path);
	return 0;
}

int lazy_dir_lock(struct lazy_dir *d, struct err *err)
{
	AUTO_CLOSE int fd =
	    openat(d->fd, ENGINE_LAZY_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "opening '%s/" ENGINE_LAZY_LOCK "'", d->path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : err_sys(err, "locking '%s'", d->path);
	d->lock = TAKE_FD(fd);
	return 0;
}

static int remove_one(const char *name, unsigned char type, void *ctx)
{
	const struct lazy_dir *d = ctx;

	unlinkat(d->fd, name, 0);
	return 0;
}

void lazy_dir_remove(struct lazy_dir *d)
{
	IGNORE_RESULT(sys_each_name(d->fd, remove_one, d), "cowfsd sweeps when it starts");
	rmdir(d->path);
}

/* --- where it comes from ------------------------------------------------------------------ */

void lazy_source_done(struct lazy_source *s)
{
	free(s->url);
	free(s->name);
	free(s->from);
	free(s->packs);
	*s = (struct lazy_source){ 0 };
}

int lazy_source_write(const struct lazy_dir *d, const struct lazy_source *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j = json_begin(&doc), list;
	char hex[SHA256_HEX_SIZE];
	int r;

	json_set_name(j, "url", s->url);
	json_set_name(j, "name", s->name);
	json_set_name(j, "from", s->from);
	json_set_uint(j, "rate", s->rate);
	json_set_uint(j, "jobs", s->jobs);
	list = json_set_array(j, "packs");
	for (size_t i = 0; i < s->n; i++) {
		const struct manifest_pack *p = &s->packs[i];
		struct json one = json_add_object(list);

		json_set_text(one, "pack", hex_encode(p->pack.digest.b, SHA256_SIZE, hex));
		json_set_uint(one, "size", p->pack.size);
		json_set_text(one, "index", hex_encode(p->index.digest.b, SHA256_SIZE, hex));
		json_set_uint(one, "index_size", p->index.size);
	}
	r = json_append(&doc, &text, err);
	return r < 0 ? r
		     : fdio_swap_file(d->fd, ENGINE_LAZY_SOURCE, text.data, text.len, 0600, err);
}

static int read_digest(struct json j, const char *key, struct digest *ret)
{
	const char *hex = json_get_text(j, key);

	return hex && strlen(hex) == 2 * SHA256_SIZE
		   ? hex_decode(hex, strlen(hex), ret->b, sizeof(ret->b))
		   : -EINVAL;
}

static int read_packs(struct json list, struct lazy_source *ret, struct err *err)
{
	ret->packs = calloc(json_length(list) + 1, sizeof(*ret->packs));
	if (!ret->packs)
		return err_nomem(err);
	for (; ret->n < json_length(list); ret->n++) {
		const struct json one = json_at_object(list, ret->n);
		struct manifest_pack *p = &ret->packs[ret->n];

		if (read_digest(one, "pack", &p->pack.digest) < 0 ||
		    read_digest(one, "index", &p->index.digest) < 0)
			return err_set(err, -EBADMSG, "a pack of a lazy fetch has no digest");
		p->pack.size = json_get_uint(one, "size");
		p->index.size = json_get_uint(one, "index_size");
	}
	return 0;
}

int lazy_source_read(const struct lazy_dir *d, struct lazy_source *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j;
	int r = fdio_read_file(d->fd, ENGINE_LAZY_SOURCE, ENGINE_LAZY_SOURCE_MAX, &text, err);

	if (r == 0)
		r = json_parse(&doc, (const char *)text.data, text.len, &j, err);
	if (r < 0)
		return r;
	ret->url = json_get_name(j, "url");
	ret->name = json_get_name(j, "name");
	ret->from = json_get_name(j, "from");
	ret->rate = json_get_uint(j, "rate");
	ret->jobs = json_get_uint(j, "jobs");
	r = read_packs(json_get_array(j, "packs"), ret, err);
	return r < 0 ? r : json_end(&doc, err);
}

/* --- bytes -------------------------------------------------------------------------------- */

static int say_missing(const struct depot *depot, const struct digest *d, int r, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];

	return r == -ENOENT ? err_set(err, -EBADMSG, "'%s' is incomplete: blob %s is not there",
				      depot->url, digest_text(d, text))
			    : r;
}

int lazy_bring_index(const struct lazy_dir *d, struct depot *depot, const struct manifest_pack *p,
		     const struct depot_watch *watch, struct buf *out, struct err *err)
{
	char hex[SHA256_HEX_SIZE], name[PACK_NAME_SIZE];
	int r = depot_get(depot, &p->index.digest, (size_t)p->index.size, out, watch, err);

	if (r < 0)
		return say_missing(depot, &p->index.digest, r, err);
	hex_encode(p->pack.digest.b, SHA256_SIZE, hex);
	return fdio_swap_file(d->fd, pack_file_name(hex, "index", name), out->data, out->len, 0600,
			      err);
}

/* `n` frames from the first on are in the file. */
static int note_here(const struct lazy_dir *d, const char *hex, uint64_t first, uint64_t n,
		     struct err *err)
{
	char name[PACK_NAME_SIZE];
	AUTO_CLOSE int fd = openat(d->fd, pack_file_name(hex, "have", name),
				   O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	AUTO_FREE uint8_t *ones = malloc(n + 1);
	int r;

	if (fd < 0)
		return err_sys(err, "opening '%s'", name);
	if (!ones)
		return err_nomem(err);
	memset(ones, 1, n);
	r = fdio_pwrite(fd, ones, n, (off_t)first);
	return r < 0 ? err_set(err, r, "writing '%s': %s", name, strerror(-r)) : 0;
}

static int open_pack(const struct lazy_dir *d, const char *hex, struct err *err)
{
	char name[PACK_NAME_SIZE];
	int fd = openat(d->fd, pack_file_name(hex, "pack", name),
			O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(err, "opening '%s/%s'", d->path, name) : fd;
}

int lazy_bring_pack(const struct lazy_dir *d, struct depot *depot, const struct manifest_pack *p,
		    const struct buf *index, const struct depot_watch *watch, struct err *err)
{
	char hex[SHA256_HEX_SIZE];
	AUTO_CLOSE int fd = open_pack(d, hex_encode(p->pack.digest.b, SHA256_SIZE, hex), err);
	int r;

	if (fd < 0)
		return fd;
	r = depot_fetch(depot, &p->pack.digest, p->pack.size, fd, watch, err);
	if (r < 0)
		return say_missing(depot, &p->pack.digest, r, err);
	return note_here(d, hex, 0, pack_index_frames(index->data, index->len), err);
}

struct into_range {
	int fd;
	uint64_t at, left;
};

static int take(const void *data, size_t len, void *ctx)
{
	struct into_range *to = ctx;
	int r;

	if (len > to->left)
		return -EFBIG;
	r = fdio_pwrite(to->fd, data, len, (off_t)to->at);
	to->at += len;
	to->left -= len;
	return r;
}

int lazy_bring_range(const struct lazy_dir *d, struct depot *depot,
		     const struct engine_range *range, const struct depot_watch *watch,
		     struct err *err)
{
	AUTO_CLOSE int fd = open_pack(d, range->pack, err);
	struct into_range to = { .fd = fd, .at = range->at, .left = range->len };
	char text[DIGEST_TEXT_SIZE];
	struct digest pack;
	int r;

	if (fd < 0)
		return fd;
	if (hex_decode(range->pack, strlen(range->pack), pack.b, sizeof(pack.b)) < 0)
		return err_set(err, -EPROTO, "'%s' is no pack", range->pack);
	r = depot->ops->get_blob(depot, &pack, range->at, range->len, take, &to, watch, err);
	if (r == 0 && to.left > 0)
		return err_set(err, -EBADMSG, "blob %s of '%s' is shorter than its index says",
			       digest_text(&pack, text), depot->url);
	if (r == -EFBIG)
		return err_set(err, -EBADMSG, "'%s' sent more of blob %s than it was asked for",
			       depot->url, digest_text(&pack, text));
	if (r < 0)
		return say_missing(depot, &pack, r, err);
	return note_here(d, range->pack, range->frame, range->frames, err);
}
