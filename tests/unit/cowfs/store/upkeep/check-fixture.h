/*
 * check-fixture.h - for tests of check: a store that is filled by hand, and the report on it.
 */
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/upkeep/check.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define INO 5

/* A store being filled, then its report. */
struct scene {
	struct store *store;
	struct batch *b;
	struct check_report report;
};

static inline struct scene scene_open(const char *name)
{
	struct scene sc = { .store = stock_open(test_path(name), STORE_CREATE) };

	sc.b = stock_begin(sc.store);
	return sc;
}

static inline void scene_done(struct scene *sc)
{
	check_report_done(&sc->report);
	batch_end(sc->b);
	store_close(sc->store);
}

static inline struct tree_entry dir_entry(const char *name)
{
	return (struct tree_entry){
		.name = name, .name_len = strlen(name), .form = TREE_DIR, .mode = S_IFDIR | 0755
	};
}

static inline struct tree_entry file(struct batch *b, const char *name, const char *text)
{
	struct tree_entry e = { .name = name, .name_len = strlen(name), .mode = S_IFREG | 0644 };
	struct content c;
	struct err err = { 0 };

	CHECK_OK(content_put(b, text, strlen(text), &c, &err), &err);
	tree_entry_set_content(&e, &c);
	return e;
}

static inline struct tree_entry link_to(const char *name, uint64_t ino)
{
	return (struct tree_entry){ .name = name,
				    .name_len = strlen(name),
				    .form = TREE_LINK,
				    .mode = S_IFREG,
				    .ino = ino };
}

static inline struct tree_entry directory(struct batch *b, const char *name,
					  const struct tree_entry *in, size_t n)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e = dir_entry(name);
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(tree_builder_add(t, &in[i], &err), &err);
	CHECK_OK(tree_builder_finish(t, &e.id, &e.below, &err), &err);
	return e;
}

/* A snapshot of this first directory and, unless NULL, these links. */
static inline void put_snapshot(struct batch *b, const char *name, const struct tree_entry *top,
				const struct tree_entry *links)
{
	struct root root = { .top = *top };
	struct object_id id;
	struct err err = { 0 };

	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	if (links) {
		root.links = links->id;
		root.in_links = links->below;
	}
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	stock_name(b, REF_SNAPSHOT, name, &id, REF_NEW);
}

static inline struct tree_entry put_links(struct batch *b, uint64_t ino)
{
	char name[ROOT_LINK_NAME_SIZE];
	struct tree_entry e = file(b, root_link_name(ino, name), "linked");

	e.ino = ino;
	e.nlink = 2;
	return directory(b, ROOT_LINKS, &e, 1);
}

static inline void look(struct scene *sc)
{
	check_report_done(&sc->report);
	sc->report = stock_check(sc->store);
}

static inline void commit_and_look(struct scene *sc)
{
	stock_commit(sc->b);
	look(sc);
}

/* There is one finding, with this in its sentence and these paths, each on a line. */
static inline void check_only(const struct scene *sc, const char *why, const char *paths)
{
	CLEANUP(buf_done) struct buf have = BUF_INIT;
	const struct check_finding *f = sc->report.findings;

	CHECK_EQ(sc->report.n_findings, 1);
	CHECK_HAS(f->why, why);
	for (size_t i = 0; i < f->n_kept; i++)
		CHECK_EQ(buf_printf(&have, "%s\n", f->paths[i]), 0);
	CHECK_STR(buf_str(&have), paths);
}

/* Put a snapshot "s" that has only this file, and look. */
static inline void look_at_file(struct scene *sc, const struct tree_entry *e)
{
	const struct tree_entry top = directory(sc->b, "d", e, 1);

	put_snapshot(sc->b, "s", &top, NULL);
	commit_and_look(sc);
}
