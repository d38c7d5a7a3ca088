#include "engine/api/compare.h"

#include <stdlib.h>

#include "base/vec.h"

static void file_done(struct engine_compare_file *f, size_t n)
{
	VEC_FREE(it, f->changes, n, buf_done(&it->patch));
	free(f->path);
}

static void warning_done(struct engine_compare_warning *w)
{
	free(w->path);
	free(w->rule);
	free(w->why);
}

void engine_compare_done(struct engine_compare *c)
{
	for (size_t i = 0; i < c->n_files; i++)
		file_done(&c->files[i], c->n);
	for (size_t i = 0; i < c->n_pairs; i++)
		engine_conflicts_free(c->pairs[i].conflicts, c->pairs[i].n_conflicts);
	VEC_FREE(it, c->warnings, c->n_warnings, warning_done(it));
	VEC_FREE(it, c->sides, c->n, free(it->name));
	free(c->files);
	free(c->pairs);
	free(c->base_name);
	*c = (struct engine_compare){ 0 };
}
