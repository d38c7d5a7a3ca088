#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/fdio.h"
#include "remote/depot-ssh-i.h"

/* --- pace --------------------------------------------------------------------------------- */

static int moved(struct ssh_depot *s, const struct depot_watch *watch, uint64_t bytes)
{
	uint64_t due, now;

	if (s->rate > 0) {
		if (s->paced_us == 0)
			s->paced_us = clock_us();
		s->paced += bytes;
		due = s->paced_us + s->paced * 1000000 / s->rate;
		now = clock_us();
		if (due > now) {
			const struct timespec t = { .tv_sec = (time_t)((due - now) / 1000000),
						    .tv_nsec =
							(long)((due - now) % 1000000) * 1000 };

			nanosleep(&t, NULL);
		}
	}
	return watch && watch->moved ? watch->moved(bytes, watch->ctx) : 0;
}

/* --- blobs -------------------------------------------------------------------------------- */

struct has_question {
	const struct digest *blob;
	uint64_t size;
};

static int ask_has(struct ssh_depot *s, void *ctx, struct err *err)
{
	struct has_question *q = ctx;
	uint32_t has;
	int r;

	stream_begin(&s->line.stream, STREAM_HAS);
	stream_add_digest(&s->line.stream, q->blob);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		return r;
	has = stream_u32(&s->line.stream);
	q->size = stream_u64(&s->line.stream);
	return stream_is_whole(&s->line.stream) && has <= 1 ? (int)has : ssh_strange(s, err);
}

int ssh_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size, struct err *err)
{
	struct has_question q = { .blob = blob };
	int r = ssh_ask(ssh_of(d), ask_has, &q, err);

	*ret_size = q.size;
	return r;
}

struct put_question {
	const struct digest *blob;
	const struct depot_bytes *from;
	const struct depot_watch *watch;
};

static int send_bytes(struct ssh_depot *s, const struct put_question *q, struct err *err)
{
	CLEANUP(buf_done) struct buf room = BUF_INIT;
	void *to = buf_extend(&room, STREAM_PIECE);

	if (!to)
		return err_nomem(err);
	for (uint64_t at = 0; at < q->from->size;) {
		const uint64_t left = q->from->size - at;
		const size_t n = left < STREAM_PIECE ? (size_t)left : STREAM_PIECE;
		const void *data = q->from->fd >= 0 ? to : (const char *)q->from->data + at;
		ssize_t got = (ssize_t)n;
		int r;

		if (q->from->fd >= 0)
			got = fdio_pread(q->from->fd, to, n, (off_t)at);
		if (got < (ssize_t)n) {
			ssh_hang_up(s);
			return err_set(err, got < 0 ? (int)got : -EBADMSG,
				       "a blob could not be read while it was sent");
		}
		stream_begin(&s->line.stream, STREAM_DATA);
		stream_add_raw(&s->line.stream, data, n);
		r = ssh_send(s, err);
		if (r < 0)
			return r;
		r = moved(s, q->watch, n);
		if (r < 0) {
			ssh_hang_up(s);
			return r;
		}
		at += n;
	}
	return 0;
}

static int ask_put(struct ssh_depot *s, void *ctx, struct err *err)
{
	const struct put_question *q = ctx;
	bool there;
	int r;

	stream_begin(&s->line.stream, STREAM_PUT);
	stream_add_digest(&s->line.stream, q->blob);
	stream_add_u64(&s->line.stream, q->from->size);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		return r;
	there = stream_u32(&s->line.stream) != 0;
	if (!stream_is_whole(&s->line.stream))
		return ssh_strange(s, err);
	r = there ? moved(s, q->watch, q->from->size) : send_bytes(s, q, err);
	return r < 0 ? r : ssh_receive_ok(s, err);
}

int ssh_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		 const struct depot_watch *watch, struct err *err)
{
	struct put_question q = { blob, from, watch };

	return ssh_ask(ssh_of(d), ask_put, &q, err);
}

struct get_question {
	const struct digest *blob;
	uint64_t off, len;
	depot_sink_fn sink;
	void *ctx;
	const struct depot_watch *watch;
};

/* What the sink has is not asked for again. */
static int ask_get(struct ssh_depot *s, void *ctx, struct err *err)
{
	struct get_question *q = ctx;
	int r;

	stream_begin(&s->line.stream, STREAM_GET);
	stream_add_digest(&s->line.stream, q->blob);
	stream_add_u64(&s->line.stream, q->off);
	stream_add_u64(&s->line.stream, q->len);
	r = ssh_send(s, err);
	while (r == 0) {
		const void *data;
		size_t n;

		r = ssh_receive(s, err);
		if (r < 0 || r == STREAM_OK)
			return r < 0 ? r : 0;
		data = r == STREAM_DATA ? stream_rest(&s->line.stream, &n) : NULL;
		if (!data || n > q->len)
			return ssh_strange(s, err);
		q->off += n;
		q->len -= q->len == DEPOT_TO_END ? 0 : n;
		r = q->sink(data, n, q->ctx);
		if (r == 0)
			r = moved(s, q->watch, n);
		if (r < 0)
			ssh_hang_up(s);
	}
	return r;
}

int ssh_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		 depot_sink_fn sink, void *ctx, const struct depot_watch *watch, struct err *err)
{
	struct get_question q = { blob, off, len, sink, ctx, watch };

	return ssh_ask(ssh_of(d), ask_get, &q, err);
}
