#include "tests/crash/specimen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "cowfs/store/content.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"
#include "cowfs/store/upkeep/check.h"
#include "cowfs/store/upkeep/gc.h"
#include "cowfs/store/xattrs.h"
#include "tests/crash/body.h"
#include "tests/lib/test.h"

#define POOL_SIZE     48
#define WIDE_ENTRIES  1200 /* more than a node of a tree can hold */
#define LINK_INO      0x4c696e6b
#define LINK_NAMES    2
#define DEPTH_MAX     2
#define XATTR_LIST    3
#define XATTR_VAL_LEN 700

static int differs(struct err *err, uint64_t number, const char *what)
{
	return err_set(err, -EILSEQ, "specimen %016" PRIx64 ": %s is not as it was put", number,
		       what);
}

void specimen_name(uint64_t number, char name[SPECIMEN_NAME_LEN + 1])
{
	snprintf(name, SPECIMEN_NAME_LEN + 1, "%016" PRIx64, number);
}

int specimen_number(const char *name, size_t len, uint64_t *ret)
{
	uint8_t be[8];
	uint64_t v = 0;

	if (len != SPECIMEN_NAME_LEN || hex_decode(name, len, be, sizeof(be)) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(be); i++)
		v = v << 8 | be[i];
	*ret = v;
	return 0;
}

/* --- attribute sets ----------------------------------------------------------------------- */

struct attrs {
	struct xattr list[XATTR_LIST];
	size_t n; /* 0: the file has none */
	char name[XATTR_LIST][32];
	uint8_t value[XATTR_LIST][XATTR_VAL_LEN];
};

static void attrs_of(uint64_t seed, struct attrs *ret)
{
	ret->n = seed % 4 == 0 ? 1 + seed / 4 % XATTR_LIST : 0;
	for (size_t i = 0; i < ret->n; i++) {
		struct body y = { .seed = seed % 97 + i, .size = XATTR_VAL_LEN };

		snprintf(ret->name[i], sizeof(ret->name[i]), "user.%zu", ret->n - i);
		body_fill(&y, 0, ret->value[i], XATTR_VAL_LEN);
		ret->list[i] = (struct xattr){
			.name = ret->name[i],
			.name_len = strlen(ret->name[i]),
			.value = ret->value[i],
			.value_len = (size_t)(seed % XATTR_VAL_LEN),
		};
	}
}

static int attrs_put(struct batch *b, uint64_t seed, struct object_id *ret, struct err *err)
{
	struct attrs a;

	attrs_of(seed, &a);
	return xattrs_put(b, a.list, a.n, ret, err);
}

static int attrs_verify(struct store *s, uint64_t seed, const struct object_id *id, struct err *err)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x;
	struct attrs a;
	size_t n = 0, pos = 0;
	int r;

	attrs_of(seed, &a);
	r = xattrs_get(s, id, &set, err);
	if (r < 0)
		return r;
	while (xattrs_next(&set, &pos, &x))
		n++;
	for (size_t i = 0; i < a.n; i++)
		if (!xattrs_find(&set, a.list[i].name, a.list[i].name_len, &x) ||
		    x.value_len != a.list[i].value_len ||
		    memcmp(x.value, a.list[i].value, x.value_len) != 0)
			return 0;
	return n == a.n;
}

/* --- entries ------------------------------------------------------------------------------ */

enum sort { SORT_FILE, SORT_DIR, SORT_SYMLINK, SORT_FIFO, SORT_LINK, SORT_EMPTY };

/* What stands at place i of a directory. */
struct plan {
	char name[24];
	enum sort sort;
	uint64_t seed;
	bool small;
	char target[32];
};

struct dir_plan {
	uint64_t seed;
	unsigned depth, n;
	bool small, wide;
};

static struct dir_plan dir_plan_of(uint64_t seed, unsigned depth, bool small)
{
	struct dir_plan d = { .seed = seed, .depth = depth, .small = small };

	d.wide = depth > 0 && body_mix(seed, 3) % 64 == 0;
	d.n = d.wide ? WIDE_ENTRIES : small ? 3 : 2 + (unsigned)(body_mix(seed, 4) % 8);
	if (depth == 0)
		d.n += LINK_NAMES;
	return d;
}

static struct plan plan_of(const struct dir_plan *d, unsigned i)
{
	static const enum sort sorts[] = { SORT_FILE, SORT_DIR,     SORT_FILE,
					   SORT_FILE, SORT_SYMLINK, SORT_FIFO };
	struct test_rng rng = { body_mix(d->seed, i) };
	struct plan p = { .small = d->small };

	p.sort = sorts[test_rand(&rng) % ARRAY_LEN(sorts)];
	p.seed = test_rand(&rng);
	if (test_rand(&rng) % 4)
		p.seed %= p.sort == SORT_DIR ? POOL_SIZE / 4 : POOL_SIZE;
	if (d->wide) {
		p.sort = SORT_EMPTY;
		p.seed = 1;
	} else if (d->depth == 0 && i + LINK_NAMES >= d->n) {
		p.sort = SORT_LINK;
	} else if (p.sort == SORT_DIR && d->depth == DEPTH_MAX) {
		p.sort = SORT_FILE;
	}
	snprintf(p.name, sizeof(p.name), "%04u-%c", i, 'a' + (char)(p.seed % 26));
	snprintf(p.target, sizeof(p.target), "../%016" PRIx64, p.seed);
	return p;
}

/* All of an entry that needs no other object. */
static struct tree_entry bare_entry(const struct plan *p)
{
	static const uint32_t mode[] = {
		[SORT_FILE] = S_IFREG | 0644,    [SORT_DIR] = S_IFDIR | 0755,
		[SORT_SYMLINK] = S_IFLNK | 0777, [SORT_FIFO] = S_IFIFO | 0600,
		[SORT_LINK] = S_IFREG,           [SORT_EMPTY] = S_IFREG | 0400,
	};
	struct tree_entry e = { .name = p->name,
				.name_len = strlen(p->name),
				.mode = mode[p->sort] };

	if (p->sort == SORT_LINK) {
		e.form = TREE_LINK;
		e.ino = LINK_INO;
		return e;
	}
	e.uid = (uint32_t)(p->seed % 3) * 1000;
	e.gid = 100;
	e.ino = p->seed;
	e.mtime_s = (int64_t)(p->seed % 1000000) - 1000;
	e.mtime_ns = (uint32_t)(p->seed % 1000000000);
	e.ctime_s = e.mtime_s + 1;
	if (p->sort == SORT_DIR)
		e.form = TREE_DIR;
	if (p->sort == SORT_SYMLINK) {
		e.target = p->target;
		e.target_len = strlen(p->target);
		e.size = e.target_len;
	}
	return e;
}

static struct plan link_plan(uint64_t number)
{
	struct plan p = { .sort = SORT_FILE, .seed = number % POOL_SIZE };

	root_link_name(LINK_INO, p.name);
	return p;
}

static struct tree_entry link_entry(const struct plan *p)
{
	struct tree_entry e = bare_entry(p);

	e.ino = LINK_INO;
	e.nlink = LINK_NAMES;
	return e;
}

static struct plan top_plan(uint64_t number)
{
	return (struct plan){
		.name = ROOT_TOP,
		.sort = SORT_DIR,
		.seed = number,
		.small = number & SPECIMEN_SMALL,
	};
}

/* --- putting ------------------------------------------------------------------------------ */

static int put_dir(struct batch *b, const struct dir_plan *d, struct object_id *ret,
		   struct tree_summary *ret_below, struct err *err);

static int put_entry(struct batch *b, const struct plan *p, unsigned depth, struct tree_entry *e,
		     struct err *err)
{
	struct dir_plan d;
	struct content c;
	struct body y;
	int r = 0;

	*e = bare_entry(p);
	if (p->sort == SORT_FILE) {
		y = body_of(p->seed, p->small);
		r = body_put(b, &y, &c, err);
		if (r >= 0)
			tree_entry_set_content(e, &c);
	} else if (p->sort == SORT_DIR) {
		d = dir_plan_of(p->seed, depth + 1, p->small);
		r = put_dir(b, &d, &e->id, &e->below, err);
	}
	if (r >= 0 && (p->sort == SORT_FILE || p->sort == SORT_DIR))
		r = attrs_put(b, p->seed, &e->xattrs, err);
	return r;
}

/* DEPTH_MAX bounds the recursion. */
static int put_dir(struct batch *b, const struct dir_plan *d, struct object_id *ret,
		   struct tree_summary *ret_below, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e;
	struct plan p;
	int r;

	r = tree_builder_new(b, &t, err);
	for (unsigned i = 0; i < d->n && r >= 0; i++) {
		p = plan_of(d, i);
		r = put_entry(b, &p, d->depth, &e, err);
		if (r >= 0)
			r = tree_builder_add(t, &e, err);
	}
	return r < 0 ? r : tree_builder_finish(t, ret, ret_below, err);
}

static int put_links(struct batch *b, uint64_t number, struct root *root, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct plan p = link_plan(number);
	struct tree_entry e = link_entry(&p);
	struct body y = body_of_blocks(p.seed);
	struct content c;
	int r;

	r = body_put(b, &y, &c, err);
	if (r < 0)
		return r;
	tree_entry_set_content(&e, &c);
	r = tree_builder_new(b, &t, err);
	if (r >= 0)
		r = tree_builder_add(t, &e, err);
	return r < 0 ? r : tree_builder_finish(t, &root->links, &root->in_links, err);
}

int specimen_put_tree(struct batch *b, uint64_t number, struct object_id *ret_root, struct err *err)
{
	struct plan top = top_plan(number);
	struct dir_plan d = dir_plan_of(number, 0, top.small);
	struct root root = { .top = bare_entry(&top) };
	int r;

	r = put_links(b, number, &root, err);
	if (r >= 0)
		r = put_dir(b, &d, &root.top.id, &root.top.below, err);
	if (r >= 0)
		r = attrs_put(b, number, &root.top.xattrs, err);
	return r < 0 ? r : root_put(b, &root, ret_root, err);
}

int specimen_put_ref(struct batch *b, uint64_t number, const struct object_id *root,
		     struct err *err)
{
	char name[SPECIMEN_NAME_LEN + 1];
	struct ref ref = {
		.kind = REF_SNAPSHOT,
		.name = name,
		.name_len = SPECIMEN_NAME_LEN,
		.root = *root,
		.value = name,
		.value_len = SPECIMEN_NAME_LEN,
	};

	specimen_name(number, name);
	return ref_put(b, &ref, REF_NEW, err);
}

int specimen_put(struct batch *b, uint64_t number, struct err *err)
{
	struct object_id root;
	int r;

	r = specimen_put_tree(b, number, &root, err);
	return r < 0 ? r : specimen_put_ref(b, number, &root, err);
}

int specimen_drop(struct batch *b, uint64_t number, struct err *err)
{
	char name[SPECIMEN_NAME_LEN + 1];

	specimen_name(number, name);
	return ref_delete(b, REF_SNAPSHOT, name, SPECIMEN_NAME_LEN, err);
}

int specimen_commit(struct store *s, uint64_t number, enum batch_durability durability,
		    struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r;

	r = batch_begin(s, &b, err);
	if (r >= 0)
		r = specimen_put(b, number, err);
	return r < 0 ? r : batch_commit(b, durability, err);
}

int specimen_remove(struct store *s, uint64_t number, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r;

	r = batch_begin(s, &b, err);
	if (r >= 0)
		r = specimen_drop(b, number, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

/* --- verifying ---------------------------------------------------------------------------- */

struct verifying {
	struct store *s;
	uint64_t number;
	struct err *err;
};

static int verify_dir(struct verifying *v, const struct dir_plan *d, const struct object_id *tree,
		      uint64_t *ret_files);

static int verify_attrs(struct verifying *v, uint64_t seed, const struct object_id *id)
{
	int r = attrs_verify(v->s, seed, id, v->err);

	return r == 0 ? differs(v->err, v->number, "an attribute set") : r;
}

/* What hangs on an entry; its own fields have been compared. */
static int verify_objects(struct verifying *v, const struct plan *p, unsigned depth,
			  const struct tree_entry *e)
{
	struct content c;
	struct dir_plan d;
	struct body y;
	uint64_t files;
	int r = 0;

	if (p->sort == SORT_FILE) {
		c = tree_entry_content(e);
		y = body_of(p->seed, p->small);
		r = body_verify(v->s, &y, &c, v->err);
		if (r == 0)
			return differs(v->err, v->number, "the content of a file");
	} else if (p->sort == SORT_DIR) {
		d = dir_plan_of(p->seed, depth + 1, p->small);
		r = verify_dir(v, &d, &e->id, &files);
		if (r >= 0 && files != e->below.files)
			return differs(v->err, v->number, "the summary of a directory");
	}
	if (r >= 0 && (p->sort == SORT_FILE || p->sort == SORT_DIR))
		r = verify_attrs(v, p->seed, &e->xattrs);
	return r;
}

static int verify_entry(struct verifying *v, const struct plan *p, const struct tree_entry *e)
{
	struct tree_entry want = bare_entry(p);

	if (p->sort == SORT_FILE || p->sort == SORT_DIR) {
		want.id = e->id;
		want.xattrs = e->xattrs;
		want.form = e->form;
		want.size = e->size;
		want.data = e->data;
		want.below = e->below;
	}
	return tree_entry_equal(e, &want) ? 0 : differs(v->err, v->number, "an entry");
}

/* DEPTH_MAX bounds the recursion. */
static int verify_dir(struct verifying *v, const struct dir_plan *d, const struct object_id *tree,
		      uint64_t *ret_files)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	uint64_t files = 0;
	unsigned i;
	int r;

	r = tree_iter_new(v->s, tree, &it, v->err);
	if (r < 0)
		return r;
	for (i = 0; (r = tree_iter_next(it, &e, v->err)) > 0; i++) {
		struct plan p = plan_of(d, i);

		if (i == d->n)
			break;
		r = verify_entry(v, &p, &e);
		if (r >= 0)
			r = verify_objects(v, &p, d->depth, &e);
		if (r < 0)
			return r;
		files += e.form == TREE_DIR ? e.below.files : 1;
	}
	if (r != 0 || i != d->n)
		return r < 0 ? r : differs(v->err, v->number, "the number of entries");
	*ret_files = files;
	return 0;
}

static int verify_link(struct verifying *v, const struct root *root)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct plan p = link_plan(v->number);
	struct body y = body_of_blocks(p.seed);
	struct tree_entry e, want;
	struct content c;
	int r;

	r = root_link(v->s, root, LINK_INO, &e, &hold, v->err);
	if (r < 0)
		return r;
	want = link_entry(&p);
	if (e.mtime_s != want.mtime_s || e.mode != want.mode || e.nlink != want.nlink)
		return differs(v->err, v->number, "a hard link");
	c = tree_entry_content(&e);
	r = body_verify(v->s, &y, &c, v->err);
	return r == 0 ? differs(v->err, v->number, "the content of a hard link") : r;
}

int specimen_verify(struct store *s, uint64_t number, const struct object_id *id, struct err *err)
{
	struct verifying v = { .s = s, .number = number, .err = err };
	struct plan top = top_plan(number);
	struct dir_plan d = dir_plan_of(number, 0, top.small);
	struct root root;
	uint64_t files;
	int r;

	r = root_get(s, id, &root, err);
	if (r < 0)
		return r;
	r = verify_link(&v, &root);
	if (r >= 0)
		r = verify_dir(&v, &d, &root.top.id, &files);
	if (r >= 0 && files != root.top.below.files)
		return differs(err, number, "the summary of the first directory");
	return r < 0 ? r : verify_attrs(&v, number, &root.top.xattrs);
}

int specimen_find(struct store *s, uint64_t number, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	char name[SPECIMEN_NAME_LEN + 1];
	struct ref ref;
	int r;

	specimen_name(number, name);
	r = ref_get(s, REF_SNAPSHOT, name, SPECIMEN_NAME_LEN, &ref, &hold, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (ref.value_len != SPECIMEN_NAME_LEN || memcmp(ref.value, name, SPECIMEN_NAME_LEN) != 0)
		return differs(err, number, "the value of its ref");
	r = specimen_verify(s, number, &ref.root, err);
	return r < 0 ? r : 1;
}

int specimen_store_empties(struct store *s, struct err *err)
{
	struct gc_progress progress;
	struct store_sizes sizes;
	int r;

	r = gc_run(s, &progress, err);
	if (r >= 0)
		r = store_sizes(s, &sizes, err);
	if (r < 0 || sizes.objects + sizes.chunks == 0)
		return r;
	return err_set(err, -EILSEQ, "gc leaves %" PRIu64 " objects that no ref reaches",
		       sizes.objects + sizes.chunks);
}

int specimen_store_sound(struct store *s, struct err *err)
{
	CLEANUP(check_report_done) struct check_report report = { 0 };
	const struct check_finding *f;
	int r;

	r = check_store(s, NULL, NULL, &report, err);
	if (r < 0 || report.n_findings == 0)
		return r;
	f = &report.findings[0];
	return err_set(err, -EILSEQ, "check has %zu findings; the first: %.60s: %.100s (%s)",
		       report.n_findings, f->what, f->why, f->n_kept ? f->paths[0] : "no path");
}
