/*
 * A lazy fetch is a capture whose files are on a remote. The tree of its record says what each
 * promise stands for, and which packs have it; a directory of the store has the parts of packs that
 * have come, which can be fetched again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/json.h"
#include "base/le.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/settle.h"
#include "cowfs/store/tree.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define ROW_SIZE 40

/* STORE/remote/lazy/ID; owned. */
static char *dir_path(const struct promising *c)
{
	char hex[CATALOG_HEX_SIZE];
	AUTO_FREE char *all = path_join(c->all->host->dir, ENGINE_LAZY_DIR);

	return all ? path_join(all, catalog_id_hex(&c->record.id, hex)) : NULL;
}

/* --- what is in the record ---------------------------------------------------------------- */

/* A file of the record's tree, whole. */
static int read_file(struct promising *c, const char *name, size_t max, struct buf *out,
		     struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct store *s = c->all->host->store;
	struct content content;
	struct tree_entry e;
	struct root root;
	ssize_t n = 0;
	int r = root_get(s, &c->record.root, &root, err);

	r = r < 0 ? r : tree_lookup(s, &root.top.id, name, strlen(name), &e, &hold, err);
	if (r < 0)
		return r == -ENOENT ? err_set(err, -EBADMSG, "a lazy fetch does not say '%s'", name)
				    : r;
	content = tree_entry_content(&e);
	if (content.size > max || !buf_extend(out, content.size))
		return err_nomem(err);
	r = content_reader_new(s, &content, &rd, err);
	if (r >= 0)
		n = content_reader_read(rd, 0, out->data, out->len, err);
	return r < 0 ? r : n < 0 ? (int)n : 0;
}

/* One row: which promise it is of is computed. */
static int load_row(struct promising *c, const uint8_t *row, uint32_t number, struct err *err)
{
	const uint64_t word = le64_load(row);
	struct supply_file *f = &c->files[number];
	struct object_ref key = { .kind = OBJECT_CHUNK };
	struct promise *one;

	*f = (struct supply_file){ .kind = (enum object_kind)(word >> 56), .size = word << 8 >> 8 };
	memcpy(f->digest.b, row + 8, sizeof(f->digest.b));
	if (f->kind != OBJECT_CHUNK && f->kind != OBJECT_RECIPE)
		return err_set(err, -EBADMSG, "a promise of a lazy fetch is of no known kind");
	key.id = settle_promise_remote(store_key(c->all->host->store), &c->record.id, f->kind,
				       f->size, f->digest.b);
	one = map_get(&c->by_id, &key);
	if (one)
		one->file = number + 1;
	return 0;
}

static int load_rows(struct promising *c, struct err *err)
{
	CLEANUP(buf_done) struct buf rows = BUF_INIT;
	const struct promise *one;
	int r = read_file(c, PROMISED_NAME, (size_t)UINT32_MAX, &rows, err);

	if (r < 0)
		return r;
	c->n_files = rows.len / ROW_SIZE;
	c->files = calloc(c->n_files + 1, sizeof(*c->files));
	if (!c->files)
		return err_nomem(err);
	for (size_t i = 0; r >= 0 && i < c->n_files; i++)
		r = load_row(c, rows.data + i * ROW_SIZE, (uint32_t)i, err);
	for (size_t pos = 0; r >= 0 && (one = map_next(&c->by_id, &pos));)
		if (one->file == 0 && one->state == PROMISE_OPEN)
			return err_set(err, -EBADMSG, "nobody knows what '%s' was promised to be",
				       one->path ? one->path : "?");
	return r;
}

static int load_packs(struct promising *c, struct json packs, struct err *err)
{
	size_t cap = 0;

	for (size_t i = 0; i < json_length(packs); i++) {
		char *hex = json_get_name(json_at_object(packs, i), "pack");

		if (!hex || !VEC_ROOM(c->packs, c->n_packs, cap)) {
			free(hex);
			return err_set(err, -EBADMSG, "a lazy fetch does not name its packs");
		}
		c->packs[c->n_packs++] = hex;
	}
	return 0;
}

/* The process that brings frames reads the same text, from a file, which may have been lost with the power. */
static bool is_written(int dir, const struct buf *text)
{
	CLEANUP(buf_done) struct buf have = BUF_INIT;
	struct err ignored = { 0 };

	return fdio_read_file(dir, ENGINE_LAZY_SOURCE, ENGINE_LAZY_SOURCE_MAX, &have, &ignored) >=
		   0 &&
	       have.len == text->len && memcmp(have.data, text->data, have.len) == 0;
}

static int write_source(const struct promising *c, const struct buf *text, struct err *err)
{
	AUTO_FREE char *path = dir_path(c);
	AUTO_CLOSE int fd = -1;
	int r = path ? path_make_dirs(path, 0700, err) : err_nomem(err);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening '%s'", path);
	if (is_written(fd, text))
		return 0;
	return fdio_swap_file(fd, ENGINE_LAZY_SOURCE, text->data, text->len, 0600, err);
}

static int load_source(struct promising *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *from = NULL;
	struct json j;
	int r = read_file(c, SOURCE_NAME, ENGINE_LAZY_SOURCE_MAX, &text, err);

	if (r == 0)
		r = json_parse(&doc, (const char *)text.data, text.len, &j, err);
	if (r == 0)
		r = load_packs(c, json_get_array(j, "packs"), err);
	if (r < 0)
		return r;
	from = json_get_name(j, "from");
	/* This may be another attempt, and others name it meanwhile. */
	pthread_mutex_lock(&c->all->lock);
	if (!c->from)
		c->from = TAKE_PTR(from);
	pthread_mutex_unlock(&c->all->lock);
	r = json_end(&doc, err);
	return r < 0 ? r : write_source(c, &text, err);
}

int promising_load_remote(struct promising *c, struct err *err)
{
	AUTO_FREE char *known = path_join(c->all->host->dir, DIGESTS_DIR);
	int r;

	promising_close_remote(c);
	r = known ? load_source(c, err) : err_nomem(err);
	r = r < 0 ? r : load_rows(c, err);
	return r < 0 ? r : digests_load(&c->known, known, err);
}

void promising_close_remote(struct promising *c)
{
	for (size_t i = 0; i < c->n_packs; i++)
		free(c->packs[i]);
	free(TAKE_PTR(c->packs));
	free(TAKE_PTR(c->files));
	free(TAKE_PTR(c->wanted));
	supply_free(TAKE_PTR(c->supply));
	digests_done(&c->known);
	c->known = (struct digests){ 0 };
	c->n_packs = c->n_files = c->n_wanted = c->cap_wanted = 0;
}

/* --- the directory ------------------------------------------------------------------------ */

struct placed {
	uint64_t at; /* small files first, in the order in which they come */
	struct promise *one;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int place_all(struct promising *c, struct supply *s, struct err *err)
{
	AUTO_FREE struct placed *list = calloc(c->n + 1, sizeof(*list));

	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < c->n_files; i++)
		if (!supply_place(s, &c->files[i]))
			return err_set(err, -EBADMSG, "a promised file is in no pack");
	for (size_t i = 0; i < c->n; i++) {
		list[i].one = c->list[i];
		if (c->list[i]->file > 0) {
			const struct supply_file *f = promise_file(c, c->list[i]);

			list[i].at = (uint64_t)(f->kind != OBJECT_CHUNK) << 63 |
				     (uint64_t)f->pack << 32 | f->frame;
		}
	}
	qsort(list, c->n, sizeof(*list), by_place);
	pthread_mutex_lock(&c->all->lock);
	for (size_t i = 0; i < c->n; i++)
		c->list[i] = list[i].one;
	c->next = 0;
	pthread_mutex_unlock(&c->all->lock);
	return 0;
}

int promising_open_supply(struct promising *c, struct err *err)
{
	CLEANUP(supply_free_p) struct supply *s = NULL;
	AUTO_FREE char *path = dir_path(c);
	int r = path ? supply_open(path, c->packs, c->n_packs, &s, err) : err_nomem(err);

	r = r < 0 ? r : place_all(c, s, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&c->all->lock);
	c->supply = TAKE_PTR(s);
	c->wants_due = c->large_due = true;
	pthread_cond_broadcast(&c->all->changed);
	pthread_mutex_unlock(&c->all->lock);
	return 0;
}

static int remove_one(const char *name, unsigned char type, void *ctx)
{
	const int *fd = ctx;

	unlinkat(*fd, name, 0);
	return 0;
}

/* The lock of a process that still works here goes too; what it brings goes nowhere. */
static void remove_dir(int all, const char *name)
{
	AUTO_CLOSE int fd = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	IGNORE_RESULT(sys_each_name(fd, remove_one, &fd), "the next start sweeps again");
	unlinkat(all, name, AT_REMOVEDIR);
}

/* STORE/remote/lazy, or -1. */
static int open_all(const struct promises *p)
{
	AUTO_FREE char *all = path_join(p->host->dir, ENGINE_LAZY_DIR);

	return all ? open(all, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

struct sweeping {
	struct promises *p;
	int all;
};

/* Is the command that made it still at work there? */
static bool is_locked(int all, const char *name)
{
	char path[CATALOG_HEX_SIZE + 8];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "%s/" ENGINE_LAZY_LOCK, name);
	fd = openat(all, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	/* One with files and without a lock was removed while somebody wrote there. */
	return fd < 0 ? errno != ENOENT : flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static int sweep_one(const char *name, unsigned char type, void *ctx)
{
	const struct sweeping *s = ctx;
	char hex[CATALOG_HEX_SIZE];

	if (strlen(name) != sizeof(hex) - 1)
		return 0;
	for (const struct promising *c = s->p->first; c; c = c->after)
		if (strcmp(catalog_id_hex(&c->record.id, hex), name) == 0)
			return 0;
	/* An empty one has no lock yet, and never gets one if its command is dead. */
	if (unlinkat(s->all, name, AT_REMOVEDIR) < 0 && !is_locked(s->all, name))
		remove_dir(s->all, name);
	return 0;
}

void promises_sweep_incoming(struct promises *p)
{
	AUTO_FREE char *path = path_join(p->host->dir, ENGINE_LAZY_DIR);
	AUTO_CLOSE int all = open_all(p);

	if (all >= 0)
		IGNORE_RESULT(sys_each_name(all, sweep_one, &(struct sweeping){ p, all }),
			      "the next start sweeps again");
	if (all >= 0 && path)
		rmdir(path); /* if no fetch is under way */
}

void promising_end_remote(struct promising *c)
{
	AUTO_FREE char *dir = path_join(c->all->host->dir, DIGESTS_DIR);
	AUTO_FREE char *path = path_join(c->all->host->dir, ENGINE_LAZY_DIR);
	AUTO_CLOSE int all = open_all(c->all);
	char hex[CATALOG_HEX_SIZE];
	struct err ignored = { 0 };
	struct supply *supply;

	pthread_mutex_lock(&c->all->lock);
	while (c->in_use > 0)
		pthread_cond_wait(&c->all->changed, &c->all->lock);
	supply = TAKE_PTR(c->supply);
	pthread_mutex_unlock(&c->all->lock);
	supply_free(supply);
	if (all >= 0)
		remove_dir(all, catalog_id_hex(&c->record.id, hex));
	if (path)
		rmdir(path); /* while no other fetch is under way */
	if (dir && !c->unneeded)
		IGNORE_RESULT(digests_save(&c->known, dir, &ignored),
			      "a push reads the files once more, then");
}
