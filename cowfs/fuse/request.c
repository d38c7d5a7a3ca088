#include "cowfs/fuse/request.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

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

	request_set_current(rq);
	if (!wire_handle(rq))
		fuse_session_process_buf(rq->mount->se, &buf);
	request_set_current(NULL);
}

static void add_flight(struct mount *m, struct flight *f)
{
	pthread_mutex_lock(&m->lock);
	f->before = m->last;
	*(m->last != NULL ? &m->last->after : &m->first) = f;
	m->last = f;
	pthread_mutex_unlock(&m->lock);
}

static void drop_flight(struct mount *m, struct flight *f)
{
	pthread_mutex_lock(&m->lock);
	*(f->before != NULL ? &f->before->after : &m->first) = f->after;
	*(f->after != NULL ? &f->after->before : &m->last) = f->before;
	m->landed = thread_now();
	if (m->first == NULL)
		pthread_cond_broadcast(&m->quiet);
	pthread_mutex_unlock(&m->lock);
	free(f);
}

static void run_flight(struct job *j)
{
	struct flight *f = (struct flight *)j;
	struct request rq = {
		.mount = f->mount,
		.bytes = f->bytes,
		.len = f->len,
		.may_wait = true,
	};

	handle(&rq);
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
	atomic_fetch_add_explicit(&m->deferred, 1, memory_order_relaxed);
	pool_add(m->all->pool, wire_lane(bytes), &f->job);
}

void request_take(struct mount *m, void *bytes, size_t len)
{
	struct request rq = { .mount = m, .bytes = bytes, .len = len };

	rq.later = wire_always_waits(bytes);
	if (!rq.later)
		handle(&rq);
	if (rq.later)
		defer(m, bytes, len);
	else
		atomic_fetch_add_explicit(&m->requests, 1, memory_order_relaxed);
}

/* Is there nothing to read, and nothing that was read and is being handled? */
static bool all_read(struct mount *m)
{
	const uint64_t before = atomic_load(&m->turn);
	struct pollfd fd = { .fd = m->fd, .events = POLLIN };

	return before % 2 == 0 && poll(&fd, 1, 0) == 0 && atomic_load(&m->turn) == before;
}

bool request_witness(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct mount *m = ctx;
	bool found = false;

	if (!all_read(m))
		return true;
	pthread_mutex_lock(&m->lock);
	for (const struct flight *f = m->first; f != NULL && !found; f = f->after)
		found = wire_thread(f->bytes) == writer && wire_write_at(f->bytes, node, off);
	pthread_mutex_unlock(&m->lock);
	return found;
}

uint64_t request_stalled(struct mount *m, uint64_t now)
{
	uint64_t since = now;

	pthread_mutex_lock(&m->lock);
	if (m->first != NULL)
		since = m->first->begun > m->landed ? m->first->begun : m->landed;
	pthread_mutex_unlock(&m->lock);
	return now > since ? now - since : 0;
}
