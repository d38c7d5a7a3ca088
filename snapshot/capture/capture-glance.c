/*
 * Checks that a small tree below a directory is unchanged, without opening, listing or remembering
 * any of it: each name is examined by its path from a directory above that is open.
 *
 * Such a path may lead elsewhere: a directory on it may have been replaced by a symlink a moment
 * ago. That only wastes the glance, because the path proves nothing. The file that was found proves
 * it: one with the device, number and ctime of its signature is that file, unchanged, however we
 * got there. The ctimes of the directories prove that it still has its name and is still in this
 * tree: each of them matched its own signature too. At any difference the walk takes over, which
 * goes by descriptor.
 */
#include <fcntl.h>
#include <string.h>

#include "snapshot/capture/capture-i.h"

#define GLANCE_FILES 128  /* in a tree that one thread looks at */
#define GLANCE_PATH  1024 /* bytes of a path */

/* A directory as the last capture saw it. */
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

static bool stat_matches(const struct glance *g, signature_at at, struct stat *st)
{
	struct signature_stat stat;

	if (fstatat(g->fd, g->path, st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	signature_stat_set(&stat, st, g->walk->home);
	return signature_holds(at, &stat);
}

/* A file with several names needs more than being unchanged. */
static bool is_same_file(const struct glance *g, signature_at at)
{
	struct stat st;

	return stat_matches(g, at, &st) && st.st_nlink == 1;
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
	bool same = signature_is_whole(at) && stat_matches(g, at, &st) && st.st_dev == w->home &&
		    !walk_excludes(w, &st);

	names = signatures_names(w->known, signature_record(at));
	for (; same && names.left > 0; signature_iter_step(&names))
		same = is_same_name(g, names.next);
	*mark = same ? MARK_SAME : MARK_DIFFERS;
	return same;
}

/* --- taking over ------------------------------------------------------------------------ */

/* The report on a tree that was not walked. */
struct told {
	struct walk *walk;
	const struct dir *parent; /* where it is */
	struct buf path;          /* from there to the directory that is looked at */
	struct capture_stats stats;
};

static int note_git(struct told *t, struct err *err)
{
	const size_t len = t->path.len;
	const char *path = buf_append_str(&t->path, "/.git") < 0 ? NULL : buf_str(&t->path);
	int r = path ? unread_add(&t->walk->gits, t->parent, path, &(struct err){ 0 }, err)
		     : err_nomem(err);

	t->path.len = len;
	return r;
}

static int count_file(struct told *t, signature_at at, struct err *err)
{
	size_t len;
	const char *name = signature_name(at, &len);

	t->stats.files++;
	t->stats.bytes += S_ISREG(signature_mode(at)) ? signature_bytes(at) : 0;
	return len == 4 && memcmp(name, ".git", 4) == 0 ? note_git(t, err) : 0;
}

/* All that is in it counts as if it had been walked. */
static int count_dir(struct told *t, signature_at at, struct err *err)
{
	struct signature_iter names = signatures_names(t->walk->known, signature_record(at));
	const size_t before = t->path.len;
	size_t len;
	const char *name = signature_name(at, &len);
	int r = before > 0 ? buf_append_str(&t->path, "/") : 0;

	if (r < 0 || buf_append(&t->path, name, len) < 0)
		return err_nomem(err);
	t->stats.dirs++;
	for (; r >= 0 && names.left > 0; signature_iter_step(&names))
		r = S_ISDIR(signature_mode(names.next)) ? count_dir(t, names.next, err)
							: count_file(t, names.next, err);
	t->path.len = before;
	return r;
}

static int append_inos(const struct signatures *known, signature_at at, struct buf *out)
{
	struct signature_iter names = signatures_names(known, signature_record(at));
	int r = buf_append_u64(out, signature_ino(at));

	for (; r >= 0 && names.left > 0; signature_iter_step(&names))
		r = S_ISDIR(signature_mode(names.next))
			? append_inos(known, names.next, out)
			: buf_append_u64(out, signature_ino(names.next));
	return r;
}

int glance_append_inos(const struct walk *w, struct buf *out)
{
	int r = 0;

	for (unsigned i = 0; i < w->n_workers; i++) {
		const struct buf *same = &w->workers[i].same;
		signature_at at;

		for (size_t p = 0; r >= 0 && p < same->len; p += sizeof(at)) {
			memcpy(&at, same->data + p, sizeof(at));
			r = append_inos(w->known, at, out);
		}
	}
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
	struct told told = { .walk = k->walk, .parent = parent, .path = BUF_INIT };
	int r;

	/* Rules that changed may leave out what did not. */
	if (!k->walk->marks || !item->old || parent->ruled || !is_same(k, item, fd))
		return 0;
	if (buf_append(&k->same, &item->old, sizeof(item->old)) < 0)
		return err_nomem(err);
	r = count_dir(&told, item->old, err);
	buf_done(&told.path);
	if (r < 0)
		return r;
	worker_count(k, &told.stats);
	item->kind = ITEM_DIR;
	item->ino = signature_ino(item->old);
	return 1;
}
