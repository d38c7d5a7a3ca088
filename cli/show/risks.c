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

void risks_print(const struct invocation *inv, const struct engine_facts *f)
{
	fprintf(inv->out, "risk: %s%s%s\n", out_style(inv, style_of(f->risk)),
		engine_risk_name(f->risk), out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < f->n_reasons; i++)
		print_reason(inv, &f->reasons[i]);
}
