#include "engine/api/doctor.h"

#include <stdarg.h>
#include <stdio.h>

PRINTF_LIKE(5, 0)
static void put(struct engine_diagnosis *d, enum engine_health health, const char *name,
		const char *fix, const char *fmt, va_list ap)
{
	struct engine_finding *f = &d->list[d->n];

	if (d->n == ENGINE_FINDINGS_MAX)
		return;
	d->n++;
	*f = (struct engine_finding){ .name = name, .health = health };
	vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
	snprintf(f->fix, sizeof(f->fix), "%s", fix);
	if (health > d->worst)
		d->worst = health;
}

void doctor_well(struct engine_diagnosis *d, const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(d, ENGINE_WELL, name, "", fmt, ap);
	va_end(ap);
}

void doctor_finds(struct engine_diagnosis *d, enum engine_health health, const char *name,
		  const char *fix, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(d, health, name, fix, fmt, ap);
	va_end(ap);
}
