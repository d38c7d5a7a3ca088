#include "cli/show/comparisons.h"

#include <inttypes.h>
#include <string.h>

#include "cli/out.h"
#include "cli/pager.h"
#include "cli/screen.h"

#define CELL_MAX 48 /* "M", and two numbers of any size */

static const char *comparisons_status(char letter)
{
	switch (letter) {
	case 'T':
		return "type_changed";
	case 'm':
		return "metadata";
	default:
		return out_status(letter);
	}
}

const char *comparisons_overlap(enum engine_compare_overlap overlap)
{
	switch (overlap) {
	case ENGINE_COMPARE_ONE:
		return "one";
	case ENGINE_COMPARE_SAME:
		return "same";
	case ENGINE_COMPARE_MERGES:
		return "merges";
	case ENGINE_COMPARE_CONFLICT:
		return "conflict";
	}
	return "unknown";
}

/* --- for programs ----------------------------------------------------------------------- */

static void set_side(struct json j, const struct engine_compare_side *s)
{
	json_set_name(j, "state", s->name);
	out_json_time(j, "time", s->time);
	out_json_id(j, "base", s->base);
	json_set_bool(j, "base_differs", s->base_differs);
	json_set_uint(j, "added", s->added);
	json_set_uint(j, "modified", s->modified);
	json_set_uint(j, "deleted", s->deleted);
	json_set_uint(j, "lines_added", s->lines_added);
	json_set_uint(j, "lines_removed", s->lines_removed);
	json_set_uint(j, "git_paths", s->git);
}

/* Are there hunks of that side to show, in a file that several sides changed? */
static bool has_hunks(const struct engine_compare_file *f, size_t side)
{
	return f->overlap != ENGINE_COMPARE_ONE && f->overlap != ENGINE_COMPARE_SAME &&
	       f->changes[side].patch.len > 0;
}

static void set_file(struct json j, const struct engine_compare *c,
		     const struct engine_compare_file *f, bool hunks)
{
	struct json changes, one;

	json_set_name(j, "path", f->path);
	json_set_text(j, "overlap", comparisons_overlap(f->overlap));
	changes = json_set_array(j, "changes");
	for (size_t i = 0; i < c->n; i++) {
		const struct engine_compare_change *change = &f->changes[i];

		if (change->status == '\0')
			continue;
		one = json_add_object(changes);
		json_set_name(one, "state", c->sides[i].name);
		json_set_text(one, "status", comparisons_status(change->status));
		json_set_uint(one, "added", change->added);
		json_set_uint(one, "removed", change->removed);
		json_set_bool(one, "binary", change->binary);
		json_set_uint(one, "version", change->version);
		if (hunks && has_hunks(f, i)) {
			out_json_bytes(one, "hunks", "hunks_encoding", &change->patch);
		} else {
			json_set_null(one, "hunks");
			json_set_null(one, "hunks_encoding");
		}
		json_set_bool(one, "cut", hunks && change->cut);
	}
}

static void set_conflict(struct json j, const struct engine_conflict *c)
{
	struct json places, one;

	json_set_name(j, "path", out_path(c->path));
	json_set_text(j, "kind", c->kind);
	json_set_uint(j, "hunks", c->hunks);
	json_set_name(j, "base", c->sides[0]);
	json_set_name(j, "a", c->sides[1]);
	json_set_name(j, "b", c->sides[2]);
	places = json_set_array(j, "places");
	for (size_t i = 0; i < c->n_places; i++) {
		one = json_add_object(places);
		json_set_uint(one, "line", c->places[i].line);
		json_set_text(one, "base", c->places[i].text[0]);
		json_set_text(one, "a", c->places[i].text[1]);
		json_set_text(one, "b", c->places[i].text[2]);
	}
}

static void set_pair(struct json j, const struct engine_compare *c,
		     const struct engine_compare_pair *p)
{
	json_set_name(j, "a", c->sides[p->a].name);
	json_set_name(j, "b", c->sides[p->b].name);
	json_set_bool(j, "clean", p->n_conflicts == 0);
	json_set_uint(j, "merged", p->merged);
	JSON_SET_LIST(j, "conflicts", p->conflicts, p->n_conflicts, set_conflict);
}

void comparisons_set_json(struct json j, const struct engine_compare *c, bool hunks)
{
	struct json array, one;

	json_set_name(j, "base", c->base_name);
	out_json_time(j, "base_time", c->base_time);
	json_set_bool(j, "clean", c->clean);
	JSON_SET_LIST(j, "states", c->sides, c->n, set_side);
	array = json_set_array(j, "files");
	for (size_t i = 0; i < c->n_files; i++)
		set_file(json_add_object(array), c, &c->files[i], hunks);
	array = json_set_array(j, "pairs");
	for (size_t i = 0; i < c->n_pairs; i++)
		set_pair(json_add_object(array), c, &c->pairs[i]);
	array = json_set_array(j, "warnings");
	for (size_t i = 0; i < c->n_warnings; i++) {
		one = json_add_object(array);
		json_set_name(one, "state", c->sides[c->warnings[i].side].name);
		json_set_name(one, "path", c->warnings[i].path);
		json_set_text(one, "rule", c->warnings[i].rule);
		json_set_text(one, "why", c->warnings[i].why);
	}
}

/* --- the table -------------------------------------------------------------------------- */

/* An id is shown short; every other name is whole. */
static int shown_len(const struct engine_compare *c, size_t side)
{
	const char *name = c->sides[side].name;
	const size_t len = strlen(name);

	if (len == ENGINE_ID_SIZE - 1 && strspn(name, "0123456789abcdef") == len)
		return OUT_SHORT_ID;
	return (int)len;
}

/* "M +3 -1" */
static const char *cell_of(const struct engine_compare_change *change, char text[CELL_MAX])
{
	char lines[CELL_MAX - 2] = "";

	if (change->status == '\0')
		return "-";
	if (change->binary)
		snprintf(lines, sizeof(lines), " binary");
	else if (change->added > 0 && change->removed > 0)
		snprintf(lines, sizeof(lines), " +%" PRIu64 " -%" PRIu64, change->added,
			 change->removed);
	else if (change->added > 0)
		snprintf(lines, sizeof(lines), " +%" PRIu64, change->added);
	else if (change->removed > 0)
		snprintf(lines, sizeof(lines), " -%" PRIu64, change->removed);
	snprintf(text, CELL_MAX, "%c%s", change->status, lines);
	return text;
}

static const char *git_cell(const struct engine_compare_side *side, char text[CELL_MAX])
{
	if (side->git == 0)
		return "-";
	snprintf(text, CELL_MAX, "%" PRIu64 "%s", side->git, side->git == 1 ? " path" : " paths");
	return text;
}

static int width_of(const struct engine_compare *c, size_t side)
{
	char text[CELL_MAX];
	int width = shown_len(c, side), len;

	for (size_t i = 0; i <= c->n_files; i++) {
		len = (int)strlen(i < c->n_files ? cell_of(&c->files[i].changes[side], text)
						 : git_cell(&c->sides[side], text));
		width = len > width ? len : width;
	}
	return width;
}

static enum out_style style_of(char status)
{
	return status == 'A'    ? OUT_GOOD
	       : status == 'D'  ? OUT_OLD
	       : status == '\0' ? OUT_DIM
				: OUT_ID;
}

static void print_overlap(const struct invocation *inv, enum engine_compare_overlap overlap)
{
	const bool bad = overlap == ENGINE_COMPARE_CONFLICT;

	fprintf(inv->out, "%s%-8s%s  ", out_style(inv, bad ? OUT_BAD : OUT_DIM),
		overlap == ENGINE_COMPARE_ONE ? "" : comparisons_overlap(overlap),
		out_style(inv, OUT_PLAIN));
}

static void print_row(const struct invocation *inv, const struct engine_compare *c,
		      const struct engine_compare_file *f, const int *widths)
{
	char text[CELL_MAX];

	for (size_t i = 0; i < c->n; i++)
		fprintf(inv->out, "%s%-*s%s  ", out_style(inv, style_of(f->changes[i].status)),
			widths[i], cell_of(&f->changes[i], text), out_style(inv, OUT_PLAIN));
	print_overlap(inv, f->overlap);
	out_name_line(inv->out, f->path);
}

static void print_git(const struct invocation *inv, const struct engine_compare *c,
		      const int *widths)
{
	char text[CELL_MAX];
	bool any = false;

	for (size_t i = 0; i < c->n; i++)
		any |= c->sides[i].git > 0;
	if (!any)
		return;
	for (size_t i = 0; i < c->n; i++)
		fprintf(inv->out, "%s%-*s%s  ", out_style(inv, OUT_DIM), widths[i],
			git_cell(&c->sides[i], text), out_style(inv, OUT_PLAIN));
	fprintf(inv->out, "%-8s  .git\n", "");
}

static void print_table(const struct invocation *inv, const struct engine_compare *c)
{
	int widths[ENGINE_COMPARE_MAX];

	for (size_t i = 0; i < c->n; i++)
		widths[i] = width_of(c, i);
	fputs(out_style(inv, OUT_BOLD), inv->out);
	for (size_t i = 0; i < c->n; i++)
		fprintf(inv->out, "%-*.*s  ", widths[i], shown_len(c, i), c->sides[i].name);
	fprintf(inv->out, "%-8s  path%s\n", "", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < c->n_files; i++)
		print_row(inv, c, &c->files[i], widths);
	print_git(inv, c, widths);
}

/* --- pairs ------------------------------------------------------------------------------ */

static void print_side(const struct invocation *inv, const struct engine_compare *c, size_t side)
{
	fprintf(inv->out, "%.*s", shown_len(c, side), c->sides[side].name);
}

static void print_pair(const struct invocation *inv, const struct engine_compare *c,
		       const struct engine_compare_pair *p)
{
	const bool clean = p->n_conflicts == 0;

	print_side(inv, c, p->a);
	fputs(" and ", inv->out);
	print_side(inv, c, p->b);
	fprintf(inv->out, ": %s", out_style(inv, clean ? OUT_GOOD : OUT_BAD));
	if (clean)
		fputs("merge cleanly", inv->out);
	else
		out_plural(inv->out, p->n_conflicts, "conflict", "conflicts");
	fputs(out_style(inv, OUT_PLAIN), inv->out);
	if (p->merged > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, p->merged, "text", "texts");
		fputs(" put together from both", inv->out);
	}
	fputc('\n', inv->out);
}

/* "  base | text", each line of it; content is shown as `diff` shows it. */
static int print_version(const struct invocation *inv, struct screen *screen, const char *label,
			 int label_len, int width, enum out_style style, const char *text,
			 struct err *err)
{
	const char *end;
	int r = 0;

	if (*text == '\0')
		fprintf(inv->out, "  %-*.*s |%s (nothing)%s\n", width, label_len, label,
			out_style(inv, OUT_DIM), out_style(inv, OUT_PLAIN));
	for (; *text != '\0' && r >= 0; text = *end != '\0' ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		fprintf(inv->out, "  %-*.*s | %s", width, label_len, label, out_style(inv, style));
		r = screen_write(screen, text, (size_t)(end - text), err);
		if (r >= 0)
			r = screen_flush(screen, err);
		fprintf(inv->out, "%s\n", out_style(inv, OUT_PLAIN));
	}
	return r;
}

static int print_place(const struct invocation *inv, const struct engine_compare *c,
		       const struct engine_compare_pair *p, const struct engine_hunk *h,
		       struct screen *screen, struct err *err)
{
	const int a = shown_len(c, p->a), b = shown_len(c, p->b);
	const int base = (int)strlen("base"), ab = a > b ? a : b, width = ab > base ? ab : base;
	int r = print_version(inv, screen, "base", base, width, OUT_DIM, h->text[0], err);

	if (r < 0)
		return r;
	r = print_version(inv, screen, c->sides[p->a].name, a, width, OUT_GOOD, h->text[1], err);
	if (r < 0)
		return r;
	return print_version(inv, screen, c->sides[p->b].name, b, width, OUT_ID, h->text[2], err);
}

static int print_conflict(const struct invocation *inv, const struct engine_compare *c,
			  const struct engine_compare_pair *p, const struct engine_conflict *x,
			  struct screen *screen, struct err *err)
{
	int r = 0;

	fprintf(inv->out, "\n%s", out_style(inv, OUT_BOLD));
	out_name(inv->out, out_path(x->path));
	fprintf(inv->out, "%s: ", out_style(inv, OUT_PLAIN));
	print_side(inv, c, p->a);
	fputs(" and ", inv->out);
	print_side(inv, c, p->b);
	fprintf(inv->out, " (%s)\n", x->kind);
	for (size_t i = 0; i < x->n_places && r >= 0; i++) {
		if (x->n_places > 1)
			fprintf(inv->out, "%s  place %zu of %zu%s\n", out_style(inv, OUT_LINK),
				i + 1, x->n_places, out_style(inv, OUT_PLAIN));
		r = print_place(inv, c, p, &x->places[i], screen, err);
	}
	return r;
}

/* --- hunks ------------------------------------------------------------------------------ */

static enum out_style style_of_line(char first)
{
	switch (first) {
	case '@':
		return OUT_LINK;
	case '+':
		return OUT_GOOD;
	case '-':
		return OUT_OLD;
	default:
		return OUT_PLAIN;
	}
}

/* "  a | +text", each line of the hunks of one side. */
static int print_hunks(const struct invocation *inv, const struct engine_compare *c, size_t side,
		       const struct engine_compare_change *change, int width, struct screen *screen,
		       struct err *err)
{
	const char *at = (const char *)change->patch.data, *end = at + change->patch.len;
	const char *name = c->sides[side].name;
	const int len = shown_len(c, side);
	int r = 0;

	while (at < end && r >= 0) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		fprintf(inv->out, "  %-*.*s | %s", width, len, name,
			out_style(inv, style_of_line(*at)));
		r = screen_write(screen, at, (size_t)(stop - at), err);
		if (r >= 0)
			r = screen_flush(screen, err);
		fprintf(inv->out, "%s\n", out_style(inv, OUT_PLAIN));
		at = stop < end ? stop + 1 : end;
	}
	if (change->cut)
		fprintf(inv->out, "  %-*.*s | ...\n", width, len, name);
	return r;
}

/* What each side made of one file, since the base; sides that made the same of it once. */
static int print_sides(const struct invocation *inv, const struct engine_compare *c,
		       const struct engine_compare_file *f, struct screen *screen, struct err *err)
{
	unsigned told = 0;
	int r = 0, width = 0;

	for (size_t i = 0; i < c->n; i++)
		if (has_hunks(f, i) && shown_len(c, i) > width)
			width = shown_len(c, i);
	if (width == 0)
		return 0;
	fprintf(inv->out, "\n%s", out_style(inv, OUT_BOLD));
	out_name(inv->out, f->path);
	fprintf(inv->out, "%s: %s\n", out_style(inv, OUT_PLAIN), comparisons_overlap(f->overlap));
	for (size_t i = 0; i < c->n && r >= 0; i++)
		if (has_hunks(f, i) && f->changes[i].version > told) {
			told = f->changes[i].version;
			r = print_hunks(inv, c, i, &f->changes[i], width, screen, err);
		}
	return r;
}

static void print_warnings(const struct invocation *inv, const struct engine_compare *c)
{
	if (c->n_warnings > 0)
		fputc('\n', inv->out);
	for (size_t i = 0; i < c->n_warnings; i++) {
		const struct engine_compare_warning *w = &c->warnings[i];

		fprintf(inv->out, "%swarning:%s ", out_style(inv, OUT_BAD),
			out_style(inv, OUT_PLAIN));
		print_side(inv, c, w->side);
		fputs(": ", inv->out);
		out_name(inv->out, w->path);
		fprintf(inv->out, ": %s (%s)\n", w->why, w->rule);
	}
}

/* --- all -------------------------------------------------------------------------------- */

static void print_head(const struct invocation *inv, const struct engine_compare *c)
{
	char when[OUT_TIME_MAX];
	bool differs = false;

	for (size_t i = 0; i < c->n; i++)
		differs |= c->sides[i].base_differs;
	fputs("changed since ", inv->out);
	if (c->base[0] != '\0')
		out_id(inv, "", c->base);
	else
		out_name(inv->out, c->base_name);
	fprintf(inv->out, ", %s\n", out_when(c->base_time, when));
	if (differs)
		fputs("the sides have different bases: what the project changed between them is "
		      "left out\n",
		      inv->out);
	fputc('\n', inv->out);
}

static int print_all(const struct invocation *inv, const struct engine_compare *c,
		     enum comparisons_hunks hunks, struct screen *screen, struct err *err)
{
	int r = 0;

	print_head(inv, c);
	if (c->n_files > 0)
		print_table(inv, c);
	else
		fputs("no side changed a file\n", inv->out);
	fputc('\n', inv->out);
	for (size_t i = 0; i < c->n_pairs; i++)
		print_pair(inv, c, &c->pairs[i]);
	for (size_t i = 0; i < c->n_pairs && hunks != COMPARISONS_NO_HUNKS && r >= 0; i++)
		for (size_t k = 0; k < c->pairs[i].n_conflicts && r >= 0; k++)
			r = print_conflict(inv, c, &c->pairs[i], &c->pairs[i].conflicts[k], screen,
					   err);
	for (size_t i = 0; i < c->n_files && hunks == COMPARISONS_ALL_HUNKS && r >= 0; i++)
		r = print_sides(inv, c, &c->files[i], screen, err);
	print_warnings(inv, c);
	return r;
}

static void print_conflicting(const struct invocation *inv, const struct engine_compare *c)
{
	for (size_t i = 0; i < c->n_files; i++) {
		if (c->files[i].overlap != ENGINE_COMPARE_CONFLICT)
			continue;
		out_name_line(inv->out, c->files[i].path);
	}
}

int comparisons_print(const struct invocation *inv, const struct engine_compare *c,
		      enum comparisons_hunks hunks, struct err *err)
{
	CLEANUP(screen_done) struct screen screen = { 0 };
	struct pager pager = { .saved = -1 };
	int r;

	if (inv->quiet) {
		print_conflicting(inv, c);
		return 0;
	}
	screen_begin(&screen, inv);
	pager_begin(&pager, inv);
	r = print_all(inv, c, hunks, &screen, err);
	pager_end(&pager);
	return pager_was_left(&pager) ? 0 : r;
}
