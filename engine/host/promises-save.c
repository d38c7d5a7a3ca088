/*
 * Kept and lost promises are in the tree of the capture's record, in the order in which that was
 * decided, so a commit adds to the end of a directory. A kept file is a regular one with the
 * content; a lost one is a symlink that leads to the reason.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-edit.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define NAME_SIZE (17 + OBJECT_HEX_SIZE)

struct done_name {
	char name[NAME_SIZE];
	struct tree_entry entry;
};

/* The path of a lost one, and why it is lost, with "//" between. */
struct lost_text {
	char text[TREE_TARGET_LEN_MAX + 1];
};

/* `lost` is for one that is. */
static void describe(const struct promise *one, uint64_t seq, struct done_name *ret,
		     struct lost_text *lost)
{
	char hex[OBJECT_HEX_SIZE];

	snprintf(ret->name, sizeof(ret->name), "%016" PRIx64 "-%s", seq,
		 object_id_hex(&one->what.id, hex));
	ret->entry = (struct tree_entry){
		.name = ret->name,
		.name_len = strlen(ret->name),
		.mode = S_IFREG | 0600,
	};
	if (one->why) {
		ret->entry.mode = S_IFLNK | 0777;
		if (snprintf(lost->text, sizeof(lost->text), "%s//%s", one->path ? one->path : "",
			     one->why) >= (int)sizeof(lost->text))
			snprintf(lost->text, sizeof(lost->text), "//%s", one->why);
		ret->entry.target = lost->text;
		ret->entry.target_len = strlen(lost->text);
		ret->entry.size = ret->entry.target_len;
	} else {
		tree_entry_set_content(&ret->entry, &one->content);
	}
}

static int put_root(struct batch *b, const struct object_id *tree, const struct tree_summary *below,
		    struct object_id *ret, struct err *err)
{
	const struct root root = {
		.top = {
			.name = ROOT_TOP,
			.name_len = strlen(ROOT_TOP),
			.form = TREE_DIR,
			.mode = S_IFDIR | 0700,
			.nlink = 2,
			.id = *tree,
			.below = *below,
		},
	};

	return root_put(b, &root, ret, err);
}

static int put_some(struct batch *b, struct promise *const *list, size_t n, struct object_id *ret,
		    struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_summary below;
	struct lost_text lost;
	struct object_id tree;
	struct done_name one;
	int r = tree_builder_new(b, &t, err);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		describe(list[i], i, &one, &lost);
		r = tree_builder_add(t, &one.entry, err);
	}
	r = r < 0 ? r : tree_builder_finish(t, &tree, &below, err);
	return r < 0 ? r : put_root(b, &tree, &below, ret, err);
}

/* A file in the tree of a record, beside what was done. */
static int add_file(struct tree_builder *t, struct batch *b, const char *name,
		    const struct buf *bytes, struct err *err)
{
	struct tree_entry e = { .name = name, .name_len = strlen(name), .mode = S_IFREG | 0600 };
	struct content content;
	int r = content_put(b, bytes->data, bytes->len, &content, err);

	if (r < 0)
		return r;
	tree_entry_set_content(&e, &content);
	return tree_builder_add(t, &e, err);
}

int promises_put_remote(struct batch *b, struct lazy *record, const struct buf *promised,
			const struct buf *source, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_summary below;
	struct object_id tree;
	int r = tree_builder_new(b, &t, err);

	r = r < 0 ? r : add_file(t, b, PROMISED_NAME, promised, err);
	r = r < 0 ? r : add_file(t, b, SOURCE_NAME, source, err);
	r = r < 0 ? r : tree_builder_finish(t, &tree, &below, err);
	r = r < 0 ? r : put_root(b, &tree, &below, &record->root, err);
	return r < 0 ? r : lazy_put(b, record, REF_NEW, err);
}

int promises_put(struct batch *b, struct lazy *record, struct err *err)
{
	int r = put_some(b, NULL, 0, &record->root, err);

	return r < 0 ? r : lazy_put(b, record, REF_NEW, err);
}

int promising_put_lost(struct promising *p, struct batch *b, struct object_id *ret, struct err *err)
{
	AUTO_FREE struct promise **lost = calloc(p->n + 1, sizeof(struct promise *));
	size_t n = 0;

	if (!lost)
		return err_nomem(err);
	for (size_t i = 0; i < p->n; i++)
		if (p->list[i]->state == PROMISE_LOST)
			lost[n++] = p->list[i];
	return put_some(b, lost, n, ret, err);
}

static size_t count_lost(struct promise *const *list, size_t n)
{
	size_t lost = 0;

	for (size_t i = 0; i < n; i++)
		lost += list[i]->why != NULL;
	return lost;
}

static int add_names(struct promising *p, struct batch *b, struct promise *const *list, size_t n,
		     struct object_id *ret, struct err *err)
{
	AUTO_FREE struct lost_text *lost = calloc(count_lost(list, n) + 1, sizeof(*lost));
	AUTO_FREE struct done_name *names = calloc(n, sizeof(*names));
	AUTO_FREE struct tree_change *changes = calloc(n, sizeof(*changes));
	struct tree_summary below;
	struct object_id tree;
	size_t n_lost = 0;
	struct root root;
	int r;

	if (!lost || !names || !changes)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		describe(list[i], p->saved + i, &names[i], &lost[n_lost]);
		n_lost += list[i]->why != NULL;
		changes[i] = (struct tree_change){
			.name = names[i].name,
			.name_len = names[i].entry.name_len,
			.entry = &names[i].entry,
		};
	}
	r = root_get(p->all->host->store, &p->record.root, &root, err);
	r = r < 0 ? r : tree_edit(b, p->cache, &root.top.id, changes, n, &tree, &below, err);
	return r < 0 ? r : put_root(b, &tree, &below, ret, err);
}

/* So that promises_halt() can wait for what is under way. */
static bool begin_saving(struct promising *p)
{
	LOCKED(&p->all->lock);

	while (p->halted && !p->unneeded)
		pthread_cond_wait(&p->all->changed, &p->all->lock);
	p->saving_now += !p->unneeded;
	return !p->unneeded;
}

static void end_saving(struct promising *p)
{
	LOCKED(&p->all->lock);

	p->saving_now--;
	pthread_cond_broadcast(&p->all->changed);
}

static int save(struct promising *p, struct batch *b, struct promise **list, size_t n,
		struct err *err)
{
	struct lazy next;
	int r;
	LOCKED(&p->saving);

	next = p->record;

	r = add_names(p, b, list, n, &next.root, err);
	r = r < 0 ? r : lazy_put(b, &next, REF_REPLACE, err);
	r = r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	p->record.root = next.root;
	p->saved += n;
	return 0;
}

int promising_save(struct promising *p, struct batch *b, struct promise **list, size_t n,
		   struct err *err)
{
	int r;

	if (!begin_saving(p))
		return err_set(err, -ECANCELED, "nobody needs it any more");
	r = save(p, b, list, n, err);
	end_saving(p);
	return r;
}
