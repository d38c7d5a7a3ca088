/*
 * merge-fixture.h - for tests of merges: trees made from lists, and what became of them as text.
 *
 * A tree is a list of leaves; directories come by themselves.  What a leaf does not say is 0644,
 * owner 1000, mtime 100.  The same path has the same inode number in all trees, or that of its
 * file if it has several names.
 */
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include "cowfs/store/xattrs.h"
#include "snapshot/merge/merge.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

struct leaf {
	const char *path;
	const char *text; /* a regular file, or where a symlink leads */
	size_t len;       /* of the text; 0: up to its NUL */
	uint32_t mode;    /* 0: S_IFREG | 0644 */
	uint64_t hole;    /* bytes of nothing, instead of text */
	uint64_t link;    /* number of a file with several names */
	uint64_t ino;     /* of one that has no others; 0: by its path */
	uint64_t rdev;
	uint32_t uid, gid;
	int64_t mtime;
	const char *xattr; /* "name=value", separated by blanks */
};

#define LEAF_END  \
	{         \
		0 \
	}
#define F(p, t, ...)                                    \
	{                                               \
		.path = (p), .text = (t), ##__VA_ARGS__ \
	}
#define SYM(p, t, ...)                                                          \
	{                                                                       \
		.path = (p), .text = (t), .mode = S_IFLNK | 0777, ##__VA_ARGS__ \
	}
#define D(p, m, ...)                                              \
	{                                                         \
		.path = (p), .mode = S_IFDIR | (m), ##__VA_ARGS__ \
	}

static inline uint64_t leaf_ino(const char *path)
{
	uint64_t h = 1469598103934665603u;

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 1099511628211u;
	return h >> 8;
}

static inline struct object_id leaf_xattrs(struct batch *b, const char *text)
{
	struct object_id id = { { 0 } };
	struct xattr list[8];
	struct err err = { 0 };
	size_t n = 0;

	for (const char *p = text; p && *p != '\0'; p += strspn(p, " ")) {
		const size_t name = strcspn(p, "="), value = strcspn(p + name + 1, " ");

		list[n++] = (struct xattr){ p, name, p + name + 1, value };
		p += name + 1 + value;
	}
	CHECK_OK(xattrs_put(b, list, n, &id, &err), &err);
	return id;
}

static inline struct tree_entry leaf_entry(struct batch *b, const struct leaf *l)
{
	const size_t len = l->len ? l->len : l->text ? strlen(l->text) : 0;
	struct tree_entry e = {
		.mode = l->mode ? l->mode : S_IFREG | 0644,
		.uid = l->uid ? l->uid : 1000,
		.gid = l->gid ? l->gid : 1000,
		.ino = l->link  ? l->link
		       : l->ino ? l->ino
				: leaf_ino(l->path),
		.mtime_s = l->mtime ? l->mtime : 100,
		.ctime_s = 100,
		.rdev = l->rdev,
		.xattrs = leaf_xattrs(b, l->xattr),
	};
	struct content c = { .size = l->hole };
	struct err err = { 0 };

	if (S_ISREG(e.mode)) {
		if (!l->hole)
			CHECK_OK(content_put(b, l->text, len, &c, &err), &err);
		tree_entry_set_content(&e, &c);
	} else if (S_ISLNK(e.mode)) {
		e.target = l->text;
		e.target_len = e.size = len;
	}
	return e;
}

/* The part of a path that is the next name below a directory; 0: it is not below it. */
static inline size_t leaf_below(const char *path, const char *dir, size_t dir_len)
{
	if (dir_len == 0)
		return strcspn(path, "/");
	if (strncmp(path, dir, dir_len) != 0 || path[dir_len] != '/')
		return 0;
	return strcspn(path + dir_len + 1, "/");
}

static inline struct tree_entry leaf_dir(struct batch *b, const struct leaf *list, const char *dir,
					 size_t dir_len);

/* The least name below a directory that is above `last`; false: there is none. */
static inline bool leaf_next(const struct leaf *list, const char *dir, size_t dir_len,
			     const char *last, size_t last_len, const char **ret, size_t *ret_len)
{
	bool found = false;

	for (const struct leaf *l = list; l->path; l++) {
		const size_t n = leaf_below(l->path, dir, dir_len);
		const char *name = l->path + (dir_len ? dir_len + 1 : 0);

		if (n == 0 || (last && tree_name_compare(name, n, last, last_len) <= 0) ||
		    (found && tree_name_compare(name, n, *ret, *ret_len) >= 0))
			continue;
		*ret = name;
		*ret_len = n;
		found = true;
	}
	return found;
}

static inline struct tree_entry leaf_at(struct batch *b, const struct leaf *list, const char *dir,
					size_t dir_len, const char *name, size_t name_len)
{
	char path[512];
	struct tree_entry e;

	CHECK((size_t)snprintf(path, sizeof(path), "%.*s%s%.*s", (int)dir_len, dir,
			       dir_len ? "/" : "", (int)name_len, name) < sizeof(path));
	for (const struct leaf *l = list; l->path; l++) {
		if (strcmp(l->path, path) != 0 || S_ISDIR(l->mode))
			continue;
		e = leaf_entry(b, l);
		if (l->link)
			e = (struct tree_entry){ .form = TREE_LINK,
						 .mode = e.mode & S_IFMT,
						 .ino = l->link };
		return e;
	}
	return leaf_dir(b, list, path, strlen(path));
}

static inline struct tree_entry leaf_dir(struct batch *b, const struct leaf *list, const char *dir,
					 size_t dir_len)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct leaf as = { .path = dir, .mode = S_IFDIR | 0755 };
	struct err err = { 0 };
	const char *name = NULL;
	size_t len = 0;
	struct tree_entry e;
	uint32_t nlink = 2;

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	while (leaf_next(list, dir, dir_len, name, len, &name, &len)) {
		e = leaf_at(b, list, dir, dir_len, name, len);
		e.name = name;
		e.name_len = len;
		nlink += S_ISDIR(e.mode);
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
	}
	for (const struct leaf *l = list; l->path; l++)
		if (strcmp(l->path, dir) == 0 && S_ISDIR(l->mode))
			as = *l;
	e = leaf_entry(b, &as);
	e.form = TREE_DIR;
	e.nlink = nlink;
	CHECK_OK(tree_builder_finish(t, &e.id, &e.below, &err), &err);
	return e;
}

static inline void leaf_links(struct batch *b, const struct leaf *list, struct root *root)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	uint64_t last = 0;
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (;;) {
		const struct leaf *next = NULL;
		char name[ROOT_LINK_NAME_SIZE];
		struct tree_entry e;

		for (const struct leaf *l = list; l->path; l++)
			if (l->link > last && (!next || l->link < next->link))
				next = l;
		if (!next)
			break;
		e = leaf_entry(b, next);
		for (const struct leaf *l = list; l->path; l++)
			e.nlink += l->link == next->link;
		e.name = root_link_name(next->link, name);
		e.name_len = strlen(name);
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
		last = next->link;
	}
	if (last > 0)
		CHECK_OK(tree_builder_finish(t, &root->links, &root->in_links, &err), &err);
}

static inline struct object_id leaf_root(struct batch *b, const struct leaf *list)
{
	struct root root = { .top = leaf_dir(b, list, "", 0) };
	struct object_id id;
	struct err err = { 0 };

	leaf_links(b, list, &root);
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	return id;
}

static inline struct object_id leaf_tree(struct store *s, const char *name, const struct leaf *list)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id id = leaf_root(b, list);

	stock_name(b, REF_SNAPSHOT, name, &id, REF_REPLACE);
	stock_commit(b);
	return id;
}

/* --- as text ---------------------------------------------------------------------------- */

static inline void describe_text(struct store *s, const struct tree_entry *e, struct buf *out)
{
	const struct content c = tree_entry_content(e);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	char text[4096];
	struct err err = { 0 };

	if (c.size > sizeof(text)) {
		CHECK_EQ(buf_printf(out, " %llu bytes", (unsigned long long)c.size), 0);
		return;
	}
	CHECK_OK(content_reader_new(s, &c, &rd, &err), &err);
	CHECK_EQ(content_reader_read(rd, 0, text, c.size, &err), c.size);
	for (size_t i = 0; i < c.size; i++)
		if (text[i] == '\n')
			text[i] = '|';
		else if (text[i] == '\0')
			text[i] = '0';
	CHECK_EQ(buf_printf(out, " %.*s", (int)c.size, text), 0);
}

static inline void describe_xattrs(struct store *s, const struct tree_entry *e, struct buf *out)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct err err = { 0 };
	struct xattr x;

	CHECK_OK(xattrs_get(s, &e->xattrs, &set, &err), &err);
	for (size_t pos = 0; xattrs_next(&set, &pos, &x);)
		CHECK_EQ(buf_printf(out, " %.*s=%.*s", (int)x.name_len, x.name, (int)x.value_len,
				    (const char *)x.value),
			 0);
}

/* "PATH CONTENT ATTRIBUTES", of which only the unusual is written. */
static inline void describe_entry(struct store *s, const struct root *root, const char *path,
				  const struct tree_entry *given, struct buf *out)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e = *given;
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(out, path), 0);
	if (e.form == TREE_LINK)
		CHECK_OK(root_link(s, root, e.ino, &e, &hold, &err), &err);
	if (S_ISLNK(e.mode))
		CHECK_EQ(buf_printf(out, " -> %.*s", (int)e.target_len, e.target), 0);
	else if (S_ISREG(e.mode))
		describe_text(s, &e, out);
	else if (S_ISDIR(e.mode))
		CHECK_EQ(buf_append_str(out, "/"), 0);
	else
		CHECK_EQ(buf_printf(out, " special %llu", (unsigned long long)e.rdev), 0);
	if ((S_ISREG(e.mode) && (e.mode & 07777) != 0644) ||
	    (S_ISDIR(e.mode) && (e.mode & 07777) != 0755))
		CHECK_EQ(buf_printf(out, " %04o", e.mode & 07777), 0);
	if (e.uid != 1000 || e.gid != 1000)
		CHECK_EQ(buf_printf(out, " %u:%u", e.uid, e.gid), 0);
	if (e.mtime_s != 100)
		CHECK_EQ(buf_printf(out, " @%lld", (long long)e.mtime_s), 0);
	describe_xattrs(s, &e, out);
	/* One that is not among the links counts no names. */
	if (given->form == TREE_LINK || (e.form != TREE_DIR && e.nlink != 0))
		CHECK_EQ(buf_printf(out, " x%u", e.nlink), 0);
	CHECK_EQ(buf_append_str(out, "\n"), 0);
}

/* Directories are listed if they are empty or unusual. */
static inline void describe_dir(struct store *s, const struct root *root, const char *dir,
				const struct tree_entry *as, struct buf *out)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	const bool usual = (as->mode & 07777) == 0755 && as->uid == 1000 && as->mtime_s == 100 &&
			   object_id_is_zero(&as->xattrs);
	struct err err = { 0 };
	struct tree_entry e;
	uint32_t nlink = 2;
	bool any = false;

	CHECK_OK(tree_iter_new(s, &as->id, &it, &err), &err);
	if (!usual)
		describe_entry(s, root, dir, as, out);
	while (tree_iter_next(it, &e, &err) > 0) {
		char path[512];

		any = true;
		CHECK(e.ino != 0); /* who lists a directory would take the name for none */
		CHECK((size_t)snprintf(path, sizeof(path), "%s%s%.*s", dir, *dir ? "/" : "",
				       (int)e.name_len, e.name) < sizeof(path));
		nlink += e.form == TREE_DIR;
		if (e.form == TREE_DIR)
			describe_dir(s, root, path, &e, out);
		else
			describe_entry(s, root, path, &e, out);
	}
	CHECK_EQ(as->nlink, nlink);
	if (!any && usual && *dir)
		describe_entry(s, root, dir, as, out);
}

static inline void describe_tree(struct store *s, const struct object_id *id, struct buf *out)
{
	struct root root;
	struct err err = { 0 };

	CHECK_OK(root_get(s, id, &root, &err), &err);
	describe_dir(s, &root, "", &root.top, out);
	CHECK(buf_str(out) != NULL);
}

/* "KIND PATH [HUNKS] [!]"; the mark says that it is not settled. */
static inline void describe_conflicts(const struct merge *m, struct buf *out)
{
	for (size_t i = 0; i < m->n_conflicts; i++) {
		const struct merge_conflict *c = &m->conflicts[i];

		CHECK_EQ(buf_printf(out, "%s %s", merge_kind_name(c->kind), c->path), 0);
		if (c->hunks > 0)
			CHECK_EQ(buf_printf(out, " %u", c->hunks), 0);
		CHECK_EQ(buf_append_str(out, c->settled ? "\n" : " !\n"), 0);
	}
	CHECK(buf_str(out) != NULL);
}

/* --- choices ------------------------------------------------------------------------------ */

#define CHOICES_MAX 64

struct chosen {
	struct merge_choice list[CHOICES_MAX];
	char paths[CHOICES_MAX][256];
	size_t n;
};

/* Take that side wherever nothing was chosen yet. */
static inline size_t choose_open(struct chosen *c, const struct merge *m,
				 enum merge_on_conflict take)
{
	const size_t before = c->n;

	for (size_t i = 0; i < m->n_conflicts; i++) {
		const char *path = m->conflicts[i].path;

		if (m->conflicts[i].settled ||
		    (c->n > before && strcmp(c->paths[c->n - 1], path) == 0))
			continue;
		CHECK(c->n < CHOICES_MAX);
		snprintf(c->paths[c->n], sizeof(c->paths[0]), "%s", path);
		c->list[c->n] = (struct merge_choice){ .path = c->paths[c->n], .take = take };
		c->n++;
	}
	return c->n - before;
}

/* Merge, choose for each conflict that is open, and merge again, until none is. */
static inline void merge_by_choices(struct batch *b, const struct object_id *base,
				    const struct object_id *ours, const struct object_id *theirs,
				    const struct merge_options *options,
				    enum merge_on_conflict take, struct merge *ret)
{
	struct merge_options o = *options;
	struct chosen chosen = { .n = 0 };
	struct err err = { 0 };

	o.on_conflict = MERGE_STOP;
	o.choices = chosen.list;
	do {
		merge_done(ret);
		o.n_choices = chosen.n;
		CHECK_OK(merge_trees(b, base, ours, theirs, &o, ret, &err), &err);
	} while (choose_open(&chosen, ret, take) > 0);
}
