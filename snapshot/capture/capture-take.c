/*
 * A name with the signature of last time is unchanged. A name that vanishes before it could be
 * examined was not there; one that turns into something else meanwhile is examined again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fdio.h"
#include "snapshot/capture/capture-i.h"
#include "snapshot/capture/stage-name.h"

#define ATTEMPTS         8 /* at one name, with pauses of 1, 2, 4, ... ms between */
#define PATIENT_ATTEMPTS 4 /* the last of them */

static int keep_ino(struct worker *k, struct item *item, uint64_t ino, struct err *err)
{
	item->ino = ino = capture_number(k->walk->options->apart, ino);
	return buf_append(&k->inos, &ino, sizeof(ino)) < 0 ? err_nomem(err) : 0;
}

/* --- anything but a directory ----------------------------------------------------------- */

static int take_linked(struct worker *k, struct dir *d, struct item *item, int fd,
		       const struct stat *st, const struct signature_stat *stat, bool patience,
		       struct err *err)
{
	struct walk *w = k->walk;
	const struct file_id id = file_id_of(st);
	struct node *n = NULL;
	struct linked *l;
	int r = links_find(&w->links, &id, stat, item->old, &l, err);

	if (r < 0)
		return r;
	if (r == 0) {
		r = node_read(&k->reader, fd, item->name, st, w->home, patience, &n, err);
		links_read(&w->links, l, n);
		if (r != 0)
			return r;
	}
	links_count(&w->links, l);
	item->linked = l;
	item->kind = ITEM_LINKED;
	d->waits = true;
	return 0;
}

static int take_file(struct worker *k, struct dir *d, struct item *item, int fd,
		     const struct stat *st, bool patience, struct err *err)
{
	struct walk *w = k->walk;
	struct signature_stat stat;
	struct capture_stats seen = { .files = 1 };
	int r;

	signature_stat_set(&stat, st, w->home);
	if (st->st_nlink > 1) {
		r = take_linked(k, d, item, fd, st, &stat, patience, err);
		if (r == 0)
			worker_count(k, &seen);
		return r;
	}
	if (!item->old || !signature_holds(item->old, &stat)) {
		r = node_read(&k->reader, fd, item->name, st, w->home, patience, &item->node, err);
		if (r != 0)
			return r;
	}
	item->kind = ITEM_FILE;
	if (S_ISREG(st->st_mode))
		seen.bytes = item->node ? item->node->e.size : (uint64_t)st->st_size;
	worker_count(k, &seen);
	return keep_ino(k, item, (uint64_t)st->st_ino, err);
}

/* A directory is for later. */
static int try_name(struct worker *k, struct dir *d, struct item *item, int fd, bool patience,
		    struct err *err)
{
	struct stat st;
	int r;

	if (fstatat(fd, item->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		err_sys(err, "cannot be examined");
		return NODE_UNREADABLE;
	}
	if (S_ISDIR(st.st_mode)) {
		item->kind = ITEM_DIR;
		return 0;
	}
	r = take_file(k, d, item, fd, &st, patience, err);
	node_close(&k->reader);
	return r;
}

/*
 * A file of which nothing is known is read in any case, so it is opened at once and not asked for
 * by name first.  Whatever that meets, NODE_CHANGED has the name looked at as any other.
 */
static int try_new_file(struct worker *k, struct dir *d, struct item *item, int fd, struct err *err)
{
	struct err ignored = { 0 };
	struct stat st;
	int r;

	if (item->old || item_type(item) != DT_REG ||
	    node_open(&k->reader, fd, item->name, &st, &ignored) != 0)
		return NODE_CHANGED;
	r = take_file(k, d, item, fd, &st, false, err);
	node_close(&k->reader);
	return r;
}

static void pause_before(unsigned attempt)
{
	const struct timespec pause = { .tv_nsec = 500000L << attempt };

	if (attempt > 0)
		nanosleep(&pause, NULL);
}

static int restless(struct err *err)
{
	err_set(err, -EBUSY, "changes while it is read");
	return NODE_UNREADABLE;
}

/* An unreadable name is left out and reported. */
static int leave_out(struct worker *k, struct dir *d, struct item *item, const struct err *why,
		     struct err *err)
{
	item->kind = ITEM_ABSENT;
	return unread_add(&k->walk->unread, d, item->name, why, err);
}

static int finish_name(struct worker *k, struct dir *d, struct item *item, int r, struct err *why,
		       struct err *err)
{
	if (r == NODE_UNREADABLE)
		return leave_out(k, d, item, why, err);
	if (r < 0) {
		*err = *why;
		return dir_fail(k->walk->path, d, item->name, r, err);
	}
	if (d->parent && (item->kind == ITEM_FILE || item->kind == ITEM_LINKED) &&
	    strcmp(item->name, ".git") == 0)
		return unread_add(&k->walk->gits, d, item->name, &(struct err){ 0 }, err);
	return 0;
}

static int take_name(struct worker *k, struct dir *d, struct item *item, int fd, struct err *err)
{
	struct err why = { 0 };
	int r = try_new_file(k, d, item, fd, &why);

	for (unsigned i = 0; i < ATTEMPTS && r == NODE_CHANGED; i++) {
		pause_before(i);
		r = try_name(k, d, item, fd, i >= ATTEMPTS - PATIENT_ATTEMPTS, &why);
	}
	if (r == NODE_CHANGED)
		r = restless(&why);
	return finish_name(k, d, item, r, &why, err);
}

/* --- rules ------------------------------------------------------------------------------ */

static struct item *find_item(struct dir *d, const char *name)
{
	size_t low = 0, high = d->n_items;

	while (low < high) {
		const size_t mid = (low + high) / 2;
		const int order = strcmp(d->items[mid].name, name);

		if (order == 0)
			return &d->items[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Not a readable file, which is reported when it is taken; so it holds no rules. */
static bool holds_no_rules(int code)
{
	return code == ENOENT || code == ELOOP || code == ENXIO || code == ENODEV ||
	       code == EACCES || code == EPERM;
}

/*
 * Any other failure ends the capture.  Otherwise files that the rules exclude, large or secret ones
 * perhaps, would be captured without a word.
 */
static int read_rules(struct dir *d, int dirfd, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	ssize_t n;
	void *p;

	fd = openat(dirfd, IGNORE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && holds_no_rules(errno))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "cannot be opened");
	if (!S_ISREG(st.st_mode))
		return 0;
	p = buf_extend(&text, IGNORE_SIZE_MAX + 1);
	if (!p)
		return err_nomem(err);
	n = fdio_pread(fd, p, IGNORE_SIZE_MAX + 1, 0);
	if (n < 0)
		return err_wrap(err, (int)n, "cannot be read");
	if (n > (ssize_t)IGNORE_SIZE_MAX)
		return err_set(err, -EFBIG, "has more than %zu bytes", IGNORE_SIZE_MAX);
	return ignore_parse(text.data, (size_t)n, &d->ignore, err);
}

static int prepare_rules(struct worker *k, struct dir *d, int fd, struct err *err)
{
	int r = 0;

	if (find_item(d, IGNORE_FILE))
		r = read_rules(d, fd, err);
	if (r < 0)
		return dir_fail(k->walk->path, d, IGNORE_FILE, r, err);
	d->ruled = d->ignore || (d->parent && d->parent->ruled);
	if (!d->ruled)
		return 0;
	buf_reset(&k->path);
	if (dir_append_path(d, NULL, &k->path) < 0 ||
	    (d->parent && buf_append_str(&k->path, "/") < 0))
		return err_nomem(err);
	return 0;
}

/* 1 if the rules exclude it: the deepest directory whose rules mention it wins. */
static int is_ignored(struct worker *k, const struct dir *d, const struct item *item, bool is_dir,
		      struct err *err)
{
	enum ignore_verdict verdict = IGNORE_SILENT;
	const size_t len = k->path.len;
	const char *path, *from;

	if (!d->ruled || strcmp(item->name, IGNORE_FILE) == 0)
		return 0;
	if (buf_append(&k->path, item->name, (size_t)item->name_len + 1) < 0)
		return err_nomem(err);
	path = (const char *)k->path.data;
	from = path + len;
	k->path.len = len;
	for (; d && verdict == IGNORE_SILENT; d = d->parent) {
		if (d->ignore)
			verdict = ignore_match(d->ignore, from, is_dir);
		if (d->parent)
			from -= d->item->name_len + 1u;
	}
	return verdict == IGNORE_OUT;
}

/* --- a part of the tree ------------------------------------------------------------------- */

/* The one name that counts in a directory of this depth, above the part that is wanted; or NULL. */
static const char *find_way(const struct walk *w, size_t depth, size_t *ret_len)
{
	const char *at = w->options->part;

	for (; at && depth > 0; depth--) {
		at = strchr(at, '/');
		at = at ? at + 1 : NULL;
	}
	if (at)
		*ret_len = strcspn(at, "/");
	return at;
}

static bool is_above_part(const struct walk *w, size_t depth)
{
	size_t len;

	return find_way(w, depth, &len) != NULL;
}

static void keep_way(const struct walk *w, struct dir *d)
{
	size_t len, n = 0;
	const char *name = find_way(w, d->depth, &len);

	if (!name)
		return;
	for (size_t i = 0; i < d->n_items; i++)
		if (d->items[i].name_len == len && memcmp(d->items[i].name, name, len) == 0)
			d->items[n++] = d->items[i];
	d->n_items = n;
}

/* --- directories ------------------------------------------------------------------------ */

/* Its signature of last time, if it has one: both are in order. */
static signature_at find_old(struct signature_iter *it, const struct item *item)
{
	for (; it->left > 0; signature_iter_step(it)) {
		size_t len;
		const char *name = signature_name(it->next, &len);
		const int order = tree_name_compare(name, len, item->name, item->name_len);

		if (order == 0)
			return it->next;
		if (order > 0)
			break;
	}
	return NULL;
}

/* 1 if the name is to be looked at no further. */
static int settle_by_type(struct worker *k, struct dir *d, struct item *item, int fd,
			  struct err *err)
{
	const unsigned char type = item_type(item);
	struct stat st;
	int r = 0;

	if (type == DT_DIR)
		item->kind = ITEM_DIR;
	if (!d->ruled)
		return type == DT_DIR;
	if (type != DT_UNKNOWN)
		r = is_ignored(k, d, item, type == DT_DIR, err);
	else if (fstatat(fd, item->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = is_ignored(k, d, item, S_ISDIR(st.st_mode), err);
	if (r > 0)
		item->kind = ITEM_ABSENT;
	return r != 0 ? r : type == DT_DIR;
}

static int take_names(struct worker *k, struct dir *d, int fd, struct err *err)
{
	struct signature_iter old = { 0 };
	int r;

	if (d->has_old) {
		old = signatures_names(k->walk->known, d->old_record);
		d->n_old = old.left;
	}
	for (size_t i = 0; i < d->n_items; i++) {
		struct item *item = &d->items[i];

		item->old = find_old(&old, item);
		r = settle_by_type(k, d, item, fd, err);
		if (r == 0)
			r = take_name(k, d, item, fd, err);
		if (r < 0)
			return r;
		if (item->kind == ITEM_DIR)
			d->dirs[d->n_dirs++] = (uint32_t)i;
	}
	return 0;
}

#define DIR_EXCLUDED 3 /* beside NODE_CHANGED and NODE_UNREADABLE */

/*
 * Nobody adds, removes or replaces a name without changing the ctime, which is the same; and it was
 * not so young when the names were listed that a change after that might not show.
 */
static bool has_old_names(const struct walk *w, const struct item *item, const struct stat *st)
{
	return w->times_tell && st->st_dev == w->home && item->old &&
	       signature_is_whole(item->old) && signature_holds(item->old, &item->node->stat);
}

static int list(struct worker *k, struct dir *d, int fd, struct item *item, struct err *err)
{
	struct stat st;
	int r = node_read_dir(&k->reader, fd, k->walk->home, item->old, &st, &item->node, err);

	if (r != 0)
		return r;
	if (walk_excludes(k->walk, &st))
		return DIR_EXCLUDED;
	d->id = file_id_of(&st);
	item->node->dir = d;
	if (d->has_old && has_old_names(k->walk, item, &st))
		return dir_recall_names(d, signatures_names(k->walk->known, d->old_record), err);
	r = dir_list_names(d, fd, err);
	if (r == 0 && !d->parent && k->walk->options->only)
		dir_keep_names(d, k->walk->options->only, k->walk->options->n_only);
	return r;
}

static void begin(struct dir *d, struct dir *parent, struct item *item)
{
	struct signature s;

	d->parent = parent;
	d->item = item;
	d->depth = parent ? parent->depth + 1 : 0;
	atomic_init(&d->pending, 1);
	d->users = 1;
	if (!item->old)
		return;
	signature_decode(item->old, &s);
	d->has_old = s.e.form == TREE_DIR;
	d->old_record = s.record;
}

int take_dir(struct worker *k, struct dir *parent, struct item *item, int fd, struct dir **ret,
	     struct err *err)
{
	struct dir *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		close(fd);
		return err_nomem(err);
	}
	d->fd = fd;
	begin(d, parent, item);
	walk_add(k->walk, d);
	item->kind = ITEM_DIR;
	r = list(k, d, fd, item, err);
	if (r != 0) {
		item->kind = ITEM_ABSENT;
		node_free(TAKE_PTR(item->node));
		walk_drop(k->walk, d);
		if (r < 0)
			return dir_fail(k->walk->path, parent, parent ? item->name : NULL, r, err);
		return r == DIR_EXCLUDED ? 0 : r;
	}
	worker_count(k, &(struct capture_stats){ .dirs = 1 });
	r = keep_ino(k, item, item->node->e.ino, err);
	if (r < 0)
		return r;
	r = prepare_rules(k, d, fd, err);
	if (r < 0)
		return r;
	keep_way(k->walk, d); /* after the rules, which may be among the other names */
	r = take_names(k, d, fd, err);
	if (r < 0)
		return r;
	atomic_fetch_add(&d->pending, d->n_dirs);
	walk_unuse(k->walk, d);
	*ret = d;
	return 0;
}

/* NODE_CHANGED if it is a directory again. */
static int try_dir(struct worker *k, struct dir *parent, struct item *item, int fd, bool patience,
		   struct dir **ret, struct err *err)
{
	int child = dir_open(fd, item->name), r;
	struct stat st;

	if (child >= 0)
		return take_dir(k, parent, item, child, ret, err);
	item->kind = ITEM_ABSENT;
	if (child == -ENOENT || child == -ENOTDIR) {
		r = try_name(k, parent, item, fd, patience, err);
		if (r < 0)
			return dir_fail(k->walk->path, parent, item->name, r, err);
		return item->kind == ITEM_DIR ? NODE_CHANGED : r;
	}
	if (fstatat(fd, item->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && walk_excludes(k->walk, &st))
		return 0;
	r = err_wrap(err, child, "cannot be opened");
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		return dir_fail(k->walk->path, parent, item->name, r, err);
	return NODE_UNREADABLE;
}

int take_listed_dir(struct worker *k, struct dir *parent, struct item *item, struct dir **ret,
		    struct err *err)
{
	struct err why = { 0 };
	int fd, r;

	/* A stage in this directory is not content. */
	if (stage_is_name(item->name)) {
		item->kind = ITEM_ABSENT;
		return 0;
	}
	r = walk_use(k->walk, parent, &fd, err);
	if (r < 0)
		return r;
	r = is_above_part(k->walk, parent->depth + 1) ? 0 : glance_dir(k, parent, item, fd, err);
	if (r != 0) {
		walk_unuse(k->walk, parent);
		return r < 0 ? r : 0;
	}
	r = NODE_CHANGED;
	for (unsigned i = 0; i < ATTEMPTS && r == NODE_CHANGED; i++) {
		pause_before(i);
		r = try_dir(k, parent, item, fd, i >= ATTEMPTS - PATIENT_ATTEMPTS, ret, &why);
	}
	if (r == NODE_CHANGED)
		r = restless(&why);
	if (r == NODE_UNREADABLE)
		r = leave_out(k, parent, item, &why, err);
	else if (r < 0)
		*err = why;
	walk_unuse(k->walk, parent);
	return r;
}
