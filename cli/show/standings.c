#include "cli/show/standings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/vec.h"
#include "cli/progress.h"
#include "cli/show/risks.h"

void standings_done(struct standings *s)
{
	VEC_FREE(it, s->list, s->x->n_arms, engine_facts_done(&it->facts));
	engine_compare_done(&s->compare);
	*s = (struct standings){ 0 };
}

/* --- finding ------------------------------------------------------------------------------- */

static bool has_result(struct engine *e, const struct engine_arm *arm)
{
	return arm->has_clone && *arm->result != '\0' && engine_has_clone(e, arm->clone);
}

/* People know the arms by name, not the snapshots of what they left. */
static int name_side(struct engine_compare *c, size_t side, const char *name, struct err *err)
{
	char *copy = strdup(name);

	if (!copy)
		return err_nomem(err);
	free(c->sides[side].name);
	c->sides[side].name = copy;
	return 0;
}

static int name_sides(struct standings *s, struct err *err)
{
	int r = name_side(&s->compare, s->n_merged, "project now", err);

	for (size_t i = 0; i < s->x->n_arms && r >= 0; i++)
		if (s->list[i].merged)
			r = name_side(&s->compare, s->list[i].side, s->x->arms[i].name, err);
	return r;
}

static int compare(const struct invocation *inv, struct engine *there, bool patches,
		   struct standings *s, struct err *err)
{
	const char *sides[STANDINGS_MAX + 1];
	const struct engine_compare_options options = {
		.sides = sides,
		.n = s->n_merged + 1,
		.patches = patches,
		.watch = progress_watch(inv->progress),
	};
	int r;

	for (size_t i = 0; i < s->x->n_arms; i++)
		if (s->list[i].merged)
			sides[s->list[i].side] = s->x->arms[i].result;
	sides[s->n_merged] = ".";
	r = engine_compare(there, &options, &s->compare, err);
	return r < 0 ? r : name_sides(s, err);
}

static int judge(const struct invocation *inv, struct engine *there,
		 const struct engine_experiment *x, size_t i, struct standing *s, struct err *err)
{
	const struct engine_facts_options options = {
		.clone = x->arms[i].clone,
		.subject = { (const char *const *)x->within, x->n_within },
		.watch = progress_watch(inv->progress),
	};
	int r = engine_facts(there, &options, &s->facts, err);

	s->judged = r >= 0;
	return r;
}

int standings_find(const struct invocation *inv, const struct engine_experiment *x, bool patches,
		   struct standings *ret, struct err *err)
{
	/* "." is the project of the experiment, wherever the command is given. */
	const struct engine_options options = { .dir = x->project,
						.store = engine_store_path(inv->engine) };
	CLEANUP(engine_close_p) struct engine *there = NULL;
	int r = 0;

	ret->x = x;
	ret->list = calloc(x->n_arms + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	r = engine_open(&options, &there, err);
	for (size_t i = 0; i < x->n_arms && ret->n_merged < STANDINGS_MAX && r >= 0; i++) {
		if (!has_result(there, &x->arms[i]))
			continue;
		ret->list[i].merged = true;
		ret->list[i].side = ret->n_merged++;
		r = judge(inv, there, x, i, &ret->list[i], err);
	}
	if (r >= 0 && ret->n_merged > 0)
		r = compare(inv, there, patches, ret, err);
	progress_done(inv->progress);
	return r;
}

/* --- two of them --------------------------------------------------------------------------- */

static const struct engine_compare_pair *find_pair(const struct engine_compare *c, size_t a,
						   size_t b)
{
	return VEC_FIND(it, c->pairs, c->n_pairs,
			(it->a == a && it->b == b) || (it->a == b && it->b == a));
}

/* Two arms; the second may be the project. */
struct meeting {
	uint64_t paths;     /* that both changed */
	uint64_t conflicts; /* of these; only if it is known */
	bool known;
	const char *path; /* the first that conflicts, else the first of all; NULL: none */
};

static struct meeting meet_merged(const struct engine_compare *c, size_t a, size_t b)
{
	const struct engine_compare_pair *pair = find_pair(c, a, b);
	struct meeting m = { .known = pair != NULL };

	for (size_t i = 0; i < c->n_files; i++) {
		const struct engine_compare_file *f = &c->files[i];

		if (f->changes[a].status == '\0' || f->changes[b].status == '\0')
			continue;
		m.paths++;
		m.path = m.path ? m.path : f->path;
	}
	if (pair && pair->n_conflicts > 0) {
		m.conflicts = pair->n_conflicts;
		m.path = out_path(pair->conflicts[0].path);
	}
	return m;
}

static bool names_path(const struct engine_arm *arm, const char *path)
{
	return VEC_HAS(it, arm->changed.list, arm->changed.n, strcmp(it->path, path) == 0);
}

static struct meeting meet_recorded(const struct engine_arm *a, const struct engine_arm *b)
{
	struct meeting m = { 0 };

	for (size_t i = 0; i < a->changed.n; i++)
		if (names_path(b, a->changed.list[i].path)) {
			m.paths++;
			m.path = m.path ? m.path : a->changed.list[i].path;
		}
	return m;
}

/* b == x->n_arms: the project. */
static struct meeting meet(const struct standings *s, size_t a, size_t b)
{
	const bool project = b == s->x->n_arms;

	if (s->list[a].merged && (project || s->list[b].merged))
		return meet_merged(&s->compare, s->list[a].side,
				   project ? s->n_merged : s->list[b].side);
	return project ? (struct meeting){ 0 } : meet_recorded(&s->x->arms[a], &s->x->arms[b]);
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void set_meeting(struct json list, const char *with, const struct meeting *m)
{
	const struct json j = json_add_object(list);

	json_set_name(j, "with", with);
	json_set_uint(j, "paths", m->paths);
	json_set_uint_if(j, "conflicts", m->known, m->conflicts);
	json_set_name(j, "path", m->path);
}

void standings_set_json(struct json j, const struct standings *s, size_t i)
{
	const struct standing *one = &s->list[i];
	struct meeting m = meet(s, i, s->x->n_arms);
	struct json list;

	json_set_text(j, "risk", one->judged ? engine_risk_name(one->facts.risk) : NULL);
	risks_set_reasons(json_set_array(j, "reasons"), &one->facts);
	list = json_set_array(j, "overlaps");
	if (m.known)
		set_meeting(list, ".", &m);
	for (size_t k = 0; k < s->x->n_arms; k++) {
		m = meet(s, i, k);
		if (k != i && m.paths + m.conflicts > 0)
			set_meeting(list, s->x->arms[k].name, &m);
	}
}

/* --- for people ---------------------------------------------------------------------------- */

static void print_paths(FILE *out, const struct meeting *m, uint64_t n)
{
	out_name(out, m->path);
	if (n > 1)
		fprintf(out, " and %" PRIu64 " more", n - 1);
}

static void print_meeting(const struct invocation *inv, FILE *out, const char *with,
			  const struct meeting *m)
{
	if (m->conflicts > 0)
		fprintf(out, "  %sconflicts%s with %s in ", out_style(inv, OUT_BAD),
			out_style(inv, OUT_PLAIN), with);
	else if (m->known)
		fprintf(out, "  merges with %s, which changed ", with);
	else
		fprintf(out, "  shares changed paths with %s: ", with);
	print_paths(out, m, m->conflicts > 0 ? m->conflicts : m->paths);
	if (!m->known)
		fputs(" (a clone is gone, so nothing was merged)", out);
	fputc('\n', out);
}

static void print_project(const struct invocation *inv, FILE *out, const struct meeting *m)
{
	if (m->conflicts > 0 || m->paths > 0)
		print_meeting(inv, out, "the project", m);
	else if (m->known)
		fputs("  applies to the project as it is\n", out);
}

static void print_reasons(FILE *out, const struct engine_facts *f)
{
	for (size_t i = 0; i < f->n_reasons; i++) {
		const struct engine_risk_reason *r = &f->reasons[i];

		fprintf(out, "  %s: ", engine_risk_name(r->risk));
		if (r->path) {
			out_name(out, r->path);
			if (r->paths > 1)
				fprintf(out, " and %" PRIu64 " more", r->paths - 1);
			fputs(": ", out);
		}
		fprintf(out, "%s\n", r->why);
	}
}

static void print_arm(const struct invocation *inv, FILE *out, const struct standings *s, size_t i)
{
	const struct engine_arm *arm = &s->x->arms[i];
	const struct standing *one = &s->list[i];
	const struct meeting project = meet(s, i, s->x->n_arms);
	char cpu[DURATION_TEXT_MAX], mem[SIZE_TEXT_MAX];

	fprintf(out, "\n%s%s%s: ", out_style(inv, OUT_BOLD), arm->name, out_style(inv, OUT_PLAIN));
	out_plural(out, arm->added + arm->modified + arm->deleted, "path", "paths");
	fprintf(out, " changed, cpu %s, memory %s", duration_format(arm->cpu_ms, cpu),
		size_format(arm->max_mem, mem));
	if (one->judged)
		fprintf(out, ", risk %s%s%s",
			out_style(inv, one->facts.risk == ENGINE_RISK_HIGH ? OUT_BAD : OUT_PLAIN),
			engine_risk_name(one->facts.risk), out_style(inv, OUT_PLAIN));
	fputc('\n', out);
	print_reasons(out, &one->facts);
	print_project(inv, out, &project);
	for (size_t k = 0; k < s->x->n_arms; k++) {
		const struct meeting m = meet(s, i, k);

		if (k != i && m.paths + m.conflicts > 0)
			print_meeting(inv, out, s->x->arms[k].name, &m);
	}
}

void standings_print(const struct invocation *inv, FILE *out, const struct standings *s)
{
	size_t told = 0;

	/* Those whose clones are there can be promoted, so they come first. */
	for (int merged = 1; merged >= 0; merged--)
		for (size_t i = 0; i < s->x->n_arms && told < STANDINGS_MAX; i++) {
			const struct engine_arm *arm = &s->x->arms[i];

			if (s->list[i].merged != (merged == 1) || arm->group ||
			    (*arm->run == '\0' && *arm->result == '\0'))
				continue;
			print_arm(inv, out, s, i);
			told++;
		}
}
