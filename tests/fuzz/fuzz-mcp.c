/*
 * Whatever lines a client of `snap mcp` sends, each answer is one line of JSON-RPC, and a call that
 * is started has a command line whose options all come from the table of its tool.
 */
#include "base/cleanup.h"
#include "cli/mcp/job.h"
#include "cli/mcp/session.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* --- in place of processes -------------------------------------------------------------- */

int call_start(struct call *c, const struct mcp_options *options, struct tool_line *line,
	       struct err *err)
{
	static const char answer[] =
	    "{\"schema\":\"snap.status/1\",\"changed\":[{\"path\":\"a\"}]}\n";

	FUZZ_CHECK(line->argc > 0 && !line->argv[line->argc]);
	/* What an agent says must never become an option of its own. */
	for (int i = 1; i < line->argc && strcmp(line->argv[i], "--") != 0; i++)
		FUZZ_CHECK(strncmp(line->argv[i], "-C", 2) != 0 &&
			   strncmp(line->argv[i], "--store", 7) != 0);
	*c = (struct call){ .child = { .out_fd = -1, .note_fd = -1 } };
	FUZZ_CHECK(buf_append_str(&c->child.out, answer) == 0);
	tool_line_done(line);
	return 0;
}

size_t call_poll(const struct call *c, struct pollfd fds[2])
{
	return 0;
}

bool call_read(struct call *c)
{
	return true;
}

void call_stop(struct call *c)
{
}

void call_done(struct call *c)
{
	buf_done(&c->child.out);
	buf_done(&c->child.notes);
}

void job_cancel(const struct mcp_options *o, const char *id)
{
}

/* --- the target ------------------------------------------------------------------------- */

static void check_answers(const struct buf *out)
{
	const char *at = (const char *)out->data, *end = out->len > 0 ? at + out->len : at;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j;

		FUZZ_CHECK(stop && json_parse(&doc, at, (size_t)(stop - at), &j, NULL) == 0);
		FUZZ_CHECK(strcmp(json_get_text(j, "jsonrpc"), "2.0") == 0);
		at = stop + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct mcp_options options = { .program = "snap",
					     .version = "0",
					     .no_promote = len % 2 };
	const char *at = (const char *)data, *end = len > 0 ? at + len : at;
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };
	struct session s;

	session_init(&s, &options, &out);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((stop ? stop : end) - at);

		if (n > 0)
			FUZZ_CHECK(session_take(&s, at, n, &err) == 0);
		FUZZ_CHECK(session_step(&s, &err) == 0);
		check_answers(&out);
		buf_reset(&out);
		at += n + 1;
	}
	session_done(&s);
	return 0;
}
