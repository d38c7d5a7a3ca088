#include "cli/show/diffs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cquote.h"
#include "base/size.h"
#include "cli/out.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/show/diffstat.h"
#include "cli/show/distro.h"
#include "cli/show/script.h"
#include "engine/api/diff.h"

struct differ {
	const struct invocation *inv;
	const struct diffs_options *args;
	struct pager pager;
	struct screen screen;
	struct diffstat stat;
	struct json j, files;                          /* with --json */
	struct buf patch;                              /* with --json --patch */
	struct json packages, added, changed, removed; /* with --json: packages */
	size_t n_added, n_changed, n_removed;
	struct distro_json distro;
	struct script script;
	char *from, *to; /* owned; with --script */
	bool is_distro;
	bool different;
};

static void differ_done(struct differ *d)
{
	pager_end(&d->pager);
	screen_done(&d->screen);
	diffstat_done(&d->stat);
	buf_done(&d->patch);
	script_done(&d->script);
	free(d->from);
	free(d->to);
}

/* --- what a patch cannot say ------------------------------------------------------------ */

static const struct {
	enum delta_what what;
	const char *name;
} what_names[] = {
	{ DELTA_MODE, "mode" },     { DELTA_OWNER, "owner" },         { DELTA_XATTRS, "xattrs" },
	{ DELTA_DEVICE, "device" }, { DELTA_DIRECTORY, "directory" }, { DELTA_SPECIAL, "special" },
};

static const char *status_name(enum delta_status status)
{
	switch (status) {
	case DELTA_ADDED:
		return "added";
	case DELTA_DELETED:
		return "deleted";
	case DELTA_MODIFIED:
		return "modified";
	case DELTA_RENAMED:
		return "renamed";
	case DELTA_TYPE:
		return "type_changed";
	}
	return "unknown";
}

static const char *note_path(const struct delta_note *n)
{
	return out_path(n->path);
}

static int print_quoted(struct differ *d, const char *before, const char *name, const char *after,
			struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (cquote_append(&text, "", name) < 0 || !buf_str(&text))
		return err_nomem(err);
	fputs(before, d->inv->out);
	if (screen_write(&d->screen, text.data, text.len, err) < 0)
		return err->code;
	fputs(after, d->inv->out);
	return 0;
}

/* "# meta: modified src: mode, owner": git apply skips what comes before the first header. */
static int print_note(struct differ *d, const struct delta_note *n, struct err *err)
{
	const char *between = ": ";
	char before[40];
	int r;

	snprintf(before, sizeof(before), "# meta: %s ", status_name(n->status));
	r = print_quoted(d, before, note_path(n), "", err);
	for (size_t i = 0; i < ARRAY_LEN(what_names) && r >= 0; i++) {
		if (!(n->what & what_names[i].what))
			continue;
		fprintf(d->inv->out, "%s%s", between, what_names[i].name);
		between = ", ";
	}
	fputc('\n', d->inv->out);
	return r;
}

static int print_notes(struct differ *d, const struct delta *delta, struct err *err)
{
	size_t refused = 0;
	char size[SIZE_TEXT_MAX];
	int r = 0;

	fputs(out_style(d->inv, OUT_DIM), d->inv->out);
	for (size_t i = 0; i < delta->n_notes && r >= 0; i++)
		r = print_note(d, &delta->notes[i], err);
	for (size_t i = 0; i < delta->n_files; i++)
		refused += delta->files[i].refused;
	if (refused > 0 && !d->args->stat)
		fprintf(d->inv->out,
			"# left out: %zu %s in places that git refuses in a patch, such as .git\n",
			refused, refused == 1 ? "file" : "files");
	for (size_t i = 0; i < delta->n_files && r >= 0 && !d->args->stat; i++) {
		const struct delta_file *f = &delta->files[i];

		if (!f->sparse || !f->content)
			continue;
		r = print_quoted(d, "# left out: ", f->path, "", err);
		fprintf(d->inv->out, ": almost all of its %s are holes\n",
			size_format(f->after.mode ? f->after.content.size : f->before.content.size,
				    size));
	}
	fputs(out_style(d->inv, OUT_PLAIN), d->inv->out);
	return r;
}

/* --- for programs ----------------------------------------------------------------------- */

static void set_state(struct json j, const char *name, const char *time_key,
		      const struct engine_state *s)
{
	json_set_name(j, name, s->name);
	out_json_time(j, time_key, s->time);
}

static void set_mode(struct json j, const char *key, uint32_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%06o", mode);
	json_set_text(j, key, mode != 0 ? text : NULL);
}

static void set_note(struct json j, const struct delta_note *n)
{
	struct json what;

	json_set_name(j, "path", note_path(n));
	json_set_text(j, "status", status_name(n->status));
	what = json_set_array(j, "what");
	for (size_t i = 0; i < ARRAY_LEN(what_names); i++)
		if (n->what & what_names[i].what)
			json_add_text(what, what_names[i].name);
	set_mode(j, "mode", n->mode);
}

static void set_file(struct json j, const struct delta_file *f, const struct patch_counts *c)
{
	const uint32_t bits = (f->before.mode ^ f->after.mode) & 07777;

	json_set_name(j, "path", f->path);
	json_set_text(j, "status", status_name(f->status));
	json_set_name(j, "old_path", f->old_path);
	json_set_uint(j, "added", c->added);
	json_set_uint(j, "removed", c->removed);
	json_set_bool(j, "binary", c->binary);
	json_set_bool(j, "mode_changed", f->before.mode != 0 && f->after.mode != 0 && bits != 0);
	set_mode(j, "old_mode", f->before.mode);
	set_mode(j, "new_mode", f->after.mode);
	json_set_uint_if(j, "similarity", f->status == DELTA_RENAMED, f->similarity);
	json_set_bool(j, "in_patch", !f->refused && !(f->sparse && f->content));
}

/* --- what the engine finds -------------------------------------------------------------- */

/* Written out in pieces, so that who left is noticed and a full disk too. */
static int check_output(const struct differ *d, struct err *err)
{
	return ferror(d->inv->out) ? err_sys(err, "writing to standard output") : 0;
}

static int on_begin(const struct engine_state *from, const struct engine_state *to,
		    const struct delta *delta, void *ctx, struct err *err)
{
	struct differ *d = ctx;
	int r = 0;

	progress_done(d->inv->progress);
	d->different = delta->n_files > 0 || delta->n_notes > 0;
	d->from = strdup(from->name);
	d->to = strdup(to->name);
	if (!d->from || !d->to)
		return err_nomem(err);
	for (size_t i = 0; d->args->script && r >= 0 && i < delta->n_notes; i++)
		r = script_add_note(&d->script, &delta->notes[i], err);
	if (r < 0)
		return r;
	if (d->inv->json) {
		set_state(d->j, "from", "from_time", from);
		set_state(d->j, "to", "to_time", to);
		d->files = json_set_array(d->j, "files");
		JSON_SET_LIST(d->j, "metadata", delta->notes, delta->n_notes, set_note);
		return 0;
	}
	if (!d->different || d->args->script)
		return 0;
	pager_begin(&d->pager, d->inv);
	if (!d->args->name_status && !d->inv->quiet)
		return print_notes(d, delta, err);
	for (size_t i = 0; i < delta->n_notes && r >= 0; i++)
		r = print_quoted(d, d->inv->quiet ? "" : "m\t", note_path(&delta->notes[i]), "\n",
				 err);
	return r;
}

static int print_name_status(struct differ *d, const struct delta_file *f, struct err *err)
{
	char before[16];
	int r;

	if (d->inv->quiet)
		return print_quoted(d, "", f->path, "\n", err);
	if (f->status != DELTA_RENAMED) {
		snprintf(before, sizeof(before), "%c\t", f->status);
		return print_quoted(d, before, f->path, "\n", err);
	}
	snprintf(before, sizeof(before), "R%03u\t", f->similarity);
	r = print_quoted(d, before, f->old_path, "\t", err);
	return r < 0 ? r : print_quoted(d, "", f->path, "\n", err);
}

static int on_file(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
		   struct err *err)
{
	struct differ *d = ctx;
	int r = 0;

	if (d->args->script)
		r = script_end_file(&d->script, f, counts, err);
	if (r < 0)
		return r;
	if (d->inv->json)
		set_file(json_add_object(d->files), f, counts);
	else if (d->args->script)
		return 0;
	else if (d->args->name_status || d->inv->quiet)
		r = print_name_status(d, f, err);
	else if (d->args->stat)
		r = diffstat_add(&d->stat, f, counts, d->screen.escapes,
				 d->is_distro && d->args->n_paths == 0, err);
	return r < 0 ? r : check_output(d, err);
}

static int on_text(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	static const enum out_style styles[] = {
		[PATCH_HEADER] = OUT_BOLD,  [PATCH_HUNK] = OUT_LINK,   [PATCH_SAME] = OUT_PLAIN,
		[PATCH_ADDED] = OUT_GOOD,   [PATCH_REMOVED] = OUT_OLD, [PATCH_MARK] = OUT_PLAIN,
		[PATCH_BINARY] = OUT_PLAIN,
	};
	struct differ *d = ctx;
	FILE *out = d->inv->out;
	size_t n;
	int r = 0;

	if (d->args->script && script_add_text(&d->script, text, len, err) < 0)
		return err->code;
	if (d->inv->json && d->args->patch)
		return buf_append(&d->patch, text, len) < 0 ? err_nomem(err) : 0;
	if (d->args->script)
		return 0;
	if (!d->inv->color || styles[part] == OUT_PLAIN) {
		r = screen_write(&d->screen, text, len, err);
		return r < 0 ? r : check_output(d, err);
	}
	for (; len > 0 && r >= 0; text += n, len -= n) {
		const char *end = memchr(text, '\n', len);

		n = end ? (size_t)(end - text) + 1 : len;
		fputs(out_style(d->inv, styles[part]), out);
		r = screen_write(&d->screen, text, n - (end != NULL), err);
		if (r >= 0 && end)
			r = screen_flush(&d->screen, err);
		fputs(out_style(d->inv, OUT_PLAIN), out);
		if (end)
			fputc('\n', out);
	}
	return r < 0 ? r : check_output(d, err);
}

/* --- either ----------------------------------------------------------------------------- */

static void set_package(struct differ *d, const struct engine_package *p)
{
	struct json list = !p->before ? d->added : !p->after ? d->removed : d->changed, one;

	one = json_add_object(list);
	json_set_text(one, "package", p->name);
	json_set_text(one, "before", p->before);
	json_set_text(one, "after", p->after);
}

static void begin_packages(struct differ *d)
{
	d->packages = json_set_object(d->j, "packages");
	d->added = json_set_array(d->packages, "added");
	d->changed = json_set_array(d->packages, "changed");
	d->removed = json_set_array(d->packages, "removed");
}

static bool prints_lines(const struct differ *d)
{
	return !d->inv->json && !d->inv->quiet && !d->args->name_status && !d->args->script;
}

/* "# package changed: nginx 1.22.1-9 -> 1.22.1-10" and, at the end, "# packages: +3 ~1 -0". */
static int print_package(struct differ *d, const struct engine_package *p, struct err *err)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	int r;

	if (p)
		r = buf_printf(&line, "# package %s: %s %s%s%s\n",
			       !p->before  ? "added"
			       : !p->after ? "removed"
					   : "changed",
			       p->name, p->before ? p->before : "",
			       p->before && p->after ? " -> " : "", p->after ? p->after : "");
	else
		r = buf_printf(&line, "# packages: +%zu ~%zu -%zu\n", d->n_added, d->n_changed,
			       d->n_removed);
	return r < 0 ? err_nomem(err) : screen_write(&d->screen, line.data, line.len, err);
}

static int on_package(const struct engine_package *p, void *ctx, struct err *err)
{
	struct differ *d = ctx;
	int r = 0;

	if (p)
		(*(!p->before ? &d->n_added : !p->after ? &d->n_removed : &d->n_changed))++;
	if (p && d->args->script)
		r = script_add_package(&d->script, p, err);
	if (d->inv->json && !d->added.node)
		begin_packages(d);
	if (d->inv->json && p)
		set_package(d, p);
	return r < 0 || !prints_lines(d) ? r : print_package(d, p, err);
}

static int on_database(bool came, void *ctx, struct err *err)
{
	struct differ *d = ctx;
	const char *line = came ? "# package database added\n" : "# package database removed\n";

	if (d->inv->json) {
		begin_packages(d);
		json_set_text(d->packages, "database", came ? "added" : "removed");
	}
	if (d->args->script)
		return script_add_database(&d->script, came, err);
	return prints_lines(d) ? screen_write(&d->screen, line, strlen(line), err) : 0;
}

static int on_change(const struct engine_distro_change *c, const struct engine_parts *parts,
		     void *ctx, struct err *err)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	struct differ *d = ctx;
	int r = 0;

	d->is_distro = true;
	if (c && d->args->script)
		r = script_add_change(&d->script, c, err);
	if (r < 0)
		return r;
	if (d->inv->json && c)
		distro_set_change(&d->distro, d->j, c);
	else if (d->inv->json)
		distro_set_counts(&d->distro, d->j, parts);
	if (!prints_lines(d))
		return 0;
	if ((c ? distro_line(c, &line) : distro_counts_line(parts, &line)) < 0)
		return err_nomem(err);
	return line.len == 0 ? 0 : screen_write(&d->screen, line.data, line.len, err);
}

static bool wants_text(const struct delta_file *f, void *ctx)
{
	const struct differ *d = ctx;

	return !d->args->script || (d->inv->json && d->args->patch) || script_wants(&d->script, f);
}

static int compare(struct invocation *inv, struct differ *d, struct err *err)
{
	const struct diffs_options *args = d->args;
	const bool text =
	    args->script ||
	    (inv->json ? args->patch : !args->stat && !args->name_status && !inv->quiet);
	const struct engine_diff_options options = {
		.a = args->a,
		.b = args->b,
		.paths = args->paths,
		.n_paths = args->n_paths,
		.no_renames = args->no_renames,
		.count = inv->json || args->stat,
		.context = args->context,
		.watch = progress_watch(inv->progress),
	};
	const struct engine_diff_sink sink = {
		.begin = on_begin,
		.package = on_package,
		.database = on_database,
		.change = on_change,
		.wants = wants_text,
		.text = text ? on_text : NULL,
		.file = on_file,
		.ctx = d,
	};

	return engine_diff(inv->engine, &options, &sink, err);
}

static int print_script(struct differ *d, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = script_write(&d->script, d->from, d->to, &text, err);

	return r < 0 ? r : screen_write(&d->screen, text.data, text.len, err);
}

static int set_script(struct differ *d, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = script_write(&d->script, d->from, d->to, &text, err);

	if (r >= 0)
		out_json_bytes(d->j, "script", "script_encoding", &text);
	return r;
}

int diffs_print(struct invocation *inv, const struct diffs_options *options, bool *ret_different,
		struct err *err)
{
	CLEANUP(differ_done) struct differ d = { .inv = inv, .args = options };
	int r;

	d.pager.saved = -1;
	screen_begin(&d.screen, inv);
	r = compare(inv, &d, err);
	if (pager_was_left(&d.pager))
		r = 0;
	if (r >= 0 && options->script)
		r = print_script(&d, err);
	if (r < 0)
		return r;
	diffstat_print(&d.stat, inv);
	*ret_different = d.different;
	return 0;
}

int diffs_set_json(struct invocation *inv, const struct diffs_options *options, struct json j,
		   bool *ret_different, struct err *err)
{
	CLEANUP(differ_done) struct differ d = { .inv = inv, .args = options, .j = j };
	int r;

	d.pager.saved = -1;
	r = compare(inv, &d, err);
	if (r < 0)
		return r;
	json_set_bool(j, "different", d.different);
	if (options->patch)
		out_json_bytes(j, "patch", "patch_encoding", &d.patch);
	r = options->script ? set_script(&d, err) : 0;
	if (r < 0)
		return r;
	*ret_different = d.different;
	return 0;
}
