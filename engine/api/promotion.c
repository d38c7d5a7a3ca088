#include "engine/api/promote.h"

#include <stdlib.h>

#include "base/vec.h"
#include "engine/api/overlaps.h"
#include "engine/api/rebase.h"
#include "engine/api/receipts.h"

#define CHECKED(kind, key, member) FIELD_AS(FIELD_##kind, struct engine_checked, key, member)
static const struct field checked_list[] = {
	CHECKED(NAME, "cmd", command),
	CHECKED(INT, "exit_code", exit_code),
	CHECKED(CHARS, "run", run),
	CHECKED(UINT, "duration_ms", duration_ms),
};
const struct fields engine_checked_fields = FIELDS(struct engine_checked, checked_list);

void engine_rolled_paths_free(struct engine_rolled_path *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].path);
		free(list[i].why);
		free(list[i].detail);
	}
	free(list);
}

static void free_texts(struct engine_conflict *c)
{
	for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++) {
		free(c->texts[k]);
		for (size_t i = 0; i < c->n_places; i++)
			free(c->places[i].text[k]);
	}
	free(c->places);
	free(c->marked);
}

void engine_conflicts_free(struct engine_conflict *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].path);
		free_texts(&list[i]);
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++)
			free(list[i].sides[k]);
	}
	free(list);
}

void engine_commits_done(struct engine_commits *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->list[i].ref);
		free(c->list[i].repository);
		free(c->list[i].commit);
	}
	free(c->list);
	*c = (struct engine_commits){ 0 };
}

void engine_promotion_done(struct engine_promotion *p)
{
	engine_rolled_paths_free(p->paths, p->n_paths);
	engine_rolled_paths_free(p->held, p->n_held);
	engine_rolled_paths_free(p->warned, p->n_warned);
	engine_rolled_paths_free(p->meanwhile, p->n_meanwhile);
	engine_rolled_paths_free(p->left, p->n_left);
	engine_conflicts_free(p->conflicts, p->n_conflicts);
	VEC_FREE(it, p->checks, p->n_checks, free(it->command));
	engine_commits_done(&p->commits);
	free(p->clone);
	free(p->project);
	free(p->to);
	*p = (struct engine_promotion){ 0 };
}

void engine_rebased_done(struct engine_rebased *r)
{
	engine_rolled_paths_free(r->paths, r->n_paths);
	engine_rolled_paths_free(r->left, r->n_left);
	engine_conflicts_free(r->conflicts, r->n_conflicts);
	free(r->clone);
	free(r->project);
	*r = (struct engine_rebased){ 0 };
}

void engine_rolled_done(struct engine_rolled *r)
{
	engine_rolled_paths_free(r->paths, r->n_paths);
	engine_rolled_paths_free(r->conflicts, r->n_conflicts);
	engine_rolled_paths_free(r->held, r->n_held);
	engine_rolled_paths_free(r->warned, r->n_warned);
	free(r->clone);
	free(r->project);
	*r = (struct engine_rolled){ 0 };
}

void engine_meeting_done(struct engine_meeting *m)
{
	VEC_FREE(it, m->met, m->n, free(it->path));
	free(m->clone);
	free(m->with);
}

DEFINE_LIST_DONE(engine_overlaps_done, struct engine_overlaps, engine_meeting_done)

static void engine_receipt_done(struct engine_receipt *r)
{
	VEC_FREE(it, r->checks, r->n_checks, free(it->command));
	free(r->clone);
	free(r->who);
	free(r->to);
	free(r->sha256);
	*r = (struct engine_receipt){ 0 };
}

DEFINE_LIST_DONE(engine_receipts_done, struct engine_receipts, engine_receipt_done)
