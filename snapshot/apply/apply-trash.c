/*
 * If every file of a stage may go, one rename moves the stage into the store, and it is removed
 * later, when nobody waits.
 *
 * The rename knows only a name, and anybody who may write to the project can have given that name
 * to another directory.  So the stage first gets a name that no sweep knows, is checked, and only
 * then gets a stage's name.  After a crash in between the journal still exists, and recovery puts
 * the stage back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

#define TRASH_DIR    "trash" /* in the store's directory */
#define TAKEN_PREFIX "taken-"
#define TAKEN_SIZE   (sizeof(TAKEN_PREFIX) + JOURNAL_ID_SIZE)

static int open_trash(struct store *s, bool make)
{
	AUTO_FREE char *path = path_join(store_path(s), TRASH_DIR);
	int fd;

	if (!path)
		return -ENOMEM;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static const char *taken_name(const struct acting *a, char name[TAKEN_SIZE])
{
	snprintf(name, TAKEN_SIZE, TAKEN_PREFIX "%s", a->journal.id);
	return name;
}

static bool is_that(int dir, const char *name, int fd)
{
	struct stat st, want;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &want) == 0 &&
	       st.st_dev == want.st_dev && st.st_ino == want.st_ino;
}

bool trash_take(struct acting *a)
{
	AUTO_CLOSE int trash = open_trash(a->store, true);
	char taken[TAKEN_SIZE];

	taken_name(a, taken);
	if (trash < 0 || sys_rename_new(a->top_fd, a->stage, trash, taken) < 0)
		return false;
	if (is_that(trash, taken, a->stage_fd) &&
	    sys_rename_new(trash, taken, trash, a->stage) >= 0)
		return true;
	if (sys_rename_new(trash, taken, a->top_fd, a->stage) < 0)
		acting_note(a, a->stage,
			    "is in the store's 'trash' now: it was no directory of ours");
	return false;
}

void trash_give_back(struct acting *a)
{
	AUTO_CLOSE int trash = open_trash(a->store, false);
	char taken[TAKEN_SIZE];

	if (trash >= 0)
		IGNORE_RESULT(sys_rename_new(trash, taken_name(a, taken), a->top_fd, a->stage),
			      "mostly there is none");
}

/* --- removing --------------------------------------------------------------------------- */

struct sweep {
	int dir;
	apply_stop_fn stop;
	void *ctx;
};

static int remove_slot(const char *name, unsigned char type, void *ctx)
{
	const struct sweep *s = ctx;
	size_t step;
	char kind;

	if (s->stop && s->stop(s->ctx))
		return -ECANCELED;
	if (slot_parse(name, &kind, &step))
		unlinkat(s->dir, name, 0);
	return 0;
}

static int remove_stage(const char *name, unsigned char type, void *ctx)
{
	const struct sweep *all = ctx;
	AUTO_CLOSE int fd = -1;
	struct sweep one = *all;
	int r;

	if (!stage_is_name(name))
		return 0;
	fd = openat(all->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	one.dir = fd;
	r = sys_each_name(fd, remove_slot, &one);
	if (r < 0)
		return r == -ECANCELED ? r : 0;
	unlinkat(all->dir, name, AT_REMOVEDIR);
	return 0;
}

void apply_sweep(struct store *s, apply_stop_fn stop, void *ctx)
{
	AUTO_CLOSE int trash = open_trash(s, false);
	struct sweep all = { .dir = trash, .stop = stop, .ctx = ctx };

	if (trash >= 0)
		IGNORE_RESULT(sys_each_name(trash, remove_stage, &all),
			      "the next time may do better");
}
