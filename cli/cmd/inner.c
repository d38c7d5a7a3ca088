#include "cli/cmd/inner.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "engine/api/events.h"

#define RETRY_MS 500 /* until a store may be there that was not */

void inner_done(struct inner *in)
{
	engine_close(in->engine);
}

static int run(const struct inner *in, int argc, char **argv, bool json, FILE *out)
{
	const struct invocation *server = in->inv;
	struct invocation inv = {
		.out = out,
		.program = server->program,
		.json = json,
		.by_agent = in->by_agent,
		.session = in->session,
	};
	char dir[] = "-C", store[] = "--store";
	struct err err = { 0 };
	AUTO_FREE char **words = calloc((size_t)argc + 5, sizeof(*words));
	AUTO_FREE char *where = server->dir ? strdup(server->dir) : NULL;
	AUTO_FREE char *at = server->store ? strdup(server->store) : NULL;
	int n = 0;

	if (!words || (server->dir && !where) || (server->store && !at))
		return CMD_FAILED;
	if (where) {
		words[n++] = dir;
		words[n++] = where;
	}
	if (at) {
		words[n++] = store;
		words[n++] = at;
	}
	memcpy(words + n, argv, (size_t)argc * sizeof(*words));
	return server->run_line(&inv, n + argc, words, &err);
}

int inner_run(const struct inner *in, int argc, char **argv, FILE *out)
{
	return run(in, argc, argv, true, out);
}

int inner_print(const struct inner *in, int argc, char **argv, FILE *out)
{
	return run(in, argc, argv, false, out);
}

uint64_t inner_newest(struct inner *in)
{
	const struct engine_options options = { .dir = in->inv->dir, .store = in->inv->store };
	struct err err = { 0 };

	if (!in->engine && engine_open(&options, &in->engine, &err) < 0)
		return 0;
	return engine_events_newest(in->engine);
}

struct following {
	uint64_t seen;
	FILE *out;
};

static int print_change(const struct engine_event *e, void *ctx, struct err *err)
{
	struct following *f = ctx;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	int r;

	f->seen = e->n;
	json_set_text(j, "kind", e->kind);
	json_set_text(j, "clone", e->clone);
	json_set_text(j, "run", e->run);
	json_set_parsed(j, "data", e->data, strlen(e->data));
	r = json_print(&doc, f->out, err);
	return r >= 0 && fflush(f->out) == EOF ? err_sys(err, "telling what happens") : r;
}

void inner_follow(const struct inner *in, uint64_t since, int stop_fd, FILE *out)
{
	const struct engine_options where = { .dir = in->inv->dir, .store = in->inv->store };
	struct following f = { .seen = since, .out = out };
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };

	do {
		CLEANUP(engine_close_p) struct engine *e = NULL;
		const struct engine_events_options options = { .since = f.seen,
							       .follow = true,
							       .stop_fd = stop_fd };
		struct err err = { 0 };

		if (engine_open(&where, &e, &err) >= 0)
			IGNORE_RESULT(engine_events(e, &options, NULL, print_change, &f, &err),
				      "it is tried again");
	} while (!ferror(out) && poll(&stop, 1, RETRY_MS) == 0);
}
