#include "engine/api/history.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/api/tag.h"

uint64_t engine_capturing_left(const struct engine_capturing *c)
{
	return c->open && c->bytes > c->done_bytes ? c->bytes - c->done_bytes : 0;
}

unsigned engine_captured_percent(const struct engine_capturing *c)
{
	if (!c->open || c->files == 0)
		return 100;
	/* A file costs about as much as so many bytes. */
	return (unsigned)((c->done_bytes + (c->done << 14)) * 99 / (c->bytes + (c->files << 14)));
}

void engine_snapshot_done(struct engine_snapshot *s)
{
	texts_free(s->tags, s->n_tags);
	free(s->clone);
	free(s->part);
	free(s->message);
	free(s->meta);
	*s = (struct engine_snapshot){ 0 };
}

void engine_strays_free(struct engine_stray *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].path);
		free(list[i].to);
	}
	free(list);
}

void engine_taken_done(struct engine_taken *t)
{
	engine_snapshot_done(&t->snapshot);
	for (size_t i = 0; i < t->n_skipped; i++) {
		free(t->skipped[i].path);
		free(t->skipped[i].why);
	}
	free(t->skipped);
	texts_free(t->left_out, t->n_left_out);
	engine_strays_free(t->strays, t->n_strays);
	free(t->project);
	*t = (struct engine_taken){ 0 };
}

void engine_history_done(struct engine_history *h)
{
	VEC_FREE(it, h->list, h->n, engine_snapshot_done(it));
	free(h->project);
	*h = (struct engine_history){ 0 };
}

void engine_tags_done(struct engine_tags *t)
{
	VEC_FREE(it, t->list, t->n, free(it->name));
	free(t->project);
	*t = (struct engine_tags){ 0 };
}
