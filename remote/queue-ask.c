/*
 * Questions to a server, and messages that arrive by themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "remote/queue-i.h"

#define REQUEST_MS 3000

char *queue_subject(const struct queue *q, const char *kind, const char *tail,
		    char to[QUEUE_SUBJECT_MAX])
{
	snprintf(to, QUEUE_SUBJECT_MAX, "snapcow.%s.%s.%s", q->name, kind, tail);
	return to;
}

int queue_err(const struct queue *q, natsStatus s, const char *doing, struct err *err)
{
	const char *why = q->n->natsStatus_GetText(s);

	switch (s) {
	case NATS_CONNECTION_AUTH_FAILED:
	case NATS_NOT_PERMITTED:
		return err_set(err, -EACCES, "queue '%s': %s: %s", q->url, doing, why);
	case NATS_NO_MEMORY:
		return err_nomem(err);
	case NATS_NO_RESPONDERS:
		return err_set(err, -ENOENT, "queue '%s': %s: %s", q->url, doing, why);
	case NATS_MAX_PAYLOAD:
		return err_set(err, -E2BIG, "queue '%s': %s: %s", q->url, doing, why);
	default:
		return err_set(err, -EAGAIN, "queue '%s': %s: %s", q->url, doing, why);
	}
}

/* On a thread of libnats.  A full pipe drops it: it was a hint. */
static void on_message(natsConnection *conn, natsSubscription *sub, natsMsg *msg, void *ctx)
{
	struct queue *q = ctx;

	if (write(q->pipe[1], &msg, sizeof(msg)) != sizeof(msg))
		q->n->natsMsg_Destroy(msg);
}

int queue_subscribe(struct queue *q, const char *subject, struct err *err)
{
	natsSubscription *sub = NULL;
	natsStatus s;

	if (q->n_subs == QUEUE_SUBS_MAX)
		return err_set(err, -E2BIG, "a queue has no place for one more subscription");
	s = q->n->natsConnection_Subscribe(&sub, q->conn, subject, on_message, q);
	if (s != NATS_OK)
		return queue_err(q, s, "subscribing", err);
	q->subs[q->n_subs++] = sub;
	return 0;
}

/* --- asking ------------------------------------------------------------------------------- */

int queue_request(struct queue *q, const char *subject, const struct queue_header *headers,
		  const void *data, size_t len, struct json_doc *doc, struct json *ret,
		  struct err *err)
{
	natsMsg *ask = NULL, *answer = NULL;
	natsStatus s = q->n->natsMsg_Create(&ask, subject, NULL, data, (int)len);
	int r;

	for (; s == NATS_OK && headers && headers->key; headers++)
		s = q->n->natsMsgHeader_Set(ask, headers->key, headers->value);
	if (s == NATS_OK)
		s = q->n->natsConnection_RequestMsg(&answer, q->conn, ask, REQUEST_MS);
	q->n->natsMsg_Destroy(ask);
	if (s != NATS_OK)
		return queue_err(q, s, "asking the server", err);
	r = json_parse(doc, q->n->natsMsg_GetData(answer),
		       (size_t)q->n->natsMsg_GetDataLength(answer), ret, err);
	q->n->natsMsg_Destroy(answer);
	return r < 0 ? err_wrap(err, r == -EINVAL ? -EPROTO : r, "queue '%s'", q->url) : 0;
}

int queue_api(struct queue *q, const char *subject, const struct json_doc *ask,
	      struct json_doc *doc, struct json *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = ask ? json_append(ask, &text, err) : 0;

	if (r == 0)
		r = queue_request(q, subject, NULL, text.data, text.len, doc, ret, err);
	/* JetStream itself does not answer yet; of a stream that is gone it would say so. */
	return r == -ENOENT ? err_set(err, -EAGAIN, "%s", err->msg) : r;
}

int64_t queue_refused(struct json answer, const char **ret_why)
{
	struct json e;

	if (json_kind(answer, "error") != JSON_OBJECT)
		return 0;
	e = json_get_object(answer, "error");
	*ret_why = json_text_if(e, "description") ? json_text_if(e, "description") : "refused";
	if (json_kind(e, "err_code") == JSON_INT)
		return json_get_int(e, "err_code");
	return json_kind(e, "code") == JSON_INT && json_get_int(e, "code") != 0
		   ? json_get_int(e, "code")
		   : -1;
}
