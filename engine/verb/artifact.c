/*
 * An artifact is written to a hidden directory in the target first; then its top names move to
 * their places. Everything is made by descriptor in directories that we made ourselves, so no
 * symlink can lead us elsewhere. A signal that would end us waits until our files are removed
 * again.
 */
#include "engine/api/artifact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "cowfs/store/root.h"
#include "engine/find/artifact-i.h"
#include "engine/verb/artifact-i.h"
#include "engine/verb/entry-i.h"

#define READ_SIZE  ((size_t)256 << 10)
#define DEPTH_MAX  2048
#define STAGE_NAME ".snap-artifact-"
#define STAGE_SIZE (sizeof(STAGE_NAME) + 16)

/* --- finding it ------------------------------------------------------------------------- */

struct opened {
	struct store *store;
	struct engine_artifact artifact;
	struct root root;
};

static void opened_done(struct opened *o)
{
	engine_artifact_done(&o->artifact);
}

static int open_artifact(struct engine *e, const char *id, struct opened *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct object_id root;
	int r = engine_project(e, &ret->store, &project, err);

	if (r < 0)
		return r;
	r = artifact_find(ret->store, &project.id, id, &ret->artifact, &root, err);
	if (r < 0)
		return r;
	r = root_get(ret->store, &root, &ret->root, err);
	return r < 0 ? err_wrap(err, r, "artifact %s", ret->artifact.id) : 0;
}

/* --- writing it ------------------------------------------------------------------------- */

struct writing {
	struct store *store;
	char *room; /* owned */
	sigset_t ends;
};

static int is_ended(const struct writing *w, struct err *err)
{
	sigset_t waiting;

	if (sigpending(&waiting) < 0)
		return 0;
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&w->ends, s) == 1 && sigismember(&waiting, s) == 1)
			return err_set(err, -EINTR, "a signal ended it");
	return 0;
}

static int write_bytes(struct writing *w, const struct tree_entry *e, int fd, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	const struct content c = tree_entry_content(e);
	uint64_t at = 0;
	ssize_t n;
	int r = content_reader_new(w->store, &c, &rd, err);

	if (r < 0)
		return r;
	while ((r = content_reader_seek_data(rd, at, &at, err)) >= 0) {
		n = content_reader_read(rd, at, w->room, READ_SIZE, err);
		if (n <= 0)
			return (int)n;
		r = fdio_pwrite(fd, w->room, (size_t)n, (off_t)at);
		if (r < 0)
			return err_set(err, r, "writing it: %s", strerror(-r));
		at += (uint64_t)n;
		r = is_ended(w, err);
		if (r < 0)
			return r;
	}
	return r == -ENXIO ? 0 : r;
}

static int set_times(int fd, const struct tree_entry *e, struct err *err)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = e->mtime_s, .tv_nsec = e->mtime_ns } };

	return futimens(fd, times) < 0 ? err_sys(err, "setting its time") : 0;
}

static int write_file(struct writing *w, int dir, const char *name, const struct tree_entry *e,
		      struct err *err)
{
	AUTO_CLOSE int fd =
	    openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(err, "making it");
	r = write_bytes(w, e, fd, err);
	if (r < 0)
		return r;
	if (ftruncate(fd, (off_t)e->size) < 0)
		return err_sys(err, "writing it");
	if (fchmod(fd, e->mode & 0777) < 0)
		return err_sys(err, "setting its mode");
	r = set_times(fd, e, err);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? err_sys(err, "writing it") : 0;
}

static int write_link(int dir, const char *name, const struct tree_entry *e, struct err *err)
{
	AUTO_FREE char *target = strndup(e->target, e->target_len);

	if (!target)
		return err_nomem(err);
	return symlinkat(target, dir, name) < 0 ? err_sys(err, "making it") : 0;
}

static int write_dir(struct writing *w, int dir, const struct object_id *tree, const char *path,
		     unsigned depth, struct err *err);

static int write_subdir(struct writing *w, int dir, const char *name, const struct tree_entry *e,
			const char *path, unsigned depth, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r;

	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(err, "making it");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening it");
	r = write_dir(w, fd, &e->id, path, depth + 1, err);
	if (r < 0)
		return r;
	/* Its owner can always remove it. */
	if (fchmod(fd, (e->mode & 0777) | 0700) < 0)
		return err_sys(err, "setting its mode");
	return set_times(fd, e, err);
}

static int write_entry(struct writing *w, int dir, const struct tree_entry *e, const char *above,
		       unsigned depth, struct err *err)
{
	AUTO_FREE char *name = strndup(e->name, e->name_len);
	AUTO_FREE char *path = name && *above ? path_join(above, name) : name ? strdup(name) : NULL;
	struct err why = { 0 };
	int r;

	if (!path)
		return err_nomem(err);
	if (e->form == TREE_DIR)
		r = write_subdir(w, dir, name, e, path, depth, &why);
	else if (S_ISREG(e->mode))
		r = write_file(w, dir, name, e, &why);
	else if (S_ISLNK(e->mode))
		r = write_link(dir, name, e, &why);
	else
		r = err_set(&why, -EINVAL, "it is neither a file, a directory nor a link");
	if (r >= 0)
		return is_ended(w, err);
	return e->form == TREE_DIR && strchr(why.msg, '\'')
		   ? err_set(err, r, "%s", why.msg)
		   : err_set(err, r, "'%s': %s", path, why.msg);
}

static int write_dir(struct writing *w, int dir, const struct object_id *tree, const char *path,
		     unsigned depth, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r;

	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "its directories are nested too deep");
	r = tree_iter_new(w->store, tree, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = write_entry(w, dir, &e, path, depth, err);
	return r;
}

/* --- removing what was written ---------------------------------------------------------- */

/* Everything in a directory that we made; no link is followed. */
static void empty_dir(int fd, unsigned depth)
{
	DIR *d = depth > DEPTH_MAX ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d))) {
		int in;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		in = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (in >= 0)
			empty_dir(in, depth + 1);
		unlinkat(dirfd(d), e->d_name, in >= 0 ? AT_REMOVEDIR : 0);
	}
	closedir(d);
}

static void remove_stage(int dir, const char *stage)
{
	const int fd = openat(dir, stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		empty_dir(fd, 0);
	unlinkat(dir, stage, AT_REMOVEDIR);
}

/* --- moving it to its place ------------------------------------------------------------- */

static int add_name(const char *name, unsigned char type, void *ctx)
{
	return strlist_add(ctx, name);
}

/* All of the names, or none. */
static int move_all(int stage, int dir, const char *to, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 };
	size_t i = 0;
	int r = sys_each_name(stage, add_name, &names);

	if (r < 0)
		return err_set(err, r, "reading what was written: %s", strerror(-r));
	for (; i < names.n; i++) {
		r = sys_rename_new(stage, names.list[i], dir, names.list[i]);
		if (r < 0)
			break;
	}
	if (r >= 0)
		return fsync(dir) < 0 ? err_sys(err, "'%s'", to) : 0;
	err_set(err, r, r == -EEXIST ? "'%s' has '%s' already" : "'%s': moving '%s' there", to,
		names.list[i]);
	while (i-- > 0)
		IGNORE_RESULT(sys_rename_new(dir, names.list[i], stage, names.list[i]),
			      "somebody moved it since");
	return r;
}

static int make_stage(int dir, char name[STAGE_SIZE], struct err *err)
{
	uint32_t n;
	int r = sys_random(&n, sizeof(n));

	if (r < 0)
		return err_set(err, r, "no random bytes");
	snprintf(name, STAGE_SIZE, STAGE_NAME "%08x", n);
	return mkdirat(dir, name, 0700) < 0 ? err_sys(err, "making a directory there") : 0;
}

static int write_to(const struct opened *o, struct writing *w, int dir, const char *to,
		    struct err *err)
{
	char stage[STAGE_SIZE];
	AUTO_CLOSE int fd = -1;
	int r = make_stage(dir, stage, err);

	if (r < 0)
		return err_wrap(err, r, "'%s'", to);
	fd = openat(dir, stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? err_sys(err, "'%s'", to) : write_dir(w, fd, &o->root.top.id, "", 0, err);
	r = r < 0 ? r : move_all(fd, dir, to, err);
	remove_stage(dir, stage);
	return r;
}

int engine_artifact_get(struct engine *e, const char *id, const char *to,
			struct engine_artifact *ret, struct err *err)
{
	CLEANUP(opened_done) struct opened o = { 0 };
	AUTO_FREE char *room = malloc(READ_SIZE), *path = path_clean(e->dir, to);
	struct writing w = { .room = room };
	AUTO_CLOSE int dir = -1;
	sigset_t was;
	int r;

	if (!room || !path)
		return err_nomem(err);
	r = open_artifact(e, id, &o, err);
	if (r < 0)
		return r;
	w.store = o.store;
	r = artifact_judge(e, o.store, &o.root.top.id, path, err);
	if (r < 0)
		return r;
	r = path_make_dirs(path, 0777, err);
	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, "'%s'", path);
	sigemptyset(&w.ends);
	sigaddset(&w.ends, SIGINT);
	sigaddset(&w.ends, SIGTERM);
	sigaddset(&w.ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &w.ends, &was);
	r = write_to(&o, &w, dir, path, err);
	sigprocmask(SIG_SETMASK, &was, NULL);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(o.artifact);
	return r;
}

/* --- reading it ------------------------------------------------------------------------- */

static int send_dir(struct store *s, const struct tree_entry *dir,
		    const struct engine_show_sink *sink, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = tree_iter_new(s, &dir->id, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = entry_report(&e, e.name, e.name_len, sink->entry, sink->ctx, err);
	return r;
}

static int send_bytes(struct store *s, const struct tree_entry *e,
		      const struct engine_show_sink *sink, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE char *room = malloc(READ_SIZE);
	const struct content c = tree_entry_content(e);
	uint64_t at = 0;
	ssize_t n;
	int r = room ? content_reader_new(s, &c, &rd, err) : err_nomem(err);

	if (r < 0)
		return r;
	while ((n = content_reader_read(rd, at, room, READ_SIZE, err)) > 0) {
		r = sink->bytes(room, (size_t)n, sink->ctx, err);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return (int)n;
}

/* *ret borrows from `hold`. */
static int walk_to(const struct opened *o, const char *path, struct tree_entry *ret,
		   struct buf hold[2], struct err *err)
{
	struct object_id dir;
	size_t n;
	int r;

	*ret = o->root.top;
	for (const char *p = path; *p != '\0'; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		dir = ret->id;
		r = ret->form == TREE_DIR && path_name_valid(p, n)
			? tree_lookup(o->store, &dir, p, n, ret, &hold[0], err)
			: -ENOENT;
		if (r == -ENOENT)
			return err_set(err, r, "artifact %s has no '%s'", o->artifact.id, path);
		if (r < 0)
			return r;
		buf_swap(&hold[0], &hold[1]);
	}
	return 0;
}

int engine_artifact_read(struct engine *e, const char *id, const char *path,
			 const struct engine_show_sink *sink, struct err *err)
{
	CLEANUP(opened_done) struct opened o = { 0 };
	AUTO_FREE char *clean = path_clean("/", path);
	struct buf hold[2] = { BUF_INIT, BUF_INIT };
	struct tree_entry at;
	int r = clean ? open_artifact(e, id, &o, err) : err_nomem(err);

	if (r >= 0)
		r = walk_to(&o, clean + 1, &at, hold, err);
	if (r >= 0)
		r = entry_report(&at, clean[1] != '\0' ? path_base(clean) : "",
				 clean[1] != '\0' ? strlen(path_base(clean)) : 0, sink->found,
				 sink->ctx, err);
	if (r >= 0 && at.form == TREE_DIR)
		r = send_dir(o.store, &at, sink, err);
	else if (r >= 0 && S_ISREG(at.mode))
		r = send_bytes(o.store, &at, sink, err);
	buf_done(&hold[0]);
	buf_done(&hold[1]);
	return r;
}
