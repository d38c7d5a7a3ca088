/*
 * Taking tickets.  A work queue of JetStream has each ticket in one consumer, so there is a consumer for each
 * set of labels, which all workers that can serve it share.  Of tickets that say what they need, each need makes
 * such a set, too; a worker asks the server which there are, and looks only at those that it can serve.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "remote/queue-i.h"

#define TAKE_MS        3000
#define LOOK_MS        1000 /* between two looks at what tickets need */
#define FOUND_MAX      256
#define IDLE_NS        (UINT64_C(7) * 86400 * 1000000000) /* then the consumer of a need goes */
#define REFUSED_STREAM 10059                              /* there is none of that name */

static void consumer_name(const struct queue *q, const char *set, char to[QUEUE_SUBJECT_MAX])
{
	snprintf(to, QUEUE_SUBJECT_MAX, "%s_%s", q->name, set);
}

/* All subsets of the labels, "any" first. */
static int make_sets(struct queue *q, const struct strlist *labels, struct err *err)
{
	for (unsigned bits = 0; bits < 1u << labels->n; bits++) {
		char set[QUEUE_SUBJECT_MAX] = "any";
		size_t len = 0;

		for (size_t i = 0; i < labels->n; i++)
			if (bits & (1u << i))
				len += (size_t)snprintf(set + len, sizeof(set) - len, "%s%s",
							len > 0 ? "_" : "", labels->list[i]);
		if (strlist_add(&q->sets, set) < 0)
			return err_nomem(err);
	}
	return 0;
}

static int make_consumer(struct queue *q, const char *set, struct err *err)
{
	CLEANUP(json_done) struct json_doc ask = { 0 }, doc = { 0 };
	char name[QUEUE_SUBJECT_MAX], subject[QUEUE_SUBJECT_MAX], api[2 * QUEUE_SUBJECT_MAX];
	struct json j = json_begin(&ask), config, answer;
	const char *why;
	int r;

	consumer_name(q, set, name);
	json_set_text(j, "stream_name", QUEUE_STREAM_TICKETS);
	config = json_set_object(j, "config");
	json_set_text(config, "durable_name", name);
	json_set_text(config, "filter_subject", queue_subject(q, "ticket", set, subject));
	json_set_text(config, "ack_policy", "explicit");
	json_set_text(config, "deliver_policy", "all");
	json_set_text(config, "replay_policy", "instant");
	json_set_uint(config, "ack_wait", q->lease_ms * 1000000);
	json_set_int(config, "max_deliver", -1);
	json_set_int(config, "max_ack_pending", -1);
	if (!strlist_has(&q->sets, set))
		json_set_uint(config, "inactive_threshold", IDLE_NS);
	snprintf(api, sizeof(api), "$JS.API.CONSUMER.DURABLE.CREATE.%s.%s", QUEUE_STREAM_TICKETS,
		 name);
	r = queue_api(q, api, &ask, &doc, &answer, err);
	if (r < 0)
		return r;
	return queue_refused(answer, &why) == 0
		   ? 0
		   : err_set(err, -EPROTO, "queue '%s': making a consumer: %s", q->url, why);
}

static int open_inbox(struct queue *q, struct err *err)
{
	natsStatus s = q->n->natsInbox_Create(&q->inbox);

	if (s == NATS_OK)
		s = q->n->natsConnection_SubscribeSync(&q->inbox_sub, q->conn, (char *)q->inbox);
	if (s == NATS_OK)
		return 0;
	queue_close_inbox(q);
	return queue_err(q, s, "subscribing", err);
}

void queue_close_inbox(struct queue *q)
{
	if (q->inbox_sub)
		q->n->natsSubscription_Destroy(q->inbox_sub);
	if (q->inbox)
		q->n->natsInbox_Destroy(q->inbox);
	q->inbox_sub = NULL;
	q->inbox = NULL;
}

int queue_serve(struct queue *q, const struct strlist *labels, const struct queue_need *offer,
		uint64_t lease_ms, struct err *err)
{
	char subject[QUEUE_SUBJECT_MAX];
	int r = queue_make_streams(q, err);

	q->offer = *offer;
	q->lease_ms = lease_ms;
	q->found_ms = 0;
	strlist_done(&q->found);
	if (r == 0 && q->sets.n == 0)
		r = make_sets(q, labels, err);
	for (size_t i = 0; r == 0 && i < q->sets.n; i++)
		r = make_consumer(q, q->sets.list[i], err);
	if (r < 0 || q->n_subs > 0)
		return r;
	r = queue_subscribe(q, queue_subject(q, "ticket", "*", subject), err);
	if (r == 0)
		r = queue_subscribe(q, queue_subject(q, "cancel", "*", subject), err);
	return r < 0 ? r : queue_subscribe(q, queue_subject(q, "question", "*", subject), err);
}

/* --- tickets that say what they need ------------------------------------------------------ */

struct finding {
	const struct queue *q;
	struct strlist *to;
};

static bool can_serve(const struct queue *q, const char *set)
{
	char labels[QUEUE_SUBJECT_MAX];
	struct queue_need need;
	const size_t len = queue_set_read(set, &need);

	snprintf(labels, sizeof(labels), "%.*s", (int)len, set);
	return len > 0 && set[len] != '\0' && queue_need_fits(&need, &q->offer) &&
	       strlist_has(&q->sets, labels);
}

/* False, which ends the visit, once there is no room for more. */
static bool take_subject(const char *subject, const void *ctx)
{
	const struct finding *f = ctx;
	char prefix[QUEUE_SUBJECT_MAX];
	const size_t len = strlen(queue_subject(f->q, "ticket", "", prefix));

	if (strncmp(subject, prefix, len) != 0 || !can_serve(f->q, subject + len))
		return true;
	return f->to->n < FOUND_MAX && strlist_add(f->to, subject + len) == 0;
}

/* The subjects of this queue that have tickets, with what they ask for, as far as we can serve them. */
static int find_sets(struct queue *q, struct strlist *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc ask = { 0 }, doc = { 0 };
	const struct finding f = { .q = q, .to = ret };
	char subject[QUEUE_SUBJECT_MAX];
	struct json answer, state;
	const char *why;
	int64_t refused;
	int r;

	json_set_text(json_begin(&ask), "subjects_filter",
		      queue_subject(q, "ticket", "*", subject));
	r = queue_api(q, "$JS.API.STREAM.INFO." QUEUE_STREAM_TICKETS, &ask, &doc, &answer, err);
	if (r < 0)
		return r;
	refused = queue_refused(answer, &why);
	if (refused == REFUSED_STREAM)
		return -ENOENT;
	if (refused != 0)
		return err_set(err, -EPROTO, "queue '%s': looking at tickets: %s", q->url, why);
	state = json_get_object(answer, "state");
	if (json_kind(state, "subjects") == JSON_OBJECT)
		(void)json_unknown_key(json_get_object(state, "subjects"), take_subject, &f);
	return json_end(&doc, err);
}

static int look_for_sets(struct queue *q, struct err *err)
{
	CLEANUP(strlist_done) struct strlist found = { 0 };
	const uint64_t now = clock_ms();
	int r;

	if (q->found_ms > 0 && now - q->found_ms < LOOK_MS)
		return 0;
	r = find_sets(q, &found, err);
	for (size_t i = 0; r == 0 && i < found.n; i++)
		if (!strlist_has(&q->found, found.list[i]))
			r = make_consumer(q, found.list[i], err);
	if (r < 0)
		return r;
	strlist_done(&q->found);
	q->found = TAKE_STRUCT(found);
	q->found_ms = now;
	return 0;
}

void queue_taken_done(struct queue_taken *t)
{
	buf_done(&t->text);
	free(t->reply);
	*t = (struct queue_taken){ 0 };
}

/* "$JS.ACK.STREAM.CONSUMER.DELIVERED. ..." with two more words before STREAM in later versions. */
static uint64_t read_attempt(const char *reply)
{
	const char *words[16];
	size_t n = 0;

	for (const char *at = reply; at && n < 16; n++) {
		words[n] = at;
		at = strchr(at, '.');
		at = at ? at + 1 : NULL;
	}
	if (n != 9 && n < 11)
		return 1;
	return strtoull(words[n == 9 ? 4 : 6], NULL, 10);
}

static int read_taken(struct queue *q, natsMsg *msg, struct queue_taken *ret, struct err *err)
{
	const char *reply = q->n->natsMsg_GetReply(msg);
	const int len = q->n->natsMsg_GetDataLength(msg);
	CLEANUP(queue_taken_done) struct queue_taken t = { 0 };

	t.reply = strdup(reply);
	if (!t.reply || buf_append(&t.text, q->n->natsMsg_GetData(msg), (size_t)len) < 0)
		return err_nomem(err);
	t.attempt = read_attempt(reply);
	*ret = TAKE_STRUCT(t);
	return 1;
}

/* 1, 0 if there is none, -ENOENT if the consumer is gone. */
static int take_of(struct queue *q, const char *set, struct queue_taken *ret, struct err *err)
{
	static const char ask[] = "{\"batch\":1,\"no_wait\":true}";
	char name[QUEUE_SUBJECT_MAX], subject[2 * QUEUE_SUBJECT_MAX];
	const char *status = NULL;
	natsMsg *msg = NULL;
	natsStatus s;
	int r = q->inbox_sub ? 0 : open_inbox(q, err);

	if (r < 0)
		return r;
	consumer_name(q, set, name);
	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", QUEUE_STREAM_TICKETS,
		 name);
	s = q->n->natsConnection_PublishRequest(q->conn, subject, (char *)q->inbox, ask,
						sizeof(ask) - 1);
	if (s == NATS_OK)
		s = q->n->natsSubscription_NextMsg(&msg, q->inbox_sub, TAKE_MS);
	if (s == NATS_NO_RESPONDERS)
		return -ENOENT;
	if (s != NATS_OK) {
		/* A late answer must not pass for that to the next request: its lease ends, as if we had died. */
		queue_close_inbox(q);
		return queue_err(q, s, "asking for a ticket", err);
	}
	if (q->n->natsMsgHeader_Get(msg, "Status", &status) == NATS_OK ||
	    !q->n->natsMsg_GetReply(msg))
		r = status && strcmp(status, "503") == 0 ? -ENOENT : 0;
	else
		r = read_taken(q, msg, ret, err);
	q->n->natsMsg_Destroy(msg);
	return r;
}

/* 1 and a ticket of any set, 0, or -ENOENT as take_of(). */
static int take_of_all(struct queue *q, const struct queue_need *room, struct queue_taken *ret,
		       struct err *err)
{
	const size_t n = q->sets.n + q->found.n;

	for (size_t i = 0; i < n; i++) {
		const size_t at = (q->next_set + i) % n;
		const char *set = at < q->sets.n ? q->sets.list[at] : q->found.list[at - q->sets.n];
		struct queue_need need;
		int r;

		if (queue_set_read(set, &need) == 0 || !queue_need_fits(&need, room))
			continue;
		r = take_of(q, set, ret, err);
		if (r != 0) {
			q->next_set = at + 1;
			return r;
		}
	}
	return 0;
}

int queue_take(struct queue *q, const struct queue_need *room, struct queue_taken *ret,
	       struct err *err)
{
	int r = look_for_sets(q, err);

	if (r == 0)
		r = take_of_all(q, room, ret, err);
	return r == -ENOENT ? err_set(err, r, "queue '%s': the server has lost its streams", q->url)
			    : r;
}

static void send(struct queue *q, const char *subject, const char *text, size_t len)
{
	/* What does not arrive is as if we had died: the ticket is handed out again. */
	(void)q->n->natsConnection_Publish(q->conn, subject, text, (int)len);
}

void queue_working(struct queue *q, const char *reply)
{
	send(q, reply, "+WPI", 4);
}

void queue_nak(struct queue *q, const char *reply, uint64_t delay_ms)
{
	char text[64];

	send(q, reply, text,
	     (size_t)snprintf(text, sizeof(text), "-NAK {\"delay\": %" PRIu64 "}",
			      delay_ms * 1000000));
}

int queue_ack(struct queue *q, const char *reply, struct err *err)
{
	natsMsg *ask = NULL, *answer = NULL;
	natsStatus s = q->n->natsMsg_Create(&ask, reply, NULL, "+ACK", 4);

	if (s == NATS_OK)
		s = q->n->natsConnection_RequestMsg(&answer, q->conn, ask, TAKE_MS);
	q->n->natsMsg_Destroy(ask);
	q->n->natsMsg_Destroy(answer);
	return s == NATS_OK ? 0 : queue_err(q, s, "acknowledging a ticket", err);
}

void queue_answer(struct queue *q, const char *reply, const struct buf *text)
{
	send(q, reply, (const char *)text->data, text->len);
}

/* --- the other side ----------------------------------------------------------------------- */

int queue_listen(struct queue *q, const char *id, struct err *err)
{
	char subject[QUEUE_SUBJECT_MAX];
	int r = queue_subscribe(q, queue_subject(q, "log", id, subject), err);

	return r < 0 ? r : queue_subscribe(q, queue_subject(q, "result", id, subject), err);
}

void queue_cancel(struct queue *q, const char *id)
{
	char subject[QUEUE_SUBJECT_MAX];

	send(q, queue_subject(q, "cancel", id, subject), "", 0);
}

void queue_withdraw(struct queue *q, uint64_t place)
{
	CLEANUP(json_done) struct json_doc ask = { 0 }, doc = { 0 };
	struct json j = json_begin(&ask), answer;
	struct err ignored = { 0 };

	json_set_uint(j, "seq", place);
	IGNORE_RESULT(queue_api(q, "$JS.API.STREAM.MSG.DELETE." QUEUE_STREAM_TICKETS, &ask, &doc,
				&answer, &ignored),
		      "a worker that takes it finds its result");
}

int queue_ask(struct queue *q, uint64_t wait_ms, int (*fn)(const char *, size_t, void *), void *ctx,
	      struct err *err)
{
	char subject[QUEUE_SUBJECT_MAX];
	natsMsg *msg = NULL;
	natsStatus s = NATS_OK;
	int r = q->inbox_sub ? 0 : open_inbox(q, err);

	if (r < 0)
		return r;
	s = q->n->natsConnection_PublishRequest(
	    q->conn, queue_subject(q, "question", "all", subject), (char *)q->inbox, "", 0);
	while (s == NATS_OK && r >= 0) {
		s = q->n->natsSubscription_NextMsg(&msg, q->inbox_sub, (int64_t)wait_ms);
		if (s != NATS_OK)
			break;
		r = fn(q->n->natsMsg_GetData(msg), (size_t)q->n->natsMsg_GetDataLength(msg), ctx);
		q->n->natsMsg_Destroy(msg);
	}
	if (r < 0)
		return r;
	return s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS
		   ? 0
		   : queue_err(q, s, "asking the workers", err);
}
