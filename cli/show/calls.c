#include "cli/show/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "base/vec.h"
#include "cli/out.h"
#include "cli/unborn.h"
#include "engine/api/events.h"

#define SHOWN_ARGUMENTS 80

struct shown_call {
	int64_t time;
	char *clone, *run, *data; /* owned; the first two may be NULL */
};

struct calls {
	struct shown_call *list;
	size_t n, cap;
};

static void calls_done(struct calls *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->list[i].clone);
		free(c->list[i].run);
		free(c->list[i].data);
	}
	free(c->list);
}

static int collect(const struct engine_event *e, void *ctx, struct err *err)
{
	struct calls *c = ctx;
	struct shown_call *one;

	if (!VEC_ROOM(c->list, c->n, c->cap))
		return err_nomem(err);
	one = &c->list[c->n++];
	*one = (struct shown_call){
		.time = e->time,
		.clone = e->clone ? strdup(e->clone) : NULL,
		.run = e->run ? strdup(e->run) : NULL,
		.data = strdup(e->data),
	};
	return (e->clone && !one->clone) || (e->run && !one->run) || !one->data ? err_nomem(err)
										: 0;
}

static void set_call(struct json j, const struct shown_call *c, struct json data)
{
	static const char *const members[] = { "client",  "version", "tool", "arguments",
					       "outcome", "status",  "code", "ms" };

	out_json_time(j, "time", c->time);
	json_set_name(j, "clone", c->clone);
	json_set_text(j, "run", c->run);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (json_has(data, members[i]))
			json_set_value(j, members[i], data, members[i]);
		else
			json_set_null(j, members[i]);
}

/* At most `max` bytes of what an agent said, not cut within a character; the number of those. */
static size_t print_cut(FILE *out, const char *text, size_t max)
{
	AUTO_FREE char *cut = NULL;
	size_t n = strlen(text);

	for (n = n > max ? max : n; n > 0 && (text[n] & 0xc0) == 0x80; n--)
		continue;
	cut = strndup(text, n);
	if (cut)
		out_line(out, cut);
	return n;
}

static void print_text(FILE *out, size_t width, const char *text)
{
	const size_t n = print_cut(out, text ? text : "-", width);

	fprintf(out, "%*s", (int)(width - n) + 2, "");
}

static void print_call(const struct invocation *inv, const struct shown_call *c, struct json data)
{
	const char *arguments = json_kind(data, "arguments") == JSON_OBJECT
				    ? json_text_of(json_get_object(data, "arguments"))
				    : "";
	const char *code = json_text_if(data, "code"), *outcome = json_text_if(data, "outcome");
	char when[OUT_TIME_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "%-16s  ", out_when(c->time, when));
	print_text(inv->out, 16, json_text_if(data, "client"));
	print_text(inv->out, 13, json_text_if(data, "tool"));
	print_text(inv->out, 14, code ? code : outcome);
	fprintf(inv->out, "%9s  ",
		json_kind(data, "ms") == JSON_INT ? duration_format(json_get_uint(data, "ms"), time)
						  : "-");
	print_cut(inv->out, arguments ? arguments : "", SHOWN_ARGUMENTS);
	fputs(arguments && strlen(arguments) > SHOWN_ARGUMENTS ? "...\n" : "\n", inv->out);
}

static int print_one(const struct invocation *inv, const struct shown_call *c, struct json list,
		     struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json data;
	int r = json_parse(&doc, c->data, strlen(c->data), &data, err);

	if (r < 0)
		return r;
	if (inv->json)
		set_call(json_add_object(list), c, data);
	else
		print_call(inv, c, data);
	return 0;
}

int calls_print(struct invocation *inv, uint64_t most, bool all, struct err *err)
{
	const struct engine_events_options options = {
		.last = most, .all = all, .calls = true, .stop_fd = -1
	};
	CLEANUP(calls_done) struct calls c = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	int r = engine_events(inv->engine, &options, NULL, collect, &c, err);

	if (r < 0)
		return r;
	json_set_array(j, "runs");
	list = json_set_array(j, "calls");
	if (c.n == 0)
		unborn_empty(inv, "no agent called snap yet", "agents");
	else if (!inv->json && !inv->quiet)
		fprintf(inv->out, "%s%-16s  %-16s  %-13s  %-14s  %9s  %s%s\n",
			out_style(inv, OUT_DIM), "WHEN", "AGENT", "TOOL", "OUTCOME", "TOOK",
			"ARGUMENTS", out_style(inv, OUT_PLAIN));
	for (size_t i = c.n; i-- > 0 && r >= 0;)
		r = print_one(inv, &c.list[i], list, err);
	if (r < 0)
		return r;
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}
