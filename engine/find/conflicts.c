#include "engine/find/conflicts-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIT ".git"

bool conflicts_is_git(const char *path, size_t *ret_len)
{
	const size_t len = strlen(GIT);
	const char *at = path;

	for (;;) {
		if (strncmp(at, GIT, len) == 0 && (at[len] == '\0' || at[len] == '/')) {
			*ret_len = (size_t)(at - path) + len;
			return true;
		}
		at = strchr(at, '/');
		if (!at)
			return false;
		at++;
	}
}

static char *side_name(const struct merge_side *side, const char *state)
{
	char *name = NULL;

	if (side->path && asprintf(&name, "%s:%s", state, side->path) < 0)
		return NULL;
	return name;
}

int conflicts_tell(const struct merge *m, const struct conflict_names *names,
		   struct engine_conflict **ret, size_t *ret_n, struct err *err)
{
	int open = 0;

	*ret = calloc(m->n_conflicts + 1, sizeof(**ret));
	if (!*ret)
		return err_nomem(err);
	for (size_t i = 0; i < m->n_conflicts; i++) {
		const struct merge_conflict *from = &m->conflicts[i];
		struct engine_conflict *c = &(*ret)[(*ret_n)++];

		*c = (struct engine_conflict){
			.path = strdup(from->path),
			.kind = merge_kind_name(from->kind),
			.hunks = from->hunks,
			.settled = from->settled,
			.sides = { side_name(&from->base, names->base),
				   side_name(&from->ours, names->ours),
				   side_name(&from->theirs, names->theirs) },
		};
		if (!c->path)
			return err_nomem(err);
		open |= !from->settled;
	}
	return open;
}
