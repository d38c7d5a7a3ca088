#include "engine/run/run-curve.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "engine/find/curve-i.h"

static uint64_t take_sample(void *ctx, const struct sandbox_sample *s)
{
	struct run_curve *c = ctx;
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	const struct engine_sample one = {
		.at_ms = s->at_ms,
		.cpu_ms = s->cpu_ms,
		.memory = s->mem,
		.written = s->written,
		.processes = s->pids,
	};

	engine_curve_add(&c->curve, &one);
	if (curve_append(&line, &one) >= 0)
		run_record_use(c->record, line.data, line.len);
	return c->curve.every_ms;
}

void run_curve_watch(struct run_curve *c, struct run_record *record, struct sandbox_spec *spec)
{
	_Static_assert(SANDBOX_SAMPLE_MS == ENGINE_CURVE_EVERY_MS,
		       "the first comes as the others do");

	c->record = record;
	spec->sample = take_sample;
	spec->sample_ctx = c;
}

void run_curve_end(const struct run_curve *c, struct engine_run *run)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->curve.n; i++)
		r = curve_append(&text, &c->curve.list[i]);
	if (r >= 0 && text.len > 0) {
		const char *s = buf_str(&text);

		run->curve = s ? strdup(s) : NULL;
		r = run->curve ? 0 : -ENOMEM;
	}
	if (r < 0)
		log_warn("out of memory: what the run used over time is not kept, continuing");
}
