/*
 * promote-takes.c - which paths take part in a promotion.
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "engine/act/deliver-i.h"
#include "engine/act/promoting-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/part-i.h"
#include "snapshot/diff/changes.h"

static void add_left_path(struct promoting *p, const char *path, size_t len, const char *why)
{
	struct engine_promotion *res = &p->result;
	AUTO_FREE char *left = strndup(path, len);

	if (!left || VEC_HAS(it, res->left, res->n_left, strcmp(it->path, left) == 0))
		return;
	IGNORE_RESULT(landing_add_path(&res->left, &res->n_left, left, 'M', why),
		      "then it is not told");
}

/*
 * A rollback leaves alone what it cannot read, so that one of its two states lacks it means nothing.  A merge
 * leaves it out of both.
 */
static bool was_unread(struct promoting *p, const char *path)
{
	const struct {
		const char *lacks;
		const struct object_id *root;
	} sides[] = { { p->base.lacks, &p->base.root }, { p->theirs.lacks, &p->theirs_root } };
	const char *at = NULL;
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(sides) && !at; i++) {
		const char *lacks = sides[i].lacks;

		at = survey_lacks_at(lacks, path, &len);
		/* A failure here is one of the merge, too. */
		if (!at && lacks && strcmp(lacks, SNAPSHOT_LACKS_MORE) == 0 &&
		    part_is_in(p->store, sides[i].root, path, NULL) <= 0) {
			at = path;
			len = strlen(path);
		}
	}
	if (at)
		add_left_path(p, at, len, "could not be read then");
	return at;
}

/* Of a target, the names that are to go there; an undo looks at no others anyway. */
static bool is_delivered(const struct promoting *p, const char *path)
{
	const size_t len = strcspn(path, "/");

	return VEC_HAS(it, p->names.list, p->names.n,
		       strncmp(*it, path, len) == 0 && (*it)[len] == '\0') ||
	       p->options->undo;
}

bool promoting_takes(const char *path, void *ctx)
{
	struct promoting *p = ctx;
	const char *unread;
	size_t len;

	/* A rollback changes .git too, so undoing one restores it whole or conflicts. */
	if (!p->with_git && conflicts_is_git(path, &len)) {
		add_left_path(p, path, len, NULL);
		return false;
	}
	/* That the project as captured lacks it does not mean that it was deleted. */
	unread = survey_unread_at(&p->landing.now, path);
	if (unread) {
		add_left_path(p, unread, strlen(unread), "cannot be read here");
		return false;
	}
	if (p->undoes.kind == RECEIPT_ROLLBACK && was_unread(p, path))
		return false;
	if (deliver_is(p))
		return is_delivered(p, path);
	return (!p->paths || ignore_covers(p->paths, path)) &&
	       (!p->excludes || !ignore_covers(p->excludes, path));
}

static int refuse_unread(const char *path, char status, void *ctx, struct err *err)
{
	struct promoting *p = ctx;

	(void)status;
	if (!survey_unread_at(&p->landing.now, path) ||
	    (p->undoes.kind == RECEIPT_ROLLBACK && was_unread(p, path)))
		return 0;
	return err_set(err, -EACCES,
		       "nothing is undone: '%.160s' is among the changes and cannot be read", path);
}

int promoting_check_unread(struct promoting *p, struct err *err)
{
	if (p->landing.now.unread.n == 0)
		return 0;
	return changes_each(p->store, &p->base.root, &p->theirs_root, refuse_unread, p, err);
}
