/*
 * queue-i.h - shared by the files of a queue.
 */
#pragma once

#include "base/json.h"
#include "remote/nats.h"
#include "remote/queue.h"

#define QUEUE_STREAM_TICKETS "SNAPCOW_TICKETS"
#define QUEUE_STREAM_RESULTS "SNAPCOW_RESULTS"
#define QUEUE_STREAM_LOGS    "SNAPCOW_LOGS"
#define QUEUE_SUBJECT_MAX    256
#define QUEUE_SUBS_MAX       4

struct queue {
	const struct nats *n;
	natsConnection *conn;
	char *url; /* owned; for sentences, without a password */
	char name[QUEUE_NAME_MAX + 1];
	int pipe[2]; /* what arrived: a natsMsg * each */
	natsSubscription *subs[QUEUE_SUBS_MAX];
	size_t n_subs;
	/* Of a worker. */
	natsInbox *inbox; /* where tickets come to */
	natsSubscription *inbox_sub;
	struct strlist sets;  /* of labels, joined by '_'; "any": none */
	struct strlist found; /* sets with a need of which there are tickets */
	uint64_t found_ms;    /* when; 0: look again */
	size_t next_set;      /* of both lists: where queue_take() goes on, so that none starves */
	struct queue_need offer;
	uint64_t lease_ms;
};

/*
 * A set: the labels of a ticket, joined by '_', or "any"; then, if it says so, what it asks for:
 * "_M" and MiB, rounded up, "_C" and thousandths of a processor.
 */
void queue_set(const struct strlist *labels, const struct queue_need *need,
	       char to[QUEUE_SUBJECT_MAX]);

/* How many bytes of it are the labels; 0: it is no set. */
size_t queue_set_read(const char *set, struct queue_need *ret_need);

/* "snapcow.QUEUE.KIND.TAIL"; returns `to`. */
char *queue_subject(const struct queue *q, const char *kind, const char *tail,
		    char to[QUEUE_SUBJECT_MAX]);

/* A sentence for a status of libnats. */
NODISCARD int queue_err(const struct queue *q, natsStatus s, const char *doing, struct err *err);

struct queue_header {
	const char *key, *value;
};

/* Ask, and parse the JSON of the answer.  Headers end with a NULL key; NULL: none. */
NODISCARD int queue_request(struct queue *q, const char *subject,
			    const struct queue_header *headers, const void *data, size_t len,
			    struct json_doc *doc, struct json *ret, struct err *err);

/* The same to the interface of JetStream. */
NODISCARD int queue_api(struct queue *q, const char *subject, const struct json_doc *ask,
			struct json_doc *doc, struct json *ret, struct err *err);

/* What it refused: its own code of the error, or 0; the sentence is for people. */
int64_t queue_refused(struct json answer, const char **ret_why);

/* What comes to the inbox from now on is lost. */
void queue_close_inbox(struct queue *q);

/* Hand what comes to this subject to queue_next(). */
NODISCARD int queue_subscribe(struct queue *q, const char *subject, struct err *err);

/* A message of a stream by its place, or the next of a subject from there, or the last of it. */
struct queue_want {
	const char *stream, *subject;
	uint64_t place;
	bool last;
};

/* See to it that the streams are there. */
NODISCARD int queue_make_streams(struct queue *q, struct err *err);
