/*
 * Content, mode, owner and extended attributes are merged separately: making a file executable on
 * one side must not lose the other side's text.  The mtime follows the bytes.
 */
#include <sys/stat.h>

#include "base/bytes.h"
#include "snapshot/merge/merge-i.h"

#define NS_PER_S 1000000000

/* Whose something is. */
enum whose { WHOSE_BOTH, WHOSE_OURS, WHOSE_THEIRS, WHOSE_NEW };

bool merge_same_type(const struct tree_entry *a, const struct tree_entry *b)
{
	return (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

bool merge_same_content(const struct tree_entry *a, const struct tree_entry *b)
{
	if (!merge_same_type(a, b))
		return false;
	if (S_ISREG(a->mode)) {
		const struct content x = tree_entry_content(a), y = tree_entry_content(b);

		return content_equal(&x, &y);
	}
	return a->rdev == b->rdev &&
	       bytes_compare(a->target, a->target_len, b->target, b->target_len) == 0;
}

/* --- attributes ------------------------------------------------------------------------- */

/* `base` NULL: there was none, so what differs was set by both. */
static enum whose pick(const uint32_t *base, uint32_t ours, uint32_t theirs)
{
	if (ours == theirs)
		return WHOSE_BOTH;
	if (base && *base == ours)
		return WHOSE_THEIRS;
	return base && *base == theirs ? WHOSE_OURS : WHOSE_NEW;
}

/* 1 if they clash. */
static int merge_number(const struct merging *m, const char *path, const uint32_t *base,
			uint32_t ours, uint32_t theirs, uint32_t *ret)
{
	const enum whose whose = pick(base, ours, theirs);
	const bool clash = whose == WHOSE_NEW;

	*ret = whose == WHOSE_THEIRS || (clash && merge_wants_theirs(m, path)) ? theirs : ours;
	return clash;
}

static void set_mtime(struct tree_entry *e, int64_t s, uint32_t ns)
{
	e->mtime_s = s;
	e->mtime_ns = ns;
}

static bool later(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->mtime_s != b->mtime_s ? a->mtime_s > b->mtime_s : a->mtime_ns > b->mtime_ns;
}

static bool same_mtime(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns;
}

/* Same bytes, or a directory: the side that touched it wins, else the later time. */
static const struct tree_entry *mtime_from(const struct version v[VERSIONS])
{
	const struct tree_entry *b = v[BASE].e, *o = v[OURS].e, *t = v[THEIRS].e;

	if (b && same_mtime(b, o))
		return t;
	if (b && same_mtime(b, t))
		return o;
	return later(t, o) ? t : o;
}

static void merge_mtime(const struct merging *m, const struct version v[VERSIONS],
			enum whose content, struct tree_entry *ret)
{
	const struct tree_entry *from = NULL;

	switch (content) {
	case WHOSE_BOTH:
		from = mtime_from(v);
		break;
	case WHOSE_OURS:
		from = v[OURS].e;
		break;
	case WHOSE_THEIRS:
		from = v[THEIRS].e;
		break;
	case WHOSE_NEW:
		set_mtime(ret, m->options->now / NS_PER_S, (uint32_t)(m->options->now % NS_PER_S));
		return;
	}
	set_mtime(ret, from->mtime_s, from->mtime_ns);
}

static bool has_other_names(const struct version v[VERSIONS])
{
	return v[OURS].linked || v[THEIRS].linked;
}

/* Permission bits, owner, extended attributes; the type of *ret is as it should be. */
static int merge_attributes(struct merging *m, const char *path, const struct version v[VERSIONS],
			    struct tree_entry *ret, struct err *err)
{
	const struct tree_entry *b = v[BASE].e, *o = v[OURS].e, *t = v[THEIRS].e;
	const uint32_t base_mode = b ? b->mode & 07777 : 0;
	const struct object_id sets[VERSIONS] = { b ? b->xattrs : (struct object_id){ { 0 } },
						  o->xattrs, t->xattrs };
	uint32_t mode;
	int clash, r = 0;

	clash =
	    merge_number(m, path, b ? &base_mode : NULL, o->mode & 07777, t->mode & 07777, &mode);
	ret->mode = (ret->mode & S_IFMT) | mode;
	if (clash)
		r = merge_add_conflict(m, MERGE_MODE, path, v, err);
	clash = merge_number(m, path, b ? &b->uid : NULL, o->uid, t->uid, &ret->uid);
	clash |= merge_number(m, path, b ? &b->gid : NULL, o->gid, t->gid, &ret->gid);
	if (r < 0)
		return r;
	if (clash)
		r = merge_add_conflict(m, MERGE_OWNER, path, v, err);
	if (r < 0)
		return r;
	if (object_id_equal(&sets[OURS], &sets[THEIRS])) {
		ret->xattrs = sets[OURS];
		return 0;
	}
	r = merge_xattrs(m, path, sets, has_other_names(v), &ret->xattrs, err);
	return r <= 0 ? r : merge_add_conflict(m, MERGE_XATTRS, path, v, err);
}

/* --- content ---------------------------------------------------------------------------- */

static void take_content(const struct tree_entry *from, struct tree_entry *ret)
{
	ret->mode = (ret->mode & 07777) | (from->mode & S_IFMT);
	ret->form = from->form;
	ret->id = from->id;
	ret->size = from->size;
	ret->data = from->data;
	ret->rdev = from->rdev;
	ret->target = from->target;
	ret->target_len = from->target_len;
}

static int clash_whole(struct merging *m, enum merge_kind kind, const char *path,
		       const struct version v[VERSIONS], struct tree_entry *ret, struct err *err)
{
	const bool theirs = merge_wants_theirs(m, path);
	int r = merge_add_conflict(m, kind, path, v, err);

	take_content(v[theirs ? THEIRS : OURS].e, ret);
	return r < 0 ? r : theirs ? WHOSE_THEIRS : WHOSE_OURS;
}

struct texts {
	struct buf of[VERSIONS];
	struct buf merged;
};

static void texts_done(struct texts *t)
{
	for (int v = 0; v < VERSIONS; v++)
		buf_done(&t->of[v]);
	buf_done(&t->merged);
}

/* A base of another type has no text. */
static int load_texts(struct merging *m, const struct version v[VERSIONS], struct texts *t,
		      struct err *err)
{
	int r = 1;

	for (int i = 0; i < VERSIONS && r > 0; i++) {
		const struct buf *kept;

		if (!v[i].e || !S_ISREG(v[i].e->mode))
			continue;
		kept = fresh_get(m, OBJECT_CHUNK, &v[i].e->id);
		if (!kept)
			r = merge_text_load(m->store, v[i].e, &t->of[i], err);
		else if (buf_append(&t->of[i], kept->data, kept->len) < 0)
			r = err_nomem(err);
	}
	return r;
}

static int put_text(struct merging *m, const struct buf *text, bool keep, struct tree_entry *ret,
		    struct err *err)
{
	struct content c;
	int r = content_put(m->batch, text->data, text->len, &c, err);

	if (r < 0)
		return r;
	tree_entry_set_content(ret, &c);
	return keep ? fresh_keep(m, OBJECT_CHUNK, &ret->id, text->data, text->len, err) : 0;
}

/* Both changed a regular file, each in its way.  Whose it is then, or a negative errno. */
static int merge_regular(struct merging *m, const char *path, const struct version v[VERSIONS],
			 struct tree_entry *ret, struct err *err)
{
	CLEANUP(texts_done) struct texts t = { 0 };
	const enum merge_on_conflict wish = merge_wish(m, path);
	unsigned hunks;
	int r = load_texts(m, v, &t, err);

	if (r < 0)
		return r;
	if (r == 0)
		return clash_whole(m, v[BASE].e ? MERGE_BINARY : MERGE_ADD_ADD, path, v, ret, err);
	r = merge_text(t.of, m->options, wish, &t.merged, &hunks, err);
	if (r < 0)
		return r;
	if (hunks > 0) {
		r = clash_whole(m, v[BASE].e ? MERGE_CONTENT : MERGE_ADD_ADD, path, v, ret, err);
		if (r < 0)
			return r;
		merge_last_conflict(m)->hunks = hunks;
		merge_last_conflict(m)->settled |= wish == MERGE_MARKERS;
		merge_last_conflict(m)->marked = wish == MERGE_MARKERS;
		if (wish == MERGE_STOP)
			return r;
	} else {
		m->result.n_merged++;
	}
	r = put_text(m, &t.merged, has_other_names(v), ret, err);
	if (r < 0)
		return r;
	if (merge_same_content(ret, v[OURS].e))
		return WHOSE_OURS;
	return merge_same_content(ret, v[THEIRS].e) ? WHOSE_THEIRS : WHOSE_NEW;
}

/* All that is an edit, at once. */
static bool is_untouched(const struct tree_entry *base, const struct tree_entry *e)
{
	return base && merge_same_content(base, e) && base->mode == e->mode &&
	       base->uid == e->uid && base->gid == e->gid &&
	       object_id_equal(&base->xattrs, &e->xattrs);
}

/* Two types, and so two files as a whole. */
static int merge_types(struct merging *m, const char *path, const struct version v[VERSIONS],
		       struct tree_entry *ret, struct err *err)
{
	if (is_untouched(v[BASE].e, v[THEIRS].e))
		return WHOSE_OURS;
	if (!is_untouched(v[BASE].e, v[OURS].e))
		return clash_whole(m, v[BASE].e ? MERGE_TYPE : MERGE_ADD_ADD, path, v, ret, err);
	take_content(v[THEIRS].e, ret);
	return WHOSE_THEIRS;
}

static int merge_content(struct merging *m, const char *path, const struct version v[VERSIONS],
			 struct tree_entry *ret, struct err *err)
{
	const struct tree_entry *b = v[BASE].e, *o = v[OURS].e, *t = v[THEIRS].e;

	take_content(o, ret);
	if (!merge_same_type(o, t))
		return merge_types(m, path, v, ret, err);
	if (merge_same_content(o, t))
		return WHOSE_BOTH;
	if (b && merge_same_content(b, t))
		return WHOSE_OURS;
	if (b && merge_same_content(b, o)) {
		take_content(t, ret);
		return WHOSE_THEIRS;
	}
	if (S_ISREG(o->mode))
		return merge_regular(m, path, v, ret, err);
	return clash_whole(m,
			   !b                 ? MERGE_ADD_ADD
			   : S_ISLNK(o->mode) ? MERGE_TARGET
					      : MERGE_BINARY,
			   path, v, ret, err);
}

/* --- files and directories -------------------------------------------------------------- */

int merge_file(struct merging *m, const char *path, const struct version v[VERSIONS],
	       struct tree_entry *ret, struct err *err)
{
	struct tree_entry e = *v[OURS].e;
	int whose, r = 0;

	e.nlink = 0;
	whose = merge_content(m, path, v, &e, err);
	if (whose < 0)
		return err_wrap(err, whose, "'%s'", path);
	merge_mtime(m, v, (enum whose)whose, &e);
	/* The modes of two types cannot be compared. */
	if (merge_same_type(v[OURS].e, v[THEIRS].e)) {
		r = merge_attributes(m, path, v, &e, err);
	} else if (whose == WHOSE_THEIRS) {
		e.ino = v[THEIRS].e->ino;
		e.ctime_s = v[THEIRS].e->ctime_s;
		e.ctime_ns = v[THEIRS].e->ctime_ns;
		e.mode = v[THEIRS].e->mode;
		e.uid = v[THEIRS].e->uid;
		e.gid = v[THEIRS].e->gid;
		e.xattrs = v[THEIRS].e->xattrs;
	}
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	*ret = e;
	return 0;
}

int merge_dir(struct merging *m, const struct version v[VERSIONS], struct tree_entry *ret,
	      struct err *err)
{
	struct tree_entry e = *v[OURS].e;
	int r = merge_attributes(m, v[OURS].path, v, &e, err);

	if (r < 0)
		return err_wrap(err, r, "'%s'", v[OURS].path);
	merge_mtime(m, v, WHOSE_BOTH, &e);
	*ret = e;
	return 0;
}
