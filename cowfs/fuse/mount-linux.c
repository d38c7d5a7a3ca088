#include "cowfs/fuse/mount.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "cowfs/core/traffic.h"
#include "cowfs/fuse/echo.h"
#include "cowfs/fuse/mates.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/thread.h"

#define CLOSE_WAIT_S 30
#define END_WAIT_S   3
#define PROBE_MS     2000

unsigned mounts_watchdog_ms = WATCHDOG_LIMIT_MS;

/* --- all mounts of the process ---------------------------------------------------------- */

PRINTF_LIKE(2, 0)
static void log_libfuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_at(level <= FUSE_LOG_ERR ? LOG_WARN : LOG_DEBUG, "libfuse: %s", line);
}

int mounts_new(struct mounts **ret, struct err *err)
{
	CLEANUP(mounts_free_p) struct mounts *ms = calloc(1, sizeof(*ms));
	int r;

	if (ms == NULL)
		return err_nomem(err);
	pthread_rwlock_init(&ms->mates_lock, NULL);
	fuse_set_log_func(log_libfuse);
	ms->cpus = sys_processors();
	ms->load_fd = sys_load_open();
	paces_init(&ms->paces, ms->cpus);
	r = pool_new(&ms->pool, err);
	if (r < 0)
		return r;
	if (pool_join(ms->pool, &ms->rest) < 0)
		return err_nomem(err);
	r = watchdog_new(mounts_watchdog_ms, &ms->dog, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ms);
	return 0;
}

void mounts_free(struct mounts *ms)
{
	if (ms == NULL)
		return;
	watchdog_free(ms->dog);
	pool_leave(ms->rest);
	pool_free(ms->pool);
	paces_done(&ms->paces);
	pthread_rwlock_destroy(&ms->mates_lock);
	if (ms->load_fd >= 0)
		close(ms->load_fd);
	free(ms);
}

/* Are we to mount as on a kernel that maps no ids of FUSE mounts (before Linux 6.12)?  For tests. */
static bool lacks_idmap(void)
{
	return getenv("SNAPCOW_NO_IDMAP") != NULL;
}

/* --- one mount -------------------------------------------------------------------------- */

static void mount_free(struct mount *m)
{
	if (m == NULL)
		return;
	echo_end_all(m);
	if (m->se != NULL)
		fuse_session_destroy(m->se); /* closes the connection */
	if (m->wake >= 0)
		close(m->wake);
	if (m->room != NULL)
		munmap(m->room, MOUNT_ROOM);
	pthread_cond_destroy(&m->quiet);
	pthread_mutex_destroy(&m->lock);
	if (m->tree >= 0)
		close(m->tree);
	pool_leave(m->share);
	pace_leave(&m->pace);
	strlist_done(&m->places);
	free(m->hidden);
	free(m);
}
DEFINE_CLEANUP(struct mount *, mount_free)

static ssize_t io_write(int fd, struct iovec *iov, int n, void *userdata)
{
	struct mount *m = userdata;

	wire_amend(&m->wire, iov, n);
	return writev(fd, iov, n);
}

/* libfuse insists on one, but reading is done by the reader. */
static ssize_t io_read(int fd, void *data, size_t len, void *userdata)
{
	errno = ENOSYS;
	return -1;
}

static int make_session(struct mount *m, struct err *err)
{
	char name[] = "snapcow";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);

	m->se = fuse_session_new(&args, &ops, sizeof(ops), m);
	fuse_opt_free_args(&args); /* it puts a copy there */
	return m->se != NULL ? 0 : err_set(err, -ENOMEM, "libfuse cannot make a session");
}

/* Before it gets there, so that nothing can fail afterwards. */
static int note_place(struct mount *m, const char *path, struct err *err)
{
	return strlist_add(&m->places, path) < 0 ? err_nomem(err) : 0;
}

/* It is at the place that was noted last. */
static void take_place(struct mount *m)
{
	m->at = m->places.list[m->places.n - 1];
	m->path = m->at;
}

static int new_mount(struct mounts *ms, struct layer *l, const char *path, struct mount **ret,
		     struct err *err)
{
	CLEANUP(mount_free_p) struct mount *m = calloc(1, sizeof(*m));
	int r;

	if (m == NULL)
		return err_nomem(err);
	m->all = ms;
	m->layer = l;
	m->fd = -1;
	m->tree = -1;
	pthread_mutex_init(&m->lock, NULL);
	thread_cond_init(&m->quiet);
	pace_join(&ms->paces, &m->pace, l, traffic_work(l));
	m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake < 0)
		return err_sys(err, "making an eventfd");
	if (pool_join(ms->pool, &m->share) < 0)
		return err_nomem(err);
	m->path = "(nowhere)";
	r = path == NULL ? 0 : note_place(m, path, err);
	if (r < 0)
		return r;
	if (path != NULL)
		take_place(m);
	/* Pages are taken as requests need them; mostly the first one is enough. */
	m->room =
	    mmap(NULL, MOUNT_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->room == MAP_FAILED) {
		m->room = NULL;
		return err_nomem(err);
	}
	madvise(m->room, MOUNT_ROOM, MADV_NOHUGEPAGE);
	r = make_session(m, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

/* The connection becomes the session's. */
static int connect_session(struct mount *m, int fd, struct err *err)
{
	static const struct fuse_custom_io io = { .writev = io_write, .read = io_read };
	int r = fuse_session_custom_io(m->se, &io, fd);

	if (r < 0) {
		close(fd);
		return err_set(err, r, "libfuse does not take the connection");
	}
	m->fd = fd;
	return 0;
}

static int take_away(struct mount *m, bool force, struct err *err)
{
	if (m->at != NULL)
		return platform_unmount(m->at, &m->id, force, err);
	cleanup_close(&(int){ TAKE_FD(m->tree) });
	return 0;
}

/* Take the connection, and answer it. */
static int begin_serving(struct mount *m, int fd, struct mount *beside, struct err *err)
{
	int r = connect_session(m, fd, err);

	if (r == 0)
		r = reader_greet(m, err);
	if (r == 0 && beside != NULL)
		r = mates_join(m, beside, err);
	if (r == 0)
		r = reader_start(m, err);
	if (r < 0) {
		mates_leave(m);
		IGNORE_RESULT(take_away(m, true, NULL), "the first failure is the one to tell");
		return err_wrap(err, r, "mounting at '%s'", m->path);
	}
	if (beside == NULL)
		layer_set_witness(m->layer, request_witness, m);
	watchdog_add(m->all->dog, m);
	return 0;
}

int mount_open(struct mounts *ms, struct layer *l, const struct mount_options *options,
	       struct mount **ret, struct err *err)
{
	CLEANUP(mount_free_p) struct mount *m = NULL;
	int r, fd;

	r = new_mount(ms, l, options->path, &m, err);
	if (r < 0)
		return r;
	m->unchecked = options->unchecked;
	m->no_xattrs = options->no_xattrs;
	m->shift = options->shift;
	m->counts = options->beside != NULL;
	m->wire.maps_ids =
	    !options->unchecked && options->shift.n == 0 && geteuid() == 0 && !lacks_idmap();
	if (options->path != NULL)
		r = platform_mount(options, &fd, &m->id, err);
	else
		r = platform_mount_nowhere(options, &fd, &m->tree, &m->id, err);
	if (r < 0)
		return r;
	r = begin_serving(m, fd, options->beside, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int mount_adopt(struct mounts *ms, struct layer *l, int fd, const struct mount_options *options,
		struct mount **ret, struct err *err)
{
	CLEANUP(mount_free_p) struct mount *m = NULL;
	AUTO_CLOSE int own = fd;
	int r = new_mount(ms, l, NULL, &m, err);

	if (r < 0)
		return r;
	m->one_id = options->one_id;
	m->one_uid = options->one_uid;
	m->one_gid = options->one_gid;
	m->adopted = true;
	m->n_hidden = options->n_hidden;
	m->hidden = calloc(m->n_hidden + 1, sizeof(*m->hidden));
	if (!m->hidden)
		return err_nomem(err);
	for (size_t i = 0; i < m->n_hidden; i++)
		m->hidden[i] = options->hidden[i];
	m->counts = options->beside != NULL;
	r = begin_serving(m, TAKE_FD(own), options->beside, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int mount_fd(const struct mount *m)
{
	assert(m->at == NULL);
	return m->tree;
}

int mount_top(const struct mount *m)
{
	int fd;

	if (m->tree >= 0) {
		fd = fcntl(m->tree, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	fd = platform_hold(m->at);
	if (fd < 0 || platform_is_of(fd, &m->id))
		return fd < 0 ? -errno : fd;
	close(fd);
	return -ENOENT;
}

const char *mount_place(const struct mount *m)
{
	return m->at;
}

int mount_moved(struct mount *m, const char *path, struct err *err)
{
	int r = note_place(m, path, err);

	assert(m->at != NULL);
	if (r < 0)
		return r;
	if (!platform_is_at(path, &m->id))
		return err_set(err, -ENOENT, "the mount is not at '%s'", path);
	take_place(m);
	return 0;
}

int mount_attach(struct mount *m, const struct mount_options *options, struct err *err)
{
	int r = note_place(m, options->path, err);

	assert(m->at == NULL);
	if (r < 0)
		return r;
	r = platform_attach(m->tree, m->fd, options, &m->id, err);
	if (r < 0)
		return r;
	close(TAKE_FD(m->tree)); /* else it were in use for ever */
	take_place(m);
	return 0;
}

/* Wait until nobody works for this mount any more. */
static int wait_quiet(struct mount *m, struct err *err)
{
	const uint64_t deadline = thread_now() + CLOSE_WAIT_S * 1000000000ull;
	bool quiet;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	while (!(quiet = m->reader_gone && m->first == NULL) && r == 0)
		r = thread_cond_wait_until(&m->quiet, &m->lock, deadline);
	pthread_mutex_unlock(&m->lock);
	if (!quiet)
		return err_set(err, -EBUSY, "mount '%s' still answers a request", m->path);
	return 0;
}

/* What is left of a mount that is nowhere any more. */
struct remains {
	struct job job; /* first */
	int fd;         /* owned; of its top */
};

static void remains_end(struct job *j)
{
	struct remains *left = (struct remains *)j;

	close(left->fd);
	free(left);
}

/*
 * The last process to let go of a mount has to wait until the kernel has forgotten all that it knew of
 * the files in it: milliseconds for some thousands.  A thread that nobody waits for had better do
 * that.  The connection ends without it.
 */
static void end_later(struct mounts *ms, int fd)
{
	struct remains *left = fd < 0 ? NULL : malloc(sizeof(*left));

	if (left == NULL) {
		cleanup_close(&fd);
		return;
	}
	*left = (struct remains){ .job.run = remains_end, .fd = fd };
	pool_add(ms->rest, POOL_PATIENT, &left->job);
}

int mount_close(struct mount *m, bool force, struct err *err)
{
	struct mounts *all = m->all;
	int r, left;

	if (!m->unmounted) {
		/* Without force nobody may hold it, ourselves included. */
		if (force && m->at != NULL)
			m->tree = platform_hold(m->at);
		r = take_away(m, force, err);
		if (r < 0) {
			cleanup_close(&(int){ TAKE_FD(m->tree) });
			return r;
		}
		m->unmounted = true;
	}
	mates_leave(m);
	/* What is below in other mount namespaces, or still in use, ends with the connection. */
	reader_stop(m);
	r = wait_quiet(m, err);
	if (r < 0)
		return r;
	if (m->counts)
		mates_settle(m);
	else
		layer_set_witness(m->layer, NULL, NULL);
	mount_forget_all(m);
	watchdog_remove(m->all->dog, m);
	pthread_join(m->reader, NULL);
	left = TAKE_FD(m->tree);
	mount_free(m);
	end_later(all, left);
	return 0;
}

bool mount_maps_ids(const struct mount *m)
{
	return m->wire.maps_ids;
}

int mount_probe_ids(struct err *err)
{
	const struct mount_options options = { .source = "snapcow", .others = true };
	AUTO_CLOSE int fd = -1, tree = -1;
	struct platform_id unused;
	struct pollfd ready;
	char bytes[8192]; /* FUSE_MIN_READ_BUFFER */
	int r;

	if (lacks_idmap())
		return 0;
	r = platform_mount_nowhere(&options, &fd, &tree, &unused, err);
	if (r < 0)
		return r;
	ready = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (poll(&ready, 1, PROBE_MS) != 1 || read(fd, bytes, sizeof(bytes)) <= 0)
		return err_set(err, -ENOTSUP, "the kernel does not speak to us");
	return wire_is_init(bytes) && wire_offers_idmap(bytes);
}

bool mount_ended(const struct mount *m)
{
	return atomic_load(&m->ended);
}

int mount_is_shown(struct mount *m, struct err *err)
{
	const uint64_t deadline = thread_now() + END_WAIT_S * 1000000000ull;
	int r = 0;

	if (!mount_ended(m) && (!m->at || platform_is_at(m->at, &m->id)))
		return 1;
	/* umount(2) returns before the reader hears of it. */
	pthread_mutex_lock(&m->lock);
	while (!m->reader_gone && r == 0)
		r = thread_cond_wait_until(&m->quiet, &m->lock, deadline);
	pthread_mutex_unlock(&m->lock);
	if (mount_ended(m))
		return 0;
	return err_set(err, -EBUSY,
		       "somebody else unmounted '%s' while it was in use, or mounted something "
		       "over it",
		       m->at);
}

void mount_stats(const struct mount *m, struct mount_stats *ret)
{
	ret->requests = atomic_load_explicit(&m->requests, memory_order_relaxed);
	ret->deferred = atomic_load_explicit(&m->deferred, memory_order_relaxed);
}

int mount_clear(const char *path, struct err *err)
{
	return platform_clear(path, err);
}
