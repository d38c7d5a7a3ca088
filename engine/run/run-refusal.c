#include "engine/run/run-refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void refusal_done(struct engine_refusal *r)
{
	free(r->kind);
	free(r->what);
	free(r->rule);
	free(r->flag);
	free(r->message);
}

void run_refusals_done(struct engine_refusals *r)
{
	for (size_t i = 0; i < r->n; i++)
		refusal_done(&r->list[i]);
	free(r->list);
	*r = (struct engine_refusals){ 0 };
}

static bool is_whole(const struct engine_refusal *r)
{
	return r->kind && r->what && r->rule && r->flag && r->message;
}

/* Takes what `one` owns, whether it fails or not. */
static int keep(struct engine_refusals *r, struct engine_refusal *one)
{
	struct engine_refusal *list = NULL;

	if (is_whole(one))
		list = reallocarray(r->list, r->n + 1, sizeof(*list));
	if (!list) {
		refusal_done(one);
		return -ENOMEM;
	}
	r->list = list;
	list[r->n++] = *one;
	return 0;
}

int run_refusals_add(struct engine_refusals *r, const struct scrub *secrets,
		     const struct engine_refusal *refusal)
{
	struct engine_refusal one = {
		.kind = strdup(refusal->kind),
		.what = scrub_text(secrets, refusal->what),
		.rule = strdup(refusal->rule),
		.flag = scrub_text(secrets, refusal->flag),
		.message = scrub_text(secrets, refusal->message),
		.count = 1,
	};

	for (size_t i = 0; is_whole(&one) && i < r->n; i++) {
		if (strcmp(r->list[i].kind, one.kind) == 0 &&
		    strcmp(r->list[i].message, one.message) == 0) {
			r->list[i].count++;
			refusal_done(&one);
			return 0;
		}
	}
	if (is_whole(&one) && r->n == RUN_REFUSALS_MAX) {
		r->more++;
		refusal_done(&one);
		return 0;
	}
	return keep(r, &one);
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

void run_refusals_set(struct json j, const struct engine_refusals *r)
{
	const struct json list = json_set_array(j, "refusals");

	for (size_t i = 0; i < r->n; i++) {
		const struct json one = json_add_object(list);

		json_set_text(one, "kind", r->list[i].kind);
		json_set_text(one, "what", r->list[i].what);
		json_set_text(one, "rule", r->list[i].rule);
		json_set_text(one, "flag", r->list[i].flag);
		json_set_text(one, "message", r->list[i].message);
		json_set_uint(one, "count", r->list[i].count);
	}
	json_set_uint(j, "refusals_more", r->more);
}

static char *get(struct json j, const char *key)
{
	const char *text = json_get_text(j, key);

	return text ? strdup(text) : NULL;
}

int run_refusals_get(struct json j, struct engine_refusals *ret)
{
	struct json list;
	int r = 0;

	/* Records from before there were any are as good as one without. */
	if (!json_has(j, "refusals"))
		return 0;
	list = json_get_array(j, "refusals");
	for (size_t i = 0; r == 0 && i < json_length(list); i++) {
		const struct json at = json_at_object(list, i);
		struct engine_refusal one = {
			.kind = get(at, "kind"),
			.what = get(at, "what"),
			.rule = get(at, "rule"),
			.flag = get(at, "flag"),
			.message = get(at, "message"),
			.count = json_get_uint(at, "count"),
		};

		r = keep(ret, &one);
	}
	ret->more = json_get_uint(j, "refusals_more");
	return r;
}
