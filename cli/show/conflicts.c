#include "cli/show/conflicts.h"

#include <errno.h>
#include <string.h>

#include "cli/out.h"
#include "cli/typed.h"

int conflicts_read_ways(const char *on_conflict, const char *style, enum merge_on_conflict *ret,
			enum merge_style *ret_style, struct err *err)
{
	static const char *const ways[] = { "stop", "ours", "theirs", "markers" };
	static const char *const styles[] = { "merge", "diff3", "zdiff3" };
	size_t way = 0, look = 0;

	while (on_conflict && way < ARRAY_LEN(ways) && strcmp(on_conflict, ways[way]) != 0)
		way++;
	while (style && look < ARRAY_LEN(styles) && strcmp(style, styles[look]) != 0)
		look++;
	if (way == ARRAY_LEN(ways))
		return err_set(
		    err, -EINVAL,
		    "option '--conflict': '%s' is not one of stop, ours, theirs, markers",
		    on_conflict);
	if (look == ARRAY_LEN(styles))
		return err_set(err, -EINVAL,
			       "option '--markers': '%s' is not one of merge, diff3, zdiff3",
			       style);
	*ret = (enum merge_on_conflict)way;
	*ret_style = (enum merge_style)look;
	return 0;
}

/* --- for programs ----------------------------------------------------------------------- */

static const char *take_word(enum engine_take take)
{
	switch (take) {
	case ENGINE_TAKE_NONE:
		break;
	case ENGINE_TAKE_OURS:
		return "ours";
	case ENGINE_TAKE_THEIRS:
		return "theirs";
	case ENGINE_TAKE_FILE:
		return "file";
	}
	return NULL;
}

static void set_versions(struct json j, char *const text[ENGINE_CONFLICT_SIDES])
{
	json_set_text(j, "base", text[0]);
	json_set_text(j, "ours", text[1]);
	json_set_text(j, "theirs", text[2]);
}

/* What --with-hunks adds. */
static void set_texts(struct json j, const struct engine_conflict *c)
{
	struct json array = json_set_array(j, "places"), at;

	for (size_t i = 0; i < c->n_places; i++) {
		at = json_add_object(array);
		json_set_uint(at, "line", c->places[i].line);
		set_versions(at, c->places[i].text);
	}
	json_set_text(j, "marked", c->marked);
	set_versions(json_set_object(j, "versions"), c->texts);
}

void conflicts_set_json(struct json j, const struct engine_conflict *list, size_t n)
{
	struct json array = json_set_array(j, "conflicts"), at;

	for (size_t i = 0; i < n; i++) {
		const struct engine_conflict *c = &list[i];

		at = json_add_object(array);
		json_set_name(at, "path", out_path(c->path));
		json_set_text(at, "kind", c->kind);
		json_set_uint(at, "hunks", c->hunks);
		json_set_bool(at, "settled", c->settled);
		json_set_bool(at, "resolved", c->take != ENGINE_TAKE_NONE);
		json_set_text(at, "take", take_word(c->take));
		json_set_bool(at, "stale", c->stale);
		json_set_bool(at, "markers", c->is_marked);
		json_set_name(at, "base", c->sides[0]);
		json_set_name(at, "ours", c->sides[1]);
		json_set_name(at, "theirs", c->sides[2]);
		if (c->marked || c->texts[0] || c->texts[1] || c->texts[2])
			set_texts(at, c);
	}
}

/* --- for people ------------------------------------------------------------------------- */

/* Whose it is, in words that say whose is whose. */
static const char *whose(enum engine_take take)
{
	switch (take) {
	case ENGINE_TAKE_NONE:
		break;
	case ENGINE_TAKE_OURS:
		return ": ours, the project's";
	case ENGINE_TAKE_THEIRS:
		return ": theirs, the clone's";
	case ENGINE_TAKE_FILE:
		return ": a file that was given";
	}
	return "";
}

static void print_conflict(const struct invocation *inv, FILE *out, const struct engine_conflict *c)
{
	fprintf(out, "  %s%s%s ", out_style(inv, c->settled ? OUT_BOLD : OUT_BAD),
		c->is_marked ? "markers left in"
		: c->settled ? "settled:"
			     : "conflict:",
		out_style(inv, OUT_PLAIN));
	out_name(out, out_path(c->path));
	fprintf(out, " (%s", c->kind);
	if (c->hunks > 0) {
		fputs(", ", out);
		out_plural(out, c->hunks, "place", "places");
	}
	fprintf(out, ")%s\n", whose(c->take));
	if (c->stale)
		fputs("    what was decided for it was for other versions, and does not count\n",
		      out);
}

/* What to type for one that is open. */
static void print_ways(const struct invocation *inv, FILE *out, const char *clone,
		       const struct engine_conflict *c)
{
	static const char *const ways[][2] = { { "ours", "the project's" },
					       { "theirs", "the clone's" } };

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		AUTO_FREE char *typed = typed_path(c->path);
		AUTO_FREE char *line =
		    typed ? cmd_line(inv, "resolve",
				     (const char *[]){ clone, typed, "--take", ways[i][0], NULL })
			  : NULL;

		if (line)
			fprintf(out, "    %s  %s# %s\n", line, i == 0 ? "  " : "", ways[i][1]);
	}
}

void conflicts_print(const struct invocation *inv, FILE *out, const char *clone,
		     const struct engine_conflict *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct engine_conflict *c = &list[i];

		print_conflict(inv, out, c);
		if (clone && !c->settled && (i + 1 == n || strcmp(list[i + 1].path, c->path) != 0))
			print_ways(inv, out, clone, c);
	}
}

const struct engine_conflict *conflicts_first_open(const struct engine_conflict *list, size_t n,
						   size_t *ret_n)
{
	const struct engine_conflict *first = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		if (!list[i].settled) {
			first = first ? first : &list[i];
			++*ret_n;
		}
	return first;
}

void conflicts_hint_sides(struct invocation *inv, const struct engine_conflict *c,
			  const char *const notes[ENGINE_CONFLICT_SIDES])
{
	for (size_t i = 0; i < ENGINE_CONFLICT_SIDES; i++)
		if (notes[i] && c->sides[i]) {
			cmd_hint_words(inv, "show", (const char *[]){ c->sides[i], NULL });
			cmd_hint_note(inv, notes[i]);
		}
}

void conflicts_say_open(const char *act, const struct engine_conflict *list, size_t n,
			struct err *err)
{
	size_t open;
	const struct engine_conflict *c = conflicts_first_open(list, n, &open);

	if (open == 1)
		err_set(err, -ESTALE, "nothing is %s: '%s' conflicts (%s)", act, out_path(c->path),
			c->kind);
	else
		err_set(err, -ESTALE, "nothing is %s: %zu conflicts", act, open);
}
