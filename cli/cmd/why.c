#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pager.h"
#include "cli/show/versions.h"
#include "engine/api/receipts.h"
#include "engine/api/service.h"

struct why_args {
	const char *at;
};

static const struct opt why_opts[] = {
	OPT_STR(0, "at", "STATE", struct why_args, at,
		"the file as it is in that state; default: now"),
	OPT_END,
};
_Static_assert(sizeof(struct why_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* What sentences are made of. */
struct story {
	struct engine_versions versions;
	struct engine_receipts receipts;
};

static void story_done(struct story *s)
{
	engine_versions_done(&s->versions);
	engine_receipts_done(&s->receipts);
}

/* The promotion that brought a version of a clone into the project: the first one after it; or NULL. */
static const struct engine_receipt *promotion_of(const struct story *s,
						 const struct engine_version *v)
{
	const struct engine_receipt *found = NULL;

	for (size_t i = 0; i < s->receipts.n && v->clone; i++) {
		const struct engine_receipt *r = &s->receipts.list[i];

		if (r->kind == ENGINE_RECEIPT_PROMOTION && r->clone &&
		    strcmp(r->clone, v->clone) == 0 &&
		    (*v->promotion != '\0' ? strcmp(r->id, v->promotion) == 0
					   : r->created >= v->snapshot.created))
			found = r;
	}
	return found;
}

static void say_who(FILE *out, const struct engine_version *v)
{
	if (v->writer == ENGINE_BY_STEP) {
		out_name(out, v->who);
		fprintf(out, ", in turn %" PRIu64 " of its session ", v->turn);
		out_name(out, v->session);
		fputc(',', out);
	} else if (v->writer == ENGINE_BY_RUN) {
		fprintf(out, "Run %s", v->run);
	} else if (v->writer == ENGINE_BY_NOBODY) {
		fputs("Since the last snapshot somebody", out);
	} else if (v->writer == ENGINE_BY_SNAPSHOT) {
		out_name(out, v->who);
	} else {
		fprintf(out, "The %s %s", engine_writer_name(v->writer), v->promotion);
	}
	if (v->clone && v->writer != ENGINE_BY_PROMOTION) {
		fputs(" in the clone ", out);
		out_name(out, v->clone);
	}
	if (v->writer == ENGINE_BY_PROMOTION && v->clone) {
		fputs(" of the clone ", out);
		out_name(out, v->clone);
	}
}

static void say_lines(FILE *out, const struct engine_version *v)
{
	if (v->added > 0) {
		fputs("adding ", out);
		out_plural(out, v->added, "line", "lines");
	}
	if (v->removed > 0) {
		fputs(v->added > 0 ? " and removing " : "removing ", out);
		out_plural(out, v->removed, "line", "lines");
	}
	if (v->added + v->removed == 0)
		fputs("changing no line", out);
}

static void say_what(FILE *out, const struct engine_version *v)
{
	switch (v->status) {
	case 'A':
		fputs(" made ", out);
		out_name(out, v->path);
		fputs(" with ", out);
		out_plural(out, v->added, "line", "lines");
		return;
	case 'D':
		fputs(" removed ", out);
		out_name(out, v->path);
		return;
	case 'R':
		fputs(" renamed ", out);
		out_name(out, v->old_path);
		fputs(" to ", out);
		out_name(out, v->path);
		break;
	case 'T':
		fputs(" made another type of file of ", out);
		out_name(out, v->path);
		return;
	default:
		fputs(" changed ", out);
		out_name(out, v->path);
		break;
	}
	fputs(", ", out);
	say_lines(out, v);
}

static void say_one(FILE *out, const struct story *s, const struct engine_version *v)
{
	const struct engine_receipt *r = promotion_of(s, v);
	char when[OUT_TIME_MAX];

	say_who(out, v);
	say_what(out, v);
	if (v->command) {
		fputs(v->writer == ENGINE_BY_RUN ? ": " : " (", out);
		out_line(out, v->command);
		if (v->writer != ENGINE_BY_RUN)
			fputc(')', out);
	}
	if (*v->snapshot.id != '\0')
		fprintf(out, ". Snapshot %.*s has it first, %s", OUT_SHORT_ID, v->snapshot.id,
			out_when(v->snapshot.created, when));
	if (v->writer == ENGINE_BY_SNAPSHOT && *v->snapshot.message != '\0') {
		fputs(", with the message \"", out);
		out_line(out, v->snapshot.message);
		fputc('"', out);
	}
	fputs(".", out);
	if (r && v->writer != ENGINE_BY_PROMOTION) {
		fputc(' ', out);
		out_name(out, r->who);
		fprintf(out, " brought it into the project with promotion %.*s, %s%s.",
			OUT_SHORT_ID, r->id, out_when(r->created, when),
			r->undone ? ", which was undone later" : "");
	}
}

static int say_json(struct json list, const struct story *s, const struct engine_version *v,
		    struct err *err)
{
	AUTO_FREE char *text = NULL;
	const struct engine_receipt *r = promotion_of(s, v);
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json j = json_add_object(list);

	if (!f)
		return err_nomem(err);
	say_one(f, s, v);
	if (fclose(f) != 0)
		return err_nomem(err);
	json_set_text(j, "sentence", text);
	out_json_id(j, "snapshot", v->snapshot.id);
	json_set_text(j, "by", engine_writer_name(v->writer));
	json_set_text(j, "who", v->who);
	out_json_id(j, "run", v->run);
	out_json_id(j, "promotion", r ? r->id : v->promotion);
	out_json_time(j, "time", v->snapshot.created);
	return 0;
}

static int print_json(const struct invocation *inv, const struct story *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	int r = 0;

	json_set_name(j, "project", s->versions.project);
	json_set_name(j, "path", s->versions.path);
	list = json_set_array(j, "story");
	for (size_t i = s->versions.n; i > 0 && r >= 0; i--)
		r = say_json(list, s, &s->versions.list[i - 1], err);
	return r < 0 ? r : json_print(&doc, inv->out, err);
}

static int why_run(struct invocation *inv, struct err *err)
{
	CLEANUP(story_done) struct story s = { 0 };
	CLEANUP(pager_end) struct pager pager = { .saved = -1 };
	const struct why_args *args = inv->args;
	const struct engine_blame_options o = { .state = args->at, .path = inv->words[0] };
	int r;

	engine_revive(inv->engine);
	r = engine_log_path(inv->engine, &o, &s.versions, err);
	if (r < 0)
		return r;
	r = engine_receipts(inv->engine, &s.receipts, err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &s, err);
	if (inv->quiet)
		return CMD_OK;
	pager_begin(&pager, inv);
	for (size_t i = s.versions.n; i > 0; i--) {
		say_one(inv->out, &s, &s.versions.list[i - 1]);
		fputc('\n', inv->out);
	}
	return pager_was_left(&pager) ? CMD_OK : 0;
}

const struct command cmd_why = {
	.name = "why",
	.group = "Snapshots",
	.rare = true,
	.summary = "tell how a file came to be as it is",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.opts = why_opts,
	.details =
	    "A sentence for each version, the oldest first: who or what made it, what it changed,\n"
	    "and which promotion brought it into the project. `log PATH` has the same as a list,\n"
	    "`blame PATH` by lines.\n",
	.examples = "why src/main.c\nwhy --at @-3 README.md\n",
	.run = why_run,
};
