#include "cli/show/remote-log.h"

#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "engine/api/remote.h"

#define LOG_MAX 1000

static void set_entry(struct json j, const struct engine_remote_entry *one)
{
	json_set_text(j, "name", one->name);
	json_set_text(j, "manifest", one->manifest);
	json_set_name(j, "message", one->message);
	json_set_name(j, "who", one->who);
	json_set_name(j, "host", one->host);
	out_json_time(j, "created", one->created);
	out_json_time(j, "pushed", one->pushed);
	json_set_uint(j, "files", one->files);
	json_set_uint(j, "bytes", one->bytes);
	json_set_uint(j, "packed", one->packed);
	json_set_uint(j, "packs", one->packs);
}

/* "0c4f11d2e4b5  2026-11-17 13:30  main  anna@host  80,000 files, 251 MiB  message" */
static void print_entry(const struct invocation *inv, const struct engine_remote_entry *one)
{
	char size[SIZE_TEXT_MAX], time[OUT_TIME_MAX];

	fprintf(inv->out, "%s%.12s%s  %s  ", out_style(inv, OUT_ID), one->manifest + 7,
		out_style(inv, OUT_PLAIN), out_when(one->pushed, time));
	if (one->name)
		fprintf(inv->out, "%s  ", one->name);
	out_name(inv->out, one->who ? one->who : "?");
	fputc('@', inv->out);
	out_name(inv->out, one->host ? one->host : "?");
	fputs("  ", inv->out);
	out_plural(inv->out, one->files, "file", "files");
	fprintf(inv->out, ", %s  ", size_format(one->bytes, size));
	out_name_line(inv->out, one->message ? one->message : "");
}

static int print_json(const struct invocation *inv, const struct engine_remote_log *log,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct command remote = { .name = "remote" };
	struct invocation as = *inv;
	struct json j;

	as.command = &remote; /* one document, whichever command was typed */
	j = out_json_begin(&as, &doc);
	json_set_text(j, "act", "log");
	json_set_text(j, "url", log->remote);
	JSON_SET_LIST(j, "snapshots", log->list, log->n, set_entry);
	return json_print(&doc, inv->out, err);
}

int remote_log_print(struct invocation *inv, const char *what, uint64_t count, struct err *err)
{
	CLEANUP(engine_remote_log_done) struct engine_remote_log log = { 0 };
	const size_t max = count > 0 && count < LOG_MAX ? (size_t)count : LOG_MAX;
	int r = engine_remote_log(inv->engine, what, max, &log, err);

	if (r == -ENOENT)
		cmd_hint(inv, "remote list");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &log, err);
	for (size_t i = 0; i < log.n; i++) {
		if (inv->quiet)
			fprintf(inv->out, "%s\n", log.list[i].manifest);
		else
			print_entry(inv, &log.list[i]);
	}
	return CMD_OK;
}
