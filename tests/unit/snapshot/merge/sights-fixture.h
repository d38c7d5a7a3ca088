/*
 * sights-fixture.h - a tree as somebody sees it who looks at every name: stat(2), and what is in it.
 *
 * Which names are one file is found in two ways, by what the tree says and by what stat(2) would
 * show of it, and both must say the same.
 */
#pragma once

#include <inttypes.h>

#include "tests/unit/snapshot/merge/merge-fixture.h"

#define SIGHTS_MAX  64
#define SIGHTS_PATH 128

struct sight {
	char path[SIGHTS_PATH];
	struct tree_entry e; /* of the file; its target is owned */
	bool link;           /* the name stands for a file among the links */
	bool mistaken;       /* and takes it for one of another type */
};

struct sights {
	struct sight list[SIGHTS_MAX]; /* in the order of a walk */
	size_t n;
	size_t n_links; /* files that stand among the links */
};

static inline void sights_done(struct sights *s)
{
	for (size_t i = 0; i < s->n; i++)
		tree_entry_done(&s->list[i].e);
}

static inline void sights_add(struct store *s, const struct root *root, const char *path,
			      const struct tree_entry *given, struct sights *out)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct sight *to = &out->list[out->n++];
	struct tree_entry e = *given;
	struct err err = { 0 };

	CHECK(out->n <= SIGHTS_MAX);
	*to = (struct sight){ .link = given->form == TREE_LINK };
	memcpy(to->path, path, SIGHTS_PATH);
	if (to->link)
		CHECK_OK(root_link(s, root, e.ino, &e, &hold, &err), &err);
	to->mistaken = (e.mode & S_IFMT) != (given->mode & S_IFMT);
	CHECK_EQ(tree_entry_copy(&e, &to->e), 0);
}

static inline void sights_enter(struct store *s, const struct root *root, const char *dir,
				const struct object_id *tree, struct sights *out)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct err err = { 0 };
	struct tree_entry e;
	int r;

	CHECK_OK(tree_iter_new(s, tree, &it, &err), &err);
	while ((r = tree_iter_next(it, &e, &err)) > 0) {
		char path[SIGHTS_PATH];

		CHECK(snprintf(path, sizeof(path), "%s%s%.*s", dir, *dir ? "/" : "",
			       (int)e.name_len, e.name) < SIGHTS_PATH);
		sights_add(s, root, path, &e, out);
		if (e.form == TREE_DIR)
			sights_enter(s, root, path, &e.id, out);
	}
	CHECK_OK(r, &err);
}

static inline void sights_of(struct store *s, const struct object_id *id, struct sights *ret)
{
	struct err err = { 0 };
	struct root root;

	*ret = (struct sights){ 0 };
	CHECK_OK(root_get(s, id, &root, &err), &err);
	sights_enter(s, &root, "", &root.top.id, ret);
	ret->n_links = root.in_links.files;
}

/* The first of its names, by what the tree says. */
static inline size_t sights_first(const struct sights *s, size_t at)
{
	size_t i = 0;

	while (i < at &&
	       !(s->list[at].link && s->list[i].link && s->list[i].e.ino == s->list[at].e.ino))
		i++;
	return i;
}

static inline size_t sights_names(const struct sights *s, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += sights_first(s, i) == sights_first(s, at);
	return n;
}

static inline const struct sight *sights_get(const struct sights *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->list[i].path, path) == 0)
			return &s->list[i];
	return NULL;
}

static inline bool sights_are_one(const struct sights *s, const struct sight *a,
				  const struct sight *b)
{
	return a && b &&
	       sights_first(s, (size_t)(a - s->list)) == sights_first(s, (size_t)(b - s->list));
}

static inline bool sight_same_content(const struct sight *a, const struct sight *b)
{
	return (a->e.mode & S_IFMT) == (b->e.mode & S_IFMT) && a->e.size == b->e.size &&
	       object_id_equal(&a->e.id, &b->e.id) && a->e.target_len == b->e.target_len &&
	       (a->e.target_len == 0 || memcmp(a->e.target, b->e.target, a->e.target_len) == 0);
}

/* What is wrong with a name; NULL: nothing. */
static inline const char *sights_flaw(const struct sights *s, size_t at)
{
	const struct sight *a = &s->list[at];

	if (a->e.form == TREE_DIR)
		return NULL;
	if (a->mistaken)
		return "has the type of another file";
	if (!a->link && a->e.nlink != 0)
		return "counts names and is not among the links";
	if (a->link && a->e.nlink != sights_names(s, at))
		return "has not as many names as it says";
	return NULL;
}

static inline bool sights_share_number(const struct sights *s, size_t at)
{
	const struct sight *a = &s->list[at];

	for (size_t i = 0; i < s->n; i++)
		if (i != at && !(a->link && s->list[i].link) && s->list[i].e.ino == a->e.ino)
			return true;
	return false;
}

/* Each name, and of what others it is one; times of directories are not told. */
static inline void sights_tell(const struct sights *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct sight *a = &s->list[i];
		const struct tree_entry *e = &a->e;

		CHECK_EQ(buf_printf(out, "%s %o", a->path, e->mode), 0);
		if (S_ISREG(e->mode))
			CHECK_EQ(buf_printf(out, " %" PRIu64 " bytes %02x%02x", e->size, e->id.b[0],
					    e->id.b[1]),
				 0);
		if (S_ISLNK(e->mode))
			CHECK_EQ(buf_printf(out, " -> %.*s", (int)e->target_len, e->target), 0);
		if (e->form != TREE_DIR)
			CHECK_EQ(buf_printf(out, " @%" PRId64, e->mtime_s), 0);
		if (sights_names(s, i) > 1)
			CHECK_EQ(buf_printf(out, " = %s", s->list[sights_first(s, i)].path), 0);
		CHECK_EQ(buf_append_str(out, "\n"), 0);
	}
	CHECK(buf_str(out) != NULL);
}
