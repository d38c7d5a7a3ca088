/*
 * doctor.h - checks of what this machine and this store can do, each with the fix.
 *
 * Looks and tries, in processes of its own where a try would leave traces; changes nothing.
 */
#pragma once

#include "engine/api/engine.h"

enum engine_health {
	ENGINE_WELL,
	ENGINE_WEAK, /* all works but what the finding names */
	ENGINE_ILL,  /* something that every user needs does not work */
};

struct engine_finding {
	const char *name; /* of what was looked at */
	enum engine_health health;
	char detail[200];
	char fix[200]; /* what to type or do; "" if there is nothing to mend */
};

#define ENGINE_FINDINGS_MAX 24

struct engine_diagnosis {
	struct engine_finding list[ENGINE_FINDINGS_MAX];
	size_t n;
	enum engine_health worst;
};

/* One finding more; beyond the last that has room it is dropped. */
void doctor_well(struct engine_diagnosis *d, const char *name, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* `fix` is a command or a sentence. */
void doctor_finds(struct engine_diagnosis *d, enum engine_health health, const char *name,
		  const char *fix, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Whatever is wrong is a finding, also with the directory and the store that `options` name. */
void engine_doctor(const struct engine_options *options, struct engine_diagnosis *ret);

/*
 * Try a remote (its name or its url) as a push and a fetch would: address, reach, tls, login, push, pull,
 * clock, latency, as far as it has them.  What is made there for that is removed again.
 */
void engine_doctor_remote(const struct engine_options *options, const char *remote,
			  struct engine_diagnosis *ret);
