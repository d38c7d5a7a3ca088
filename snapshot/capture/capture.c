#include "snapshot/capture/capture.h"

#include <errno.h>
#include <string.h>

#include "snapshot/capture/capture-i.h"

void captured_done(struct captured *c)
{
	signatures_free(c->signatures);
	capture_report_done(&c->unread);
	capture_report_done(&c->gits);
	*c = (struct captured){ 0 };
}

/* Put the directories that had to wait for the end. */
static int put_waiting(struct walk *w, struct err *err)
{
	int r = 0;

	for (struct dir *d = w->waiting; r >= 0 && d; d = d->next_waiting)
		r = put_dir(&w->workers[0], d, err);
	return r;
}

static int put_root(struct walk *w, struct captured *c, struct err *err)
{
	struct root root = { .top = w->top.node->e };
	int r;

	root.top.ino = w->top.ino;
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	r = links_put(&w->links, w->workers[0].builder, &root, err);
	return r < 0 ? r : root_put(w->batch, &root, &c->root, err);
}

static int make_signatures(struct walk *w, bool renumbered, struct captured *c, struct err *err)
{
	const struct node *top = w->top.node;
	struct signature s = {
		.stat = &top->stat,
		.e = top->e,
		.trusted = top->trusted,
		.whole = top->whole,
		.record = top->record,
	};
	int r;

	s.e.ino = w->top.ino;
	r = signatures_finish(w->draft, &s, &c->root, renumbered, store_key(batch_store(w->batch)),
			      &c->signatures, err);
	return r == -EFBIG ? 0 : r;
}

/* 1 if inode numbers clash: there is no root then, only signatures for another pass. */
static int finish(struct walk *w, struct captured *c, struct err *err)
{
	int others, r;
	bool clash;

	/* All is as it was, and so are the numbers. */
	if (!w->careful && !w->top.node) {
		c->root = w->known->root;
		return 0;
	}
	others = w->careful ? inos_give(w, err) : inos_clash(w, err);
	clash = others > 0 && !w->careful;
	r = others;
	if (r < 0)
		return r;
	r = put_waiting(w, err);
	if (r < 0)
		return r;
	if (!w->top.node) {
		c->root = w->known->root;
		return clash;
	}
	if (!clash)
		r = put_root(w, c, err);
	if (r < 0)
		return r;
	r = make_signatures(w, others > 0 && w->careful, c, err);
	return r < 0 ? r : clash;
}

/* Report unreadable files even if the walk failed. */
static int walk_and_finish(struct walk *w, const char *path, const struct capture_options *options,
			   struct captured *ret, struct err *err)
{
	int r = walk_run(w, err);

	unread_take(&w->unread, &ret->unread);
	unread_take(&w->gits, &ret->gits);
	if (r < 0)
		return r;
	if (ret->unread.n > 0 && !options->skip_unreadable)
		return unread_fail(&ret->unread, path, err);
	return finish(w, ret, err);
}

static int pass(struct batch *b, const char *path, const struct capture_options *options,
		const struct signatures *known, bool careful, struct captured *ret, struct err *err)
{
	CLEANUP(walk_done) struct walk w;
	int r = walk_init(&w, b, path, options, known, careful, err);

	if (r < 0)
		return r;
	r = walk_and_finish(&w, path, options, ret, err);
	walk_stats(&w, &ret->stats);
	walk_promised(&w, &ret->promised);
	ret->promised.refused = options->lazy && !w.times_tell;
	return r;
}

int capture_directory(struct batch *b, const char *path, const struct capture_options *options,
		      struct captured *ret, struct err *err)
{
	const struct signatures *known = options->known;
	CLEANUP(captured_done) struct captured first = { 0 };
	int r;

	*ret = (struct captured){ 0 };
	r = pass(b, path, options, known, known && known->renumbered, ret, err);
	if (r != 1)
		return r;
	first = *ret;
	*ret = (struct captured){ .promised = first.promised };
	r = pass(b, path, options, first.signatures ? first.signatures : known, true, ret, err);
	if (r < 0)
		return r;
	if (!ret->signatures)
		ret->signatures = TAKE_PTR(first.signatures);
	return r;
}
