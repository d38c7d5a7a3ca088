#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/apply/apply-i.h"

void apply_report_done(struct apply_report *r)
{
	VEC_FREE(it, r->notes, r->n, free(it->path));
	*r = (struct apply_report){ 0 };
}

void acting_note(struct acting *a, const char *path, const char *why)
{
	struct apply_report *r = a->report;

	if (r->n == NOTES_MAX || !VEC_ONE_MORE(r->notes, r->n))
		return;
	r->notes[r->n] = (struct apply_note){ .path = strdup(path), .why = why };
	r->n += r->notes[r->n].path != NULL;
}

void acting_progress(struct acting *a)
{
	a->done++;
	acting_tell(a);
}

void acting_tell(struct acting *a)
{
	if (a->options && a->options->progress)
		a->options->progress(a->done < a->total ? a->done : a->total, a->total,
				     a->options->progress_ctx);
}

void acting_done(struct acting *a)
{
	dir_forget(a);
	cleanup_close(&a->stage_fd);
	cleanup_close(&a->top_fd);
	journal_done(&a->journal);
}

const char *step_name(const struct plan_step *s)
{
	const char *slash = strrchr(s->path, '/');

	return slash ? slash + 1 : s->path;
}

const char *slot_name(char kind, size_t step, char name[SLOT_SIZE])
{
	snprintf(name, SLOT_SIZE, "%c%zu", kind, step);
	return name;
}

bool slot_parse(const char *name, char *ret_kind, size_t *ret_step)
{
	char again[SLOT_SIZE];

	if (name[0] != 'n' && name[0] != 'o')
		return false;
	*ret_kind = name[0];
	*ret_step = strtoul(name + 1, NULL, 10);
	return strcmp(slot_name(*ret_kind, *ret_step, again), name) == 0;
}
