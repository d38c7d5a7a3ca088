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
	(void)config;
	return lacks(err);
}

int queue_open(const struct queue_config *config, struct queue **ret, struct err *err)
{
	(void)config;
	(void)ret;
	return lacks(err);
}

void queue_close(struct queue *q)
{
	assert(!q);
}

const char *queue_name(const struct queue *q)
{
	(void)q;
	return "";
}

void queue_msg_done(struct queue_msg *m)
{
	(void)m;
}

int queue_fd(const struct queue *q)
{
	(void)q;
	return -1;
}

int queue_next(struct queue *q, struct queue_msg *ret, struct err *err)
{
	(void)q;
	(void)ret;
	return lacks(err);
}

int queue_serve(struct queue *q, const struct strlist *labels, uint64_t lease_ms, struct err *err)
{
	(void)q;
	(void)labels;
	(void)lease_ms;
	return lacks(err);
}

void queue_taken_done(struct queue_taken *t)
{
	(void)t;
}

int queue_take(struct queue *q, struct queue_taken *ret, struct err *err)
{
	(void)q;
	(void)ret;
	return lacks(err);
}

void queue_working(struct queue *q, const char *reply)
{
	(void)q;
	(void)reply;
}

int queue_ack(struct queue *q, const char *reply, struct err *err)
{
	(void)q;
	(void)reply;
	return lacks(err);
}

void queue_nak(struct queue *q, const char *reply, uint64_t delay_ms)
{
	(void)q;
	(void)reply;
	(void)delay_ms;
}

void queue_answer(struct queue *q, const char *reply, const struct buf *text)
{
	(void)q;
	(void)reply;
	(void)text;
}

int queue_log_put(struct queue *q, const char *id, const struct queue_log *log, struct err *err)
{
	(void)q;
	(void)id;
	(void)log;
	return lacks(err);
}

int queue_result_put(struct queue *q, const char *id, const struct buf *text, struct err *err)
{
	(void)q;
	(void)id;
	(void)text;
	return lacks(err);
}

int queue_result_get(struct queue *q, const char *id, struct buf *out, struct err *err)
{
	(void)q;
	(void)id;
	(void)out;
	return lacks(err);
}

int queue_listen(struct queue *q, const char *id, struct err *err)
{
	(void)q;
	(void)id;
	return lacks(err);
}

int queue_post(struct queue *q, const char *id, const struct strlist *labels,
	       const struct buf *text, uint64_t *ret_place, struct err *err)
{
	(void)q;
	(void)id;
	(void)labels;
	(void)text;
	(void)ret_place;
	return lacks(err);
}

int queue_log_next(struct queue *q, const char *id, uint64_t *at, struct queue_log *ret,
		   struct err *err)
{
	(void)q;
	(void)id;
	(void)at;
	(void)ret;
	return lacks(err);
}

void queue_cancel(struct queue *q, const char *id)
{
	(void)q;
	(void)id;
}

void queue_withdraw(struct queue *q, uint64_t place)
{
	(void)q;
	(void)place;
}

int queue_numbers(struct queue *q, struct queue_numbers *ret, struct err *err)
{
	(void)q;
	(void)ret;
	return lacks(err);
}

int queue_result_at(struct queue *q, uint64_t place, struct buf *out, struct err *err)
{
	(void)q;
	(void)place;
	(void)out;
	return lacks(err);
}

int queue_ask(struct queue *q, uint64_t wait_ms, int (*fn)(const char *, size_t, void *), void *ctx,
	      struct err *err)
{
	(void)q;
	(void)wait_ms;
	(void)fn;
	(void)ctx;
	return lacks(err);
}
