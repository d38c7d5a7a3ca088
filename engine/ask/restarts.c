#include "engine/ask/restarts-i.h"

#define PAUSE_MS 500 /* before the second quick restart; each pause is twice the previous one */

enum restarts_verdict restarts_judge(struct restarts *r, uint64_t born_ms, uint64_t died_ms)
{
	uint64_t oldest;

	r->quick = died_ms - born_ms < RESTARTS_QUICK_MS ? r->quick + 1 : 0;
	r->died[r->n++ % RESTARTS_SPAN_MAX] = died_ms;
	oldest = r->died[r->n % RESTARTS_SPAN_MAX];
	if (r->quick >= RESTARTS_QUICK_MAX)
		return RESTARTS_TOO_QUICK;
	if (r->n >= RESTARTS_SPAN_MAX && died_ms - oldest < RESTARTS_SPAN_MS)
		return RESTARTS_TOO_MANY;
	return RESTARTS_AGAIN;
}

uint64_t restarts_pause_ms(const struct restarts *r)
{
	return r->quick > 1 ? (uint64_t)PAUSE_MS << (r->quick - 2) : 0;
}
