/*
 * A capture's promises are not stored as a list: until it is settled, its snapshot names them. The
 * kept and lost ones are in the tree of the capture's record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/lock.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

static void promise_free(struct promise *one)
{
	free(one->path);
	free(one->why);
	free(one);
}

static void close_project(struct promising *p)
{
	int top = atomic_exchange(&p->top, -1);

	cleanup_close(&top);
	cache_free(TAKE_PTR(p->cache));
}

/* lock held */
static void free_lists(struct promising *p)
{
	free(TAKE_PTR(p->list));
	p->n = p->next = 0;
	free(TAKE_PTR(p->hurried));
	p->n_hurried = p->cap_hurried = 0;
}

struct map promising_forget_kept(struct promising *p)
{
	struct map kept = p->by_id;
	struct promise *one;

	p->by_id = MAP_INIT(kept.hash, kept.equal);
	for (size_t pos = 0; p->lost > 0 && (one = map_next(&kept, &pos));) {
		if (one->state != PROMISE_LOST)
			continue;
		map_remove(&kept, &one->what);
		/* Without memory it is unreadable all the same, and only has no name. */
		if (map_add(&p->by_id, &one->what, one, NULL) != 0)
			promise_free(one);
	}
	free_lists(p);
	close_project(p);
	return kept;
}

void promising_free_kept(struct map *kept)
{
	struct promise *one;

	for (size_t pos = 0; (one = map_next(kept, &pos));)
		promise_free(one);
	map_done(kept);
}

/* What an index has, or an attempt at one that failed. */
static void index_clear(struct promising *p)
{
	promising_free_kept(&p->by_id);
	close_project(p);
	p->saved = 0;
	LOCKED(&p->all->lock);
	free_lists(p);
}

void promising_free(struct promising *p)
{
	if (!p)
		return;
	index_clear(p);
	promising_close_remote(p);
	pthread_mutex_destroy(&p->saving);
	signatures_free(p->signatures);
	free(p->heirs);
	free(p->from);
	free(p->dir);
	free(p);
}

struct promise *promising_add(struct promising *p, const struct object_id *id, uint64_t size,
			      struct err *err)
{
	struct promise *one = calloc(1, sizeof(*one));
	void *other = NULL;
	int r;

	if (!one) {
		err_nomem(err);
		return NULL;
	}
	one->what = (struct object_ref){ .id = *id, .kind = OBJECT_CHUNK };
	one->size = size;
	one->nth = (uint32_t)p->by_id.n;
	r = map_add(&p->by_id, &one->what, one, &other);
	if (r == 0)
		return one;
	free(one);
	if (r < 0)
		err_nomem(err);
	return other;
}

/* --- what was promised -------------------------------------------------------------------- */

/* A directory whose names are still to be looked at. */
struct place {
	struct object_id tree;
	uint64_t record; /* the same among the signatures, if those are used */
	char *path;      /* owned; "" is the top */
};

struct places {
	struct place *list; /* owned */
	size_t n, cap;
	struct promising *p;
	struct root root;
	bool signatures; /* those of the capture have all that its trees say */
};

static void places_done(struct places *w)
{
	while (w->n > 0)
		free(w->list[--w->n].path);
	free(w->list);
}

/* Takes the path. */
static int push(struct places *w, const struct object_id *tree, uint64_t record, char *path,
		struct err *err)
{
	if (!path || !VEC_ROOM(w->list, w->n, w->cap)) {
		free(path);
		return err_nomem(err);
	}
	w->list[w->n++] = (struct place){ .tree = *tree, .record = record, .path = path };
	return 0;
}

static char *path_of(const char *dir, const struct tree_entry *e)
{
	const size_t len = strlen(dir), before = len + (len > 0);
	char *path = malloc(before + e->name_len + 1);

	if (!path)
		return NULL;
	memcpy(path, dir, len);
	if (len > 0)
		path[len] = '/';
	memcpy(path + before, e->name, e->name_len);
	path[before + e->name_len] = '\0';
	return path;
}

static int add_file(struct places *w, const char *dir, const struct tree_entry *e, struct err *err)
{
	struct promise *one = promising_add(w->p, &e->id, e->size, err);

	if (!one)
		return -ENOMEM;
	if (!one->path)
		one->path = path_of(dir, e);
	return one->path ? 0 : err_nomem(err);
}

/* One of several names: what the links tree has is taken under the first that is met. */
static int add_link(struct places *w, const char *dir, const struct tree_entry *e, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry file;
	int r = root_link(w->p->all->host->store, &w->root, e->ino, &file, &hold, err);

	if (r < 0 || file.form != TREE_LAZY)
		return r;
	file.name = e->name;
	file.name_len = e->name_len;
	return add_file(w, dir, &file, err);
}

static int add_entry(struct places *w, const char *dir, const struct tree_entry *e, struct err *err)
{
	switch (e->form) {
	case TREE_LAZY:
		return add_file(w, dir, e, err);
	case TREE_LINK:
		return add_link(w, dir, e, err);
	case TREE_DIR:
		return push(w, &e->id, 0, path_of(dir, e), err);
	case TREE_NONE:
	case TREE_CHUNK:
	case TREE_RECIPE:
		break;
	}
	return 0;
}

static int add_dir(struct places *w, const struct place *at, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = tree_iter_new(w->p->all->host->store, &at->tree, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = add_entry(w, at->path, &e, err);
	return r < 0 ? r : 0;
}

/* The same by the signatures, which name a file with several names as often as it has them. */
static int add_signed_dir(struct places *w, const struct place *at, struct err *err)
{
	struct signature_iter it = signatures_names(w->p->signatures, at->record);
	struct signature s;
	int r = 0;

	for (; r >= 0 && it.left > 0; signature_iter_step(&it)) {
		signature_decode(it.next, &s);
		if (s.e.form == TREE_LAZY)
			r = add_file(w, at->path, &s.e, err);
		else if (s.e.form == TREE_DIR)
			r = push(w, &s.e.id, s.record, path_of(at->path, &s.e), err);
	}
	return r;
}

/*
 * The signatures of the walk are in memory and have all that the trees have.  The trees of a large project
 * are not, and would be read from the store once more.
 */
static bool has_signatures(const struct promising *p, const struct object_id *root)
{
	return p->signatures && object_id_equal(&p->signatures->root, root);
}

static int add_all(struct promising *p, const struct object_id *root, struct err *err)
{
	CLEANUP(places_done) struct places w = { .p = p, .signatures = has_signatures(p, root) };
	uint64_t top = 0;
	int r = 0;

	if (w.signatures)
		top = signature_record(signatures_top(p->signatures));
	else
		r = root_get(p->all->host->store, root, &w.root, err);
	r = r < 0 ? r : push(&w, &w.root.top.id, top, strdup(""), err);
	while (r >= 0 && w.n > 0) {
		const struct place at = w.list[--w.n];

		r = w.signatures ? add_signed_dir(&w, &at, err) : add_dir(&w, &at, err);
		free(at.path);
	}
	return r;
}

/* --- what was done ------------------------------------------------------------------------ */

#define SEQ_LEN 17 /* of a name: 16 digits and a dash */

static int load_lost(struct promise *one, const struct tree_entry *e, struct err *err)
{
	AUTO_FREE char *text = strndup(e->target, e->target_len);
	char *why = text ? strstr(text, "//") : NULL;

	if (!text)
		return err_nomem(err);
	if (!why)
		return err_set(err, -EBADMSG, "a lost file without a reason");
	*why = '\0';
	if (!one->path && *text)
		one->path = strdup(text);
	free(one->why);
	one->why = strdup(why + 2);
	one->state = PROMISE_LOST;
	return one->why ? 0 : err_nomem(err);
}

static int load_one(struct promising *p, const struct tree_entry *e, struct err *err)
{
	struct promise *one;
	struct object_id id;

	if (e->name_len != SEQ_LEN + 2 * OBJECT_ID_SIZE ||
	    hex_decode(e->name + SEQ_LEN, 2 * OBJECT_ID_SIZE, id.b, sizeof(id.b)) < 0)
		return err_set(err, -EBADMSG, "a name in a lazy capture is none");
	one = promising_add(p, &id, e->size, err);
	if (!one)
		return -ENOMEM;
	p->saved++;
	if (S_ISREG(e->mode)) {
		one->content = tree_entry_content(e);
		one->size = e->size;
		one->state = PROMISE_KEPT;
		return 0;
	}
	return load_lost(one, e, err);
}

static bool is_named(const struct tree_entry *e, const char *name)
{
	return e->name_len == strlen(name) && memcmp(e->name, name, e->name_len) == 0;
}

static int load_done(struct promising *p, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct store *s = p->all->host->store;
	struct tree_entry e;
	struct root root;
	int r = root_get(s, &p->record.root, &root, err);

	if (r < 0)
		return r;
	r = tree_iter_new(s, &root.top.id, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		if (!is_named(&e, PROMISED_NAME) && !is_named(&e, SOURCE_NAME))
			r = load_one(p, &e, err);
	return r < 0 ? r : 0;
}

/* --- both --------------------------------------------------------------------------------- */

#define SMALL ((uint64_t)64 << 10)

/* What a promise is sorted by, beside it, so that no comparison looks into the promise. */
struct ranked {
	uint64_t rank;
	struct promise *one;
};

/*
 * A file that nobody holds may change at any time.  Of small ones those of a directory come together: the kernel finds
 * the names faster, and the files' blocks lie together.  No file is so large that it would seem to be held.
 */
static uint64_t rank_of(const struct promise *one)
{
	const uint64_t rank = one->size < SMALL ? one->nth : ((uint64_t)1 << 32) + one->size;

	return rank | (one->held ? (uint64_t)1 << 63 : 0);
}

static int by_rank(const void *a, const void *b)
{
	const uint64_t one = ((const struct ranked *)a)->rank,
		       two = ((const struct ranked *)b)->rank;

	return one < two ? -1 : one > two;
}

int promising_sort(struct promising *p, struct err *err)
{
	AUTO_FREE struct ranked *ranked = calloc(p->n + 1, sizeof(*ranked));

	if (!ranked)
		return err_nomem(err);
	for (size_t i = 0; i < p->n; i++)
		ranked[i] = (struct ranked){ .rank = rank_of(p->list[i]), .one = p->list[i] };
	qsort(ranked, p->n, sizeof(*ranked), by_rank);
	for (size_t i = 0; i < p->n; i++)
		p->list[i] = ranked[i].one;
	p->sorted = true;
	return 0;
}

/* Takes the list.  Others read how far it is meanwhile; this may be another attempt. */
static void set_list(struct promising *p, struct promise **list, size_t n)
{
	uint64_t done = 0, done_bytes = 0, lost = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i]->state == PROMISE_OPEN)
			continue;
		done++;
		done_bytes += list[i]->size;
		lost += list[i]->state == PROMISE_LOST;
	}
	LOCKED(&p->all->lock);
	p->list = list;
	p->n = n;
	p->done = done;
	p->done_bytes = done_bytes;
	p->lost = lost;
}

static int make_list(struct promising *p, struct err *err)
{
	struct promise **list = calloc(p->by_id.n + 1, sizeof(*list)), *one;
	size_t n = 0;

	p->sorted = false;
	if (!list)
		return err_nomem(err);
	if (!p->record.remote)
		promising_hold(p);
	for (size_t pos = 0; (one = map_next(&p->by_id, &pos));)
		list[n++] = one;
	set_list(p, list, n);
	return p->recovered ? promising_find_stash(p, err) : 0;
}

/* What is promised, and what it takes to keep that. */
static int add_promised(struct promising *p, struct err *err)
{
	static const struct cache_limits limits = { .chunk_bytes = 1 << 16, .meta_bytes = 1 << 20 };
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct store *store = p->all->host->store;
	int r = cache_new(store, &limits, &p->cache, err);

	if (r < 0)
		return r;
	r = snapshot_get(store, &p->record.snapshot, &s, err);
	/* Nobody needs what a snapshot promised that is gone. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	IGNORE_RESULT(map_reserve(&p->by_id, p->record.files), "it grows as it is filled");
	return add_all(p, &s.root, err);
}

int promising_index(struct promising *p, struct err *err)
{
	int r;

	index_clear(p);
	r = promising_find_top(p, err);
	if (r < 0 && !p->absent)
		return r;
	r = p->record.ended ? 0 : add_promised(p, err);
	r = r < 0 ? r : load_done(p, err);
	if (r >= 0 && p->record.remote && !p->record.ended)
		r = promising_load_remote(p, err);
	return r < 0 ? r : make_list(p, err);
}
