#include "cli/show/receipts.h"

#include <string.h>

#include "base/vec.h"

#define ELSEWHERE_MAX 5 /* lines; --json has all of them */

/* --- for programs ----------------------------------------------------------------------- */

static bool is_among(const char *id, const struct engine_snapshot *list, size_t n)
{
	return VEC_HAS(it, list, n, strcmp(it->id, id) == 0);
}

static void set_one(struct json j, const struct engine_receipt *r)
{
	json_set_text(j, "receipt", r->id);
	json_set_text(j, "kind", engine_receipt_kind_name(r->kind));
	json_set_bool(j, "undone", r->undone);
	out_json_time(j, "time", r->created);
	json_set_name(j, "who", r->who);
	json_set_uint(j, "uid", r->uid);
	json_set_name(j, "clone", r->clone);
	if (r->to)
		json_set_name(j, "to", r->to);
	out_json_id(j, "base", r->base);
	out_json_id(j, "before", r->before);
	out_json_id(j, "after", r->after);
	out_json_id(j, "undoes", r->undoes);
	json_set_text(j, "sha256", r->sha256);
	fields_set_list(j, "checks", &engine_checked_fields, r->checks, r->n_checks);
}

void receipts_set(struct json j, const struct engine_receipts *r,
		  const struct engine_snapshot *list, size_t n)
{
	struct json array = json_set_array(j, "receipts");

	for (size_t i = 0; i < r->n; i++)
		if (r->list[i].to || is_among(r->list[i].before, list, n) ||
		    is_among(r->list[i].after, list, n))
			set_one(json_add_object(array), &r->list[i]);
}

/* --- for people ------------------------------------------------------------------------- */

void receipts_print(const struct invocation *inv, const struct engine_receipts *r,
		    const struct engine_snapshot *s)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct engine_receipt *one = &r->list[i];
		const bool back = one->kind == ENGINE_RECEIPT_ROLLBACK;

		if (strcmp(back ? one->before : one->after, s->id) != 0)
			continue;
		fprintf(inv->out, "  %s(%.*s", out_style(inv, OUT_DIM), OUT_SHORT_ID, one->id);
		if (one->n_checks > 0)
			fputs(", ", inv->out);
		if (one->n_checks == 1)
			out_name(inv->out, one->checks[0].command);
		else if (one->n_checks > 1)
			out_plural(inv->out, one->n_checks, "check", "checks");
		fprintf(inv->out, "%s)%s", one->undone ? ", undone" : "",
			out_style(inv, OUT_PLAIN));
	}
}

void receipts_print_elsewhere(const struct invocation *inv, const struct engine_receipts *r)
{
	char when[OUT_TIME_MAX];
	unsigned lines = 0;

	for (size_t i = 0; i < r->n && lines < ELSEWHERE_MAX; i++) {
		const struct engine_receipt *one = &r->list[i];

		if (!one->to || one->kind != ENGINE_RECEIPT_PROMOTION)
			continue;
		fprintf(inv->out, "%spromotion %.*s of %s to ", out_style(inv, OUT_DIM),
			OUT_SHORT_ID, one->id, one->clone);
		out_name(inv->out, one->to);
		fprintf(inv->out, ", %s%s%s\n", out_when(one->created, when),
			one->undone ? ", undone" : "", out_style(inv, OUT_PLAIN));
		lines++;
	}
}
