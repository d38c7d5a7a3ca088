/*
 * store-size.c - how much of the disk a store takes, and how much more it may take.
 */
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cowfs/store/store-i.h"

uint64_t store_size_on_disk(const char *path, const char *suffix)
{
	struct stat st;
	AUTO_FREE char *p = text_format("%s%s", path, suffix);

	if (!p)
		return 0;
	return stat(p, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t store_file_bytes(struct store *s)
{
	uint64_t sum = 0;

	for (int t = 0; t < TABLES; t++)
		sum += store_size_on_disk(db_path(s->writer[t]), "");
	return sum;
}

int store_size_free(struct db *db, uint64_t *sum, struct err *err)
{
	int64_t pages = 0, page_size = 0;
	int r = db_int(db, "PRAGMA freelist_count", &pages, err);

	if (r < 0)
		return r;
	r = db_int(db, "PRAGMA page_size", &page_size, err);
	if (r < 0)
		return r;
	*sum += (uint64_t)(pages * page_size);
	return 0;
}

int store_free_bytes(struct store *s, uint64_t *ret, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	uint64_t sum = 0;
	int r = reader_take(s, &rd, err);

	for (int t = 0; r >= 0 && t < TABLES; t++)
		r = store_size_free(rd->db[t], &sum, err);
	if (r < 0)
		return r;
	*ret = sum;
	return 0;
}

uint64_t store_limit_left(struct store *s)
{
	const uint64_t limit = s->limit;
	uint64_t taken;

	if (limit == 0 || s->mode == STORE_READ)
		return UINT64_MAX;
	taken = store_file_bytes(s);
	for (int t = 0; t < TABLES; t++)
		taken += store_size_on_disk(db_path(s->writer[t]), "-wal");
	return taken < limit ? limit - taken : 0;
}
