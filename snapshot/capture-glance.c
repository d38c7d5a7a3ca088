/*
 * Whether a small tree below a directory is as it was, without opening, listing or remembering any
 * of it: each name is looked at by its path from a directory above that is open.
 *
 * Such a path may lead elsewhere: a directory on it may have been replaced by a symlink a moment
 * ago.  That costs nothing but the glance, because it is not the path that proves anything.  What
 * proves it is what was met: a file of the device, number and ctime of its signature is that file,
 * unchanged, however it was come by; and that it still bears its name, and is still in this tree,
 * is told by the ctimes of the directories, each of which was met with its own signature likewise.
 * Whatever differs in the least is left to the walk, which goes by descriptor.
 */
#include <fcntl.h>
#include <string.h>

#include "snapshot/capture-i.h"

#define GLANCE_FILES 128  /* in a tree that one thread looks at */
#define GLANCE_PATH  1024 /* bytes of a path */

/* What is known of a directory of last time. */
enum { MARK_NONE, MARK_SAME, MARK_DIFFERS };

struct glance {
	struct walk *walk;
	int fd; /* borrowed; where `path` begins */
	size_t len;
	char path[GLANCE_PATH];
};

/* Go to a name in the directory that `path` leads to.  False if it is too long. */
static bool step_down(struct glance *g, signature_at at)
{
	size_t len;
	const char *name = signature_name(at, &len);

	if (g->len + len + 2 > sizeof(g->path))
		return false;
	if (g->len > 0)
		g->path[g->len++] = '/';
	memcpy(g->path + g->len, name, len);
	g->len += len;
	g->path[g->len] = '\0';
	return true;
}

static bool look(const struct glance *g, signature_at at, struct stat *st)
{
	struct signature_stat stat;

	if (fstatat(g->fd, g->path, st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	signature_stat_set(&stat, st, g->walk->home);
	return signature_holds(at, &stat);
}

/* Of a file with several names more has to be known than that it is the same. */
static bool is_same_file(const struct glance *g, signature_at at)
{
	struct stat st;

	return look(g, at, &st) && st.st_nlink == 1;
}

static bool is_same_dir(struct glance *g, signature_at at);

static bool is_same_name(struct glance *g, signature_at at)
{
	const size_t len = g->len;
	bool same = step_down(g, at);

	if (same)
		same = S_ISDIR(signature_mode(at)) ? is_same_dir(g, at) : is_same_file(g, at);
	g->len = len;
	return same;
}

/* `path` leads to it. */
static bool is_same_dir(struct glance *g, signature_at at)
{
	struct walk *w = g->walk;
	uint8_t *mark = &w->marks[signature_number(w->known, at)];
	struct signature_iter names;
	struct stat st;
	bool same = signature_is_whole(at) && look(g, at, &st) && st.st_dev == w->home &&
		    !walk_excludes(w, &st);

	names = signatures_names(w->known, signature_record(at));
	for (; same && names.left > 0; signature_iter_step(&names))
		same = is_same_name(g, names.next);
	*mark = same ? MARK_SAME : MARK_DIFFERS;
	return same;
}

/* --- taking over ------------------------------------------------------------------------ */

/* All that is in it counts as if it had been walked. */
static int take_over(struct worker *k, signature_at at, struct capture_stats *stats)
{
	const struct signatures *known = k->walk->known;
	struct signature s;
	int r;

	signature_decode(at, &s);
	r = buf_append(&k->inos, &s.e.ino, sizeof(s.e.ino));
	if (s.e.form != TREE_DIR) {
		stats->files++;
		stats->bytes += S_ISREG(s.e.mode) ? s.e.size : 0;
		return r;
	}
	stats->dirs++;
	for (struct signature_iter names = signatures_names(known, s.record);
	     r >= 0 && names.left > 0; signature_iter_step(&names))
		r = take_over(k, names.next, stats);
	return r;
}

static bool is_same(struct worker *k, const struct item *item, int fd)
{
	struct walk *w = k->walk;
	struct glance g = { .walk = w, .fd = fd };
	struct signature s;

	switch (w->marks[signature_number(w->known, item->old)]) {
	case MARK_SAME:
		return true;
	case MARK_DIFFERS:
		return false;
	}
	signature_decode(item->old, &s);
	return s.e.form == TREE_DIR && s.e.below.files <= GLANCE_FILES && !s.e.below.links &&
	       is_same_name(&g, item->old);
}

int glance_dir(struct worker *k, const struct dir *parent, struct item *item, int fd,
	       struct err *err)
{
	struct capture_stats stats = { 0 };
	struct signature s;

	/* Rules that changed may leave out what did not. */
	if (!k->walk->marks || !item->old || parent->ruled || !is_same(k, item, fd))
		return 0;
	if (take_over(k, item->old, &stats) < 0)
		return err_nomem(err);
	worker_count(k, &stats);
	signature_decode(item->old, &s);
	item->kind = ITEM_DIR;
	item->ino = s.e.ino;
	return 1;
}
