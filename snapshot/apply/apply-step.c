/*
 * Each step looks before and after. A displaced file is in the stage, and returns if it is not the
 * one that the plan expected.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

static int conflict(struct acting *a, const struct plan_step *s, const char *why)
{
	acting_note(a, s->path, why);
	return -ESTALE;
}

int step_look(int fd, const char *name, struct stat *st)
{
	*st = (struct stat){ 0 };
	if (fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

/* rename(2) that replaces nothing, also on file systems without RENAME_NOREPLACE. */
int step_move_new(int from_fd, const char *from, int to_fd, const char *to)
{
	int r = sys_rename_new(from_fd, from, to_fd, to);

	if (r != -ENOTSUP)
		return r;
	if (linkat(from_fd, from, to_fd, to, 0) < 0)
		return -errno;
	return unlinkat(from_fd, from, 0) < 0 ? -errno : 0;
}

/* --- files, there ----------------------------------------------------------------------- */

/* The directory, after checking that the expected file is in it. */
static int expect(struct acting *a, const struct plan_step *s, struct err *err)
{
	int fd = dir_to_change(a, s->dir, err), r;
	struct stat st;

	if (fd == -ESTALE)
		return conflict(a, s, "is not where it was");
	if (fd < 0)
		return fd;
	r = step_look(fd, step_name(s), &st);
	if (r < 0)
		return err_wrap(err, r, "looking at '%s'", s->path);
	/* We may have moved another name of this file already. */
	if (r == 0 || st.st_ino != s->old_ino || !sign_matches(&st, &s->before, !s->before_linked))
		return conflict(a, s, "changed meanwhile");
	return fd;
}

static int do_remove(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	char slot[SLOT_SIZE];
	int fd = expect(a, s, err), r;

	if (fd < 0)
		return fd;
	slot_name('o', i, slot);
	if (renameat(fd, step_name(s), a->stage_fd, slot) < 0)
		return errno == ENOENT ? conflict(a, s, "was removed meanwhile")
				       : err_sys(err, "moving '%s' away", s->path);
	r = sign_displaced(a, s, slot, err);
	if (r == 1)
		return 0;
	/* Put it back at once.  What cannot go back stays in the stage, which is then kept. */
	IGNORE_RESULT(step_move_new(a->stage_fd, slot, fd, step_name(s)),
		      "stage_clear() sees to it");
	return r < 0 ? r : conflict(a, s, "changed meanwhile");
}

static int do_create(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	char slot[SLOT_SIZE];
	int fd = dir_to_change(a, s->dir, err), r;

	if (fd == -ESTALE)
		return conflict(a, s, "has lost its directory");
	if (fd < 0)
		return fd;
	r = step_move_new(a->stage_fd, slot_name('n', i, slot), fd, step_name(s));
	if (r == -EEXIST)
		return conflict(a, s, dir_why_taken(fd, step_name(s)));
	return r < 0 ? err_wrap(err, r, "making '%s'", s->path) : 0;
}

/* In two moves, where names cannot be exchanged. */
static int replace_apart(struct acting *a, size_t i, struct err *err)
{
	int r = do_remove(a, i, err);

	return r < 0 ? r : do_create(a, i, err);
}

static int do_replace(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	char slot[SLOT_SIZE];
	int fd, r;

	if (a->no_exchange)
		return replace_apart(a, i, err);
	fd = expect(a, s, err);
	if (fd < 0)
		return fd;
	slot_name('n', i, slot);
	r = sys_exchange(a->stage_fd, slot, fd, step_name(s));
	if (r == -ENOTSUP) {
		a->no_exchange = true;
		return replace_apart(a, i, err);
	}
	if (r == -ENOENT)
		return conflict(a, s, "was removed meanwhile");
	if (r < 0)
		return err_wrap(err, r, "replacing '%s'", s->path);
	r = sign_displaced(a, s, slot, err);
	if (r == 1)
		return 0;
	/* Both files are kept, so nothing is lost; an editor sees our file for an instant. */
	IGNORE_RESULT(sys_exchange(a->stage_fd, slot, fd, step_name(s)),
		      "step_back_all() and stage_clear() find it where it is");
	return r < 0 ? r : conflict(a, s, "changed meanwhile");
}

/* Set the attributes of an open file, unless somebody writes to it meanwhile. */
static int change_file(struct acting *a, int file, const struct plan_step *s, struct err *err)
{
	struct stat st;
	int r = attr_set_but_mtime(a, file, &s->after, err);

	if (r < 0)
		return r;
	if (fstat(file, &st) < 0)
		return err_sys(err, "looking at it");
	/* A time of ours would hide an edit that came just before it. */
	if (!sign_same_bytes(&st, &s->before))
		return conflict(a, s, "changed meanwhile");
	r = attr_set_mtime(file, &s->after, err);
	if (r < 0)
		return r;
	return fsync(file) < 0 ? err_sys(err, "syncing it") : 0;
}

static int do_change(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	AUTO_CLOSE int file = -1;
	struct stat st;
	int fd, r;

	if (s->first != i)
		return 0; /* the same file */
	fd = expect(a, s, err);
	if (fd < 0)
		return fd;
	file = sys_open_here(fd, step_name(s), APPLY_OPEN);
	if (file < 0)
		return err_wrap(err, file, "opening '%s'", s->path);
	if (fstat(file, &st) < 0 || st.st_ino != s->old_ino || sign_is_shared(&st, s))
		return conflict(a, s, "changed meanwhile");
	r = change_file(a, file, s, err);
	return r < 0 && r != -ESTALE ? err_wrap(err, r, "'%s'", s->path) : r;
}

/* --- directories, there ----------------------------------------------------------------- */

static int do_rmdir(struct acting *a, size_t i, struct err *err)
{
	const struct plan_step *s = &a->plan->dirs[i];
	int fd = dir_to_change(a, s->dir, err);

	if (fd == -ESTALE)
		return conflict(a, s, "is not where it was");
	if (fd < 0)
		return fd;
	if (unlinkat(fd, step_name(s), AT_REMOVEDIR) == 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return conflict(a, s, "is gone");
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(err, "removing '%s'", s->path);
	acting_note(a, s->path, "is left: it holds what was never captured");
	return 0;
}

static int do_mkdir(struct acting *a, size_t i, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[i];
	struct stat st;
	int fd = dir_to_change(a, s->dir, err), r;

	if (fd == -ESTALE)
		return conflict(a, s, "has lost its directory");
	if (fd < 0)
		return fd;
	if (mkdirat(fd, step_name(s), 0700) < 0)
		return errno == EEXIST ? conflict(a, s, dir_why_taken(fd, step_name(s)))
				       : err_sys(err, "making '%s'", s->path);
	s->new_ino = UINT64_MAX; /* it is ours, also if it cannot be looked at */
	r = step_look(fd, step_name(s), &st);
	if (r < 0)
		return err_wrap(err, r, "looking at '%s'", s->path);
	if (r == 0)
		return conflict(a, s, "is gone");
	s->new_ino = st.st_ino;
	return 0;
}

int step_settle(struct acting *a, size_t i, bool wanted, struct err *err)
{
	const struct plan_step *s = &a->plan->dirs[i];
	const struct tree_entry *e = wanted ? &s->after : &s->before;
	struct stat st;
	int fd = dir_at(a, i, err), r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "'%s'", s->path);
	if (s->act != PLAN_TOUCH)
		r = attr_set(a, fd, e, err);
	/* Leave a mode that is not ours: somebody may have set it meanwhile. */
	else if (st.st_mode != e->mode && st.st_mode == (e->mode | S_IRWXU) &&
		 fchmod(fd, e->mode & 07777) < 0)
		r = err_sys(err, "setting its mode");
	else
		r = attr_set_mtime(fd, e, err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", s->path);
	return a->sync_each && fsync(fd) < 0 ? err_sys(err, "syncing '%s'", s->path) : 0;
}

/* --- all, there ------------------------------------------------------------------------- */

/* A program that had the displaced file open may have written to it: the last chance to notice. */
static int check_displaced(struct acting *a, struct err *err)
{
	const struct plan *p = a->plan;
	char slot[SLOT_SIZE];
	int r;

	for (size_t i = 0; i < p->n_files; i++) {
		const struct plan_step *s = &p->files[i];

		if (s->act != PLAN_REMOVE && s->act != PLAN_REPLACE)
			continue;
		/* Two exchanged files left the old one where the new one was. */
		slot_name(s->act == PLAN_REMOVE || a->no_exchange ? 'o' : 'n', i, slot);
		r = sign_displaced(a, s, slot, err);
		if (r <= 0)
			return r < 0 ? r : conflict(a, s, "changed meanwhile");
	}
	return 0;
}

static int do_file(struct acting *a, size_t i, struct err *err)
{
	acting_progress(a);
	switch (a->plan->files[i].act) {
	case PLAN_CREATE:
		return do_create(a, i, err);
	case PLAN_REPLACE:
		return do_replace(a, i, err);
	case PLAN_CHANGE:
		return do_change(a, i, err);
	case PLAN_TOUCH:
	case PLAN_REMOVE:
		break;
	}
	return 0;
}

/* Going back must not take away what others have where ours were not made. */
static void leave_unmade(struct plan *p)
{
	for (size_t i = 0; i < p->n_dirs; i++)
		if (p->dirs[i].act == PLAN_CREATE && p->dirs[i].new_ino == 0)
			p->dirs[i].old_ino = 1;
}

int step_all(struct acting *a, struct err *err)
{
	const struct plan *p = a->plan;
	int r = 0;

	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		if (p->files[i].act == PLAN_REMOVE)
			r = do_remove(a, i, err);
	for (size_t i = p->n_dirs; i > 0 && r >= 0; i--)
		if (p->dirs[i - 1].act == PLAN_REMOVE)
			r = do_rmdir(a, i - 1, err);
	for (size_t i = 0; i < p->n_dirs && r >= 0; i++)
		if (p->dirs[i].act == PLAN_CREATE)
			r = do_mkdir(a, i, err);
	leave_unmade(a->plan);
	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		r = do_file(a, i, err);
	for (size_t i = p->n_dirs; i > 0 && r >= 0; i--) {
		if (p->dirs[i - 1].act == PLAN_REMOVE)
			continue;
		r = step_settle(a, i - 1, true, err);
		if (r == -ESTALE)
			r = conflict(a, &p->dirs[i - 1], "is gone");
	}
	if (r < 0)
		return r;
	if (!a->sync_each) {
		r = sys_sync_all(a->top_fd);
		if (r < 0)
			return err_wrap(err, r, "syncing '%s'", a->journal.project);
	}
	return check_displaced(a, err);
}
