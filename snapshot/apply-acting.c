#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/apply-i.h"

void apply_report_done(struct apply_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->notes[i].path);
	free(r->notes);
	*r = (struct apply_report){ 0 };
}

void acting_note(struct acting *a, const char *path, const char *why)
{
	struct apply_report *r = a->report;
	struct apply_note *more;

	if (r->n == NOTES_MAX)
		return;
	more = reallocarray(r->notes, r->n + 1, sizeof(*more));
	if (!more)
		return;
	r->notes = more;
	more[r->n] = (struct apply_note){ .path = strdup(path), .why = why };
	r->n += more[r->n].path != NULL;
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

bool slot_is(const char *name)
{
	const size_t digits = name[0] == 'n' || name[0] == 'o' ? strspn(name + 1, "0123456789") : 0;

	return digits > 0 && name[1 + digits] == '\0';
}

const char *slot_name(char kind, size_t step, char name[SLOT_SIZE])
{
	snprintf(name, SLOT_SIZE, "%c%zu", kind, step);
	return name;
}
