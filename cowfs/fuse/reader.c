/*
 * The thread that reads a connection.
 *
 * Waking a thread costs more than the rest of an answer (about 20 us on an idle machine), and the
 * next request mostly follows within 10. So the reader polls for a while before it blocks. It does
 * so only while that pays: while requests do come that fast, for one mount at a time, and not on a
 * machine that has no CPU to spare.
 */
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "cowfs/core/traffic.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/thread.h"

#define STACK         ((size_t)512 << 10) /* enough to read the store, where the layer does that at once */
#define GREET_MS      10000
#define SPIN_NS       15000
#define SOON_NS       30000 /* a request that came after this was worth waiting for */
#define LOAD_NS       5000000
#define SCORE_MAX     16
#define FAILURES_MAX  10
#define LARGE         ((size_t)16 << 10)
#define LARGE_IDLE_MS 1000 /* how long the room of a large request is kept */

struct spin {
	int score;      /* above 0: polling pays */
	uint64_t since; /* when the last request was answered */
	bool spinning;
};

struct reader {
	struct mount *m;
	struct spin spin;
	uint64_t cpu; /* processor time that its clone was charged for */
	bool large;   /* pages beyond LARGE are in use */
	int failures; /* in a row */
};

static void spin_end(struct reader *rd)
{
	if (rd->spin.spinning)
		atomic_fetch_sub(&rd->m->all->spinning, 1);
	rd->spin.spinning = false;
}

static void spin_judge(struct reader *rd, bool paid)
{
	struct spin *s = &rd->spin;

	s->score += paid ? 1 : -2;
	if (s->score > SCORE_MAX)
		s->score = SCORE_MAX;
	if (s->score < 0)
		s->score = 0;
}

/* Are more threads ready to run than there are CPUs, this one and its client included? */
static bool crowded(struct mounts *all, uint64_t now)
{
	uint64_t next = atomic_load_explicit(&all->load_next, memory_order_relaxed);

	if (now >= next && atomic_compare_exchange_strong(&all->load_next, &next, now + LOAD_NS))
		atomic_store(&all->crowded, sys_runnable(all->load_fd) > all->cpus);
	return atomic_load_explicit(&all->crowded, memory_order_relaxed);
}

static bool spin_begin(struct reader *rd, uint64_t now)
{
	struct mounts *all = rd->m->all;

	if (rd->spin.score == 0 || rd->spin.since == 0 || all->cpus < 2 || crowded(all, now))
		return false;
	if (atomic_fetch_add(&all->spinning, 1) >= all->cpus / 2) {
		atomic_fetch_sub(&all->spinning, 1);
		return false;
	}
	rd->spin.spinning = true;
	return true;
}

/* Nothing to read: look again at once? */
static bool spin_more(struct reader *rd)
{
	struct spin *s = &rd->spin;
	const uint64_t now = thread_now();

	if (!s->spinning && !spin_begin(rd, now))
		return false;
	if (now - s->since < SPIN_NS)
		return true;
	spin_end(rd);
	spin_judge(rd, false);
	return false;
}

/* One that has taken more than its part lets the others go first (pace.h). */
static void keep_pace(struct reader *rd)
{
	struct mount *m = rd->m;
	struct pollfd wake = { .fd = m->wake, .events = POLLIN };
	const uint64_t cpu = thread_cpu();
	uint64_t now = rd->spin.since, rest;

	pace_spend(&m->pace, cpu - rd->cpu);
	rd->cpu = cpu;
	while ((rest = pace_look(&m->pace, now, crowded(m->all, now))) > 0 &&
	       !atomic_load_explicit(&m->stop, memory_order_relaxed)) {
		traffic_rested(m->layer);
		poll(&wake, 1, (int)(rest / 1000000) + 1);
		now = thread_now();
	}
}

/* Block until there is something to read, or to stop for. */
static void wait_for_request(struct reader *rd)
{
	struct mount *m = rd->m;
	struct pollfd fds[] = {
		{ .fd = m->fd, .events = POLLIN },
		{ .fd = m->wake, .events = POLLIN },
	};

	if (rd->large) {
		if (poll(fds, ARRAY_LEN(fds), LARGE_IDLE_MS) != 0)
			return;
		madvise(m->room + LARGE, MOUNT_ROOM - LARGE, MADV_DONTNEED);
		rd->large = false;
	}
	poll(fds, ARRAY_LEN(fds), -1);
}

static void serve(struct reader *rd, size_t len)
{
	struct mount *m = rd->m;
	const uint64_t now = thread_now();

	if (rd->spin.since != 0)
		spin_judge(rd, now - rd->spin.since < SOON_NS);
	spin_end(rd);
	if (len > LARGE)
		rd->large = true;
	atomic_store_explicit(&m->begun, now, memory_order_relaxed);
	request_take(m, m->room, len);
	atomic_store_explicit(&m->begun, 0, memory_order_relaxed);
	rd->spin.since = thread_now();
	if (pace_is_due(&m->pace, rd->spin.since))
		keep_pace(rd);
}

/* A request that could not be read whole is the end of that one; many are the end of all. */
static bool read_failed(struct reader *rd, int errnum)
{
	char text[64];

	log_warn("reading a request of mount '%s': %s", rd->m->path,
		 sys_errno_text(errnum, text, sizeof(text)));
	if (++rd->failures < FAILURES_MAX)
		return true;
	mount_abort(rd->m);
	return false;
}

/* False: the connection is gone. */
static bool read_one(struct reader *rd)
{
	struct mount *m = rd->m;
	int errnum = 0;
	ssize_t n;

	atomic_fetch_add(&m->turn, 1);
	n = read(m->fd, m->room, MOUNT_ROOM);
	if (n > 0) {
		rd->failures = 0;
		serve(rd, (size_t)n);
	} else {
		errnum = n == 0 ? ENODEV : errno;
	}
	atomic_fetch_add(&m->turn, 1);
	switch (errnum) {
	case 0:
		return true;
	case EAGAIN:
		if (!spin_more(rd))
			wait_for_request(rd);
		return true;
	case EINTR:
	case ENOENT: /* the caller was killed before we took it */
		return true;
	case ENODEV: /* unmounted */
	case ECONNABORTED:
		return false;
	default:
		return read_failed(rd, errnum);
	}
}

static void *reader_main(void *arg)
{
	struct mount *m = arg;
	struct reader rd = { .m = m };

	platform_serve_thread();
	sys_take_short_turns();
	while (!atomic_load_explicit(&m->stop, memory_order_relaxed) && read_one(&rd))
		continue;
	spin_end(&rd);
	LOCKED(&m->lock);
	if (!atomic_load(&m->stop))
		atomic_store(&m->ended, true);
	m->reader_gone = true;
	pthread_cond_broadcast(&m->quiet);
	return NULL;
}

int reader_start(struct mount *m, struct err *err)
{
	int r = thread_start(&m->reader, "snap-reader", STACK, reader_main, m);

	if (r < 0) {
		m->reader_gone = true;
		return err_set(err, r, "cannot start a thread");
	}
	return 0;
}

void reader_stop(struct mount *m)
{
	const uint64_t one = 1;

	atomic_store(&m->stop, true);
	IGNORE_RESULT(write(m->wake, &one, sizeof(one)), "it can only be readable already");
}

int reader_greet(struct mount *m, struct err *err)
{
	struct pollfd fd = { .fd = m->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&fd, 1, GREET_MS) != 1)
		return err_set(err, -ETIMEDOUT, "the kernel does not speak to us");
	n = read(m->fd, m->room, MOUNT_ROOM);
	if (n < 0)
		return err_sys(err, "reading from the kernel");
	if (n == 0 || !wire_is_init(m->room))
		return err_set(err, -EPROTO, "the kernel does not begin with INIT");
	request_take(m, m->room, (size_t)n);
	if (m->wire.init != 0)
		return err_set(err, -EPROTO, "the kernel and libfuse do not understand each other");
	return 0;
}
