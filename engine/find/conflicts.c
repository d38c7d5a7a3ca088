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

void conflicts_free(struct engine_conflict *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].path);
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++)
			free(list[i].sides[k]);
	}
	free(list);
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

/* --- what travels ----------------------------------------------------------------------- */

static const char *const sides[ENGINE_CONFLICT_SIDES] = { "base", "ours", "theirs" };

void conflicts_set(struct json j, const struct engine_conflict *list, size_t n)
{
	struct json array = json_set_array(j, "conflicts"), at;

	for (size_t i = 0; i < n; i++) {
		at = json_add_object(array);
		json_set_name(at, "path", list[i].path);
		json_set_text(at, "kind", list[i].kind);
		json_set_uint(at, "hunks", list[i].hunks);
		json_set_bool(at, "settled", list[i].settled);
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++)
			json_set_name(at, sides[k], list[i].sides[k]);
	}
}

/* The kinds are ours: a text of theirs would have to be owned. */
static const char *kind_of(const char *name)
{
	for (int k = 0; name && k <= MERGE_XATTRS; k++)
		if (strcmp(name, merge_kind_name((enum merge_kind)k)) == 0)
			return merge_kind_name((enum merge_kind)k);
	return "unknown";
}

int conflicts_get(struct json j, struct engine_conflict **ret, size_t *ret_n)
{
	struct json array = json_get_array(j, "conflicts"), at;
	const size_t n = json_length(array);

	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (; *ret_n < n; ++*ret_n) {
		struct engine_conflict *c = &(*ret)[*ret_n];

		at = json_at_object(array, *ret_n);
		c->path = json_get_name(at, "path");
		c->kind = kind_of(json_get_text(at, "kind"));
		c->hunks = (unsigned)json_get_uint(at, "hunks");
		c->settled = json_get_bool(at, "settled");
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++)
			c->sides[k] = json_get_name_or_null(at, sides[k]);
	}
	return 0;
}
