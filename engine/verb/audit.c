#include "engine/api/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"
#include "cowfs/store/audit.h"
#include "engine/find/engine-i.h"
#include "engine/find/event-i.h"
#include "engine/find/run-record.h"

#define FILE_MAX ((size_t)4 * EVENTS_FILE_MAX)

struct auditing {
	struct engine *engine;
	engine_audit_fn fn;
	void *ctx;
	struct engine_audit *result;
	const char *const *heads;
	size_t n_heads;
	bool *found; /* owned; for each head */
	/* Of the events: */
	uint64_t n; /* the last one */
	char prev[SHA256_HEX_SIZE],
	    before[SHA256_HEX_SIZE]; /* digests of the last line, and the one before */
	bool chained;                /* some line had a digest */
};

static int complain(const char *kind, const char *name, const char *problem, void *ctx,
		    struct err *err)
{
	struct auditing *a = ctx;

	a->result->problems++;
	return a->fn(kind, name, problem, a->ctx, err);
}

/* Of a pass that looks for a head alone. */
static int audit_ignore(const char *kind, const char *name, const char *problem, void *ctx,
			struct err *err)
{
	(void)kind;
	(void)name;
	(void)problem;
	(void)ctx;
	(void)err;
	return 0;
}

static void note_digest(struct auditing *a, const char *digest)
{
	for (size_t i = 0; i < a->n_heads; i++)
		a->found[i] |= strcmp(a->heads[i], digest) == 0;
}

/* --- events ----------------------------------------------------------------------------- */

static int complain_event(struct auditing *a, uint64_t n, const char *problem, struct err *err)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, n);
	return complain("event", number, problem, a, err);
}

/* The record of a run that has ended is as its event says.  Old ones are removed with time. */
static int check_run(struct auditing *a, const char *run, const char *want, struct err *err)
{
	char have[SHA256_HEX_SIZE];
	int r = run_record_digest(a->engine->store_path, run, have);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return complain("run", run, "its record cannot be read", a, err);
	a->result->runs++;
	return strcmp(have, want) == 0
		   ? 0
		   : complain("run", run, "its record was changed since the run ended", a, err);
}

struct event_line {
	uint64_t n;
	char prev[SHA256_HEX_SIZE]; /* "": from before there was a chain */
	bool first;                 /* its `prev` is empty: nothing was before it */
	char run[ENGINE_RUN_ID_SIZE];
	char record[SHA256_HEX_SIZE];
};

static int parse_line(const char *line, size_t len, struct event_line *ret)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j, data;
	const char *text;

	*ret = (struct event_line){ 0 };
	if (json_parse(&doc, line, len, &j, NULL) < 0 || json_kind(j, "n") != JSON_INT)
		return -EBADMSG;
	ret->n = json_get_uint(j, "n");
	text = json_text_if(j, "prev");
	ret->first = text && *text == '\0';
	snprintf(ret->prev, sizeof(ret->prev), "%s", text ? text : "");
	text = json_text_if(j, "run");
	snprintf(ret->run, sizeof(ret->run), "%s", text ? text : "");
	data =
	    json_kind(j, "data") == JSON_OBJECT ? json_get_object(j, "data") : (struct json){ 0 };
	text = data.doc ? json_text_if(data, "record") : NULL;
	snprintf(ret->record, sizeof(ret->record), "%s", text ? text : "");
	return 0;
}

/* Does it follow the line before it? */
static int check_link(struct auditing *a, const struct event_line *l, struct err *err)
{
	if (a->n > 0 && l->n != a->n + 1)
		return complain_event(a, l->n > a->n + 1 ? a->n + 1 : l->n,
				      l->n > a->n + 1 ? "it is missing" : "it is out of order",
				      err);
	if (!l->first && *l->prev == '\0')
		return a->chained ? complain_event(a, l->n, "its digest was taken out", err) : 0;
	if (a->n > 0 && strcmp(l->prev, a->prev) != 0)
		return complain_event(a, a->n, "it was changed, or what follows it was", err);
	return 0;
}

static int check_line(struct auditing *a, const char *line, size_t len, struct err *err)
{
	struct event_line l;
	int r = parse_line(line, len, &l);

	if (r < 0)
		return complain_event(a, a->n + 1, "it cannot be read", err);
	r = check_link(a, &l, err);
	if (r >= 0 && *l.record != '\0' && *l.run != '\0')
		r = check_run(a, l.run, l.record, err);
	if (r < 0)
		return r;
	a->chained |= l.first || *l.prev != '\0';
	a->result->unchained += !a->chained;
	a->result->events++;
	a->n = l.n;
	memcpy(a->before, a->prev, sizeof(a->before));
	event_digest(line, len, a->prev);
	note_digest(a, a->prev);
	return 0;
}

static int check_file(struct auditing *a, int dir_fd, uint64_t first, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const char *at, *end, *line;
	int r = fdio_read_file(dir_fd, event_file_name(first).text, FILE_MAX, &bytes, err);

	at = (const char *)bytes.data;
	end = at + bytes.len;
	for (; r >= 0 && at < end && (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1)
		r = check_line(a, at, (size_t)(line + 1 - at), err);
	return r;
}

/* A writer that died between the line and the head leaves the head of the line before. */
static int check_event_head(struct auditing *a, int dir_fd, uint64_t first, struct err *err)
{
	struct event_head head;

	event_head_read(dir_fd, &head);
	a->result->event_number = a->n;
	snprintf(a->result->event_head, sizeof(a->result->event_head), "%s", a->prev);
	if (head.n == 0)
		return a->chained ? complain("event", EVENTS_HEAD, "it is missing", a, err) : 0;
	if (head.first < first)
		return complain_event(a, head.first, "it is missing, with those before the next",
				      err);
	if ((head.n == a->n && strcmp(head.digest, a->prev) == 0) ||
	    (head.n + 1 == a->n && strcmp(head.digest, a->before) == 0))
		return 0;
	if (head.n > a->n)
		return complain_event(a, a->n + 1, "it is missing, with those behind it", err);
	return complain_event(a, a->n, "it was changed", err);
}

static int check_events(struct auditing *a, struct err *err)
{
	AUTO_FREE char *dir = path_join(a->engine->store_path, EVENTS_DIR);
	AUTO_CLOSE int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
	uint64_t files[EVENTS_FILES_MAX + 1] = { 0 };
	int n, r = 0;

	if (!dir)
		return err_nomem(err);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", dir);
	n = event_files(fd, files);
	if (n < 0)
		return err_set(err, n, "the log of events: %s", strerror(-n));
	for (int i = 0; i < n && r >= 0; i++)
		r = check_file(a, fd, files[i], err);
	return r < 0 ? r : check_event_head(a, fd, n > 0 ? files[0] : 1, err);
}

/* --- all -------------------------------------------------------------------------------- */

static int check_receipts(struct auditing *a, struct err *err)
{
	struct audit_state state;
	struct store *s;
	int r = engine_store(a->engine, STORE_READ, &s, err);

	/* Once for each head: a chain of receipts is short. */
	for (size_t i = 0; i < a->n_heads + 1 && r >= 0; i++) {
		const char *want = i < a->n_heads ? a->heads[i] : NULL;
		const bool last = i == a->n_heads;

		r = audit_verify(s, want, last ? complain : audit_ignore, a, &state, err);
		if (!last)
			a->found[i] |= r >= 0 && state.has_wanted;
	}
	if (r < 0)
		return r;
	a->result->receipts = state.records;
	a->result->unchained += state.unchained;
	a->result->receipt_number = state.number;
	memcpy(a->result->receipt_head, state.head, sizeof(state.head));
	return 0;
}

int engine_audit_verify(struct engine *e, const char *const *heads, size_t n_heads,
			engine_audit_fn fn, void *ctx, struct engine_audit *ret, struct err *err)
{
	AUTO_FREE bool *found = calloc(n_heads + 1, sizeof(*found));
	struct auditing a = { .engine = e,
			      .fn = fn,
			      .ctx = ctx,
			      .result = ret,
			      .heads = heads,
			      .n_heads = n_heads,
			      .found = found };
	int r;

	*ret = (struct engine_audit){ 0 };
	if (!found)
		return err_nomem(err);
	r = check_receipts(&a, err);
	if (r < 0)
		return r;
	r = check_events(&a, err);
	for (size_t i = 0; i < n_heads && r >= 0; i++)
		if (!found[i])
			r = complain("head", heads[i], "no chain has it: both were written anew",
				     &a, err);
	return r;
}
