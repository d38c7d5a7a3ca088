/*
 * A branch moves by git's own protocol of files: the process that has REF.lock may write REF.
 * libgit2 takes that lock empty and fills it later; if it is killed in between, nobody knows whose
 * lock is left. So the lock is made here: it is a link to a file that names the commit already, and
 * the next process recognises it by that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "snapshot/text/branch-i.h"

struct move {
	char *ref, *lock,
	    *dir;   /* owned; paths of the branch's file, of its lock, and where both are */
	char *mine; /* owned; what the lock is a link to */
};

static void move_done(struct move *m)
{
	free(m->ref);
	free(m->lock);
	free(m->dir);
	free(m->mine);
}

static int find_files(const struct branch *b, const char *commit, struct move *ret, struct err *err)
{
	const char *top = b->git->repository_commondir(b->repo);

	*ret = (struct move){ 0 };
	if (asprintf(&ret->ref, "%s%s", top, b->ref) < 0 ||
	    asprintf(&ret->lock, "%s%s.lock", top, b->ref) < 0 ||
	    asprintf(&ret->mine, "%ssnap-%s.tmp", top, commit) < 0)
		return err_nomem(err);
	ret->dir = strndup(ret->ref, (size_t)(strrchr(ret->ref, '/') - ret->ref));
	return ret->dir ? 0 : err_nomem(err);
}

static int sync_dir(const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? err_sys(err, "writing '%s'", dir) : 0;
}

static int write_mine(const struct move *m, const char *commit, struct err *err)
{
	AUTO_CLOSE int fd =
	    open(m->mine, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	int r;

	if (fd < 0)
		return err_sys(err, "making '%s'", m->mine);
	r = fdio_write(fd, commit, strlen(commit));
	if (r >= 0)
		r = fdio_write(fd, "\n", 1);
	if (r < 0)
		return err_set(err, r, "writing '%s': %s", m->mine, strerror(-r));
	return fsync(fd) < 0 ? err_sys(err, "writing '%s'", m->mine) : 0;
}

/* With the lock nobody moves it any more: is it where we saw it? */
static int check_tip(const struct branch *b, struct err *err)
{
	git_reference *ref = NULL;
	const git_oid *at = NULL;
	bool same;

	if (b->git->reference_lookup(&ref, b->repo, b->ref) == 0)
		at = b->git->reference_target(ref);
	same = at && b->git->oid_cmp(at, &b->tip) == 0;
	if (ref)
		b->git->reference_free(ref);
	return same ? 0
		    : err_set(err, -ESTALE, "somebody moved the branch '%s' meanwhile", b->name);
}

/* Where there is a log of the branch, one line more.  The branch has moved, so a failure is no matter. */
static void append_log(const struct branch *b, const char *commit, const char *why)
{
	AUTO_CLOSE int fd = -1;
	git_signature *who = NULL;
	char line[1024];
	int n, offset;
	AUTO_FREE char *path =
	    text_format("%slogs/%s", b->git->repository_commondir(b->repo), b->ref);

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (b->git->signature_default(&who, b->repo) < 0 &&
	    b->git->signature_now(&who, "snap", "snap@localhost") < 0)
		return;
	offset = abs(who->when.offset);
	n = snprintf(line, sizeof(line), "%s %s %.200s <%.200s> %" PRId64 " %c%02d%02d\t%.200s\n",
		     b->tip_hex, commit, who->name, who->email, (int64_t)who->when.time,
		     who->when.offset < 0 ? '-' : '+', offset / 60, offset % 60, why);
	b->git->signature_free(who);
	if (n > 0 && (size_t)n < sizeof(line))
		IGNORE_RESULT(write(fd, line, (size_t)n), "it is a log");
}

static int move_locked(const struct branch *b, const struct move *m, struct err *err)
{
	int r = check_tip(b, err);

	if (r >= 0 && rename(m->lock, m->ref) < 0)
		r = err_sys(err, "moving the branch '%s'", b->name);
	if (r < 0) {
		unlink(m->lock);
		return r;
	}
	return sync_dir(m->dir, err);
}

int branch_advance(const struct branch *b, const char *commit, const char *why, struct err *err)
{
	CLEANUP(move_done) struct move m;
	int r = find_files(b, commit, &m, err);

	if (r >= 0)
		r = path_make_dirs(m.dir, 0777, err);
	if (r >= 0)
		r = write_mine(&m, commit, err);
	if (r < 0)
		return r;
	if (link(m.mine, m.lock) < 0)
		r = errno == EEXIST
			? err_set(
			      err, -EBUSY,
			      "another process works on the branch '%s', or one that died left '%s'",
			      b->name, m.lock)
			: err_sys(err, "locking the branch '%s'", b->name);
	else
		r = move_locked(b, &m, err);
	unlink(m.mine);
	if (r >= 0)
		append_log(b, commit, why);
	return r;
}

int branch_unlock(const struct branch *b, const char *commit, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(move_done) struct move m;
	struct err ignored = { 0 };
	int r = find_files(b, commit, &m, err);

	if (r < 0)
		return r;
	unlink(m.mine);
	if (fdio_read_file(AT_FDCWD, m.lock, 4096, &text, &ignored) < 0 ||
	    text.len < strlen(commit) || memcmp(text.data, commit, strlen(commit)) != 0)
		return 0;
	return unlink(m.lock) < 0 && errno != ENOENT ? err_sys(err, "removing '%s'", m.lock) : 0;
}
