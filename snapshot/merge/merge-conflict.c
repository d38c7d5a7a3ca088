#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "snapshot/merge/merge-i.h"

const char *merge_kind_name(enum merge_kind kind)
{
	static const char *const names[] = {
		[MERGE_CONTENT] = "content",
		[MERGE_BINARY] = "binary",
		[MERGE_TARGET] = "symlink",
		[MERGE_ADD_ADD] = "add/add",
		[MERGE_EDIT_DELETE] = "edit/delete",
		[MERGE_DELETE_EDIT] = "delete/edit",
		[MERGE_DIR_FILE] = "directory/file",
		[MERGE_TYPE] = "type",
		[MERGE_RENAME_RENAME] = "rename/rename",
		[MERGE_RENAME_DELETE] = "rename/delete",
		[MERGE_RENAME_ADD] = "rename/add",
		[MERGE_MODE] = "mode",
		[MERGE_OWNER] = "owner",
		[MERGE_XATTRS] = "xattrs",
	};

	assert((size_t)kind < ARRAY_LEN(names));
	return names[kind];
}

static void side_of_conflict_done(struct merge_side *s)
{
	free(s->path);
	tree_entry_done(&s->entry);
}

static void conflict_done(struct merge_conflict *c)
{
	free(c->path);
	side_of_conflict_done(&c->base);
	side_of_conflict_done(&c->ours);
	side_of_conflict_done(&c->theirs);
}

void merge_done(struct merge *m)
{
	VEC_FREE(it, m->conflicts, m->n_conflicts, conflict_done(it));
	*m = (struct merge){ 0 };
}

static int fill_side(struct merge_side *to, const struct version *v)
{
	if (!v->e)
		return 0;
	to->path = strdup(v->path);
	return to->path ? tree_entry_copy(v->e, &to->entry) : -ENOMEM;
}

int merge_add_conflict(struct merging *m, enum merge_kind kind, const char *path,
		       const struct version v[VERSIONS], struct err *err)
{
	struct merge *to = &m->result;
	const enum merge_on_conflict wish = merge_wish(m, path);
	struct merge_conflict *c;

	if (!VEC_ROOM(to->conflicts, to->n_conflicts, to->cap_conflicts))
		return err_nomem(err);
	c = &to->conflicts[to->n_conflicts++];
	*c = (struct merge_conflict){
		.kind = kind,
		.path = strdup(path),
		.settled = wish == MERGE_OURS || wish == MERGE_THEIRS,
	};
	if (!c->path || fill_side(&c->base, &v[BASE]) < 0 || fill_side(&c->ours, &v[OURS]) < 0 ||
	    fill_side(&c->theirs, &v[THEIRS]) < 0)
		return err_nomem(err);
	return 0;
}

struct merge_conflict *merge_last_conflict(struct merging *m)
{
	assert(m->result.n_conflicts > 0);
	return &m->result.conflicts[m->result.n_conflicts - 1];
}

const struct merge_choice *merge_choice_of(const struct merging *m, const char *path)
{
	return map_get(&m->choices, path);
}

static int add_choice(struct merging *m, const char *path, const struct merge_choice *choice,
		      struct err *err)
{
	union {
		const struct merge_choice *given;
		void *value;
	} of = { .given = choice };
	void *existing;

	return map_add(&m->choices, path, of.value, &existing) < 0 ? err_nomem(err) : 0;
}

int merge_learn_choices(struct merging *m, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->options->n_choices && r >= 0; i++) {
		const struct merge_choice *c = &m->options->choices[i];

		assert(c->take == MERGE_OURS || c->take == MERGE_THEIRS);
		r = add_choice(m, c->path, c, err);
	}
	return r;
}

int merge_share_choice(struct merging *m, const char *from, const char *to, struct err *err)
{
	const struct merge_choice *choice = merge_choice_of(m, from);

	return !choice || merge_choice_of(m, to) ? 0 : add_choice(m, to, choice, err);
}

enum merge_on_conflict merge_wish(const struct merging *m, const char *path)
{
	const struct merge_choice *choice = merge_choice_of(m, path);

	return choice ? choice->take : m->options->on_conflict;
}

bool merge_wants_theirs(const struct merging *m, const char *path)
{
	return merge_wish(m, path) == MERGE_THEIRS;
}

static int fill_choice(struct merging *m, const struct merge_choice *choice, struct err *err)
{
	const int64_t ns = 1000000000;
	struct draft_name *n;
	struct tree_entry e;
	int r = draft_find(&m->draft, choice->path, &n, NULL, err);

	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return r;
	if (r < 0 || !draft_is_there(n) || !S_ISREG(n->now.mode))
		return err_set(err, -ECANCELED,
			       "no file stands at '%s' after the merge, so none can be put there",
			       choice->path);
	e = n->group ? n->group->now : n->now;
	tree_entry_set_content(&e, choice->bytes);
	e.mtime_s = m->options->now / ns;
	e.mtime_ns = (uint32_t)(m->options->now % ns);
	return n->group ? draft_group_set(n->group, &e, err) : draft_set(n, &e, NULL, err);
}

int merge_fill_choices(struct merging *m, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->options->n_choices && r >= 0; i++)
		if (m->options->choices[i].bytes)
			r = fill_choice(m, &m->options->choices[i], err);
	return r;
}

static int compare_conflicts(const void *a, const void *b)
{
	const struct merge_conflict *x = a, *y = b;
	const int order = path_compare(x->path, y->path);

	return order != 0 ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

void merge_sort_conflicts(struct merge *m)
{
	VEC_SORT(m->conflicts, m->n_conflicts, compare_conflicts);
}
