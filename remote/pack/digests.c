/*
 * The file: "SNPD", u32 version, u64 count, then for each entry u8 kind, 16 bytes of id, 32 of digest;
 * last a checksum of all that.  In version 1 it was the SHA-256, which took longer than all the rest.
 */
#include "remote/pack/digests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/le.h"
#include "base/path.h"

#define MAGIC      "SNPD"
#define VERSION    2
#define HEAD_SIZE  16
#define ENTRY_SIZE (1 + OBJECT_ID_SIZE + SHA256_SIZE)
#define SUM_SIZE   8
#define FILE_MAX   (HEAD_SIZE + DIGESTS_MAX * ENTRY_SIZE + SHA256_SIZE)

void digests_done(struct digests *d)
{
	buf_done(&d->file);
	buf_done(&d->used);
	slots_done(&d->slots);
	*d = (struct digests){ 0 };
}

/* An id is a hash already. */
static uint32_t hash_of(uint8_t kind, const struct object_id *id)
{
	return le32_load(id->b) + kind;
}

static uint8_t *entry_at(const struct digests *d, size_t i)
{
	return d->file.data + HEAD_SIZE + i * ENTRY_SIZE;
}

/* Its number; SLOTS_NONE: it is not there. */
static size_t find_digest(const struct digests *d, uint8_t kind, const struct object_id *id)
{
	const uint32_t hash = hash_of(kind, id);
	size_t at = hash, i;

	while ((i = slots_next(&d->slots, hash, &at)) != SLOTS_NONE) {
		const uint8_t *e = entry_at(d, i);

		if (e[0] == kind && memcmp(e + 1, id->b, sizeof(id->b)) == 0)
			break;
	}
	return i;
}

bool digests_find(struct digests *d, enum object_kind kind, const struct object_id *id,
		  struct digest *ret)
{
	const size_t i = find_digest(d, (uint8_t)kind, id);

	if (i == SLOTS_NONE)
		return false;
	d->used.data[i] = 1;
	memcpy(ret->b, entry_at(d, i) + 1 + sizeof(id->b), sizeof(ret->b));
	return true;
}

static int begin(struct digests *d)
{
	if (buf_append(&d->file, MAGIC, 4) < 0 || buf_append_u32(&d->file, VERSION) < 0)
		return -ENOMEM;
	return buf_append_u64(&d->file, 0);
}

static int append(struct digests *d, uint8_t kind, const struct object_id *id,
		  const struct digest *digest)
{
	uint8_t *e;

	if (d->file.len == 0 && begin(d) < 0)
		return -ENOMEM;
	if (buf_reserve(&d->file, ENTRY_SIZE) < 0 || buf_reserve(&d->used, 1) < 0 ||
	    slots_add(&d->slots, hash_of(kind, id), d->n) < 0)
		return -ENOMEM;
	IGNORE_RESULT(buf_append_u8(&d->used, 1), "there is room");
	e = buf_extend(&d->file, ENTRY_SIZE);
	e[0] = kind;
	memcpy(e + 1, id->b, sizeof(id->b));
	memcpy(e + 1 + sizeof(id->b), digest->b, sizeof(digest->b));
	d->n++;
	d->changed = true;
	return 0;
}

int digests_add(struct digests *d, enum object_kind kind, const struct object_id *id,
		const struct digest *digest)
{
	const size_t i = find_digest(d, (uint8_t)kind, id);
	uint8_t *have;

	if (i == SLOTS_NONE)
		return append(d, (uint8_t)kind, id, digest);
	have = entry_at(d, i) + 1 + sizeof(id->b);
	d->used.data[i] = 1;
	d->changed |= memcmp(have, digest->b, sizeof(digest->b)) != 0;
	memcpy(have, digest->b, sizeof(digest->b));
	return 0;
}

/* --- the file ----------------------------------------------------------------------------- */

static bool sum_fits(const struct buf *file, size_t sum_size)
{
	const size_t len = file->len - sum_size;
	struct digest have;

	if (sum_size == SUM_SIZE)
		return object_bytes_sum(file->data, len) == le64_load(file->data + len);
	have = digest_of(file->data, len);
	return memcmp(have.b, file->data + len, sizeof(have.b)) == 0;
}

static bool is_whole(const struct buf *file)
{
	size_t sum_size, entries;

	if (file->len < HEAD_SIZE + SHA256_SIZE || memcmp(file->data, MAGIC, 4) != 0)
		return false;
	if (le32_load(file->data + 4) != VERSION && le32_load(file->data + 4) != 1)
		return false;
	sum_size = le32_load(file->data + 4) == VERSION ? SUM_SIZE : SHA256_SIZE;
	entries = file->len - HEAD_SIZE - sum_size;
	return entries % ENTRY_SIZE == 0 && entries / ENTRY_SIZE == le64_load(file->data + 8) &&
	       sum_fits(file, sum_size);
}

/* Take a file that is whole. */
static int enter(struct digests *d, struct buf *file)
{
	const size_t n = le64_load(file->data + 8);

	if (slots_reserve(&d->slots, n) < 0 || buf_append_zero(&d->used, n) < 0)
		return -ENOMEM;
	buf_swap(&d->file, file);
	d->file.len = HEAD_SIZE + n * ENTRY_SIZE;
	le32_store(d->file.data + 4, VERSION);
	for (d->n = 0; d->n < n; d->n++) {
		const uint8_t *e = entry_at(d, d->n);
		struct object_id id;

		memcpy(id.b, e + 1, sizeof(id.b));
		if (slots_add(&d->slots, hash_of(e[0], &id), d->n) < 0)
			return -ENOMEM;
	}
	return 0;
}

int digests_load(struct digests *d, const char *dir, struct err *err)
{
	CLEANUP(buf_done) struct buf file = BUF_INIT;
	AUTO_FREE char *path = path_join(dir, DIGESTS_FILE);
	struct err ignored = { 0 };
	int r;

	if (!path)
		return err_nomem(err);
	r = fdio_read_file(AT_FDCWD, path, FILE_MAX, &file, &ignored);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || !is_whole(&file))
		return 0;
	return enter(d, &file) < 0 ? err_nomem(err) : 0;
}

/* Only what was used. */
static int drop_unused(struct digests *d, struct digests *ret)
{
	for (size_t i = 0; i < d->n && ret->n < DIGESTS_MAX; i++) {
		const uint8_t *e = entry_at(d, i);
		struct object_id id;
		struct digest digest;

		if (!d->used.data[i])
			continue;
		memcpy(id.b, e + 1, sizeof(id.b));
		memcpy(digest.b, e + 1 + sizeof(id.b), sizeof(digest.b));
		if (append(ret, e[0], &id, &digest) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int write_file(struct digests *d, int dir, struct err *err)
{
	int r;

	if (d->file.len == 0 && begin(d) < 0)
		return err_nomem(err);
	le64_store(d->file.data + 8, d->n);
	r = buf_append_u64(&d->file, object_bytes_sum(d->file.data, d->file.len));
	if (r < 0)
		return err_nomem(err);
	r = fdio_swap_file(dir, DIGESTS_FILE, d->file.data, d->file.len, 0600, err);
	d->file.len -= SUM_SIZE;
	return r;
}

int digests_save(struct digests *d, const char *dir, struct err *err)
{
	CLEANUP(digests_done) struct digests fewer = { 0 };
	AUTO_CLOSE int fd = -1;

	if (!d->changed)
		return 0;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening '%s'", dir);
	if (d->n <= DIGESTS_MAX)
		return write_file(d, fd, err);
	return drop_unused(d, &fewer) < 0 ? err_nomem(err) : write_file(&fewer, fd, err);
}
