/*
 * event-i.h - write events, for the readers of engine_events().
 *
 * Both processes write: cowfsd its acts, the command line the ends of runs. The log is a directory
 * of the store, events/, with files named by the number of their first event. Its lock puts the
 * writers in order. No act fails because an event cannot be written: such an event goes to the log
 * of the process and has no number.
 */
#pragma once

#include "base/json.h"
#include "base/sha256.h"
#include "engine/api/events.h"

struct store;

#define EVENTS_DIR       "events"
#define CALLS_DIR        "calls" /* of agents, in a log of their own, so that they push no event out */
#define RECORDS_DIR      "records" /* what changes and firings are (docket.c), for an audit */
#define EVENTS_FILE_MAX  ((uint64_t)1 << 20) /* bytes from which on another file is begun */
#define EVENTS_FILES_MAX 8
#define EVENTS_LINE_MAX  ((size_t)16 << 10)

/* One on its way. */
struct event {
	struct json_doc doc;
	struct json data; /* members that this kind of event has */
};

struct event_subject {
	const char *project, *clone, *run; /* NULL: none */
	/*
	 * The project's id; NULL: the one that `store` (or NULL) has for its path now.  A path alone may
	 * be another project's tomorrow.
	 */
	const char *project_id;
	struct store *store;
};

/* Begin one; fill ev->data, then event_end(). */
void event_begin(struct event *ev, const char *kind, struct event_subject of);

/* Number it, write it and free it.  `store` is the store's directory. */
void event_end(struct event *ev, const char *store);

/* The same in another log; CALLS_DIR. */
void event_end_in(struct event *ev, const char *store, const char *log);

/*
 * Each line has `prev`, the SHA-256 of the line before it with its newline, in hex.  EVENTS_HEAD beside
 * the files says what the last line is, and which is the first that must be there.  The line is
 * written first: if its writer dies in between, the head is that of the line before.
 */
#define EVENTS_HEAD "head"

struct event_head {
	uint64_t n, first;
	char digest[SHA256_HEX_SIZE];
};

/* All zero: there is none, or none that can be read. */
void event_head_read(int dir_fd, struct event_head *ret);
void event_digest(const void *line, size_t len, char hex[SHA256_HEX_SIZE]);

/* The numbers by which the files of a log are named, lowest first; how many, or a negative errno. */
NODISCARD int event_files(int dir_fd, uint64_t ret[EVENTS_FILES_MAX + 1]);
NODISCARD int event_open_file(int dir_fd, uint64_t first, int flags);

struct event_file_name {
	char text[17];
};
struct event_file_name event_file_name(uint64_t first);
