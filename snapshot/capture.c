/*
 * The walk is depth-first.  A directory is finished, its tree put and its memory given
 * back, when all below it is.  Whether a file with several names has more than one of
 * them in here is known only at the end, so a directory with such a name waits for the
 * end, and with it those above.
 */
#include "snapshot/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "base/sys.h"
#include "snapshot/capture-i.h"

#define ATTEMPTS       8 /* at one name, with pauses of 1, 2, 4, ... ms between */
#define PROGRESS_EVERY 256

struct capture {
	const struct capture_options *options;
	struct capture_stats stats;
	struct node_reader reader;
	struct tree_builder *builder; /* owned */
	struct file_id *exclude;      /* owned */
	size_t n_exclude;

	struct item top;
	struct dir_stack stack;
	struct dir *waiting; /* owned; lower ones first */
	struct dir **waiting_end;
	struct links links;
};

static void capture_done(struct capture *c)
{
	struct dir *d;

	dir_stack_done(&c->stack);
	while ((d = c->waiting)) {
		c->waiting = d->next_waiting;
		dir_free(d);
	}
	links_done(&c->links);
	node_done(&c->top.node);
	node_reader_done(&c->reader);
	tree_builder_free(c->builder);
	free(c->exclude);
}

static void count(struct capture *c, uint64_t *counter)
{
	*counter += 1;
	if (c->options->progress && (c->stats.files + c->stats.dirs) % PROGRESS_EVERY == 0)
		c->options->progress(&c->stats, c->options->progress_ctx);
}

/* The next place in `d`, under this name. */
static struct item *item_new(struct dir *d, const char *name)
{
	struct item *item = &d->items[d->n_items++];

	item->node.e.name = name;
	item->node.e.name_len = strlen(name);
	return item;
}

/* `n` is then empty. */
static void item_take_node(struct item *item, struct node *n)
{
	n->e.name = item->node.e.name;
	n->e.name_len = item->node.e.name_len;
	item->node = *n;
	*n = (struct node){ 0 };
}

/* --- directories ------------------------------------------------------------------------ */

/* Go down into a directory, the one that is expected; NULL, NULL: the top.  Takes `fd`. */
static int enter(struct capture *c, const char *name, const struct file_id *expected, int fd,
		 struct err *err)
{
	CLEANUP(dir_free_p) struct dir *d = calloc(1, sizeof(*d));
	CLEANUP(node_done) struct node n = { 0 };
	struct stat st;
	int r;

	if (!d) {
		close(fd);
		return err_nomem(err);
	}
	d->fd = fd;
	r = node_read_dir(&c->reader, fd, &st, &n, err);
	if (r < 0)
		return r;
	d->id = file_id_of(&st);
	if (expected && !file_id_equal(&d->id, expected))
		return NODE_CHANGED;
	r = dir_list_names(d, err);
	if (r < 0)
		return r;
	r = links_give_ino(&c->links, &n.e.ino, err);
	if (r < 0)
		return r;
	d->item = name ? item_new(c->stack.at, name) : &c->top;
	item_take_node(d->item, &n);
	dir_stack_push(&c->stack, TAKE_PTR(d));
	count(c, &c->stats.dirs);
	return 0;
}

/* Put the tree of a directory of which everything is known. */
static int build(struct capture *c, struct dir *d, struct err *err)
{
	struct tree_entry *self = &d->item->node.e;
	int r;

	self->nlink = 2;
	for (size_t i = 0; i < d->n_items; i++) {
		const struct linked *l = d->items[i].linked;
		const struct tree_entry *named = &d->items[i].node.e;
		struct tree_entry e = l ? l->node.e : *named;
		const char *flaw;

		e.name = named->name;
		e.name_len = named->name_len;
		self->nlink += e.form == TREE_DIR;
		flaw = tree_entry_flaw(&e);
		if (flaw)
			return dir_stack_fail(&c->stack, d, e.name,
					      err_set(err, -ENOTSUP, "cannot be stored: %s", flaw),
					      err);
		if (l && l->names > 1)
			e = (struct tree_entry){
				.name = named->name,
				.name_len = named->name_len,
				.form = TREE_LINK,
				.mode = l->node.e.mode & S_IFMT,
				.ino = l->node.e.ino,
			};
		r = tree_builder_add(c->builder, &e, err);
		if (r < 0)
			return dir_stack_fail(&c->stack, d, NULL, r, err);
	}
	r = tree_builder_finish(c->builder, &self->id, &self->below, err);
	return r < 0 ? dir_stack_fail(&c->stack, d, NULL, r, err) : 0;
}

/* All in the deepest directory has been taken: go back up. */
static int leave(struct capture *c, struct err *err)
{
	CLEANUP(dir_free_p) struct dir *d = dir_stack_pop(&c->stack);

	if (!d->waits)
		return build(c, d, err);
	if (d->parent)
		d->parent->waits = true;
	*c->waiting_end = d;
	c->waiting_end = &d->next_waiting;
	d = NULL;
	return 0;
}

/* --- names ------------------------------------------------------------------------------ */

static bool is_excluded(const struct capture *c, const struct file_id *id)
{
	for (size_t i = 0; i < c->n_exclude; i++)
		if (file_id_equal(&c->exclude[i], id))
			return true;
	return false;
}

static int take_dir(struct capture *c, const char *name, const struct stat *st, struct err *err)
{
	const struct file_id id = file_id_of(st);
	int fd;

	if (is_excluded(c, &id))
		return 0;
	fd = dir_open(c->stack.at->fd, name);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return NODE_CHANGED;
	if (fd < 0)
		return err_wrap(err, fd, "cannot be opened");
	return enter(c, name, &id, fd, err);
}

static uint64_t file_bytes(const struct tree_entry *e)
{
	return S_ISREG(e->mode) ? e->size : 0;
}

/* Read a file with several names, unless it was read before under another one. */
static int read_linked(struct capture *c, const char *name, const struct stat *st,
		       struct linked **ret, struct err *err)
{
	CLEANUP(node_done) struct node n = { 0 };
	const struct file_id id = file_id_of(st);
	struct linked *l = links_find(&c->links, &id);
	int r;

	if (!l || l->node.e.ctime_s != SYS_ST_CTIM(st).tv_sec ||
	    l->node.e.ctime_ns != (uint32_t)SYS_ST_CTIM(st).tv_nsec) {
		r = node_read(&c->reader, c->stack.at->fd, name, st, &n, err);
		if (r != 0)
			return r;
		if (!l) {
			r = links_add(&c->links, &id, &l, err);
			if (r < 0)
				return r;
		}
		n.e.ino = l->node.e.ino;
		c->stats.bytes += file_bytes(&n.e) - file_bytes(&l->node.e);
		node_done(&l->node);
		l->node = n;
		n = (struct node){ 0 };
	}
	*ret = l;
	return 0;
}

/* Anything but a directory. */
static int take_file(struct capture *c, const char *name, const struct stat *st, struct err *err)
{
	CLEANUP(node_done) struct node n = { 0 };
	struct dir *d = c->stack.at;
	struct linked *l;
	int r;

	if (st->st_nlink > 1) {
		r = read_linked(c, name, st, &l, err);
		if (r != 0)
			return r;
		l->names++;
		item_new(d, name)->linked = l;
		d->waits = true;
	} else {
		r = node_read(&c->reader, d->fd, name, st, &n, err);
		if (r != 0)
			return r;
		r = links_give_ino(&c->links, &n.e.ino, err);
		if (r < 0)
			return r;
		c->stats.bytes += file_bytes(&n.e);
		item_take_node(item_new(d, name), &n);
	}
	count(c, &c->stats.files);
	return 0;
}

/* What is gone before it could be looked at was not there. */
static int try_name(struct capture *c, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(c->stack.at->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "cannot be examined");
	return S_ISDIR(st.st_mode) ? take_dir(c, name, &st, err) : take_file(c, name, &st, err);
}

static int take_name(struct capture *c, const char *name, struct err *err)
{
	const struct dir *d = c->stack.at;
	int r;

	for (unsigned i = 0; (r = try_name(c, name, err)) == NODE_CHANGED; i++) {
		const struct timespec pause = { .tv_nsec = 1000000L << i };

		if (i + 1 == ATTEMPTS) {
			r = err_set(err, -EBUSY, "changes while it is read");
			break;
		}
		nanosleep(&pause, NULL);
	}
	return r < 0 ? dir_stack_fail(&c->stack, d, name, r, err) : 0;
}

/* --- the whole -------------------------------------------------------------------------- */

static int find_excluded(struct capture *c, struct err *err)
{
	const struct capture_options *o = c->options;
	struct stat st;

	if (o->n_exclude == 0)
		return 0;
	c->exclude = calloc(o->n_exclude, sizeof(*c->exclude));
	if (!c->exclude)
		return err_nomem(err);
	for (size_t i = 0; i < o->n_exclude; i++) {
		const char *path = o->exclude[i];

		if (stat(path, &st) < 0) {
			if (errno != ENOENT)
				return err_sys(err, "'%s': cannot be examined", path);
			continue;
		}
		if (!S_ISDIR(st.st_mode))
			return err_set(err, -ENOTDIR, "'%s': only a directory can be left out",
				       path);
		c->exclude[c->n_exclude++] = file_id_of(&st);
	}
	return 0;
}

static int enter_top(struct capture *c, struct err *err)
{
	int fd = dir_open(AT_FDCWD, c->stack.path), r;

	if (fd < 0)
		r = err_wrap(err, fd, "cannot be opened");
	else
		r = enter(c, NULL, NULL, fd, err);
	if (r >= 0 && is_excluded(c, &c->stack.at->id))
		r = err_set(err, -EINVAL, "is itself to be left out");
	return r < 0 ? dir_stack_fail(&c->stack, NULL, NULL, r, err) : 0;
}

static int walk(struct capture *c, struct err *err)
{
	int r;

	r = enter_top(c, err);
	while (r >= 0 && c->stack.at) {
		struct dir *d = c->stack.at;

		if (d->next == d->n_sorted) {
			r = leave(c, err);
			continue;
		}
		if (d->fd < 0)
			r = dir_stack_reopen(&c->stack, err);
		if (r >= 0)
			r = take_name(c, d->sorted[d->next++], err);
	}
	for (struct dir *d = c->waiting; r >= 0 && d; d = d->next_waiting)
		r = build(c, d, err);
	return r;
}

int capture_directory(struct batch *b, const char *path, const struct capture_options *options,
		      struct object_id *ret_root, struct capture_stats *ret_stats, struct err *err)
{
	CLEANUP(capture_done) struct capture c = {
		.options = options,
		.top.node.e = { .name = ROOT_TOP, .name_len = strlen(ROOT_TOP) },
		.stack.path = path,
	};
	struct root root = { 0 };
	int r;

	c.waiting_end = &c.waiting;
	links_init(&c.links);
	r = node_reader_init(&c.reader, b, err);
	if (r >= 0)
		r = tree_builder_new(b, &c.builder, err);
	if (r >= 0)
		r = find_excluded(&c, err);
	if (r >= 0)
		r = walk(&c, err);
	if (r >= 0)
		r = links_put(&c.links, c.builder, &root, err);
	if (r < 0)
		return r;
	root.top = c.top.node.e;
	r = root_put(b, &root, ret_root, err);
	if (r < 0)
		return r;
	*ret_stats = c.stats;
	return 0;
}
