#include "engine/find/conflicts-i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "snapshot/merge/merge-show.h"

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

static bool is_file(const struct merge_side *side)
{
	return side->path && S_ISREG(side->entry.mode);
}

/* Report the resolution of the conflicts at one path, and the versions there. */
static size_t report_decision(const struct merge *m, size_t i, const struct resolve_set *set,
			      struct engine_conflict *to)
{
	const struct resolution *r = resolve_set_find(set, m->conflicts[i].path);
	const size_t n = resolve_versions(&m->conflicts[i], m->n_conflicts - i, to->versions);

	to->take = r && r->valid ? r->take : ENGINE_TAKE_NONE;
	to->stale = r && !r->valid;
	for (size_t k = 1; k < n; k++) {
		memcpy(to[k].versions, to->versions, sizeof(to->versions));
		to[k].take = to->take;
		to[k].stale = to->stale;
	}
	return n;
}

int conflicts_tell(const struct merge *m, const struct resolve_set *set,
		   const struct conflict_names *names, struct engine_conflict **ret, size_t *ret_n,
		   struct err *err)
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
			.is_marked = from->marked,
			.file = is_file(&from->ours) || is_file(&from->theirs),
			.sides = { side_name(&from->base, names->base),
				   side_name(&from->ours, names->ours),
				   side_name(&from->theirs, names->theirs) },
		};
		if (!c->path)
			return err_nomem(err);
		open |= !from->settled;
	}
	for (size_t i = 0; i < m->n_conflicts;)
		i += report_decision(m, i, set, &(*ret)[i]);
	return open;
}

/* --- texts ------------------------------------------------------------------------------ */

#define SHOWN_MAX     ((size_t)1 << 20) /* bytes of one text */
#define SHOWN_ALL_MAX ((size_t)8 << 20) /* bytes of all texts */

/* NULL if the text has a NUL byte. */
static char *string_of(const struct buf *text)
{
	if (text->len > 0 && memchr(text->data, '\0', text->len))
		return NULL;
	return strndup(text->len > 0 ? (const char *)text->data : "", text->len);
}

static int take_shown(const struct merge_shown *shown, struct engine_conflict *c, struct err *err)
{
	bool all = true;

	for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++) {
		c->texts[k] = shown->has[k] ? string_of(&shown->text[k]) : NULL;
		all &= !shown->has[k] || c->texts[k];
	}
	if (!all || shown->n_hunks == 0)
		return 0;
	c->marked = string_of(&shown->marked);
	c->places = calloc(shown->n_hunks, sizeof(*c->places));
	if (!c->marked || !c->places)
		return err_nomem(err);
	for (size_t i = 0; i < shown->n_hunks; i++) {
		struct engine_hunk *to = &c->places[c->n_places++];

		to->line = shown->hunks[i].line;
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++) {
			to->text[k] = string_of(&shown->hunks[i].text[k]);
			if (!to->text[k])
				return err_nomem(err);
		}
	}
	return 0;
}

int conflicts_show(struct store *s, const struct merge *m, const struct merge_options *options,
		   struct engine_conflict *list, struct err *err)
{
	size_t left = SHOWN_ALL_MAX;
	int r = 0;

	for (size_t i = 0; i < m->n_conflicts && r >= 0; i++) {
		CLEANUP(merge_shown_done) struct merge_shown shown = { 0 };
		size_t size = 0;

		r = merge_show(s, &m->conflicts[i], options, SHOWN_MAX, &shown, err);
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++)
			size += shown.text[k].len;
		if (r <= 0 || size > left)
			continue;
		left -= size;
		r = take_shown(&shown, &list[i], err);
	}
	return r < 0 ? r : 0;
}
