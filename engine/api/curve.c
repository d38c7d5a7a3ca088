#include "engine/api/curve.h"

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* One for two that follow each other. */
static struct engine_sample join(const struct engine_sample *a, const struct engine_sample *b)
{
	struct engine_sample one = *b;

	one.memory = most(a->memory, b->memory);
	one.processes = most(a->processes, b->processes);
	return one;
}

static void halve(struct engine_curve *c)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < c->n; i += 2)
		c->list[n++] = join(&c->list[i], &c->list[i + 1]);
	if (c->n % 2 != 0)
		c->list[n++] = c->list[c->n - 1];
	c->n = n;
	c->every_ms *= 2;
}

void engine_curve_add(struct engine_curve *c, const struct engine_sample *s)
{
	if (c->every_ms == 0)
		c->every_ms = ENGINE_CURVE_EVERY_MS;
	if (c->n == ENGINE_CURVE_MAX)
		halve(c);
	c->list[c->n++] = *s;
}

double engine_curve_processors(const struct engine_sample *before, const struct engine_sample *s)
{
	const uint64_t ms = s->at_ms - (before ? before->at_ms : 0);
	const uint64_t cpu_ms = s->cpu_ms - (before ? before->cpu_ms : 0);

	return ms > 0 ? (double)cpu_ms / (double)ms : 0;
}
