/*
 * Small blobs of remotes, each in STORE/remote/cache under its digest: manifests, snapshots,
 * indexes. A blob never changes, and was compared with its digest when it came. A checksum after
 * it, of the blob and of that digest, shows that it is unchanged and has the right name. So nothing
 * in here can be out of date or wrong. The directory may be removed at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/le.h"
#include "base/path.h"
#include "base/sys.h"
#include "cowfs/store/object.h"
#include "engine/transfer/transfer-i.h"

#define CACHE_DIR  "remote/cache"
#define CACHE_SIZE ((uint64_t)128 << 20) /* beyond that all goes but what is needed now */
#define SUM_SIZE   sizeof(uint64_t)

static uint64_t sum_of(const struct digest *blob, const void *data, size_t len)
{
	return object_bytes_sum(data, len) ^ le64_load(blob->b);
}

/* Take the checksum off; false if it does not fit. */
static bool take_sum(const struct digest *blob, struct buf *b)
{
	if (b->len < SUM_SIZE ||
	    sum_of(blob, b->data, b->len - SUM_SIZE) != le64_load(b->data + b->len - SUM_SIZE))
		return false;
	b->len -= SUM_SIZE;
	return true;
}

static int get(void *ctx, const struct digest *blob, size_t max, struct buf *out)
{
	const struct cache *c = ctx;
	char hex[SHA256_HEX_SIZE];
	struct err ignored = { 0 };

	hex_encode(blob->b, sizeof(blob->b), hex);
	if (c->fd < 0 || fdio_read_file(c->fd, hex, max + SUM_SIZE, out, &ignored) < 0)
		return 0;
	if (take_sum(blob, out))
		return 1;
	/* A power failure may leave such a file, and versions that had the digest alone left others. */
	unlinkat(c->fd, hex, 0);
	buf_reset(out);
	return 0;
}

static void put(void *ctx, const struct digest *blob, const void *data, size_t len)
{
	CLEANUP(buf_done) struct buf file = BUF_INIT;
	const struct cache *c = ctx;
	char hex[SHA256_HEX_SIZE];
	struct err ignored = { 0 };

	hex_encode(blob->b, sizeof(blob->b), hex);
	if (c->fd >= 0 && buf_append(&file, data, len) == 0 &&
	    buf_append_u64(&file, sum_of(blob, data, len)) == 0)
		IGNORE_RESULT(fdio_swap_file(c->fd, hex, file.data, file.len, 0600, &ignored),
			      "it is brought again next time");
}

void cache_open(struct engine *e, struct cache *c)
{
	AUTO_FREE char *dir = NULL;
	struct err ignored = { 0 };

	*c = (struct cache){ .fd = -1 };
	c->depot = (struct depot_cache){ .get = get, .put = put, .ctx = c };
	/* A store that is not there yet is not made for this. */
	if (!engine_has_store(e) || transfer_dir(e, CACHE_DIR, &dir, &ignored) < 0)
		return;
	c->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cache_close(struct cache *c)
{
	cleanup_close(&c->fd);
}

#define NOTE_MAX ((size_t)64 << 20)

static const char *note_name(const struct digest *sealed, char name[SHA256_HEX_SIZE + 8])
{
	hex_encode(sealed->b, sizeof(sealed->b), name);
	strcat(name, ".plain");
	return name;
}

void cache_note(struct cache *c, const struct digest *sealed, const struct buf *plain)
{
	CLEANUP(buf_done) struct buf note = BUF_INIT;
	const struct digest d = digest_of(plain->data, plain->len);
	char name[SHA256_HEX_SIZE + 8];
	struct err ignored = { 0 };

	if (c->fd >= 0 && buf_append(&note, d.b, sizeof(d.b)) == 0 &&
	    buf_append(&note, plain->data, plain->len) == 0)
		IGNORE_RESULT(fdio_swap_file(c->fd, note_name(sealed, name), note.data, note.len,
					     0600, &ignored),
			      "it is opened with the key next time");
}

int cache_noted(struct cache *c, const struct digest *sealed, struct buf *out)
{
	CLEANUP(buf_done) struct buf note = BUF_INIT;
	char name[SHA256_HEX_SIZE + 8];
	struct err ignored = { 0 };
	struct digest d;

	if (c->fd < 0 ||
	    fdio_read_file(c->fd, note_name(sealed, name), NOTE_MAX, &note, &ignored) < 0 ||
	    note.len < sizeof(d.b))
		return 0;
	d = digest_of(note.data + sizeof(d.b), note.len - sizeof(d.b));
	if (memcmp(d.b, note.data, sizeof(d.b)) != 0)
		return 0;
	buf_reset(out);
	return buf_append(out, note.data + sizeof(d.b), note.len - sizeof(d.b)) == 0;
}

struct sweeping {
	int fd;
	const struct manifest *keep; /* NULL: only count */
	uint64_t size;
};

static bool is_kept(const struct manifest *m, const char *name)
{
	char hex[SHA256_HEX_SIZE];

	for (size_t i = 0; i < m->n; i++)
		if (strncmp(hex_encode(m->packs[i].index.digest.b, SHA256_SIZE, hex), name,
			    SHA256_HEX_SIZE - 1) == 0)
			return true;
	return strncmp(hex_encode(m->config.digest.b, SHA256_SIZE, hex), name,
		       SHA256_HEX_SIZE - 1) == 0;
}

static int on_name(const char *name, unsigned char type, void *ctx)
{
	struct sweeping *s = ctx;
	struct stat st;

	if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	s->size += (uint64_t)st.st_size;
	if (s->keep && !is_kept(s->keep, name))
		unlinkat(s->fd, name, 0);
	return 0;
}

static int walk(struct sweeping *s)
{
	AUTO_CLOSE int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : sys_each_name(fd, on_name, s);
}

void cache_sweep(struct cache *c, const struct manifest *keep)
{
	struct sweeping s = { .fd = c->fd };

	if (c->fd < 0 || walk(&s) < 0 || s.size <= CACHE_SIZE)
		return;
	s.keep = keep;
	IGNORE_RESULT(walk(&s), "the next transfer sweeps again");
}
