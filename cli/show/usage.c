#include "cli/show/usage.h"

#include <inttypes.h>

#include "base/size.h"

#define ROWS 20

int usage_set_json(const struct invocation *inv, struct json j, const struct engine_run *run,
		   struct err *err)
{
	const struct json usage = json_set_object(j, "usage");
	const struct json list = json_set_array(usage, "samples");
	struct engine_curve curve;
	int r = engine_run_curve(inv->engine, run, &curve, err);

	for (size_t i = 0; r >= 0 && i < curve.n; i++) {
		const struct engine_sample *s = &curve.list[i];
		const struct json one = json_add_object(list);

		json_set_uint(one, "at_ms", s->at_ms);
		json_set_uint(one, "cpu_ms", s->cpu_ms);
		json_set_uint(one, "memory", s->memory);
		json_set_uint(one, "written", s->written);
		json_set_uint(one, "processes", s->processes);
	}
	return r;
}

/* One row for the samples first..last. */
static void print_row(FILE *out, const struct engine_curve *c, size_t first, size_t last)
{
	char at[DURATION_TEXT_MAX], memory[SIZE_TEXT_MAX], written[SIZE_TEXT_MAX];
	struct engine_sample s = c->list[last];

	for (size_t i = first; i < last; i++) {
		s.memory = c->list[i].memory > s.memory ? c->list[i].memory : s.memory;
		s.processes =
		    c->list[i].processes > s.processes ? c->list[i].processes : s.processes;
	}
	fprintf(out, "%9s  %10.2f  %10s  %10s  %5" PRIu64 "\n", duration_format(s.at_ms, at),
		engine_curve_processors(first > 0 ? &c->list[first - 1] : NULL, &s),
		size_format(s.memory, memory), size_format(s.written, written), s.processes);
}

int usage_print(const struct invocation *inv, const struct engine_run *run, struct err *err)
{
	struct engine_curve curve;
	int r = engine_run_curve(inv->engine, run, &curve, err);
	size_t each;

	if (r < 0)
		return r;
	if (curve.n == 0 && !inv->quiet)
		fprintf(inv->out, "run %s has no samples: the first is taken after %d ms\n",
			run->id, ENGINE_CURVE_EVERY_MS);
	if (curve.n == 0)
		return 0;
	fprintf(inv->out, "%s%9s  %10s  %10s  %10s  %5s%s\n", out_style(inv, OUT_DIM), "AFTER",
		"PROCESSORS", "MEMORY", "WRITTEN", "PROCS", out_style(inv, OUT_PLAIN));
	each = (curve.n + ROWS - 1) / ROWS;
	for (size_t i = 0; i < curve.n; i += each)
		print_row(inv->out, &curve, i, i + each < curve.n ? i + each - 1 : curve.n - 1);
	return 0;
}
