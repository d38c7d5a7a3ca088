#include "engine/api/compare.h"

#include <stdlib.h>

static void file_done(struct engine_compare_file *f, size_t n)
{
	for (size_t i = 0; f->changes && i < n; i++)
		buf_done(&f->changes[i].patch);
	free(f->changes);
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
	for (size_t i = 0; i < c->n_warnings; i++)
		warning_done(&c->warnings[i]);
	for (size_t i = 0; i < c->n; i++)
		free(c->sides[i].name);
	free(c->files);
	free(c->pairs);
	free(c->warnings);
	free(c->sides);
	free(c->base_name);
	*c = (struct engine_compare){ 0 };
}
