#include "tests/lib/stock.h"

#include <errno.h>
#include <sys/stat.h>

#include "cowfs/store/xattrs.h"

#define HARD_INO 77

struct store *stock_open(const char *path, enum store_mode mode)
{
	struct store *s = NULL;
	struct err err = { 0 };

	CHECK_OK(store_open(path, mode, &s, &err), &err);
	return s;
}

struct batch *stock_begin(struct store *s)
{
	struct batch *b = NULL;
	struct err err = { 0 };

	CHECK_OK(batch_begin(s, &b, &err), &err);
	return b;
}

void stock_commit(struct batch *b)
{
	struct err err = { 0 };

	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
}

struct object_id stock_put(struct batch *b, enum object_kind kind, const void *data, size_t len)
{
	struct object_id id;
	struct err err = { 0 };

	CHECK_OK(batch_put(b, kind, data, len, &id, &err), &err);
	return id;
}

struct object_id stock_put_text(struct batch *b, const char *text)
{
	return stock_put(b, OBJECT_CHUNK, text, strlen(text));
}

static struct tree_entry entry(const char *name, enum tree_form form, uint32_t mode)
{
	return (struct tree_entry){
		.name = name,
		.name_len = strlen(name),
		.form = form,
		.mode = mode,
		.uid = 1000,
		.gid = 1000,
		.ino = 7,
		.mtime_s = 1700000000,
		.ctime_s = 1700000001,
	};
}

static struct tree_entry file(struct batch *b, const char *name, const void *data, size_t len)
{
	struct tree_entry e = entry(name, TREE_NONE, S_IFREG | 0644);
	struct content c;
	struct err err = { 0 };

	CHECK_OK(content_put(b, data, len, &c, &err), &err);
	tree_entry_set_content(&e, &c);
	return e;
}

static struct tree_entry text_file(struct batch *b, const char *name, const char *text)
{
	return file(b, name, text, strlen(text));
}

static struct tree_entry directory(struct batch *b, const char *name, const struct tree_entry *in,
				   size_t n)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e = entry(name, TREE_DIR, S_IFDIR | 0755);
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(tree_builder_add(t, &in[i], &err), &err);
	CHECK_OK(tree_builder_finish(t, &e.id, &e.below, &err), &err);
	return e;
}

static struct object_id xattr(struct batch *b, const char *name, const char *value)
{
	const struct xattr list[] = {
		{ .name = name,
		  .name_len = strlen(name),
		  .value = value,
		  .value_len = strlen(value) },
	};
	struct object_id id;
	struct err err = { 0 };

	CHECK_OK(xattrs_put(b, list, 1, &id, &err), &err);
	return id;
}

static struct object_id put_root(struct batch *b, const struct root *root)
{
	struct object_id id;
	struct err err = { 0 };

	CHECK_OK(root_put(b, root, &id, &err), &err);
	return id;
}

struct object_id stock_put_root(struct batch *b, const char *text)
{
	const struct tree_entry in[] = { text_file(b, "file", text) };
	const struct root root = { .top = directory(b, ROOT_TOP, in, 1) };

	return put_root(b, &root);
}

void stock_name(struct batch *b, enum ref_kind kind, const char *name, const struct object_id *root,
		enum ref_mode mode)
{
	struct ref ref = { .kind = kind, .name = name, .name_len = strlen(name) };
	struct err err = { 0 };

	if (root)
		ref.root = *root;
	CHECK_OK(ref_put(b, &ref, mode, &err), &err);
}

struct object_id stock_snapshot(struct store *s, const char *name, const char *text)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id root = stock_put_root(b, text);

	stock_name(b, REF_SNAPSHOT, name, &root, REF_REPLACE);
	stock_commit(b);
	return root;
}

void stock_drop(struct store *s, const char *name)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct err err = { 0 };

	CHECK_OK(ref_delete(b, REF_SNAPSHOT, name, strlen(name), &err), &err);
	stock_commit(b);
}

static int get_snapshot(struct store *s, const char *name, struct ref *ret)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	int r = ref_get(s, REF_SNAPSHOT, name, strlen(name), ret, &hold, &err);

	CHECK_OK(r == -ENOENT ? 0 : r, &err);
	return r;
}

bool stock_has_snapshot(struct store *s, const char *name)
{
	struct ref ref;

	return get_snapshot(s, name, &ref) == 0;
}

struct object_id stock_root(struct store *s, const char *snapshot)
{
	struct ref ref;

	CHECK_EQ(get_snapshot(s, snapshot, &ref), 0);
	return ref.root;
}

bool stock_root_is_whole(struct store *s, const struct object_id *id, const char *text)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, chunk = BUF_INIT;
	struct tree_entry e;
	struct root root;

	return root_get(s, id, &root, NULL) >= 0 &&
	       tree_lookup(s, &root.top.id, "file", 4, &e, &hold, NULL) >= 0 &&
	       store_get(s, OBJECT_CHUNK, &e.id, &chunk, NULL) >= 0 && chunk.len == strlen(text) &&
	       memcmp(chunk.data, text, chunk.len) == 0;
}

uint8_t *stock_block(unsigned n)
{
	uint8_t *p = malloc(CHUNK_SIZE_MAX);

	CHECK(p);
	memset(p, 'a' + (int)n, CHUNK_SIZE_MAX);
	return p;
}

void stock_noise(uint8_t *block, uint64_t seed)
{
	struct test_rng rng = { .s = seed };

	for (size_t at = 0; at < CHUNK_SIZE_MAX; at += 8) {
		const uint64_t word = test_rand(&rng);

		memcpy(block + at, &word, 8);
	}
}

static struct tree_entry blocks_file(struct batch *b, const char *name, unsigned first,
				     unsigned second, size_t tail)
{
	AUTO_FREE uint8_t *one = stock_block(first), *two = stock_block(second);
	AUTO_FREE uint8_t *rest = stock_block(2), *all = malloc(3 * CHUNK_SIZE_MAX);

	CHECK(all);
	memcpy(all, one, CHUNK_SIZE_MAX);
	memcpy(all + CHUNK_SIZE_MAX, two, CHUNK_SIZE_MAX);
	memcpy(all + 2 * CHUNK_SIZE_MAX, rest, tail);
	return file(b, name, all, 2 * CHUNK_SIZE_MAX + tail);
}

static struct tree_entry link_to(const char *name)
{
	return (struct tree_entry){
		.name = name,
		.name_len = strlen(name),
		.form = TREE_LINK,
		.mode = S_IFREG,
		.ino = HARD_INO,
	};
}

static struct object_id put_project(struct batch *b, const char *readme)
{
	char hard_name[ROOT_LINK_NAME_SIZE];
	struct tree_entry lib[] = { text_file(b, "deep.c", "src/lib/deep.c") };
	struct tree_entry src[] = { link_to("hard2"), directory(b, "lib", lib, 1),
				    text_file(b, "main.c", "src/main.c") };
	struct tree_entry docs[] = { text_file(b, STOCK_ODD_NAME, "docs:/" STOCK_ODD_NAME) };
	struct tree_entry top[] = { blocks_file(b, "big", 1, 1, 5),
				    directory(b, "docs:", docs, 1),
				    link_to("hard"),
				    text_file(b, "readme", readme),
				    directory(b, "src", src, 3),
				    entry("sym", TREE_NONE, S_IFLNK | 0777) };
	struct tree_entry hard = blocks_file(b, root_link_name(HARD_INO, hard_name), 3, 4, 0),
			  links;
	struct root root;

	top[3].xattrs = xattr(b, "user.note", "n");
	top[5].target = "src/main.c";
	top[5].target_len = strlen(top[5].target);
	top[5].size = top[5].target_len;
	hard.ino = HARD_INO;
	hard.nlink = 2;
	hard.xattrs = xattr(b, "user.hard", "h");
	links = directory(b, ROOT_LINKS, &hard, 1);
	root = (struct root){ .top = directory(b, ROOT_TOP, top, ARRAY_LEN(top)),
			      .links = links.id,
			      .in_links = links.below };
	return put_root(b, &root);
}

void stock_fill(struct store *s)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id one = put_project(b, "readme"), two = put_project(b, "changed");
	const struct ref project = {
		.kind = REF_PROJECT, .name = "/p", .name_len = 2, .value = "kept", .value_len = 4
	};
	struct err err = { 0 };

	stock_name(b, REF_SNAPSHOT, "one", &one, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "two", &two, REF_NEW);
	stock_name(b, REF_TAG, "v1", &one, REF_NEW);
	stock_name(b, REF_CLONE, "work", &two, REF_NEW);
	CHECK_OK(ref_put(b, &project, REF_NEW, &err), &err);
	stock_commit(b);
}

void stock_fill_small(struct store *s)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct tree_entry top[] = { blocks_file(b, "big", 1, 1, 0), text_file(b, "small", "text") };
	const struct ref tag = {
		.kind = REF_TAG, .name = "t", .name_len = 1, .value = "v", .value_len = 1
	};
	struct object_id id;
	struct root root;
	struct err err = { 0 };

	top[1].xattrs = xattr(b, "user.note", "n");
	root = (struct root){ .top = directory(b, ROOT_TOP, top, ARRAY_LEN(top)) };
	id = put_root(b, &root);
	stock_name(b, REF_SNAPSHOT, "s", &id, REF_NEW);
	CHECK_OK(ref_put(b, &tag, REF_NEW, &err), &err);
	stock_commit(b);
}

struct tree_entry stock_entry(struct store *s, const char *snapshot, const char *path)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const struct object_id id = stock_root(s, snapshot);
	struct tree_entry e;
	struct root root;
	struct err err = { 0 };

	CHECK_OK(root_get(s, &id, &root, &err), &err);
	e = root.top;
	while (*path) {
		size_t n = strcspn(path, "/");

		CHECK_OK(tree_lookup(s, &e.id, path, n, &e, &hold, &err), &err);
		path += n + (path[n] == '/');
	}
	if (e.form == TREE_LINK)
		CHECK_OK(root_link(s, &root, e.ino, &e, &hold, &err), &err);
	return e;
}

struct store_sizes stock_sizes(struct store *s)
{
	struct store_sizes sizes;
	struct err err = { 0 };

	CHECK_OK(store_sizes(s, &sizes, &err), &err);
	return sizes;
}

uint64_t stock_rows(struct store *s)
{
	const struct store_sizes sizes = stock_sizes(s);

	return sizes.chunks + sizes.objects;
}

struct check_report stock_check(struct store *s)
{
	struct check_report report;
	struct err err = { 0 };

	CHECK_OK(check_store(s, NULL, NULL, &report, &err), &err);
	return report;
}

void stock_check_clean(struct store *s)
{
	struct check_report report = stock_check(s);

	if (report.n_findings > 0)
		CHECK_STR(report.findings[0].why, "");
	check_report_done(&report);
}

struct gc_progress stock_gc(struct store *s)
{
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(gc_run(s, &progress, &err), &err);
	CHECK_EQ(progress.phase, GC_DONE);
	return progress;
}
