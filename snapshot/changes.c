#include "snapshot/changes.h"

#include "snapshot/diff.h"

static uint64_t names(const struct tree_entry *e)
{
	return e->form == TREE_DIR && e->below.files > 0 ? e->below.files : 1;
}

static int count(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct changes *c = ctx;

	(void)err;
	if (!e->before) {
		c->added += names(e->after);
	} else if (!e->after) {
		c->deleted += names(e->before);
	} else if (e->what == DIFF_TYPE &&
		   (e->before->form == TREE_DIR || e->after->form == TREE_DIR)) {
		c->deleted += names(e->before);
		c->added += names(e->after);
	} else {
		c->modified++;
	}
	return 0;
}

int changes_count(struct store *s, const struct object_id *from, const struct object_id *to,
		  struct changes *ret, struct err *err)
{
	struct changes c = { 0 };
	int r = diff_walk(s, from, to, &(struct diff_options){ 0 }, count, &c, err);

	if (r >= 0)
		*ret = c;
	return r;
}
