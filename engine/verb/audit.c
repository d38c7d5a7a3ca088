#include "engine/verb/audit-i.h"

#include <stdlib.h>
#include <string.h>

#include "cowfs/store/audit.h"
#include "engine/find/event-i.h"

static int complain(const char *kind, const char *name, const char *problem, void *ctx,
		    struct err *err)
{
	return audit_complain(ctx, kind, name, problem, err);
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

static int check_events(struct auditing *a, struct err *err)
{
	CLEANUP(audit_runs_free_p) struct audit_runs *runs = audit_runs_new(a);
	CLEANUP(audit_log_done) struct audit_log log = {
		.fd = -1,
		.auditing = a,
		.dir = EVENTS_DIR,
		.noun = "event",
		.line = audit_runs_take,
		.ctx = runs,
	};
	int r = runs ? audit_log_check(&log, err) : err_nomem(err);

	a->result->events = log.lines;
	a->result->event_number = log.n;
	memcpy(a->result->event_head, log.prev, sizeof(log.prev));
	return r < 0 ? r : audit_runs_check(runs, err);
}

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

static void auditing_done(struct auditing *a)
{
	for (size_t i = 0; i < a->n_problems; i++) {
		free(a->problems[i].kind);
		free(a->problems[i].name);
		free(a->problems[i].problem);
	}
	free(a->problems);
}

/* Whoever prints them may wait for a reader, and nobody else has to wait for that. */
static int tell_problems(const struct auditing *a, engine_audit_fn fn, void *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->n_problems && r >= 0; i++) {
		const struct audit_problem *one = &a->problems[i];

		r = fn(one->kind, one->name, one->problem, ctx, err);
	}
	return r;
}

int engine_audit_verify(struct engine *e, const char *const *heads, size_t n_heads,
			engine_audit_fn fn, void *ctx, struct engine_audit *ret, struct err *err)
{
	AUTO_FREE bool *found = calloc(n_heads + 1, sizeof(*found));
	CLEANUP(auditing_done) struct auditing a = {
		.engine = e, .result = ret, .heads = heads, .n_heads = n_heads, .found = found
	};
	int r;

	*ret = (struct engine_audit){ 0 };
	if (!found)
		return err_nomem(err);
	r = check_receipts(&a, err);
	if (r < 0)
		return r;
	r = check_events(&a, err);
	if (r >= 0)
		r = audit_records_check(&a, err);
	for (size_t i = 0; i < n_heads && r >= 0; i++)
		if (!found[i])
			r = audit_complain(&a, "head", heads[i],
					   "no chain has it: all were written anew", err);
	return r < 0 ? r : tell_problems(&a, fn, ctx, err);
}
