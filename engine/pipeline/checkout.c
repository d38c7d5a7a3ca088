#include "engine/pipeline/checkout-i.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/text.h"

#define PREFIX    "git:"
#define TRIES_MAX 5 /* moves of a branch by somebody else while ours is taken back */

void checkout_done(struct checkout *c)
{
	branch_close(c->branch);
	free(c->dir);
	cleanup_close(&c->lock);
	*c = CHECKOUT_INIT;
}

/* --- the target's name --------------------------------------------------------------------- */

bool target_is_branch(const char *target)
{
	return target && strncmp(target, PREFIX, strlen(PREFIX)) == 0;
}

static char *checkout_dir(const struct engine *e, const char *target)
{
	uint8_t digest[SHA256_SIZE];
	char name[17];

	sha256_of(target, strlen(target), digest);
	hex_encode(digest, 8, name);
	return text_format("%s.branches/%s", e->store_path, name);
}

char *target_dir(const struct engine *e, const char *target)
{
	return target_is_branch(target) ? checkout_dir(e, target) : strdup(target);
}

char *target_repository(const char *target)
{
	const char *path = target + strlen(PREFIX);

	return strndup(path, strcspn(path, "#"));
}

int target_branch(const char *target, struct branch **ret, struct err *err)
{
	AUTO_FREE char *repository = target_repository(target);
	const char *name = strchr(target, '#');

	if (!repository)
		return err_nomem(err);
	return branch_open(repository, name ? name + 1 : "", ret, err);
}

/* --- the directory ------------------------------------------------------------------------- */

static int empty(int dir);

static int remove_entry(const char *name, unsigned char type, void *ctx)
{
	const int dir = *(const int *)ctx;
	AUTO_CLOSE int fd = -1;
	int r;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = empty(fd);
	return r < 0 ? r : unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int empty(int dir)
{
	return sys_each_name(dir, remove_entry, &dir);
}

static int take(struct checkout *c, struct err *err)
{
	AUTO_FREE char *lock = NULL;
	int r = path_make_dirs(c->dir, 0700, err);

	if (r < 0)
		return r;
	lock = text_format("%s.lock", c->dir);
	if (!lock)
		return err_nomem(err);
	c->lock = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->lock < 0)
		return err_sys(err, "opening '%s'", lock);
	if (flock(c->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK
		   ? err_set(err, -EBUSY, "another change lands on this branch now")
		   : err_sys(err, "locking '%s'", lock);
}

static int fill(struct checkout *c, struct err *err)
{
	AUTO_CLOSE int fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : empty(fd);

	if (r < 0)
		return err_set(err, r, "emptying '%s': %s", c->dir, strerror(-r));
	return branch_export(c->branch, fd, err);
}

static int refuse_checked_out(const struct branch *b, const char *target, struct err *err)
{
	if (!branch_is_checked_out(b))
		return 0;
	return err_set(err, -ECANCELED,
		       "'%s' is checked out, and would look edited there once it moved: land in "
		       "that directory, or check out another branch",
		       target);
}

int checkout_make(const struct engine *e, const char *target, struct checkout *ret, struct err *err)
{
	CLEANUP(checkout_done) struct checkout c = CHECKOUT_INIT;
	int r;

	c.dir = checkout_dir(e, target);
	r = c.dir ? take(&c, err) : err_nomem(err);
	if (r < 0)
		return r;
	r = target_branch(target, &c.branch, err);
	if (r < 0)
		return r;
	r = refuse_checked_out(c.branch, target, err);
	if (r < 0)
		return r;
	r = fill(&c, err);
	if (r < 0)
		return r;
	*ret = c;
	c = CHECKOUT_INIT;
	return 0;
}

/* --- commits ------------------------------------------------------------------------------- */

static int write_message(const struct engine_change *c, const struct engine_stage *stage,
			 struct buf *ret)
{
	int r = buf_printf(ret,
			   "Changes of clone %s\n\nShipped by snap.\n\nSnap-Change: %s\n"
			   "Snap-Stage: %s\nSnap-Content: sha256:%s\nSnap-Asked-By: %s\n",
			   c->clone, c->id, stage->name, c->sha256, c->who);

	if (r >= 0 && c->approved_by)
		r = buf_printf(ret, "Snap-Approved-By: %s\n", c->approved_by);
	for (size_t i = 0; r >= 0 && i < c->n_passed; i++)
		r = buf_printf(ret, "Snap-Receipt: %s sha256:%s\n", c->passed[i].stage,
			       c->passed[i].link);
	return r < 0 || !buf_str(ret) ? -ENOMEM : 0;
}

int checkout_land(struct shipping *s, const struct engine_stage *stage, const struct checkout *c,
		  struct err *err)
{
	const struct engine_promotion *p = s->promotion;
	CLEANUP(buf_done) struct buf message = BUF_INIT;
	CLEANUP(strlist_done) struct strlist paths = { 0 };
	int r;

	if (p->changed > p->n_paths)
		return err_set(err, -EFBIG, "more than %zu paths change: too many for one commit",
			       p->n_paths);
	for (size_t i = 0; i < p->n_paths; i++)
		if (strlist_add(&paths, p->paths[i].path) < 0)
			return err_nomem(err);
	if (write_message(s->change, stage, &message) < 0)
		return err_nomem(err);
	r = branch_commit(c->branch, c->dir, paths.list, paths.n, buf_str(&message),
			  s->change->landing_commit, err);
	if (r <= 0)
		return r;
	/* From here on the branch says whether it landed, whatever dies. */
	r = shipping_save(s, NULL, err);
	if (r < 0)
		return r;
	r = branch_advance(c->branch, s->change->landing_commit, "snap ship", err);
	return r < 0 ? r : 1;
}

/* 1: the branch has moved to the commit that takes it back. */
static int revert_once(struct shipping *s, struct engine_passed *p, struct err *err)
{
	CLEANUP(branch_close_p) struct branch *b = NULL;
	char message[300];
	int r = target_branch(p->target, &b, err);

	/* A process that died may have done it. */
	if (r < 0)
		return r;
	if (*p->undo_commit != '\0')
		r = branch_contains(b, p->undo_commit, err);
	if (r == 0 && *p->undo_commit != '\0')
		r = branch_unlock(b, p->undo_commit, err);
	if (r != 0)
		return r;
	r = refuse_checked_out(b, p->target, err);
	if (r < 0)
		return r;
	snprintf(
	    message, sizeof(message),
	    "Take back changes of clone %.100s\n\nThis reverts commit %s.\n\nSnap-Change: %s\n",
	    s->change->clone, p->commit, s->change->id);
	r = branch_revert(b, p->commit, message, p->undo_commit, err);
	if (r <= 0)
		return r;
	r = shipping_save(s, NULL, err);
	if (r < 0)
		return r;
	r = branch_advance(b, p->undo_commit, "snap ship: taken back", err);
	return r < 0 ? r : 1;
}

int checkout_take_back(struct shipping *s, struct engine_passed *p, struct err *err)
{
	int r = -ESTALE;

	for (int i = 0; i < TRIES_MAX && r == -ESTALE; i++)
		r = revert_once(s, p, err);
	return r;
}
