/*
 * The inode numbers in the journal show which steps were done, so going back needs no memory: it
 * looks at the disk and undoes the steps that it finds. It never touches a file that is neither the
 * old one nor our new one, unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

/*
 * Does somebody else's directory lie where ours was to be made, or what holds it, and is closed to us?  The owner
 * alone says nothing: some file systems give all files to one.
 */
static bool is_barred(struct acting *a, size_t dir)
{
	const struct plan_step *s = &a->plan->dirs[dir];
	struct stat st;
	int fd;

	if (s->act != PLAN_CREATE || geteuid() == 0)
		return false;
	fd = dir_at(a, s->dir, NULL);
	if (fd < 0)
		return is_barred(a, s->dir);
	return step_look(fd, step_name(s), &st) == 1 && S_ISDIR(st.st_mode) &&
	       st.st_uid != geteuid() &&
	       faccessat(fd, step_name(s), R_OK | W_OK | X_OK, AT_EACCESS) < 0;
}

/* --- files ------------------------------------------------------------------------------ */

/* The three places of a step's files. */
struct where {
	int fd; /* the directory */
	char n[SLOT_SIZE], o[SLOT_SIZE];
	struct stat at, in_n, in_o; /* the name and the two slots; all zero if nothing is there */
};

/* A missing stage was cleared already: everything is back. */
static int look_at_slot(const struct acting *a, const char *slot, struct stat *st)
{
	*st = (struct stat){ 0 };
	return a->stage_fd < 0 ? 0 : step_look(a->stage_fd, slot, st);
}

static int find_places(struct acting *a, size_t i, struct where *w, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	int r;

	w->fd = dir_to_change(a, s->dir, err);
	if (w->fd < 0)
		return w->fd;
	r = step_look(w->fd, step_name(s), &w->at);
	if (r < 0)
		return r;
	r = look_at_slot(a, slot_name('n', i, w->n), &w->in_n);
	if (r < 0)
		return r;
	r = look_at_slot(a, slot_name('o', i, w->o), &w->in_o);
	return r < 0 ? r : 0;
}

static bool is(const struct stat *st, uint64_t ino)
{
	return st->st_nlink > 0 && ino != 0 && st->st_ino == ino;
}

/* 1 if the file in the slot is ours, unchanged. */
static int is_ours(const struct acting *a, const struct plan_step *s, const char *slot)
{
	struct stat st;
	int r = step_look(a->stage_fd, slot, &st);

	return r < 0 ? r : is(&st, s->new_ino) && sign_matches(&st, &s->after, false);
}

/* Move our file back into its slot.  If it turns out not to be ours any more, put it back. */
static int withdraw(struct acting *a, size_t i, const struct where *w)
{
	const struct plan_step *s = &a->plan->files[i];
	int r;

	/* A crash between the halves of step_move_new() left one name too many. */
	if (is(&w->in_n, s->new_ino))
		return unlinkat(w->fd, step_name(s), 0) < 0 ? -errno : 0;
	if (renameat(w->fd, step_name(s), a->stage_fd, w->n) < 0)
		return -errno;
	r = is_ours(a, s, w->n);
	if (r != 0)
		return r < 0 ? r : 0;
	IGNORE_RESULT(step_move_new(a->stage_fd, w->n, w->fd, step_name(s)),
		      "stage_clear() sees to it");
	return -ESTALE;
}

static int back_replace(struct acting *a, size_t i, const struct where *w)
{
	const struct plan_step *s = &a->plan->files[i];
	const char *old = is(&w->in_o, s->old_ino) ? w->o : is(&w->in_n, s->old_ino) ? w->n : NULL;
	const bool ours = is(&w->at, s->new_ino);
	int r;

	/*
	 * It was not displaced or is back already, perhaps by the first half of step_move_new()
	 * alone.
	 */
	if (!old || is(&w->at, s->old_ino))
		return 0;
	if (ours && !sign_matches(&w->at, &s->after, false))
		return -ESTALE;
	if (ours && old == w->n) {
		r = sys_exchange(a->stage_fd, w->n, w->fd, step_name(s));
		if (r < 0)
			return r;
		r = is_ours(a, s, w->n);
		if (r != 0)
			return r < 0 ? r : 0;
		/* Somebody was faster: the file now in the stage is theirs. */
		r = sys_exchange(a->stage_fd, w->n, w->fd, step_name(s));
		return r < 0 ? r : -ESTALE;
	}
	if (ours) {
		r = withdraw(a, i, w);
		if (r < 0)
			return r;
	}
	r = step_move_new(a->stage_fd, old, w->fd, step_name(s));
	return r == -EEXIST ? -ESTALE : r;
}

static int back_change(struct acting *a, size_t i, const struct where *w, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	AUTO_CLOSE int file = -1;
	struct stat st;
	int r;

	if (s->first != i || !is(&w->at, s->old_ino))
		return 0;
	file = sys_open_here(w->fd, step_name(s), APPLY_OPEN);
	if (file == -EXDEV)
		return 0; /* changing it was refused, too */
	if (file < 0 || fstat(file, &st) < 0)
		return file < 0 ? file : -errno;
	/* Another size or time than ours: somebody else wrote to it. */
	if (!sign_same_bytes(&st, &s->before) && !sign_same_bytes(&st, &s->after))
		return -ESTALE;
	r = attr_set(a, file, &s->before, err);
	if (r < 0)
		return r;
	if (fsync(file) < 0)
		return -errno;
	return r;
}

/* -ESTALE if somebody else changed the file. */
static int try_back_file(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	struct where w;
	int r = find_places(a, i, &w, err);

	if (r == -ESTALE && a->plan->dirs[s->dir].act == PLAN_CREATE)
		return 0; /* its directory was not made yet */
	if (r < 0)
		return is_barred(a, s->dir) ? 0 : r;
	if (s->act == PLAN_REPLACE || s->act == PLAN_REMOVE)
		return back_replace(a, i, &w);
	if (s->act == PLAN_CHANGE)
		return back_change(a, i, &w, err);
	if (s->act != PLAN_CREATE || !is(&w.at, s->new_ino))
		return 0;
	return sign_matches(&w.at, &s->after, false) ? withdraw(a, i, &w) : -ESTALE;
}

static int back_file(struct acting *a, size_t i, struct err *err)
{
	const char *path = a->plan->files[i].path;
	int r = try_back_file(a, i, err);

	if (r != -ESTALE)
		return r < 0 ? err_wrap(err, r, "taking '%s' back", path) : 0;
	acting_note(a, path, "was changed by somebody else and stays so");
	return 0;
}

/* --- directories ------------------------------------------------------------------------ */

/* Was ours not made, or what holds it?  After a death nobody knows. */
static bool is_theirs(const struct plan *p, size_t i)
{
	for (; i != PLAN_NONE && p->dirs[i].act == PLAN_CREATE; i = p->dirs[i].dir)
		if (p->dirs[i].old_ino != 0)
			return true;
	return false;
}

/* Remove a directory we made, restore one we removed; attributes come later. */
static int back_dir(struct acting *a, size_t i, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[i];
	int fd;

	if (is_theirs(a->plan, i))
		return 0;
	fd = dir_to_change(a, s->dir, err);
	if (fd == -ESTALE && s->act == PLAN_CREATE)
		return 0; /* not made yet */
	if (fd < 0 && is_barred(a, s->dir))
		return 0;
	if (fd < 0)
		return fd == -ESTALE ? (acting_note(a, s->path, "has lost its directory"), 0) : fd;
	if (s->act == PLAN_REMOVE) {
		if (mkdirat(fd, step_name(s), 0700) < 0 && errno != EEXIST)
			return err_sys(err, "making '%s' again", s->path);
		return 0;
	}
	if (is_barred(a, i)) {
		acting_note(a, s->path, "is left: it is somebody else's");
		return 0;
	}
	if (unlinkat(fd, step_name(s), AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(err, "taking '%s' back", s->path);
	acting_note(a, s->path, "is left: somebody has put something into it");
	return 0;
}

int step_back_all(struct acting *a, struct err *err)
{
	struct plan *p = a->plan;
	int r = 0;

	dir_forget(a);
	a->back = true;
	for (size_t i = p->n_files; i > 0 && r >= 0; i--)
		if (p->files[i - 1].act != PLAN_REMOVE)
			r = back_file(a, i - 1, err);
	for (size_t i = p->n_dirs; i > 0 && r >= 0; i--)
		if (p->dirs[i - 1].act == PLAN_CREATE)
			r = back_dir(a, i - 1, err);
	for (size_t i = 0; i < p->n_dirs && r >= 0; i++)
		if (p->dirs[i].act == PLAN_REMOVE)
			r = back_dir(a, i, err);
	for (size_t i = p->n_files; i > 0 && r >= 0; i--)
		if (p->files[i - 1].act == PLAN_REMOVE)
			r = back_file(a, i - 1, err);
	for (size_t i = p->n_dirs; i > 0 && r >= 0; i--) {
		if (p->dirs[i - 1].act == PLAN_CREATE)
			continue;
		r = step_settle(a, i - 1, false, err);
		if (r == -ESTALE)
			r = (acting_note(a, p->dirs[i - 1].path, "is gone"), 0);
	}
	return r < 0 ? r : sys_sync_all(a->top_fd);
}
