/*
 * A record: a sum of the rest (4 bytes), the length of the filter (2 bytes; TOO_MANY: there is
 * none, and everything may differ), both roots, the filter. Integers are little endian.
 *
 * A record is appended with one write(2), so writers need no lock among each other. A reader that
 * finds the file damaged, by a crash or a full disk, writes it anew. If two do that at once, lost
 * records are computed again.
 */
#include "engine/find/touched-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/le.h"
#include "base/vec.h"
#include "snapshot/diff/diff.h"

#define HEAD       (4 + 2 + 2 * OBJECT_ID_SIZE)
#define TOO_MANY   UINT16_MAX
#define BITS_EACH  10 /* with 7 places for each name, one answer in a hundred is a needless "may" */
#define PLACES     7
#define FILTER_MIN 8 /* bytes */
#define FILTER_MAX ((TOUCHED_NAME_MAX * BITS_EACH + 7) / 8)
#define FILE_MAX   ((size_t)256 << 20)
#define SLACK      1024 /* records of snapshots that are gone which do not matter */
#define NAME_SIZE  (sizeof(TOUCHED_DIR) + CATALOG_HEX_SIZE)
#define SUM_START  UINT64_C(0xcbf29ce484222325)
#define SUM_FACTOR UINT64_C(0x100000001b3)
#define MIX_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* Where a record lies, and what it is asked by. */
struct touched_step {
	struct object_id from, to;
	size_t at; /* of the record */
};

static uint64_t sum_of(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t sum = SUM_START;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * SUM_FACTOR;
	sum = (sum ^ (sum >> 32)) * MIX_FACTOR;
	return sum ^ (sum >> 29);
}

static uint64_t hash_step(const void *key)
{
	const struct touched_step *s = key;

	return le64_load(s->from.b) ^ (le64_load(s->to.b) * MIX_FACTOR);
}

static bool equal_step(const void *a, const void *b)
{
	const struct touched_step *x = a, *y = b;

	return object_id_equal(&x->from, &y->from) && object_id_equal(&x->to, &y->to);
}

/* --- filters ---------------------------------------------------------------------------- */

/* The bits of one name in a filter of `len` bytes. */
static size_t place_of(uint64_t sum, unsigned i, size_t len)
{
	const uint32_t first = (uint32_t)sum, step = (uint32_t)(sum >> 32) | 1;

	return (first + i * step) % (uint32_t)(len * 8);
}

static bool filter_may_hold(const uint8_t *filter, size_t len, uint64_t sum)
{
	for (unsigned i = 0; i < PLACES; i++) {
		const size_t bit = place_of(sum, i, len);

		if (!(filter[bit / 8] & (1 << (bit % 8))))
			return false;
	}
	return true;
}

void touched_path_done(struct touched_path *p)
{
	free(p->sums);
	*p = (struct touched_path){ 0 };
}

int touched_path_set(struct touched_path *p, const char *path, struct err *err)
{
	p->n = 0;
	for (const char *end = path;; end++) {
		if (*end != '/' && *end != '\0')
			continue;
		if (!VEC_ROOM(p->sums, p->n, p->cap))
			return err_nomem(err);
		p->sums[p->n++] = sum_of(path, (size_t)(end - path));
		if (*end == '\0')
			return 0;
	}
}

struct collecting {
	uint64_t sums[TOUCHED_NAME_MAX];
	size_t n;
};

/* A directory that came or went stands for all that is below it. */
static int collect(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct collecting *c = ctx;

	if (c->n == TOUCHED_NAME_MAX)
		return 1;
	c->sums[c->n++] = sum_of(e->path, strlen(e->path));
	return 0;
}

/* Append a record of the step to `out`. */
static int find_out(struct store *s, const struct object_id *from, const struct object_id *to,
		    struct buf *out, struct err *err)
{
	struct collecting c = { .n = 0 };
	const int r = diff_walk(s, from, to, &(struct diff_options){ 0 }, collect, &c, err);
	size_t len = (c.n * BITS_EACH + 7) / 8;
	uint8_t *p;

	if (r < 0)
		return r;
	len = r > 0 ? 0 : len < FILTER_MIN ? FILTER_MIN : len;
	p = buf_extend(out, HEAD + len);
	if (!p)
		return err_nomem(err);
	memset(p, 0, HEAD + len);
	le16_store(p + 4, r > 0 ? TOO_MANY : (uint16_t)len);
	memcpy(p + 6, from->b, OBJECT_ID_SIZE);
	memcpy(p + 6 + OBJECT_ID_SIZE, to->b, OBJECT_ID_SIZE);
	for (size_t k = 0; k < c.n && len > 0; k++)
		for (unsigned i = 0; i < PLACES; i++) {
			const size_t bit = place_of(c.sums[k], i, len);

			p[HEAD + bit / 8] |= (uint8_t)(1 << (bit % 8));
		}
	le32_store(p, (uint32_t)sum_of(p + 4, HEAD - 4 + len));
	return 0;
}

/* --- the file --------------------------------------------------------------------------- */

static const char *name_of(const struct catalog_id *project, char name[NAME_SIZE])
{
	char hex[CATALOG_HEX_SIZE];

	snprintf(name, NAME_SIZE, TOUCHED_DIR "/%s", catalog_id_hex(project, hex));
	return name;
}

static int open_store(const struct store *s)
{
	return open(store_path(s), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* How long the record is; 0: none is there. */
static size_t record_len(const struct buf *file, size_t at)
{
	const uint8_t *p = file->data + at;
	const size_t left = file->len - at;
	size_t len;

	if (left < HEAD)
		return 0;
	len = le16_load(p + 4);
	if (len == TOO_MANY)
		len = 0;
	else if (len < FILTER_MIN || len > FILTER_MAX)
		return 0;
	len += HEAD;
	return len <= left && le32_load(p) == (uint32_t)sum_of(p + 4, len - 4) ? len : 0;
}

/* Enter the record at `at`. */
static int enter(struct touched *t, size_t at, struct err *err)
{
	AUTO_FREE struct touched_step *one = calloc(1, sizeof(*one));
	void *twin;

	if (!one || !VEC_ROOM(t->list, t->n, t->cap))
		return err_nomem(err);
	one->at = at;
	memcpy(one->from.b, t->records.data + at + 6, OBJECT_ID_SIZE);
	memcpy(one->to.b, t->records.data + at + 6 + OBJECT_ID_SIZE, OBJECT_ID_SIZE);
	if (map_add(&t->steps, one, one, &twin) < 0)
		return err_nomem(err);
	t->list[t->n++] = TAKE_PTR(one);
	return 0;
}

static int enter_all(struct touched *t, struct err *err)
{
	size_t len;
	int r;

	for (; t->saved < t->records.len; t->saved += len) {
		len = record_len(&t->records, t->saved);
		t->damaged = len == 0;
		if (t->damaged)
			break;
		r = enter(t, t->saved, err);
		if (r < 0)
			return r;
	}
	t->records.len = t->saved;
	return 0;
}

int touched_open(struct store *s, const struct catalog_id *project, struct touched *ret,
		 struct err *err)
{
	CLEANUP(touched_done) struct touched t = { .store = s,
						   .project = *project,
						   .steps = MAP_INIT(hash_step, equal_step) };
	AUTO_CLOSE int dir = open_store(s);
	char name[NAME_SIZE];
	int r = 0;

	if (dir >= 0)
		IGNORE_RESULT(
		    fdio_read_file(dir, name_of(project, name), FILE_MAX, &t.records, NULL),
		    "what it says is found out again");
	r = enter_all(&t, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(t);
	return 0;
}

void touched_done(struct touched *t)
{
	VEC_FREE(one, t->list, t->n, free(*one));
	buf_done(&t->records);
	map_done(&t->steps);
	*t = (struct touched){ 0 };
}

/* Records with one write(2). */
static void append(struct store *s, const struct catalog_id *project, const void *records,
		   size_t len)
{
	AUTO_CLOSE int dir = open_store(s);
	AUTO_CLOSE int fd = -1;
	char name[NAME_SIZE];

	if (dir < 0 || (mkdirat(dir, TOUCHED_DIR, 0700) < 0 && errno != EEXIST))
		return;
	fd = openat(dir, name_of(project, name),
		    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		IGNORE_RESULT(fdio_write(fd, records, len), "a reader mends what is torn");
}

/* Write the file anew, of what is whole and needed. */
static void rewrite(struct touched *t, touched_lives lives, const void *ctx)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;
	AUTO_CLOSE int dir = open_store(t->store);
	char name[NAME_SIZE];

	for (size_t i = 0; i < t->n; i++) {
		const struct touched_step *s = t->list[i];

		if (!lives(&s->from, ctx) || !lives(&s->to, ctx) || map_get(&t->steps, s) != s)
			continue;
		if (buf_append(&all, t->records.data + s->at, record_len(&t->records, s->at)) < 0)
			return;
	}
	if (dir >= 0)
		IGNORE_RESULT(
		    fdio_swap_file(dir, name_of(&t->project, name), all.data, all.len, 0600, NULL),
		    "what is lost is found out again");
}

bool touched_has_news(const struct touched *t)
{
	return t->damaged || t->records.len > t->saved;
}

void touched_save(struct touched *t, touched_lives lives, const void *ctx)
{
	size_t stale = 0;

	for (size_t i = 0; i < t->n; i++)
		stale += !lives(&t->list[i]->from, ctx) || !lives(&t->list[i]->to, ctx);
	if (t->damaged || stale > SLACK + t->n / 2)
		rewrite(t, lives, ctx);
	else if (t->records.len > t->saved)
		append(t->store, &t->project, t->records.data + t->saved,
		       t->records.len - t->saved);
	t->saved = t->records.len;
	t->damaged = false;
}

/* --- asking ----------------------------------------------------------------------------- */

static int ask_record(const uint8_t *record, const struct touched_path *path)
{
	const size_t len = le16_load(record + 4);

	if (len == TOO_MANY)
		return 1;
	for (size_t i = 0; i < path->n; i++)
		if (filter_may_hold(record + HEAD, len, path->sums[i]))
			return 1;
	return 0;
}

int touched_ask(struct touched *t, const struct object_id *from, const struct object_id *to,
		const struct touched_path *path, struct err *err)
{
	const struct touched_step key = { .from = *from, .to = *to };
	const struct touched_step *known;
	const size_t at = t->records.len;
	int r;

	if (object_id_equal(from, to))
		return 0;
	known = map_get(&t->steps, &key);
	if (known)
		return ask_record(t->records.data + known->at, path);
	r = find_out(t->store, from, to, &t->records, err);
	if (r == -ENOMEM)
		return r;
	/* What cannot be read need not be on the way to the path. */
	if (r < 0) {
		*err = (struct err){ 0 };
		return 1;
	}
	r = enter(t, at, err);
	return r < 0 ? r : ask_record(t->records.data + at, path);
}

void touched_note(struct store *s, const struct catalog_id *project, const struct object_id *from,
		  const struct object_id *to)
{
	CLEANUP(buf_done) struct buf record = BUF_INIT;

	if (!object_id_equal(from, to) && find_out(s, from, to, &record, NULL) >= 0)
		append(s, project, record.data, record.len);
}

void touched_forget(struct store *s, const struct catalog_id *project)
{
	AUTO_CLOSE int dir = open_store(s);
	char name[NAME_SIZE];

	if (dir >= 0)
		unlinkat(dir, name_of(project, name), 0);
}
