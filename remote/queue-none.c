/*
 * Without the headers of libnats at build time there is no queue, and every way to one says so.
 */
#include "remote/queue.h"

#include <assert.h>
#include <errno.h>

static int lacks(struct err *err)
{
	return err_set(
	    err, -ENOTSUP,
	    "this build has no queues: it was made without libnats (Debian: libnats-dev)");
}

int queue_check(const struct queue_config *config, struct err *err)
{
	return lacks(err);
}

int queue_open(const struct queue_config *config, struct queue **ret, struct err *err)
{
	return lacks(err);
}

void queue_close(struct queue *q)
{
	assert(!q);
}

const char *queue_name(const struct queue *q)
{
	return "";
}

void queue_msg_done(struct queue_msg *m)
{
}

int queue_fd(const struct queue *q)
{
	return -1;
}

int queue_next(struct queue *q, struct queue_msg *ret, struct err *err)
{
	return lacks(err);
}

int queue_serve(struct queue *q, const struct strlist *labels, const struct queue_need *offer,
		uint64_t lease_ms, struct err *err)
{
	return lacks(err);
}

void queue_taken_done(struct queue_taken *t)
{
}

int queue_take(struct queue *q, const struct queue_need *room, struct queue_taken *ret,
	       struct err *err)
{
	return lacks(err);
}

void queue_working(struct queue *q, const char *reply)
{
}

int queue_ack(struct queue *q, const char *reply, struct err *err)
{
	return lacks(err);
}

void queue_nak(struct queue *q, const char *reply, uint64_t delay_ms)
{
}

void queue_answer(struct queue *q, const char *reply, const struct buf *text)
{
}

int queue_log_put(struct queue *q, const char *id, const struct queue_log *log, struct err *err)
{
	return lacks(err);
}

int queue_result_put(struct queue *q, const char *id, const struct buf *text, struct err *err)
{
	return lacks(err);
}

int queue_result_get(struct queue *q, const char *id, struct buf *out, struct err *err)
{
	return lacks(err);
}

int queue_listen(struct queue *q, const char *id, struct err *err)
{
	return lacks(err);
}

int queue_post(struct queue *q, const char *id, const struct strlist *labels,
	       const struct queue_need *need, const struct buf *text, uint64_t *ret_place,
	       struct err *err)
{
	return lacks(err);
}

int queue_log_next(struct queue *q, const char *id, uint64_t *at, struct queue_log *ret,
		   struct err *err)
{
	return lacks(err);
}

void queue_cancel(struct queue *q, const char *id)
{
}

void queue_withdraw(struct queue *q, uint64_t place)
{
}

int queue_numbers(struct queue *q, struct queue_numbers *ret, struct err *err)
{
	return lacks(err);
}

int queue_result_at(struct queue *q, uint64_t place, struct buf *out, struct err *err)
{
	return lacks(err);
}

int queue_ask(struct queue *q, uint64_t wait_ms, int (*fn)(const char *, size_t, void *), void *ctx,
	      struct err *err)
{
	return lacks(err);
}
