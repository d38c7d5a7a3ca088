/*
 * A stage whose files may all go is moved into the store as a whole, by one call, and removed when
 * nobody waits.  Only what is named like a slot is ever removed there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "snapshot/apply-i.h"

#define TRASH_DIR  "trash" /* in the store's directory */
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_trash(struct store *s, bool make)
{
	AUTO_FREE char *path = path_join(store_path(s), TRASH_DIR);
	int fd;

	if (!path)
		return -ENOMEM;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, OPEN_FLAGS);
	return fd < 0 ? -errno : fd;
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

	if (trash < 0 || sys_rename_new(a->top_fd, a->stage, trash, a->stage) < 0)
		return false;
	if (is_that(trash, a->stage, a->stage_fd))
		return true;
	/* Somebody gave its name to another directory in the last moment. */
	IGNORE_RESULT(sys_rename_new(trash, a->stage, a->top_fd, a->stage),
		      "what it holds has other names than slots, and is not removed here either");
	return false;
}

static int remove_slot(const char *name, unsigned char type, void *ctx)
{
	(void)type;
	if (slot_is(name))
		unlinkat(*(int *)ctx, name, 0);
	return 0;
}

static int remove_stage(const char *name, unsigned char type, void *ctx)
{
	const int trash = *(int *)ctx;
	AUTO_CLOSE int fd = journal_is_stage(name) ? openat(trash, name, OPEN_FLAGS) : -1;

	(void)type;
	if (fd >= 0 && sys_each_name(fd, remove_slot, &fd) >= 0)
		unlinkat(trash, name, AT_REMOVEDIR);
	return 0;
}

void apply_sweep(struct store *s)
{
	AUTO_CLOSE int trash = open_trash(s, false);

	if (trash >= 0)
		IGNORE_RESULT(sys_each_name(trash, remove_stage, &trash),
			      "the next time may do better");
}
