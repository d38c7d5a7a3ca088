#include "cli/show/risks.h"

#include <inttypes.h>

#include "cli/out.h"

static enum out_style style_of(enum engine_risk risk)
{
	return risk == ENGINE_RISK_HIGH     ? OUT_BAD
	       : risk == ENGINE_RISK_MEDIUM ? OUT_BOLD
					    : OUT_GOOD;
}

static void print_reason(const struct invocation *inv, const struct engine_risk_reason *r)
{
	FILE *out = inv->out;

	fprintf(out, "  %s%-6s%s  %-14s  ", out_style(inv, style_of(r->risk)),
		engine_risk_name(r->risk), out_style(inv, OUT_PLAIN), r->rule);
	if (r->path) {
		out_name(out, r->path);
		if (r->paths > 1)
			fprintf(out, " and %" PRIu64 " more", r->paths - 1);
		fputs(": ", out);
	}
	fprintf(out, "%s\n", r->why);
}

static void print_all(const struct invocation *inv, const struct engine_facts *f, const char *mark)
{
	fprintf(inv->out, "%srisk: %s%s%s\n", mark, out_style(inv, style_of(f->risk)),
		engine_risk_name(f->risk), out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < f->n_reasons; i++) {
		fputs(mark, inv->out);
		print_reason(inv, &f->reasons[i]);
	}
}

void risks_print(const struct invocation *inv, const struct engine_facts *f)
{
	print_all(inv, f, "");
}

void risks_print_line(const struct invocation *inv, const struct engine_facts *f)
{
	FILE *out = inv->out;

	fprintf(out, "  risk: %s%s%s", out_style(inv, style_of(f->risk)), engine_risk_name(f->risk),
		out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < f->n_reasons; i++) {
		const struct engine_risk_reason *r = &f->reasons[i];

		fprintf(out, "%s%s", i > 0 ? ", " : " (", r->rule);
		if (r->path) {
			fputc(' ', out);
			out_name(out, r->path);
		}
		if (r->paths > 1)
			fprintf(out, " and %" PRIu64 " more", r->paths - 1);
	}
	fputs(f->n_reasons > 0 ? ")\n" : "\n", out);
}

void risks_print_notes(const struct invocation *inv, const struct engine_facts *f)
{
	print_all(inv, f, "# ");
}

void risks_set_reasons(struct json list, const struct engine_facts *f)
{
	for (size_t i = 0; i < f->n_reasons; i++) {
		const struct engine_risk_reason *r = &f->reasons[i];
		const struct json j = json_add_object(list);

		json_set_text(j, "risk", engine_risk_name(r->risk));
		json_set_text(j, "rule", r->rule);
		json_set_text(j, "why", r->why);
		json_set_name(j, "path", r->path);
		json_set_uint(j, "paths", r->paths);
	}
}

void risks_set(struct json j, const struct engine_facts *f)
{
	json_set_text(j, "risk", engine_risk_name(f->risk));
	risks_set_reasons(json_set_array(j, "reasons"), f);
}
