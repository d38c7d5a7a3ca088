#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crew.h"
#include "base/sys.h"
#include "base/vec.h"
#include "snapshot/apply/apply-i.h"

/* --- one file --------------------------------------------------------------------------- */

static int make_other(struct acting *a, const char *slot, const struct tree_entry *e,
		      struct err *err)
{
	char target[TREE_TARGET_LEN_MAX + 1];
	int rc;

	if (S_ISLNK(e->mode)) {
		memcpy(target, e->target, e->target_len);
		target[e->target_len] = '\0';
		rc = symlinkat(target, a->stage_fd, slot);
	} else {
		rc = mknodat(a->stage_fd, slot, (e->mode & S_IFMT) | 0600, (dev_t)e->rdev);
	}
	return rc < 0 ? err_sys(err, "making it") : attr_set_at(a, slot, e, err);
}

/* One more name for a file that stays: it must still be what the tree says. */
static int link_anchor(struct acting *a, const struct plan_step *s, const char *slot,
		       struct err *err)
{
	const char *slash = strrchr(s->anchor, '/');
	const size_t len = slash ? (size_t)(slash - s->anchor) : 0;
	struct stat st;
	AUTO_CLOSE int dir = dir_open_path(a, s->anchor, len, &st, err);

	if (dir == -ESTALE) {
		acting_note(a, s->anchor, "was removed meanwhile");
		return dir;
	}
	if (dir < 0)
		return dir;
	if (linkat(dir, slash ? slash + 1 : s->anchor, a->stage_fd, slot, 0) < 0 && errno != ENOENT)
		return err_sys(err, "linking it to '%s'", s->anchor);
	if (fstatat(a->stage_fd, slot, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !sign_matches(&st, &s->after, false)) {
		acting_note(a, s->anchor, "changed meanwhile");
		return -ESTALE;
	}
	return 0;
}

static int fill_slot(struct acting *a, size_t i, const char *slot, struct err *err)
{
	struct plan_step *s = &a->plan->files[i];
	char first[SLOT_SIZE];

	if (s->first == i)
		return s->anchor ? link_anchor(a, s, slot, err)
				 : make_other(a, slot, &s->after, err);
	if (linkat(a->stage_fd, slot_name('n', s->first, first), a->stage_fd, slot, 0) < 0)
		return err_sys(err, "linking it");
	return 0;
}

static int make_slot(struct acting *a, size_t i, struct err *err)
{
	struct plan_step *s = &a->plan->files[i];
	char slot[SLOT_SIZE];
	struct stat st;
	int r = fill_slot(a, i, slot_name('n', i, slot), err);

	if (r < 0)
		return r == -ESTALE ? r : err_wrap(err, r, "'%s'", s->path);
	if (fstatat(a->stage_fd, slot, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "looking at '%s'", s->path);
	s->new_ino = st.st_ino;
	return 0;
}

/* --- all of them ------------------------------------------------------------------------ */

int stage_open(struct acting *a, struct err *err)
{
	struct stat st;

	a->stage_fd = openat(a->top_fd, a->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->stage_fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", a->stage);
	if (fstat(a->stage_fd, &st) < 0)
		return err_sys(err, "opening '%s'", a->stage);
	return st.st_dev == a->dev ? 0 : err_set(err, -EXDEV, "'%s' is mounted", a->stage);
}

static bool needs_slot(const struct plan_step *s)
{
	return s->act == PLAN_CREATE || s->act == PLAN_REPLACE;
}

int stage_make(struct acting *a, struct err *err)
{
	const struct plan *p = a->plan;
	int r = dir_to_change(a, 0, err); /* the top comes first */

	if (r < 0)
		return r;
	if (mkdirat(a->top_fd, a->stage, 0700) < 0)
		return err_sys(err, "making '%s' in '%s'", a->stage, a->journal.project);
	r = stage_open(a, err);
	if (r < 0)
		return r;
	r = fill_all(a, err);
	for (size_t i = 0; i < p->n_files && r >= 0; i++) {
		if (fill_makes(&p->files[i], i))
			continue;
		if (needs_slot(&p->files[i]))
			r = make_slot(a, i, err);
		acting_progress(a);
	}
	if (r < 0)
		return r;
	if (!a->sync_each)
		r = sys_sync_all(a->top_fd);
	else if (fsync(a->stage_fd) < 0 || fsync(a->top_fd) < 0)
		r = -errno;
	return r < 0 ? err_wrap(err, r, "syncing '%s'", a->stage) : 0;
}

/* Can a step have filled this slot? */
static bool uses_slot(const struct plan_step *s, char kind)
{
	return kind == 'n' ? needs_slot(s) : s->act == PLAN_REMOVE || s->act == PLAN_REPLACE;
}

enum slot_end {
	SLOT_EMPTY,
	SLOT_GOES,      /* ours, or known to be in the store */
	SLOT_GOES_ONLY, /* the same, and this is its file's only name */
	SLOT_STAYS,
};

static int look_at_slot(struct acting *a, size_t i, const char *slot, struct err *err)
{
	const struct plan_step *s = &a->plan->files[i];
	struct stat st;
	int r;

	if (a->journal.state == JOURNAL_STAGING)
		return SLOT_GOES;
	if (fstatat(a->stage_fd, slot, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? SLOT_EMPTY : err_sys(err, "'%s/%s'", a->stage, slot);
	if (s->new_ino != 0 && st.st_ino == s->new_ino)
		r = sign_matches(&st, &s->after, false);
	else
		r = sign_is_displaced(a, s, slot, &st, err);
	if (r <= 0)
		return r < 0 ? r : SLOT_STAYS;
	return st.st_nlink == 1 ? SLOT_GOES_ONLY : SLOT_GOES;
}

static int remove_slot(struct acting *a, const char *slot, struct err *err)
{
	if (unlinkat(a->stage_fd, slot, 0) < 0 && errno != ENOENT)
		return err_sys(err, "removing '%s/%s'", a->stage, slot);
	return 0;
}

/* The slots in which something is left. */
struct left {
	size_t step;
	char kind;
};

struct leftovers {
	struct acting *acting;
	struct left *list; /* owned */
	size_t n, cap;
	bool others; /* the stage holds what no step of ours can have put there */
};

static void leftovers_done(struct leftovers *l)
{
	free(l->list);
}

static int add_left(const char *name, unsigned char type, void *ctx)
{
	struct leftovers *l = ctx;
	const struct plan *p = l->acting->plan;
	struct left one;

	if (!slot_parse(name, &one.kind, &one.step) || one.step >= p->n_files ||
	    !uses_slot(&p->files[one.step], one.kind)) {
		l->others = true;
		return 0;
	}
	if (!VEC_ROOM(l->list, l->n, l->cap))
		return -ENOMEM;
	l->list[l->n++] = one;
	return 0;
}

static int look_at_left(const struct leftovers *l, size_t i, char slot[SLOT_SIZE], struct err *err)
{
	const struct left *one = &l->list[i];

	return look_at_slot(l->acting, one->step, slot_name(one->kind, one->step, slot), err);
}

static int clear_slot(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct leftovers *l = ctx;
	char slot[SLOT_SIZE];
	int r = look_at_left(l, i, slot, err);

	return r == SLOT_GOES || r == SLOT_GOES_ONLY ? remove_slot(l->acting, slot, err) : r;
}

/*
 * -EBUSY if something stays.  A file with other names gets a new ctime when it loses one.  The
 * caller must not see that after it has the answer, so such files are removed at once.
 */
static int ready_slot(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct leftovers *l = ctx;
	char slot[SLOT_SIZE];
	int r = look_at_left(l, i, slot, err);

	if (r == SLOT_STAYS)
		return -EBUSY;
	return r == SLOT_GOES ? remove_slot(l->acting, slot, err) : r;
}

/* Moves the stage aside as a whole, if everything in it may go and removing it would take long. */
static bool throw_away(struct acting *a, struct leftovers *l)
{
	struct err unused = { 0 };

	if (l->n == 0 || a->sync_each || a->journal.state != JOURNAL_DONE)
		return false;
	if (crew_each(crew_size(l->n), l->n, ready_slot, l, &unused) < 0 || l->others ||
	    !trash_take(a))
		return false;
	a->report->unswept = true;
	close(TAKE_FD(a->stage_fd));
	return true;
}

/* The top has its own mode again, which may not let its owner take the stage away; clear() restores it. */
static void open_for_clearing(struct acting *a)
{
	IGNORE_RESULT(dir_to_change(a, 0, NULL), "what cannot be removed says so");
	dir_forget(a);
}

/* Opened anew: some file systems list only what was there when a directory was opened. */
static int list_left(struct acting *a, struct leftovers *l)
{
	AUTO_CLOSE int names =
	    openat(a->stage_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return names < 0 ? -errno : sys_each_name(names, add_left, l);
}

int stage_clear(struct acting *a, struct err *err)
{
	CLEANUP(leftovers_done) struct leftovers l = { .acting = a };
	int r = 0;

	open_for_clearing(a);
	/* What landed left its slot, so few of many are looked at. */
	if (a->stage_fd >= 0)
		r = list_left(a, &l);
	if (r < 0)
		return err_wrap(err, r, "listing '%s'", a->stage);
	if (throw_away(a, &l))
		return 0;
	r = crew_each(a->sync_each ? 1 : crew_size(l.n), l.n, clear_slot, &l, err);
	if (r < 0)
		return r;
	if (a->stage_fd >= 0)
		close(TAKE_FD(a->stage_fd));
	if (unlinkat(a->top_fd, a->stage, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(err, "removing '%s'", a->stage);
	acting_note(a, a->stage, "is left: it holds files that somebody changed meanwhile");
	return 0;
}
