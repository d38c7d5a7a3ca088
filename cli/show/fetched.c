#include "cli/show/fetched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/remote.h"

void fetched_set(struct json j, const struct engine_fetched *f)
{
	json_set_text(j, "remote", f->remote);
	json_set_text(j, "name", f->name);
	json_set_name(j, "project", f->project);
	json_set_bool(j, "registered", f->registered);
	json_set_text(j, "snapshot", f->snapshot.id);
	json_set_name(j, "tag", f->tag);
	json_set_text(j, "message", f->snapshot.message);
	json_set_text(j, "manifest", f->manifest);
	json_set_text(j, "root", f->root);
	json_set_name(j, "signer", f->signer);
	json_set_uint(j, "files", f->snapshot.files);
	json_set_uint(j, "bytes", f->snapshot.bytes);
	json_set_uint(j, "bytes_received", f->bytes_received);
	json_set_uint(j, "packs_received", f->packs_received);
	json_set_uint(j, "packs", f->packs);
	json_set_uint(j, "objects", f->objects);
}

void fetched_print(const struct invocation *inv, const struct engine_fetched *f)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "fetched  %s%.*s%s as ", out_style(inv, OUT_ID), OUT_SHORT_ID,
		f->snapshot.id, out_style(inv, OUT_PLAIN));
	out_name(inv->out, f->tag);
	fputs("  ", inv->out);
	if (f->signer) {
		fputs("signed by ", inv->out);
		out_name(inv->out, f->signer);
		fputs(", ", inv->out);
	}
	out_plural(inv->out, f->snapshot.files, "file", "files");
	fprintf(inv->out, ", received %s, in %s%s\n", size_format(f->bytes_received, size),
		duration_format(f->elapsed_ms, time), f->lazy ? "; the rest follows" : "");
}

int fetched_bring(struct invocation *inv, const char *from, int *hold, struct engine_fetched *ret,
		  struct err *err)
{
	const struct engine_fetch_options options = { .from = from,
						      .hold = hold,
						      .watch = progress_watch(inv->progress) };
	struct invocation aside = *inv;
	int r = engine_fetch(inv->engine, &options, ret, err);

	progress_done(inv->progress);
	fetched_hint(inv, from, r);
	aside.out = stderr;
	if (r == 0 && !inv->quiet && !inv->json)
		fetched_print(&aside, ret);
	return r;
}

/* How much of REMOTE[:NAME] or REMOTE/NAME is the remote, which may be an address. */
static size_t remote_len(const char *text)
{
	const bool address = strstr(text, "://") || strncmp(text, "dir:", 4) == 0;
	const char *last = strrchr(text, '/'), *colon;

	if (!address)
		return strcspn(text, ":/");
	colon = strrchr(last ? last : strchr(text, ':') + 1, ':');
	return colon ? (size_t)(colon - text) : strlen(text);
}

void fetched_hint(struct invocation *inv, const char *from, int r)
{
	AUTO_FREE char *remote = NULL;

	if (r != -ENOENT)
		return;
	if (!engine_remote_is(inv->engine, from)) {
		cmd_hint(inv, "remote list");
		return;
	}
	remote = strndup(from, remote_len(from));
	if (remote)
		cmd_hint_words(inv, "remote log", (const char *[]){ remote, NULL });
}
