#include "remote/probe-i.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"

#define CLOCK_WEAK_S 120 /* beyond it tokens and signatures of requests may be refused */

void probe_tell(const struct probe *p, enum depot_level level, const char *name, const char *fix,
		const char *fmt, ...)
{
	char detail[400];
	const struct depot_finding f = {
		.name = name, .level = level, .detail = detail, .fix = fix
	};
	va_list args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	p->tell(&f, p->ctx);
}

void probe_clock(const struct probe *p, time_t theirs, time_t before, time_t after)
{
	const int64_t off = theirs < before  ? (int64_t)before - theirs
			    : theirs > after ? (int64_t)theirs - after
					     : 0;
	char text[DURATION_TEXT_MAX];

	if (off <= CLOCK_WEAK_S) {
		probe_tell(p, DEPOT_WELL, "clock", "", "as ours");
		return;
	}
	probe_tell(p, DEPOT_WEAK, "clock",
		   "set both clocks by the network: timedatectl set-ntp true", "%s %s ours",
		   duration_format((uint64_t)off * 1000, text),
		   theirs < before ? "behind" : "ahead of");
}
