/*
 * The answer about a snapshot that was taken.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "engine/act/strays-i.h"
#include "engine/act/taking-i.h"
#include "engine/find/outer-i.h"
#include "engine/find/part-i.h"
#include "engine/find/touched-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"
#include "snapshot/diff/changes.h"

/* A larger folder without git and without a build file may not have been meant. */
#define LARGE_FILES 32768
#define LARGE_BYTES ((uint64_t)1 << 30)

/* Hand the paths that were left out over to the answer. */
static int describe_skipped(struct taking *t, struct engine_taken *ret, struct err *err)
{
	struct capture_report *unread = &t->captured.unread;

	ret->left_out = TAKE_PTR(t->left_out.list);
	ret->n_left_out = t->left_out.n;
	t->left_out = (struct strlist){ 0 };
	ret->skipped_more = unread->more;
	if (unread->n == 0)
		return 0;
	ret->skipped = calloc(unread->n, sizeof(*ret->skipped));
	if (!ret->skipped)
		return err_nomem(err);
	for (; ret->n_skipped < unread->n; ret->n_skipped++) {
		struct capture_unread *one = &unread->list[ret->n_skipped];

		ret->skipped[ret->n_skipped].path = TAKE_PTR(one->path);
		ret->skipped[ret->n_skipped].why = TAKE_PTR(one->why);
	}
	return 0;
}

int taken_describe(struct taking *t, struct engine_taken *ret, struct err *err)
{
	int r;

	ret->registered = t->is_new;
	ret->dirs = t->captured.stats.dirs;
	ret->project = strdup(t->project.path);
	if (!ret->project)
		return err_nomem(err);
	r = describe_skipped(t, ret, err);
	if (r < 0)
		return r;
	r = t->options->git ? 0 : strays_tell(t->task, &t->captured, t->project.path, ret, err);
	if (r < 0)
		return r;
	r = history_entry(t->is_same ? &t->parent : &t->snapshot, &ret->snapshot, err);
	return r >= 0 && t->options->tag ? tag_append(&ret->snapshot, t->options->tag, err) : r;
}

/* A lazy capture that has ended since gave it another root. */
static int reread(struct store *store, struct snapshot *s, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot now = { 0 };
	int r = snapshot_get(store, &s->id, &now, err);

	if (r >= 0)
		s->root = now.root;
	return r;
}

static int count_changes(const struct taking *t, struct changes *ret, struct err *err)
{
	const struct object_id *from = &t->parent.root, *to = &t->snapshot.root;

	return t->part ? part_count_changes(t->store, t->part, from, to, ret, err)
		       : changes_count(t->store, from, to, ret, err);
}

void taken_warn_of_choice(struct taking *t)
{
	const struct snapshot *s = &t->snapshot;
	struct engine *e = &t->task->engine;
	const char *path = t->project.path, *mark;
	AUTO_FREE char *outer = NULL;
	char size[SIZE_TEXT_MAX];

	if (project_is_work_tree(path) || outer_is_marked(path))
		return;
	outer = outer_find(e, path, &mark);
	if (outer)
		engine_warn(e,
			    "the project is '%s'; '%s' above it has a %s: if you meant that, "
			    "'projects forget %s', then 'init %s'",
			    path, outer, mark, path, outer);
	else if (s->files > LARGE_FILES || s->bytes > LARGE_BYTES)
		engine_warn(e,
			    "'%s' is a project now, with %s in %" PRIu64 " file%s; if you did not "
			    "mean that: 'projects forget %s'",
			    path, size_format(s->bytes, size), s->files, s->files == 1 ? "" : "s",
			    path);
}

void taken_compare(struct taking *t, struct engine_taken *taken)
{
	struct changes changes = { 0 };
	struct err err = { 0 };

	if (catalog_id_is_zero(&t->parent.id) ||
	    promises_open(t->task->host->promises, &t->project.id))
		return;
	if (!t->is_same &&
	    (reread(t->store, &t->parent, &err) < 0 || reread(t->store, &t->snapshot, &err) < 0 ||
	     count_changes(t, &changes, &err) < 0)) {
		engine_warn(&t->task->engine, "comparing with the snapshot before: %s, continuing",
			    err.msg);
		return;
	}
	if (!t->is_same && !t->part)
		touched_note(t->store, &t->snapshot.project, &t->parent.root, &t->snapshot.root);
	taken->added = changes.added;
	taken->modified = changes.modified;
	taken->deleted = changes.deleted;
	taken->compared = true;
}
