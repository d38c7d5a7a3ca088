/*
 * Each captured file existed at one moment. Two fstat(2) around the reading show that nothing was
 * written meanwhile, but only if the file's ctime is old: the kernel may stamp two writes within
 * one tick alike. A file too fresh for that is read twice in a row. If both readings are equal, the
 * bytes did not change from the end of the first to the start of the second, whatever the clock
 * says.
 *
 * A file that is never left alone, such as a log, is at last read to its end twice: the bytes that
 * are the same both times were the whole file at the moment when its end was reached first.
 *
 * A fresh file is not trusted later either: one more write within the tick would not show.
 *
 * One thing cannot be seen: a store through a shared mapping into a page that is dirty already
 * changes no time.
 */
#include "snapshot/capture/capture-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/store/settle.h"

#define READ_SIZE ((ssize_t)(4 * CHUNK_SIZE_MAX))

/* By which a file may grow while it is read. */
#define GROWTH_MAX ((uint64_t)16 * READ_SIZE)

/* In these many bytes st_blocks counts, whatever the block size. */
#define STAT_BLOCK 512

/* Above a tick of any kernel (10 ms); and above the steps of file systems that count in seconds. */
#define FRESH_NS          20000000
#define FRESH_S_IF_COARSE 2

#define NS_PER_S 1000000000

int node_reader_init(struct node_reader *nr, struct batch *b, struct err *err)
{
	*nr = (struct node_reader){ .batch = b, .file = -1 };
	nr->block = malloc(READ_SIZE);
	if (!nr->block)
		return err_nomem(err);
	return content_writer_new(b, &nr->writer, err);
}

void node_reader_done(struct node_reader *nr)
{
	node_close(nr);
	content_writer_free(nr->writer);
	free(nr->block);
	buf_done(&nr->names);
	buf_done(&nr->values);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	free(n->target);
	free(n);
}

static void set_attributes(struct tree_entry *e, const struct stat *st)
{
	e->mode = (uint32_t)st->st_mode;
	e->uid = (uint32_t)st->st_uid;
	e->gid = (uint32_t)st->st_gid;
	e->ino = (uint64_t)st->st_ino;
	e->mtime_s = SYS_ST_MTIM(st).tv_sec;
	e->mtime_ns = (uint32_t)SYS_ST_MTIM(st).tv_nsec;
	e->ctime_s = SYS_ST_CTIM(st).tv_sec;
	e->ctime_ns = (uint32_t)SYS_ST_CTIM(st).tv_nsec;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		e->rdev = (uint64_t)st->st_rdev;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_version(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
	       a->st_size == b->st_size && same_time(&SYS_ST_MTIM(a), &SYS_ST_MTIM(b)) &&
	       same_time(&SYS_ST_CTIM(a), &SYS_ST_CTIM(b));
}

/* Did opening fail because the name no longer means the same kind of file? */
static bool is_race(int errnum)
{
	return errnum == ENOENT || errnum == ELOOP || errnum == ENXIO || errnum == EWOULDBLOCK ||
	       errnum == EINTR;
}

/* --- regular files ---------------------------------------------------------------------- */

/* NODE_CHANGED if the file ends before `end`. */
static int add_range(struct node_reader *nr, int fd, uint64_t at, uint64_t end, struct err *err)
{
	ssize_t n;
	int r;

	while (at < end) {
		const size_t want = end - at < (uint64_t)READ_SIZE ? (size_t)(end - at) : READ_SIZE;

		n = fdio_pread(fd, nr->block, want, (off_t)at);
		if (n < 0)
			return node_unreadable(err_wrap(err, (int)n, "cannot be read"));
		if (n == 0)
			return NODE_CHANGED;
		r = content_writer_add(nr->writer, nr->block, (size_t)n, err);
		if (r < 0)
			return r;
		at += (uint64_t)n;
		if (nr->pulse)
			nr->pulse(nr->pulse_ctx);
		if (at < end && nr->stop && nr->stop(nr->stop_ctx))
			return err_set(err, -ECANCELED, "nobody needs it any more");
	}
	return 0;
}

/* Where the data that comes at or after `at` begins and ends; without any, at the file's end. */
static int find_data(int fd, uint64_t at, uint64_t size, uint64_t *ret_data, uint64_t *ret_hole,
		     struct err *err)
{
	off_t data, hole;

	data = lseek(fd, (off_t)at, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		data = (off_t)size;
	else if (data < 0 && (errno == EINVAL || errno == ENOTSUP))
		data = (off_t)at;
	else if (data < 0)
		return node_unreadable(err_sys(err, "cannot be searched for holes"));

	hole = lseek(fd, data, SEEK_HOLE);
	*ret_data = (uint64_t)data < size ? (uint64_t)data : size;
	*ret_hole = hole > data && (uint64_t)hole < size ? (uint64_t)hole : size;
	return 0;
}

static int add_sparse(struct node_reader *nr, int fd, uint64_t size, struct err *err)
{
	uint64_t data = size, hole = size;
	int r;

	for (uint64_t at = 0; at < size; at = hole) {
		r = find_data(fd, at, size, &data, &hole, err);
		if (r != 0)
			return r;
		r = content_writer_skip(nr->writer, data - at, err);
		if (r < 0)
			return r;
		r = add_range(nr, fd, data, hole, err);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Whatever came of it, the writer then takes the next file. */
static int finish_content(struct node_reader *nr, int added, struct content *ret, struct err *err)
{
	struct err ignored = { 0 };
	int r = content_writer_finish(nr->writer, ret, added == 0 ? err : &ignored);

	return added != 0 || r >= 0 ? added : r;
}

int node_read_content(struct node_reader *nr, int fd, const struct stat *st, struct content *ret,
		      struct err *err)
{
	const uint64_t size = (uint64_t)st->st_size;
	int added;

	if ((uint64_t)st->st_blocks * STAT_BLOCK < size)
		added = add_sparse(nr, fd, size, err);
	else
		added = add_range(nr, fd, 0, size, err);
	return finish_content(nr, added, ret, err);
}

static int examine(int fd, struct stat *ret, struct err *err)
{
	return fstat(fd, ret) < 0 ? node_unreadable(err_sys(err, "cannot be examined")) : 0;
}

/* `before` is its last stat. */
static int read_version(struct node_reader *nr, int fd, const struct stat *before,
			struct tree_entry *ret, struct stat *ret_st, struct err *err)
{
	struct tree_entry e = { 0 };
	struct content content;
	int r = node_read_content(nr, fd, before, &content, err);

	if (r == 0)
		r = node_read_xattrs(nr, fd, &e.xattrs, err);
	if (r == 0)
		r = examine(fd, ret_st, err);
	if (r != 0)
		return r;
	if (!same_version(before, ret_st))
		return NODE_CHANGED;
	set_attributes(&e, ret_st);
	tree_entry_set_content(&e, &content);
	*ret = e;
	return 0;
}

/* --- files that are never left alone ----------------------------------------------------- */

/* Read to the end, which is where less comes than was asked for; NODE_CHANGED if that is after `max`. */
static int read_to_end(struct node_reader *nr, int fd, uint64_t max, struct content *ret,
		       struct err *err)
{
	uint64_t at = 0;
	ssize_t n = READ_SIZE;
	int r = 0;

	while (r == 0 && n == READ_SIZE) {
		n = fdio_pread(fd, nr->block, READ_SIZE, (off_t)at);
		if (n < 0)
			r = node_unreadable(err_wrap(err, (int)n, "cannot be read"));
		else if (at > max)
			r = NODE_CHANGED;
		else
			r = content_writer_add(nr->writer, nr->block, (size_t)n, err);
		at += READ_SIZE;
		if (nr->pulse)
			nr->pulse(nr->pulse_ctx);
	}
	return finish_content(nr, r, ret, err);
}

static int read_restless(struct node_reader *nr, int fd, struct tree_entry *ret,
			 struct stat *ret_st, struct err *err)
{
	struct tree_entry e = { 0 };
	struct content first, second;
	struct stat before;
	int r = examine(fd, &before, err);

	if (r == 0)
		r = read_to_end(nr, fd, (uint64_t)before.st_size + GROWTH_MAX, &first, err);
	if (r == 0) {
		r = add_range(nr, fd, 0, first.size, err);
		r = finish_content(nr, r, &second, err);
	}
	if (r == 0)
		r = node_read_xattrs(nr, fd, &e.xattrs, err);
	if (r == 0)
		r = examine(fd, ret_st, err);
	if (r != 0)
		return r;
	if (!content_equal(&first, &second) || before.st_mode != ret_st->st_mode ||
	    before.st_uid != ret_st->st_uid || before.st_gid != ret_st->st_gid)
		return NODE_CHANGED;
	ret_st->st_size = (off_t)first.size;
	set_attributes(&e, ret_st);
	tree_entry_set_content(&e, &first);
	*ret = e;
	return 0;
}

/* --- regular files, at one moment --------------------------------------------------------- */

/* Could something have been written since `since` without a new ctime? */
static bool is_fresh(const struct tree_entry *e, const struct timespec *since)
{
	if (e->ctime_s < since->tv_sec - FRESH_S_IF_COARSE)
		return false;
	if (e->ctime_ns == 0 || e->ctime_s > since->tv_sec)
		return true;
	return (since->tv_sec - e->ctime_s) * NS_PER_S + since->tv_nsec - (int64_t)e->ctime_ns <
	       FRESH_NS;
}

static int read_still(struct node_reader *nr, struct node *n, struct stat *ret_st, struct err *err)
{
	struct tree_entry again;
	struct stat first;
	int r = read_version(nr, nr->file, &nr->file_stat, &n->e, ret_st, err);

	if (r != 0)
		return r;
	n->trusted = !is_fresh(&n->e, &nr->before);
	if (n->trusted)
		return 0;
	first = *ret_st;
	r = read_version(nr, nr->file, &first, &again, ret_st, err);
	if (r != 0)
		return r;
	return tree_entry_equal(&n->e, &again) ? 0 : NODE_CHANGED;
}

/* --- files that are promised instead of read ------------------------------------------------ */

bool capture_needs_bytes(const char *name, size_t len)
{
	static const char *const names[] = { ".git",   "alternates",      "commondir",
					     "config", "config.worktree", "gitdir" };

	return VEC_HAS(it, names, ARRAY_LEN(names),
		       strlen(*it) == len && memcmp(*it, name, len) == 0);
}

/*
 * Of a file that somebody has open for writing nothing shows whether it changes: a store to a page that is dirty
 * already changes no time.  A lease shows that nobody has.  Another owner's file is trusted without one; after
 * any other failure nobody knows.
 */
static bool is_nobody_writing(struct node_reader *nr)
{
	const struct capture_options *o = nr->options;
	const int r = o->lease ? o->lease(o->hold_ctx, nr->file, &nr->trial)
			       : leases_try(NULL, nr->file, false, &nr->trial);

	return r == 0 || r == -EACCES;
}

/*
 * What a promise needs besides the stat, which follows: a stat that shows an old ctime then shows that all
 * of it is of one moment.
 */
static void prepare_promise(struct node_reader *nr, const char *name)
{
	struct err ignored = { 0 };

	if (!nr->lazy || capture_needs_bytes(name, strlen(name)))
		return;
	nr->may_promise =
	    is_nobody_writing(nr) && node_read_xattrs(nr, nr->file, &nr->xattrs, &ignored) == 0;
}

/* False if it must be read. */
static bool promise(struct node_reader *nr, struct node *n)
{
	const struct capture_options *o = nr->options;
	const struct stat *st = &nr->file_stat;
	struct tree_entry e = { .size = (uint64_t)st->st_size, .xattrs = nr->xattrs };

	if (!nr->may_promise || e.size == 0 || e.size > CAPTURE_LAZY_MAX || st->st_dev != nr->home)
		return false;
	set_attributes(&e, st);
	if (is_fresh(&e, &nr->before))
		return false;
	if (nr->ration && (!nr->trial.is_set || !ration_promise(nr->ration, e.size)))
		return false;
	e.id = settle_promise(store_key(batch_store(nr->batch)), nr->lazy, e.ino, &e);
	if (nr->trial.is_set && o->hold &&
	    o->hold(o->hold_ctx, &e.id, nr->file, e.size, &nr->trial))
		nr->file = -1;
	else if (nr->ration)
		return (ration_take_back(nr->ration, e.size), false);
	e.form = TREE_LAZY;
	e.data = e.size;
	n->e = e;
	n->trusted = true;
	nr->promised.files++;
	nr->promised.bytes += e.size;
	return true;
}

/* It is open, and what nobody asked to be promised has not been up to now. */
static bool is_spent(struct node_reader *nr)
{
	if (!nr->lazy || !nr->ration ||
	    !ration_is_spent(nr->ration, &nr->file_stat, nr->pulse, nr->pulse_ctx))
		return false;
	batch_expect_passing_trees(nr->batch);
	return true;
}

int node_open(struct node_reader *nr, int dirfd, const char *name, struct stat *ret,
	      struct err *err)
{
	const bool unasked = nr->ration && !nr->ration->spent;
	int r;

	node_close(nr);
	clock_gettime(CLOCK_REALTIME, &nr->before);
	/* Should a FIFO have taken the name's place, opening must not wait for its other end. */
	nr->file = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (nr->file < 0)
		return is_race(errno) ? NODE_CHANGED
				      : node_unreadable(err_sys(err, "cannot be opened"));
	if (!unasked)
		prepare_promise(nr, name);
	r = examine(nr->file, &nr->file_stat, err);
	if (r == 0 && !S_ISREG(nr->file_stat.st_mode))
		r = NODE_CHANGED;
	if (r == 0 && unasked && is_spent(nr)) {
		prepare_promise(nr, name);
		r = examine(nr->file, &nr->file_stat, err);
	}
	if (r != 0)
		node_close(nr);
	else
		*ret = nr->file_stat;
	return r;
}

void node_close(struct node_reader *nr)
{
	cleanup_close(&nr->file);
	nr->may_promise = false;
	nr->trial.is_set = false; /* or it is somebody else's */
}

static int read_regular(struct node_reader *nr, int dirfd, const char *name, const struct stat *st,
			bool patience, struct node *n, struct stat *ret_st, struct err *err)
{
	struct stat now;
	int r = 0;

	if (nr->file < 0)
		r = node_open(nr, dirfd, name, &now, err);
	if (r != 0)
		return r;
	if (nr->file_stat.st_dev != st->st_dev || nr->file_stat.st_ino != st->st_ino)
		return NODE_CHANGED;
	*ret_st = nr->file_stat;
	if (promise(nr, n))
		return 0;
	lease_give_up(nr->file, &nr->trial); /* its writers need not wait while it is read */
	r = read_still(nr, n, ret_st, err);
	if (r == NODE_CHANGED && patience) {
		n->trusted = false;
		r = read_restless(nr, nr->file, &n->e, ret_st, err);
	}
	return r;
}

/* --- everything else -------------------------------------------------------------------- */

static int read_target(int dirfd, const char *name, struct node *n, struct err *err)
{
	char target[TREE_TARGET_LEN_MAX + 1];
	ssize_t len = readlinkat(dirfd, name, target, sizeof(target));

	if (len < 0 && errno == EINVAL)
		return NODE_CHANGED;
	if (len < 0)
		return is_race(errno) ? NODE_CHANGED
				      : node_unreadable(err_sys(err, "cannot be read"));
	n->target = malloc((size_t)len + 1);
	if (!n->target)
		return err_nomem(err);
	memcpy(n->target, target, (size_t)len);
	n->e.target = n->target;
	n->e.target_len = (size_t)len;
	n->e.size = (size_t)len;
	return 0;
}

static int read_special(struct node_reader *nr, int dirfd, const char *name, const struct stat *st,
			struct node *n, struct err *err)
{
	AUTO_CLOSE int fd = sys_open_node(dirfd, name);
	struct timespec start;
	struct stat now;
	int r;

	clock_gettime(CLOCK_REALTIME, &start);
	if (fd < 0 && fd != -ENOTSUP)
		return is_race(-fd) ? NODE_CHANGED
				    : node_unreadable(err_wrap(err, fd, "cannot be opened"));
	if (fd >= 0) {
		r = node_read_xattrs(nr, fd, &n->e.xattrs, err);
		if (r == 0)
			r = examine(fd, &now, err);
		if (r != 0)
			return r;
		if (!same_version(st, &now))
			return NODE_CHANGED;
	}
	set_attributes(&n->e, st);
	n->trusted = !is_fresh(&n->e, &start);
	if (!S_ISLNK(st->st_mode))
		return 0;

	r = read_target(dirfd, name, n, err);
	if (r != 0)
		return r;
	if (fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return is_race(errno) ? NODE_CHANGED
				      : node_unreadable(err_sys(err, "cannot be examined"));
	return same_version(st, &now) ? 0 : NODE_CHANGED;
}

int node_read(struct node_reader *nr, int dirfd, const char *name, const struct stat *st,
	      dev_t home, bool patience, struct node **ret, struct err *err)
{
	CLEANUP(node_free_p) struct node *n = calloc(1, sizeof(*n));
	struct stat now = *st;
	const char *flaw;
	int r;

	if (!n)
		return err_nomem(err);
	nr->home = home;
	if (S_ISREG(st->st_mode))
		r = read_regular(nr, dirfd, name, st, patience, n, &now, err);
	else
		r = read_special(nr, dirfd, name, st, n, err);
	if (r != 0)
		return r;
	n->e.name = name;
	n->e.name_len = strlen(name);
	flaw = tree_entry_flaw(&n->e);
	if (flaw)
		return node_unreadable(err_set(err, -ENOTSUP, "cannot be stored: %s", flaw));
	signature_stat_set(&n->stat, &now, home);
	*ret = TAKE_PTR(n);
	return 0;
}

/* Its tree is not known yet. */
int node_read_dir(struct node_reader *nr, int fd, dev_t home, signature_at old, struct stat *ret_st,
		  struct node **ret, struct err *err)
{
	CLEANUP(node_free_p) struct node *n = calloc(1, sizeof(*n));
	struct timespec start;
	struct signature s;
	int r;

	if (!n)
		return err_nomem(err);
	clock_gettime(CLOCK_REALTIME, &start);
	r = examine(fd, ret_st, err);
	if (r != 0)
		return r;
	n->e.form = TREE_DIR;
	set_attributes(&n->e, ret_st);
	signature_stat_set(&n->stat, ret_st, home);
	if (old && signature_holds(old, &n->stat)) {
		signature_decode(old, &s);
		n->e.xattrs = s.e.xattrs;
		n->trusted = true;
	} else {
		r = node_read_xattrs(nr, fd, &n->e.xattrs, err);
		n->trusted = !is_fresh(&n->e, &start);
	}
	if (r == 0)
		*ret = TAKE_PTR(n);
	return r;
}
