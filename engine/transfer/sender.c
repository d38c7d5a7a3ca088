#include "engine/transfer/sender-i.h"

#include <assert.h>
#include <errno.h>

void parcel_done(struct parcel *p)
{
	cleanup_close(&p->fd);
	buf_done(&p->index);
}

void sender_begin(struct sender *s, struct connections *lines, struct meter *meter)
{
	*s = (struct sender){ .lines = lines, .meter = meter };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->moved, NULL);
}

static int send_parcel(struct sender *s, unsigned member, const struct parcel *p, struct err *err)
{
	const struct depot_watch watch = { .moved = meter_moved, .ctx = s->meter };
	const struct depot_bytes pack = { .fd = p->fd, .size = p->pack.pack.size };
	const struct depot_bytes index = { .fd = -1, .data = p->index.data, .size = p->index.len };
	struct depot *d;
	int r = connections_get(s->lines, member, &d, err);

	if (r == 0)
		r = d->ops->put_blob(d, &p->pack.pack.digest, &pack, &watch, err);
	if (r == 0)
		r = d->ops->put_blob(d, &p->pack.index.digest, &index, &watch, err);
	/* What is in a sealed one was noted. */
	if (r == 0 && d->cache && !p->sealed)
		d->cache->put(d->cache->ctx, &p->pack.index.digest, p->index.data, p->index.len);
	return r;
}

/* Send the parcel that has waited longest.  The caller has the lock; it is released meanwhile. */
static void send_first(struct sender *s, unsigned member)
{
	struct parcel p = s->waiting[s->first % SENDER_WAITING];
	struct err err = { 0 };
	int r;

	s->first++;
	s->n_busy++;
	pthread_cond_broadcast(&s->moved);
	pthread_mutex_unlock(&s->lock);
	r = send_parcel(s, member, &p, &err);
	parcel_done(&p);
	pthread_mutex_lock(&s->lock);
	s->n_busy--;
	if (r < 0 && s->failure.code == 0) {
		s->failure = err;
		s->failure.code = r;
	}
	pthread_cond_broadcast(&s->moved);
}

static bool has_work(const struct sender *s)
{
	return s->first < s->next && s->failure.code == 0;
}

static void *run_thread(void *ctx)
{
	struct sender_thread *t = ctx;
	struct sender *s = t->sender;

	LOCKED(&s->lock);
	for (;;) {
		while (!has_work(s) && !s->over && s->failure.code == 0)
			pthread_cond_wait(&s->moved, &s->lock);
		if (!has_work(s))
			break;
		send_first(s, t->member);
	}
	return NULL;
}

/* One more thread if all are busy; the first connection is the caller's own. */
static void want_thread(struct sender *s)
{
	struct sender_thread *t = &s->threads[s->n_threads];

	if (s->n_threads + 1 >= s->lines->n || s->next - s->first + s->n_busy < s->n_threads)
		return;
	*t = (struct sender_thread){ .sender = s, .member = s->n_threads + 1 };
	if (spread_start(&t->thread, t->member, run_thread, t) == 0)
		s->n_threads++;
}

static int failure_of(const struct sender *s, struct err *err)
{
	return s->failure.code < 0 ? err_set(err, s->failure.code, "%s", s->failure.msg) : 0;
}

int sender_add(struct sender *s, struct parcel *parcel, struct err *err)
{
	int r;

	want_thread(s);
	pthread_mutex_lock(&s->lock);
	while (s->next - s->first >= SENDER_WAITING && s->failure.code == 0) {
		if (s->n_threads == 0)
			send_first(s, 0);
		else
			pthread_cond_wait(&s->moved, &s->lock);
	}
	r = failure_of(s, err);
	if (r == 0) {
		s->waiting[s->next++ % SENDER_WAITING] = *parcel;
		*parcel = (struct parcel){ .fd = -1 };
		pthread_cond_broadcast(&s->moved);
	}
	pthread_mutex_unlock(&s->lock);
	parcel_done(parcel);
	return r;
}

int sender_finish(struct sender *s, struct err *err)
{
	int r;

	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_broadcast(&s->moved);
	while (has_work(s))
		send_first(s, 0);
	pthread_mutex_unlock(&s->lock);
	while (s->n_threads > 0)
		spread_join(&s->threads[--s->n_threads].thread);
	assert(s->n_busy == 0);
	r = failure_of(s, err);
	return r;
}

void sender_done(struct sender *s)
{
	if (!s->lines)
		return;
	pthread_mutex_lock(&s->lock);
	/* What is under way comes to its end; nothing more begins. */
	if (s->failure.code == 0)
		s->failure.code = -ECANCELED;
	s->over = true;
	pthread_cond_broadcast(&s->moved);
	pthread_mutex_unlock(&s->lock);
	while (s->n_threads > 0)
		spread_join(&s->threads[--s->n_threads].thread);
	for (; s->first < s->next; s->first++)
		parcel_done(&s->waiting[s->first % SENDER_WAITING]);
	pthread_cond_destroy(&s->moved);
	pthread_mutex_destroy(&s->lock);
	s->lines = NULL;
}
