#include "cli/show/taken.h"

#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/clones.h"

static int print_json(const struct invocation *inv, const struct engine_taken *t, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_name(j, "project", t->project);
	json_set_text(j, "project_id", t->snapshot.project);
	json_set_bool(j, "registered", t->registered);
	out_json_snapshot(j, &t->snapshot);
	if (t->snapshot.clone)
		json_set_null(j, "dirs");
	else
		json_set_uint(j, "dirs", t->dirs);
	if (t->compared) {
		json_set_uint(j, "changed", t->added + t->modified + t->deleted);
		json_set_uint(j, "added", t->added);
		json_set_uint(j, "modified", t->modified);
		json_set_uint(j, "deleted", t->deleted);
	} else {
		json_set_null(j, "changed");
		json_set_null(j, "added");
		json_set_null(j, "modified");
		json_set_null(j, "deleted");
	}
	json_set_bool(j, "complete", !t->capturing.open);
	json_set_uint(j, "captured", engine_captured_percent(&t->capturing));
	json_set_uint(j, "elapsed_ms", t->elapsed_ms);
	list = json_set_array(j, "skipped");
	for (size_t i = 0; i < t->n_skipped; i++) {
		one = json_add_object(list);
		json_set_name(one, "path", t->skipped[i].path);
		json_set_name(one, "why", t->skipped[i].why);
	}
	return json_print(&doc, inv->out, err);
}

static void print_changes(const struct invocation *inv, const struct engine_taken *t)
{
	const struct {
		uint64_t n;
		const char *name;
	} parts[] = {
		{ t->added, "added" },
		{ t->modified, "modified" },
		{ t->deleted, "deleted" },
	};
	const char *between = "";
	char count[OUT_COUNT_MAX];

	fputs("  ", inv->out);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].n == 0)
			continue;
		fprintf(inv->out, "%s%s %s", between, out_count(parts[i].n, count), parts[i].name);
		between = ", ";
	}
	fprintf(inv->out, "%s since %s%.*s%s\n", *between == '\0' ? "nothing changed" : "",
		out_style(inv, OUT_ID), OUT_SHORT_ID, t->snapshot.parent,
		out_style(inv, OUT_PLAIN));
}

/* Of one that was to be lazy. */
static void print_capturing(const struct invocation *inv, const struct engine_taken *t)
{
	fputs("  ", inv->out);
	if (t->capturing.open)
		clones_print_reading(inv->out, NULL, engine_capturing_left(&t->capturing), "\n");
	else
		fputs("all files are read\n", inv->out);
}

static void print_human(const struct invocation *inv, const struct engine_taken *t, bool lazy)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	if (t->registered) {
		fputs("project  ", inv->out);
		out_name(inv->out, t->project);
		fputs("\n", inv->out);
	}
	fprintf(inv->out, "snapshot %s%.*s%s  ", out_style(inv, OUT_ID), OUT_SHORT_ID,
		t->snapshot.id, out_style(inv, OUT_PLAIN));
	out_plural(inv->out, t->snapshot.files, "file", "files");
	fprintf(inv->out, ", %s, in %s", size_format(t->snapshot.bytes, size),
		duration_format(t->elapsed_ms, time));
	if (t->snapshot.part) {
		fputs(", only ", inv->out);
		out_name(inv->out, t->snapshot.part);
	}
	fputs("\n", inv->out);
	if (t->compared)
		print_changes(inv, t);
	if (lazy)
		print_capturing(inv, t);
}

static int print(const struct invocation *inv, const struct engine_taken *t, bool lazy,
		 struct err *err)
{
	if (inv->json)
		return print_json(inv, t, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", t->snapshot.id);
	else
		print_human(inv, t, lazy);
	return CMD_OK;
}

/* It is there, whatever keeps the rest from being read. */
static int settle(struct invocation *inv, struct engine_taken *t, struct err *err)
{
	int r = engine_settle(inv->engine, t->snapshot.id, &(struct engine_watch){ 0 }, err);

	if (r >= 0)
		t->capturing = (struct engine_capturing){ 0 };
	return r;
}

static void hint(struct invocation *inv, int r, const struct engine_take_options *options)
{
	if (r == -ENOENT && options->clone)
		cmd_hint(inv, "list --all");
	else if (r == -EACCES && !options->clone)
		cmd_hint_unreadable(inv);
}

int taken_run(struct invocation *inv, struct engine_take_options options, bool wait,
	      struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	int r, settled, printed;

	options.watch = progress_watch(inv->progress);
	r = engine_take(inv->engine, &options, &taken, err);
	progress_done(inv->progress);
	hint(inv, r, &options);
	if (r < 0)
		return r;
	settled = wait ? settle(inv, &taken, err) : CMD_OK;
	printed = print(inv, &taken, options.lazy, settled < 0 ? NULL : err);
	return settled < 0 ? settled : printed;
}
