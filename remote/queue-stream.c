/*
 * Streams: JetStream is asked by its JSON requests (docs.nats.io, "JetStream wire API").
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "remote/queue-i.h"

#define SECOND          INT64_C(1000000000)
#define TICKETS_SECONDS 86400 /* that the same one is not posted twice */
#define RESULTS_SECONDS (7 * 86400)
#define LOGS_SECONDS    86400
#define LOGS_BYTES      (INT64_C(1) << 30) /* of all tickets; the oldest go first */

enum {
	REFUSED_NO_MESSAGE = 10037,
	REFUSED_OTHER_CONFIG = 10058, /* there is such a stream, and somebody chose otherwise */
	REFUSED_SEQUENCE = 10071,     /* the last message of the subject is not the expected one */
};

static int refuse(const struct queue *q, const char *doing, const char *why, struct err *err)
{
	return err_set(err, -EPROTO, "queue '%s': %s: %s", q->url, doing, why);
}

/* --- making them -------------------------------------------------------------------------- */

struct stream {
	const char *name, *subject, *retention;
	int64_t age_s, bytes, per_subject, message;
	int64_t repeat_s; /* that a message which is sent again is dropped; 0: the server's */
};

static const struct stream streams[] = {
	{ QUEUE_STREAM_TICKETS, "snapcow.*.ticket.*", "workqueue", 0, -1, -1, QUEUE_TICKET_MAX,
	  TICKETS_SECONDS },
	{ QUEUE_STREAM_RESULTS, "snapcow.*.result.*", "limits", RESULTS_SECONDS, -1, 1,
	  QUEUE_RESULT_MAX, 0 },
	{ QUEUE_STREAM_LOGS, "snapcow.*.log.*", "limits", LOGS_SECONDS, LOGS_BYTES, -1,
	  2 * QUEUE_LOG_MAX, 0 },
};

static int make_stream(struct queue *q, const struct stream *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc ask = { 0 }, doc = { 0 };
	struct json j = json_begin(&ask), answer;
	char subject[QUEUE_SUBJECT_MAX];
	const char *why;
	int64_t refused;
	int r;

	json_set_text(j, "name", s->name);
	json_add_text(json_set_array(j, "subjects"), s->subject);
	json_set_text(j, "retention", s->retention);
	json_set_text(j, "storage", "file");
	json_set_text(j, "discard", "old");
	json_set_int(j, "max_consumers", -1);
	json_set_int(j, "max_msgs", -1);
	json_set_int(j, "max_bytes", s->bytes);
	json_set_int(j, "max_age", s->age_s * SECOND);
	json_set_int(j, "max_msgs_per_subject", s->per_subject);
	json_set_int(j, "max_msg_size", s->message);
	json_set_int(j, "num_replicas", 1);
	json_set_int(j, "duplicate_window", s->repeat_s * SECOND);
	snprintf(subject, sizeof(subject), "$JS.API.STREAM.CREATE.%s", s->name);
	r = queue_api(q, subject, &ask, &doc, &answer, err);
	if (r < 0)
		return r;
	refused = queue_refused(answer, &why);
	return refused == 0 || refused == REFUSED_OTHER_CONFIG
		   ? 0
		   : refuse(q, "making a stream", why, err);
}

int queue_make_streams(struct queue *q, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(streams); i++)
		r = make_stream(q, &streams[i], err);
	return r;
}

/* --- putting ------------------------------------------------------------------------------ */

/* Into the stream that has the subject.  Its place, or 0 and why it was refused. */
static int put(struct queue *q, const char *subject, const struct queue_header *headers,
	       const struct buf *text, uint64_t *ret_place, int64_t *ret_refused, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *why;
	struct json answer;
	int r = queue_request(q, subject, headers, text->data, text->len, &doc, &answer, err);

	if (r < 0)
		return r;
	*ret_refused = queue_refused(answer, &why);
	if (*ret_refused == REFUSED_SEQUENCE)
		return 0;
	if (*ret_refused != 0)
		return refuse(q, "storing a message", why, err);
	*ret_place = json_get_uint(answer, "seq");
	return json_end(&doc, err);
}

int queue_post(struct queue *q, const char *id, const struct strlist *labels,
	       const struct queue_need *need, const struct buf *text, uint64_t *ret_place,
	       struct err *err)
{
	const struct queue_header headers[] = { { "Nats-Msg-Id", id }, { 0 } };
	char subject[QUEUE_SUBJECT_MAX], set[QUEUE_SUBJECT_MAX];
	int64_t refused;

	queue_set(labels, need, set);
	queue_subject(q, "ticket", set, subject);
	return put(q, subject, headers, text, ret_place, &refused, err);
}

int queue_result_put(struct queue *q, const char *id, const struct buf *text, struct err *err)
{
	const struct queue_header headers[] = { { "Nats-Expected-Last-Subject-Sequence", "0" },
						{ 0 } };
	char subject[QUEUE_SUBJECT_MAX];
	int64_t refused = 0;
	uint64_t place = 0;
	int r =
	    put(q, queue_subject(q, "result", id, subject), headers, text, &place, &refused, err);

	return r < 0 ? r : refused == 0;
}

/* --- getting ------------------------------------------------------------------------------ */

static int read_message(struct json answer, struct buf *out, uint64_t *ret_place,
			char **ret_subject, struct err *err)
{
	struct json m = json_get_object(answer, "message");
	const char *data = json_text_if(m, "data");
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r = data ? base64_decode(&bytes, data, strlen(data)) : 0;

	if (r < 0)
		return err_set(err, r == -ENOMEM ? r : -EPROTO, "a message is no base64");
	if (ret_place)
		*ret_place = json_get_uint(m, "seq");
	r = json_end(answer.doc, err);
	if (r == 0 && ret_subject) {
		const char *subject = json_text_if(m, "subject");

		*ret_subject = strdup(subject ? subject : "");
		r = *ret_subject ? 0 : err_nomem(err);
	}
	if (r < 0)
		return r;
	buf_swap(out, &bytes);
	return 1;
}

/* 1 with its bytes, place and subject (both may be NULL; owned), or 0: none. */
static int get_message(struct queue *q, const struct queue_want *want, struct buf *out,
		       uint64_t *ret_place, char **ret_subject, struct err *err)
{
	CLEANUP(json_done) struct json_doc ask = { 0 }, doc = { 0 };
	struct json j = json_begin(&ask), answer;
	char subject[QUEUE_SUBJECT_MAX];
	const char *why;
	int64_t refused;
	int r;

	if (want->last) {
		json_set_text(j, "last_by_subj", want->subject);
	} else {
		json_set_uint(j, "seq", want->place);
		if (want->subject)
			json_set_text(j, "next_by_subj", want->subject);
	}
	snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", want->stream);
	r = queue_api(q, subject, &ask, &doc, &answer, err);
	if (r < 0)
		return r;
	refused = queue_refused(answer, &why);
	if (refused == REFUSED_NO_MESSAGE)
		return 0;
	if (refused != 0)
		return refuse(q, "reading a message", why, err);
	r = read_message(answer, out, ret_place, ret_subject, err);
	return r < 0 ? err_wrap(err, r, "queue '%s'", q->url) : r;
}

int queue_result_get(struct queue *q, const char *id, struct buf *out, struct err *err)
{
	char subject[QUEUE_SUBJECT_MAX];
	const struct queue_want want = { .stream = QUEUE_STREAM_RESULTS,
					 .subject = queue_subject(q, "result", id, subject),
					 .last = true };

	return get_message(q, &want, out, NULL, NULL, err);
}

int queue_result_at(struct queue *q, uint64_t place, struct buf *out, struct err *err)
{
	char prefix[QUEUE_SUBJECT_MAX];
	const size_t len = strlen(queue_subject(q, "result", "", prefix));
	const struct queue_want want = { .stream = QUEUE_STREAM_RESULTS, .place = place };
	AUTO_FREE char *subject = NULL;
	int r = get_message(q, &want, out, NULL, &subject, err);

	return r <= 0 ? r : strncmp(subject, prefix, len) == 0;
}

/* --- output ------------------------------------------------------------------------------- */

/* "1 ATTEMPT STREAM AT\n", then the bytes. */
int queue_log_put(struct queue *q, const char *id, const struct queue_log *log, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char subject[QUEUE_SUBJECT_MAX];
	natsStatus s;

	if (buf_printf(&text, "1 %" PRIu64 " %d %" PRIu64 "\n", log->attempt,
		       log->is_note     ? 0
		       : log->of_stderr ? 2
					: 1,
		       log->at) < 0 ||
	    buf_append(&text, log->data.data, log->data.len) < 0)
		return err_nomem(err);
	s = q->n->natsConnection_Publish(q->conn, queue_subject(q, "log", id, subject), text.data,
					 (int)text.len);
	return s == NATS_OK ? 0 : queue_err(q, s, "sending output", err);
}

static int read_log(const struct buf *text, struct queue_log *ret, struct err *err)
{
	const char *bytes = (const char *)text->data;
	const char *end = text->len > 0 ? memchr(bytes, '\n', text->len) : NULL;
	char head[80];
	int stream = 0, used = 0;

	if (!end || (size_t)(end - bytes) >= sizeof(head))
		return err_set(err, -EPROTO, "output of a ticket has no head");
	memcpy(head, bytes, (size_t)(end - bytes));
	head[end - bytes] = '\0';
	if (sscanf(head, "1 %" SCNu64 " %d %" SCNu64 "%n", &ret->attempt, &stream, &ret->at,
		   &used) != 3 ||
	    head[used] != '\0' || stream < 0 || stream > 2)
		return err_set(err, -EPROTO, "output of a ticket has another head");
	ret->is_note = stream == 0;
	ret->of_stderr = stream == 2;
	buf_reset(&ret->data);
	return buf_append(&ret->data, end + 1, text->len - (size_t)(end + 1 - bytes)) < 0
		   ? err_nomem(err)
		   : 1;
}

int queue_log_next(struct queue *q, const char *id, uint64_t *at, struct queue_log *ret,
		   struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char subject[QUEUE_SUBJECT_MAX];
	const struct queue_want want = { .stream = QUEUE_STREAM_LOGS,
					 .subject = queue_subject(q, "log", id, subject),
					 .place = *at > 0 ? *at : 1 };
	uint64_t place = 0;
	int r = get_message(q, &want, &text, &place, NULL, err);

	if (r <= 0)
		return r;
	*at = place + 1;
	return read_log(&text, ret, err);
}

/* --- numbers ------------------------------------------------------------------------------ */

static int stream_state(struct queue *q, const char *stream, struct json_doc *doc, struct json *ret,
			struct err *err)
{
	char subject[QUEUE_SUBJECT_MAX];
	struct json answer;
	const char *why;
	int r;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
	r = queue_api(q, subject, NULL, doc, &answer, err);
	if (r < 0)
		return r;
	if (queue_refused(answer, &why) != 0)
		return refuse(q, "looking at a stream", why, err);
	*ret = json_get_object(answer, "state");
	return 0;
}

/* Of the consumers of this queue. */
static int count_taken(struct queue *q, struct queue_numbers *n, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const size_t len = strlen(q->name);
	struct json answer, list;
	const char *why;
	int r =
	    queue_api(q, "$JS.API.CONSUMER.LIST." QUEUE_STREAM_TICKETS, NULL, &doc, &answer, err);

	if (r < 0)
		return r;
	if (queue_refused(answer, &why) != 0)
		return refuse(q, "looking at consumers", why, err);
	if (json_kind(answer, "consumers") != JSON_ARRAY)
		return 0;
	list = json_get_array(answer, "consumers");
	for (size_t i = 0; i < json_length(list); i++) {
		struct json c = json_at_object(list, i);
		const char *name = json_text_if(c, "name");

		if (!name || strncmp(name, q->name, len) != 0 || name[len] != '_')
			continue;
		n->waiting += json_get_uint(c, "num_pending");
		n->taken += json_get_uint(c, "num_ack_pending");
		n->redelivered += json_get_uint(c, "num_redelivered");
	}
	return json_end(&doc, err);
}

int queue_numbers(struct queue *q, struct queue_numbers *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct queue_numbers n = { 0 };
	struct json state;
	int r = stream_state(q, QUEUE_STREAM_RESULTS, &doc, &state, err);

	if (r < 0)
		return r;
	n.results = json_get_uint(state, "messages");
	n.last_result = json_get_uint(state, "last_seq");
	r = json_end(&doc, err);
	if (r == 0)
		r = count_taken(q, &n, err);
	if (r == 0)
		*ret = n;
	return r;
}
