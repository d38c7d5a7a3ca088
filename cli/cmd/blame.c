#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "cli/pager.h"
#include "cli/screen.h"
#include "cli/show/versions.h"
#include "engine/api/service.h"

struct blame_args {
	const char *range, *at;
};

static const struct opt blame_opts[] = {
	OPT_STR('L', "lines", "FIRST,LAST", struct blame_args, range, "these lines only"),
	OPT_STR(0, "at", "STATE", struct blame_args, at,
		"the file as it is in that state; default: now"),
	OPT_END,
};
_Static_assert(sizeof(struct blame_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_blame *b, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_name(j, "project", b->versions.project);
	json_set_name(j, "path", b->versions.path);
	JSON_SET_LIST(j, "versions", b->versions.list, b->versions.n, versions_set_one);
	list = json_set_array(j, "lines");
	for (size_t i = 0; i < b->n; i++) {
		const struct engine_blame_line *l = &b->lines[i];
		const struct engine_version *v = &b->versions.list[l->version];

		one = json_add_object(list);
		json_set_uint(one, "line", l->number);
		json_set_uint(one, "version", l->version);
		json_set_uint(one, "was_line", l->line);
		out_json_id(one, "snapshot", v->snapshot.id);
		out_json_id(one, "run", v->run);
		json_set_text(one, "by", engine_writer_name(v->writer));
		json_set_text(one, "who", v->who);
		out_json_time(one, "time", v->snapshot.created);
	}
	return json_print(&doc, inv->out, err);
}

/* --- for people ------------------------------------------------------------------------- */

/* What stands before the lines of a version: the same for all of them. */
struct margin {
	char *text; /* owned */
	size_t width;
};

static int make_margin(const struct engine_version *v, struct margin *ret, struct err *err)
{
	char when[OUT_TIME_MAX];
	size_t len = 0;
	FILE *f = open_memstream(&ret->text, &len);

	if (!f)
		return err_nomem(err);
	versions_print_writer(f, v);
	if (v->writer != ENGINE_BY_NOBODY)
		fprintf(f, "  %s", out_when(v->snapshot.created, when));
	if (fclose(f) != 0)
		return err_nomem(err);
	ret->width = len;
	return 0;
}

static int digits(size_t n)
{
	int d = 1;

	for (; n >= 10; n /= 10)
		d++;
	return d;
}

static int print_text(struct screen *screen, const struct engine_blame_line *l, struct err *err)
{
	int r = screen_write(screen, l->text, l->len, err);

	if (r >= 0)
		r = screen_flush(screen, err);
	return r < 0 ? r : screen_write(screen, "\n", 1, err);
}

/* Of the snapshot that a line came with. */
static const char *version_id(const struct engine_blame *b, size_t line)
{
	const char *id = b->versions.list[b->lines[line].version].snapshot.id;

	return *id != '\0' ? id : "----------------";
}

static int print_lines(const struct invocation *inv, const struct engine_blame *b,
		       const struct margin *margins, size_t width, struct screen *screen,
		       struct err *err)
{
	const int number = b->n > 0 ? digits(b->lines[b->n - 1].number) : 1;
	int r = 0;

	for (size_t i = 0; i < b->n && r >= 0; i++) {
		const struct engine_blame_line *l = &b->lines[i];
		const struct margin *m = &margins[l->version];

		fprintf(inv->out, "%s%-*.*s%s %s%s%*s%s %*zu  ", out_style(inv, OUT_ID),
			OUT_SHORT_ID, OUT_SHORT_ID, version_id(b, i), out_style(inv, OUT_PLAIN),
			out_style(inv, OUT_DIM), m->text, (int)(width - m->width), "",
			out_style(inv, OUT_PLAIN), number, l->number);
		r = print_text(screen, l, err);
	}
	return r;
}

static int print_human(const struct invocation *inv, const struct engine_blame *b,
		       struct screen *screen, struct err *err)
{
	struct margin *margins = calloc(b->versions.n + 1, sizeof(*margins));
	size_t width = 0;
	int r = margins ? 0 : err_nomem(err);

	for (size_t i = 0; i < b->versions.n && r >= 0; i++) {
		r = make_margin(&b->versions.list[i], &margins[i], err);
		width = margins[i].width > width ? margins[i].width : width;
	}
	if (r >= 0)
		r = print_lines(inv, b, margins, width, screen, err);
	VEC_FREE(it, margins, b->versions.n, free(it->text));
	return r;
}

/* --- the command ------------------------------------------------------------------------ */

static int blame_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_blame_done) struct engine_blame b = { 0 };
	CLEANUP(screen_done) struct screen screen;
	CLEANUP(pager_end) struct pager pager = { .saved = -1 };
	const struct blame_args *args = inv->args;
	struct engine_blame_options o = { .state = args->at, .path = inv->words[0] };
	AUTO_FREE char *range = NULL;
	const char *rest;
	int r = 0;

	screen_begin(&screen, inv);
	if (args->range) {
		range = text_format("%s:-", args->range);
		if (!range)
			return err_nomem(err);
		r = versions_parse_range(range, &o.from, &o.to, &rest, err);
		if (r < 0)
			return err_set(err, r, "'%s' are no lines: say FIRST,LAST or FIRST,+COUNT",
				       args->range);
	}
	engine_revive(inv->engine);
	r = engine_blame(inv->engine, &o, &b, err);
	if (r == -ENOENT)
		cmd_hint_words(inv, "log --", (const char *[]){ inv->words[0], NULL });
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &b, err);
	for (size_t i = 0; i < b.n && inv->quiet; i++)
		fprintf(inv->out, "%s\n", version_id(&b, i));
	if (inv->quiet)
		return CMD_OK;
	pager_begin(&pager, inv);
	r = print_human(inv, &b, &screen, err);
	return pager_was_left(&pager) ? CMD_OK : r;
}

const struct command cmd_blame = {
	.name = "blame",
	.group = "Snapshots",
	.rare = true,
	.summary = "show which run, agent or person each line of a file came from",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.opts = blame_opts,
	.details =
	    "Each line shows the first snapshot that has it and what made that snapshot: a\n"
	    "run, a step of an agent with hooks, a promotion whose clone is gone, or the user who\n"
	    "took it. Lines are followed through promotions into the snapshots of the clone,\n"
	    "through rollbacks and renames, and are matched as `git blame` matches them. PATH\n"
	    "counts from the current directory. Lines that are in no snapshot yet are marked.\n"
	    "-q prints the id of the snapshot for each line.\n",
	.examples =
	    "blame src/main.c\nblame -L 10,20 src/main.c\nblame --at @-3 README.md --json\n",
	.run = blame_run,
};
