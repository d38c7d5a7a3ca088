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
	free(a->heads);
	free(a->found);
}

/* Printing them may wait for a reader, which must keep nobody else waiting. */
static int report_problems(const struct auditing *a, engine_audit_fn fn, void *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->n_problems && r >= 0; i++) {
		const struct audit_problem *one = &a->problems[i];

		r = fn(one->kind, one->name, one->problem, ctx, err);
	}
	return r;
}

/* --- heads that must be in a chain -------------------------------------------------------- */

/* Those that were named, and behind them those that somebody signed. */
static int choose_heads(struct auditing *a, const struct engine_audit_options *o, struct err *err)
{
	const struct engine_audit_signature *s = &a->result->signature;
	const char *const digests[] = { s->receipts.digest, s->events.digest, s->records.digest };
	const char **heads = calloc(o->n_heads + ARRAY_LEN(digests), sizeof(*heads));

	a->heads = heads;
	a->found = calloc(o->n_heads + ARRAY_LEN(digests), sizeof(*a->found));
	if (!heads || !a->found)
		return err_nomem(err);
	for (size_t i = 0; i < o->n_heads; i++)
		heads[a->n_heads++] = o->heads[i];
	for (size_t i = 0; a->result->is_signed && i < ARRAY_LEN(digests); i++)
		if (*digests[i] != '\0')
			heads[a->n_heads++] = digests[i];
	return 0;
}

static const char *chain_of(const struct engine_audit_signature *s, const char *digest)
{
	return digest == s->receipts.digest ? "receipts"
	       : digest == s->events.digest ? "events"
					    : "records";
}

static int check_heads(struct auditing *a, size_t n_named, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->n_heads && r >= 0; i++) {
		if (a->found[i])
			continue;
		r = i < n_named ? audit_complain(a, "head", a->heads[i],
						 "no chain has it: all were written anew", err)
				: audit_complain(a, "signature",
						 chain_of(&a->result->signature, a->heads[i]),
						 "what was signed is not in the chain: it was "
						 "written anew, or is no longer kept",
						 err);
	}
	return r;
}

int engine_audit_verify(struct engine *e, const struct engine_audit_options *options,
			engine_audit_fn fn, void *ctx, struct engine_audit *ret, struct err *err)
{
	CLEANUP(auditing_done) struct auditing a = { .engine = e, .result = ret };
	int r = 0;

	*ret = (struct engine_audit){ 0 };
	if (options->signers)
		r = audit_signature_find(&a, options->signers, &ret->signature, err);
	ret->is_signed = r > 0;
	if (r < 0)
		return r;
	r = choose_heads(&a, options, err);
	if (r < 0)
		return r;
	r = check_receipts(&a, err);
	if (r < 0)
		return r;
	r = check_events(&a, err);
	if (r < 0)
		return r;
	r = audit_records_check(&a, err);
	if (r < 0)
		return r;
	r = check_heads(&a, options->n_heads, err);
	return r < 0 ? r : report_problems(&a, fn, ctx, err);
}
