/*
 * The event that ends a run has the SHA-256 of its record. If a record is missing, a later event
 * says whether snap removed it. Runs whose end does not promise that event (`tracked`) cannot be
 * judged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/find/run-record.h"
#include "engine/verb/audit-i.h"

struct told {
	char run[ENGINE_RUN_ID_SIZE];
	char record[SHA256_HEX_SIZE]; /* "": it was removed */
	bool tracked;
};

struct audit_runs {
	struct auditing *auditing;
	struct told *list; /* owned; in the order of events */
	size_t n, cap;
};

struct audit_runs *audit_runs_new(struct auditing *a)
{
	struct audit_runs *r = calloc(1, sizeof(*r));

	if (r)
		r->auditing = a;
	return r;
}

void audit_runs_free(struct audit_runs *r)
{
	if (!r)
		return;
	free(r->list);
	free(r);
}

static int add(struct audit_runs *r, const char *run, const char *record, bool tracked,
	       struct err *err)
{
	struct told *t;

	if (!VEC_ROOM(r->list, r->n, r->cap))
		return err_nomem(err);
	t = &r->list[r->n++];
	*t = (struct told){ .tracked = tracked };
	snprintf(t->run, sizeof(t->run), "%s", run);
	snprintf(t->record, sizeof(t->record), "%s", record);
	return 0;
}

static int take_removed(struct audit_runs *r, struct json data, struct err *err)
{
	const struct json list = json_get_array(data, "runs");
	int x = 0;

	for (size_t i = 0; x >= 0 && i < json_length(list); i++) {
		const char *run = json_at_text(list, i);

		x = run ? add(r, run, "", true, err) : 0;
	}
	return x;
}

int audit_runs_take(struct json event, void *ctx, struct err *err)
{
	const char *kind = json_text_if(event, "kind"), *run = json_text_if(event, "run"), *record;
	struct json data;

	if (json_kind(event, "data") != JSON_OBJECT)
		return 0;
	data = json_get_object(event, "data");
	if (kind && strcmp(kind, "runs-removed") == 0 && json_kind(data, "runs") == JSON_ARRAY)
		return take_removed(ctx, data, err);
	record = json_text_if(data, "record");
	if (!run || !record)
		return 0;
	return add(ctx, run, record,
		   json_kind(data, "tracked") == JSON_BOOL && json_get_bool(data, "tracked"), err);
}

/* By id; of one id in the order of events, which is that of the list. */
static int by_run(const void *a, const void *b)
{
	const struct told *x = *(const struct told *const *)a, *y = *(const struct told *const *)b;
	const int c = strcmp(x->run, y->run);

	return c != 0 ? c : (x > y) - (x < y);
}

/* `last` is the last record of that run. */
static int check(struct audit_runs *r, const struct told *last, struct err *err)
{
	struct auditing *a = r->auditing;
	char have[SHA256_HEX_SIZE];
	int x;

	if (*last->record == '\0')
		return 0;
	x = run_record_digest(a->engine->store_path, last->run, have);
	if (x == -ENOENT)
		return last->tracked ? audit_complain(a, "run", last->run,
						      "its record is gone, and snap did not "
						      "remove it",
						      err)
				     : 0;
	if (x < 0)
		return audit_complain(a, "run", last->run, "its record cannot be read", err);
	a->result->runs++;
	return strcmp(have, last->record) == 0
		   ? 0
		   : audit_complain(a, "run", last->run,
				    "its record was changed since the run ended", err);
}

int audit_runs_check(struct audit_runs *r, struct err *err)
{
	AUTO_FREE const struct told **order = calloc(r->n + 1, sizeof(*order));
	int x = 0;

	if (!order)
		return err_nomem(err);
	for (size_t i = 0; i < r->n; i++)
		order[i] = &r->list[i];
	qsort(order, r->n, sizeof(*order), by_run);
	for (size_t i = 0; i < r->n && x >= 0; i++)
		if (i + 1 == r->n || strcmp(order[i]->run, order[i + 1]->run) != 0)
			x = check(r, order[i], err);
	return x;
}
