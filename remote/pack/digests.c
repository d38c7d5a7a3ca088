/*
 * The file: "SNPD", u32 version, u64 count, then for each entry u8 kind, 16 bytes of id, 32 of digest;
 * last the SHA-256 of all that.
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
#define VERSION    1
#define HEAD_SIZE  16
#define ENTRY_SIZE (1 + OBJECT_ID_SIZE + SHA256_SIZE)
#define FILE_MAX   (HEAD_SIZE + DIGESTS_MAX * ENTRY_SIZE + SHA256_SIZE)
#define CAP_MIN    1024

struct digests_slot {
	struct object_id id;
	struct digest digest;
	uint8_t kind; /* 0: free */
	bool used;
};

void digests_done(struct digests *d)
{
	free(d->slots);
	*d = (struct digests){ 0 };
}

static struct digests_slot *slot_of(const struct digests *d, uint8_t kind,
				    const struct object_id *id)
{
	size_t at = (size_t)(le64_load(id->b) + kind) & (d->cap - 1);

	for (;; at = (at + 1) & (d->cap - 1)) {
		struct digests_slot *slot = &d->slots[at];

		if (slot->kind == 0 || (slot->kind == kind && object_id_equal(&slot->id, id)))
			return slot;
	}
}

static int resize(struct digests *d, size_t cap)
{
	struct digests more = { .cap = cap, .n = d->n, .changed = d->changed };

	more.slots = calloc(cap, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < d->cap; i++)
		if (d->slots[i].kind)
			*slot_of(&more, d->slots[i].kind, &d->slots[i].id) = d->slots[i];
	free(d->slots);
	*d = more;
	return 0;
}

static struct digests_slot *add(struct digests *d, uint8_t kind, const struct object_id *id,
				const struct digest *digest)
{
	struct digests_slot *slot;

	if (d->cap == 0 || d->n >= d->cap / 2)
		if (resize(d, d->cap ? 2 * d->cap : CAP_MIN) < 0)
			return NULL;
	slot = slot_of(d, kind, id);
	if (!slot->kind)
		d->n++;
	slot->kind = kind;
	slot->id = *id;
	slot->digest = *digest;
	return slot;
}

bool digests_find(struct digests *d, enum object_kind kind, const struct object_id *id,
		  struct digest *ret)
{
	struct digests_slot *slot = d->n > 0 ? slot_of(d, (uint8_t)kind, id) : NULL;

	if (!slot || !slot->kind)
		return false;
	slot->used = true;
	*ret = slot->digest;
	return true;
}

int digests_add(struct digests *d, enum object_kind kind, const struct object_id *id,
		const struct digest *digest)
{
	struct digests_slot *slot = add(d, (uint8_t)kind, id, digest);

	if (!slot)
		return -ENOMEM;
	slot->used = true;
	d->changed = true;
	return 0;
}

/* --- the file ----------------------------------------------------------------------------- */

static bool is_whole(const struct buf *file)
{
	struct digest have;

	if (file->len < HEAD_SIZE + SHA256_SIZE || memcmp(file->data, MAGIC, 4) != 0 ||
	    le32_load(file->data + 4) != VERSION)
		return false;
	if ((file->len - HEAD_SIZE - SHA256_SIZE) / ENTRY_SIZE != le64_load(file->data + 8) ||
	    (file->len - HEAD_SIZE - SHA256_SIZE) % ENTRY_SIZE != 0)
		return false;
	have = digest_of(file->data, file->len - SHA256_SIZE);
	return memcmp(have.b, file->data + file->len - SHA256_SIZE, SHA256_SIZE) == 0;
}

static int enter(struct digests *d, const struct buf *file)
{
	const uint64_t n = le64_load(file->data + 8);
	const uint8_t *at = file->data + HEAD_SIZE;
	size_t cap = CAP_MIN;

	while (cap / 2 <= n)
		cap *= 2;
	if (resize(d, cap) < 0)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++, at += ENTRY_SIZE) {
		struct object_id id;
		struct digest digest;

		memcpy(id.b, at + 1, sizeof(id.b));
		memcpy(digest.b, at + 1 + sizeof(id.b), sizeof(digest.b));
		if (at[0] == 0 || at[0] > OBJECT_KINDS)
			continue;
		if (!add(d, at[0], &id, &digest))
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

static int append_entry(struct buf *out, const struct digests_slot *slot)
{
	uint8_t entry[ENTRY_SIZE];

	entry[0] = slot->kind;
	memcpy(entry + 1, slot->id.b, sizeof(slot->id.b));
	memcpy(entry + 1 + sizeof(slot->id.b), slot->digest.b, sizeof(slot->digest.b));
	return buf_append(out, entry, sizeof(entry));
}

static int encode(const struct digests *d, struct buf *out)
{
	const bool all = d->n <= DIGESTS_MAX;
	struct digest sum;
	uint64_t n = 0;
	int r;

	r = buf_append(out, MAGIC, 4);
	if (r == 0)
		r = buf_append_u32(out, VERSION);
	if (r == 0)
		r = buf_append_u64(out, 0);
	for (size_t i = 0; r == 0 && i < d->cap && n < DIGESTS_MAX; i++) {
		if (!d->slots[i].kind || !(all || d->slots[i].used))
			continue;
		r = append_entry(out, &d->slots[i]);
		n++;
	}
	if (r < 0)
		return r;
	le64_store(out->data + 8, n);
	sum = digest_of(out->data, out->len);
	return buf_append(out, sum.b, sizeof(sum.b));
}

int digests_save(const struct digests *d, const char *dir, struct err *err)
{
	CLEANUP(buf_done) struct buf file = BUF_INIT;
	AUTO_CLOSE int fd = -1;

	if (!d->changed)
		return 0;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening '%s'", dir);
	if (encode(d, &file) < 0)
		return err_nomem(err);
	return fdio_swap_file(fd, DIGESTS_FILE, file.data, file.len, 0600, err);
}
