/*
 * Each save of a change or a firing has two lines in the log of records (docket.c): one before it,
 * with the SHA-256 that the state is going to have, and one after it. A state may match the last
 * line of the second sort, or any line of the first sort since then: then the writer died in
 * between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/verb/audit-i.h"
#include "engine/verb/docket-i.h"

#define STATE_MAX ((size_t)64 << 20)

struct told {
	char *dir, *noun, *name;      /* owned */
	char sha256[SHA256_HEX_SIZE]; /* "": it was removed */
	bool done;
};

struct telling {
	struct auditing *auditing;
	struct told *list; /* owned; in the order of lines */
	size_t n, cap;
};

static void telling_done(struct telling *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->list[i].dir);
		free(t->list[i].noun);
		free(t->list[i].name);
	}
	free(t->list);
}

static int take_line(struct json line, void *ctx, struct err *err)
{
	struct telling *t = ctx;
	struct json data;
	const char *dir, *noun, *name, *sha256;
	struct told *one;

	if (json_kind(line, "data") != JSON_OBJECT)
		return 0;
	data = json_get_object(line, "data");
	dir = json_text_if(data, "dir");
	noun = json_text_if(data, "of");
	name = json_text_if(data, "name");
	sha256 = json_text_if(data, "sha256");
	/* The chain says whether a line is ours; a path that leads elsewhere is never followed. */
	if (!dir || !noun || !name || !path_name_valid(dir, strlen(dir)) ||
	    !path_name_valid(name, strlen(name)))
		return 0;
	if (!VEC_ROOM(t->list, t->n, t->cap))
		return err_nomem(err);
	one = &t->list[t->n++];
	*one = (struct told){ .dir = strdup(dir), .noun = strdup(noun), .name = strdup(name) };
	one->done = json_kind(data, "done") == JSON_BOOL && json_get_bool(data, "done");
	snprintf(one->sha256, sizeof(one->sha256), "%s", sha256 ? sha256 : "");
	return one->dir && one->noun && one->name ? 0 : err_nomem(err);
}

static int compare(const struct told *x, const struct told *y)
{
	const int c = strcmp(x->dir, y->dir);

	return c != 0 ? c : strcmp(x->name, y->name);
}

static int by_subject(const void *a, const void *b)
{
	const struct told *x = *(const struct told *const *)a, *y = *(const struct told *const *)b;
	const int c = compare(x, y);

	return c != 0 ? c : (x > y) - (x < y);
}

/* The digest of its state; "": there is none. */
static int digest_of_state(struct auditing *a, const struct told *t, char ret[SHA256_HEX_SIZE])
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r;
	AUTO_FREE char *path =
	    text_format("%s/%s/%s/" DOCKET_STATE, a->engine->store_path, t->dir, t->name);

	if (!path)
		return -ENOMEM;
	ret[0] = '\0';
	r = fdio_read_file(AT_FDCWD, path, STATE_MAX, &bytes, NULL);
	if (r >= 0)
		event_digest(bytes.data, bytes.len, ret);
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

/* list[0..n) are the lines about one of them. */
static int check(struct auditing *a, const struct told *const *list, size_t n, struct err *err)
{
	const struct told *last = list[n - 1];
	char have[SHA256_HEX_SIZE];
	int r = digest_of_state(a, last, have);

	if (r < 0)
		return audit_complain(a, last->noun, last->name, "its record cannot be read", err);
	a->result->records += *have != '\0';
	for (size_t i = n; i > 0; i--) {
		if (strcmp(list[i - 1]->sha256, have) == 0)
			return 0;
		if (list[i - 1]->done)
			break;
		/* The lines before it may be gone, with the oldest of the log. */
		if (i == 1)
			return 0;
	}
	return audit_complain(a, last->noun, last->name,
			      *have == '\0' ? "its record is gone, and snap did not remove it"
			      : *last->sha256 == '\0'
				  ? "its record is back, though it was removed"
				  : "its record was changed since it was written",
			      err);
}

static int check_all(struct telling *t, struct err *err)
{
	AUTO_FREE const struct told **order = calloc(t->n + 1, sizeof(*order));
	int r = 0;

	if (!order)
		return err_nomem(err);
	for (size_t i = 0; i < t->n; i++)
		order[i] = &t->list[i];
	qsort(order, t->n, sizeof(*order), by_subject);
	for (size_t i = 0, n; i < t->n && r >= 0; i += n) {
		for (n = 1; i + n < t->n && compare(order[i], order[i + n]) == 0;)
			n++;
		r = check(t->auditing, order + i, n, err);
	}
	return r;
}

int audit_records_check(struct auditing *a, struct err *err)
{
	CLEANUP(telling_done) struct telling t = { .auditing = a };
	CLEANUP(audit_log_done) struct audit_log log = {
		.fd = -1,
		.auditing = a,
		.dir = RECORDS_DIR,
		.noun = "record entry",
		.line = take_line,
		.ctx = &t,
	};
	int r = audit_log_check(&log, err);

	a->result->record_number = log.n;
	memcpy(a->result->record_head, log.prev, sizeof(log.prev));
	return r < 0 ? r : check_all(&t, err);
}
