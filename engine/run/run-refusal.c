#include "engine/run/run-refusal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"

int run_refusals_add(struct engine_refusals *r, const struct scrub *secrets,
		     const struct engine_refusal *refusal)
{
	CLEANUP(engine_refusal_done)
	struct engine_refusal one = {
		.kind = strdup(refusal->kind),
		.what = scrub_text(secrets, refusal->what),
		.rule = strdup(refusal->rule),
		.flag = scrub_text(secrets, refusal->flag),
		.message = scrub_text(secrets, refusal->message),
		.count = 1,
	};

	if (!one.kind || !one.what || !one.rule || !one.flag || !one.message)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->list[i].kind, one.kind) == 0 &&
		    strcmp(r->list[i].message, one.message) == 0) {
			r->list[i].count++;
			return 0;
		}
	}
	if (r->n == RUN_REFUSALS_MAX) {
		r->more++;
		return 0;
	}
	if (!VEC_ONE_MORE(r->list, r->n))
		return -ENOMEM;
	r->list[r->n++] = TAKE_STRUCT(one);
	return 0;
}

void run_refusals_take_call(void *ctx, const char *call, const uint64_t args[6])
{
	const struct scrub none = { 0 };
	const bool is_socket = strcmp(call, "socket") == 0 || strcmp(call, "socketpair") == 0;
	char kind[] = "call", rule[] = "filter", flag[] = "", what[64], sentence[128];
	const struct engine_refusal refusal = {
		.kind = kind, .what = what, .rule = rule, .flag = flag, .message = sentence
	};

	if (is_socket) {
		snprintf(what, sizeof(what), "%s %u", call, (unsigned int)args[0]);
		snprintf(sentence, sizeof(sentence),
			 "sockets of family %u, or of that protocol, are not for runs",
			 (unsigned int)args[0]);
	} else {
		snprintf(what, sizeof(what), "%s", call);
		snprintf(sentence, sizeof(sentence),
			 "the system call '%s', called like that, is not for runs", what);
	}
	if (run_refusals_add(ctx, &none, &refusal) < 0)
		log_warn("out of memory: a refused system call is not kept, continuing");
}
