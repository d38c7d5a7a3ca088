#include "cowfs/fuse/request.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/sys.h"
#include "cowfs/core/traffic.h"
#include "cowfs/fuse/echo.h"
#include "cowfs/fuse/mates.h"
#include "cowfs/fuse/meter.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"
#include "cowfs/fuse/thread.h"

/* A request that the pool has. */
struct flight {
	struct job job; /* first: the pool gives it back */
	struct mount *mount;
	struct flight *before, *after;
	uint64_t begun;
	size_t len;
	uint8_t bytes[]; /* a copy: the reader goes on with its room */
};

static void handle(struct request *rq)
{
	const struct fuse_buf buf = { .size = rq->len, .mem = rq->bytes };

	if (echo_is_from(rq->mount, wire_thread(rq->bytes)) && wire_is_no_echo(rq->bytes)) {
		wire_refuse(rq->mount, rq->bytes, EPERM);
		return;
	}
	request_set_current(rq);
	if (!wire_handle(rq))
		fuse_session_process_buf(rq->mount->se, &buf);
	request_set_current(NULL);
	if (!rq->later)
		mates_tell(rq->mount, rq->bytes);
}

static void add_flight(struct mount *m, struct flight *f)
{
	LOCKED(&m->lock);
	f->before = m->last;
	*(m->last != NULL ? &m->last->after : &m->first) = f;
	m->last = f;
}

static void drop_flight(struct mount *m, struct flight *f)
{
	pthread_mutex_lock(&m->lock);
	*(f->before != NULL ? &f->before->after : &m->first) = f->after;
	*(f->after != NULL ? &f->after->before : &m->last) = f->before;
	m->landed = thread_now();
	m->landings++;
	if (m->first == NULL)
		pthread_cond_broadcast(&m->quiet);
	pthread_mutex_unlock(&m->lock);
	free(f);
}

static void run_flight(struct job *j)
{
	struct flight *f = (struct flight *)j;
	const uint64_t cpu = thread_cpu();
	struct request rq = {
		.mount = f->mount,
		.bytes = f->bytes,
		.len = f->len,
		.may_wait = true,
	};

	handle(&rq);
	pace_spend(&f->mount->pace, thread_cpu() - cpu);
	meter_count(wire_op(f->bytes), thread_now() - f->begun);
	traffic_answered(f->mount->layer);
	traffic_waits_no_more(f->mount->layer);
	drop_flight(f->mount, f);
}

static void defer(struct mount *m, const void *bytes, size_t len)
{
	struct flight *f = malloc(sizeof(*f) + len);

	if (f == NULL) {
		wire_refuse(m, bytes, ENOMEM);
		return;
	}
	*f = (struct flight){ .mount = m, .begun = thread_now(), .len = len };
	f->job.run = run_flight;
	memcpy(f->bytes, bytes, len);
	add_flight(m, f);
	traffic_waits(m->layer);
	atomic_fetch_add_explicit(&m->deferred, 1, memory_order_relaxed);
	pool_add(m->share, wire_lane(bytes), &f->job);
}

void request_take(struct mount *m, void *bytes, size_t len)
{
	struct request rq = { .mount = m, .bytes = bytes, .len = len };
	int refused = m->shift.n > 0 ? wire_unshift(m, bytes, len) : 0;
	const uint64_t begun = thread_now();
	const uint32_t op = wire_op(bytes);

	if (refused != 0) {
		wire_refuse(m, bytes, refused);
		return;
	}
	rq.later = wire_always_waits(bytes);
	/* Before the answer, so that a program that has it finds its request counted. */
	atomic_fetch_add_explicit(&m->requests, 1, memory_order_relaxed);
	if (!rq.later)
		handle(&rq);
	if (rq.later) {
		atomic_fetch_sub_explicit(&m->requests, 1, memory_order_relaxed);
		defer(m, bytes, len);
		return;
	}
	meter_count(op, thread_now() - begun);
	traffic_answered(m->layer);
}

/*
 * Can this be asked for from within a write(2) that has come to `off`?  Its last piece stays here
 * until it is answered, and bytes that are to be written may have to be read from a mapped file.
 */
static bool may_be_within(const void *bytes, uint64_t node, uint64_t off)
{
	return wire_write_meets(bytes, node, off) || wire_lane(bytes) == POOL_SHORT;
}

/* What a thread was seen to wait for. */
enum seen { SEEN_NOTHING, SEEN_WITHIN, SEEN_ELSEWHERE };

static enum seen see_flight(struct mount *m, uint32_t writer, uint64_t node, uint64_t off,
			    uint64_t *landings)
{
	enum seen seen = SEEN_NOTHING;

	LOCKED(&m->lock);
	for (const struct flight *f = m->first; f != NULL && seen == SEEN_NOTHING; f = f->after)
		if (wire_thread(f->bytes) == writer)
			seen = may_be_within(f->bytes, node, off) ? SEEN_WITHIN : SEEN_ELSEWHERE;
	*landings = m->landings;
	return seen;
}

static bool nothing_to_read(const struct mount *m)
{
	struct pollfd fd = { .fd = m->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 0;
}

/* A write(2) that has come to `off`. */
struct writing {
	uint32_t writer;
	uint64_t node, off;
};

/*
 * A thread sleeps for another reason if it slept while we had nothing of it, and that is so if
 * nothing was taken or answered between the looks before and after it.
 */
static bool has_left(struct mount *m, const void *ctx)
{
	const struct writing *w = ctx;
	const uint32_t writer = w->writer;
	const uint64_t node = w->node, off = w->off;
	const uint64_t turn = atomic_load(&m->turn);
	uint64_t before, after;
	struct sys_task task;
	enum seen seen = see_flight(m, writer, node, off, &before);

	if (seen != SEEN_NOTHING)
		return seen == SEEN_ELSEWHERE;
	if (turn % 2 != 0)
		return false;
	if (sys_look_at_task((pid_t)writer, &task) < 0)
		return true;
	return task.asleep && nothing_to_read(m) &&
	       see_flight(m, writer, node, off, &after) == SEEN_NOTHING && after == before &&
	       atomic_load(&m->turn) == turn;
}

bool request_witness(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	const struct writing w = { .writer = writer, .node = node, .off = off };

	return mates_all(ctx, has_left, &w);
}

uint64_t request_stalled(struct mount *m, uint64_t now)
{
	uint64_t since = now;

	LOCKED(&m->lock);
	if (m->first != NULL)
		since = m->first->begun > m->landed ? m->first->begun : m->landed;
	return now > since ? now - since : 0;
}
