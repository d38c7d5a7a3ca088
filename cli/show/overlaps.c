#include "cli/show/overlaps.h"

#define SHOWN_PATHS 10

static const char *const overlap_names[] = {
	[MERGE_SAME] = "same",
	[MERGE_APART] = "apart",
	[MERGE_OVERLAP] = "overlap",
};

static const char *overlap_name(enum merge_overlap overlap)
{
	return overlap <= MERGE_OVERLAP ? overlap_names[overlap] : "unknown";
}

static const char *path_name(const struct engine_met *m)
{
	return out_path(m->path);
}

static uint64_t total(const struct engine_meeting *m)
{
	return m->same + m->apart + m->overlap;
}

void overlaps_set_json(struct json j, const struct engine_overlaps *r)
{
	struct json array = json_set_array(j, "others"), at, paths, one;

	for (size_t i = 0; i < r->n; i++) {
		const struct engine_meeting *m = &r->list[i];

		at = json_add_object(array);
		json_set_name(at, "clone", m->clone);
		json_set_name(at, "with", m->with);
		out_json_id(at, "base", m->base);
		json_set_bool(at, "bases_differ", m->bases_differ);
		json_set_uint(at, "same", m->same);
		json_set_uint(at, "apart", m->apart);
		json_set_uint(at, "overlap", m->overlap);
		paths = json_set_array(at, "paths");
		for (size_t k = 0; k < m->n; k++) {
			one = json_add_object(paths);
			json_set_name(one, "path", path_name(&m->met[k]));
			json_set_text(one, "overlap", overlap_name(m->met[k].overlap));
		}
		json_set_bool(at, "truncated", m->n < total(m));
	}
}

/* "  quiet-fox: 2 paths, 1 overlaps" and the first of them. */
static void print_meeting(const struct invocation *inv, const struct engine_meeting *m,
			  const char *clone)
{
	static const enum out_style styles[] = {
		[MERGE_SAME] = OUT_DIM,
		[MERGE_APART] = OUT_GOOD,
		[MERGE_OVERLAP] = OUT_BAD,
	};
	char count[OUT_COUNT_MAX];

	fputs("  ", inv->out);
	if (!clone) {
		out_name(inv->out, m->with);
		fputs(" and ", inv->out);
	}
	out_name(inv->out, m->clone);
	fputs(": ", inv->out);
	out_plural(inv->out, total(m), "path", "paths");
	if (m->overlap > 0)
		fprintf(inv->out, ", %s would conflict", out_count(m->overlap, count));
	fputs(m->bases_differ ? ", judged from the older base\n" : "\n", inv->out);
	for (size_t i = 0; i < m->n && i < SHOWN_PATHS; i++) {
		const enum merge_overlap o = m->met[i].overlap;

		fprintf(inv->out, "    %s%-7s%s  ",
			out_style(inv, o <= MERGE_OVERLAP ? styles[o] : OUT_PLAIN), overlap_name(o),
			out_style(inv, OUT_PLAIN));
		out_name_line(inv->out, path_name(&m->met[i]));
	}
	if (total(m) > SHOWN_PATHS)
		fprintf(inv->out, "    and %s more\n", out_count(total(m) - SHOWN_PATHS, count));
}

void overlaps_print(const struct invocation *inv, const struct engine_overlaps *r,
		    const char *clone)
{
	fputc('\n', inv->out);
	if (r->n == 0) {
		fputs(clone ? "no other clone touches what this one does; "
			    : "no two clones meet; ",
		      inv->out);
		out_plural(inv->out, r->looked_at, "clone", "clones");
		fputs(" looked at\n", inv->out);
		return;
	}
	fputs(clone ? "also changed in\n" : "changed in two clones\n", inv->out);
	for (size_t i = 0; i < r->n; i++)
		print_meeting(inv, &r->list[i], clone);
}
