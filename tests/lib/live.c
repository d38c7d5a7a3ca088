#include "tests/lib/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cowfs/store/catalog.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

/* --- opening ---------------------------------------------------------------------------- */

struct object_id live_empty_root(struct store *s)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct root root = {
		.top = { .name = ROOT_TOP,
			 .name_len = strlen(ROOT_TOP),
			 .form = TREE_DIR,
			 .mode = S_IFDIR | 0755,
			 .ino = 2,
			 .nlink = 2 },
	};
	struct clone clone = { .name = (char[]){ "work" } };
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	CHECK_OK(root_put(b, &root, &clone.root, &err), &err);
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
	return clone.root;
}

static void open_layer(struct live *v)
{
	struct err err = { 0 };

	CHECK_OK(layers_new(v->store, &v->options, &v->layers, &err), &err);
	CHECK_OK(layer_open(v->layers, "work", &v->l, &err), &err);
}

static void limit(struct store *s, uint64_t quota)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(s, "work", &clone, &err), &err);
	clone.quota = quota;
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
}

void live_open(struct live *v, const char *name)
{
	v->store = stock_open(test_path(name), STORE_CREATE);
	live_empty_root(v->store);
	if (v->quota > 0)
		limit(v->store, v->quota);
	open_layer(v);
}

void live_close(struct live *v)
{
	layer_discard(v->l);
	layers_free(v->layers);
	store_close(v->store);
	v->l = NULL;
	v->layers = NULL;
	v->store = NULL;
}

void live_crash(struct live *v)
{
	layer_discard(v->l);
	layers_free(v->layers);
	v->l = NULL;
	v->layers = NULL;
	open_layer(v);
}

void live_reopen(struct live *v)
{
	struct err err = { 0 };

	CHECK_OK(layer_close(v->l, &err), &err);
	layers_free(v->layers);
	open_layer(v);
}

void live_reopen_store(struct live *v)
{
	const char *path = strdup(store_path(v->store));

	live_close(v);
	v->store = stock_open(path, STORE_WRITE);
	open_layer(v);
}

/* --- paths ------------------------------------------------------------------------------ */

static int walk(struct live *v, const char *path, size_t len, struct layer_found *ret)
{
	struct layer_found at = { .node = LAYER_ROOT };
	struct err err = { 0 };
	const char *end = path + len;
	int r = layer_getattr(v->l, LAYER_ROOT, &at.st, &err);

	while (r >= 0 && path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		AUTO_FREE char *name =
		    strndup(path, slash ? (size_t)(slash - path) : (size_t)(end - path));
		struct layer_found next;

		r = layer_lookup(v->l, &call, at.node, name, &next, &err);
		if (at.node != LAYER_ROOT)
			layer_forget(v->l, at.node, 1);
		at = next;
		path += strlen(name) + 1;
	}
	if (r == -EBADMSG)
		CHECK_STR(err.msg, "");
	if (r >= 0)
		*ret = at;
	return r;
}

/* The directory that a path is in, and the last part of it. */
static int walk_dir(struct live *v, const char *path, uint64_t *ret, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	struct layer_found dir;
	int r = walk(v, path, slash ? (size_t)(slash - path) : 0, &dir);

	if (r < 0)
		return r;
	*ret = dir.node;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

void live_drop(struct live *v, uint64_t node)
{
	if (node != LAYER_ROOT)
		layer_forget(v->l, node, 1);
}

uint64_t live_hold(struct live *v, const char *path)
{
	struct layer_found found;

	CHECK_EQ(walk(v, path, strlen(path), &found), 0);
	return found.node;
}

/* --- trying ----------------------------------------------------------------------------- */

int live_try_make(struct live *v, const char *path, uint32_t mode)
{
	struct layer_found found;
	const char *name;
	uint64_t dir;
	int r = walk_dir(v, path, &dir, &name);

	if (r < 0)
		return r;
	r = layer_make(v->l, &call, dir, name, mode, 0, &found, NULL);
	live_drop(v, dir);
	if (r >= 0)
		live_drop(v, found.node);
	return r;
}

int live_try_symlink(struct live *v, const char *target, const char *path)
{
	struct layer_found found;
	const char *name;
	uint64_t dir;
	int r = walk_dir(v, path, &dir, &name);

	if (r < 0)
		return r;
	r = layer_symlink(v->l, &call, dir, name, target, &found, NULL);
	live_drop(v, dir);
	if (r >= 0)
		live_drop(v, found.node);
	return r;
}

int live_try_unlink(struct live *v, const char *path)
{
	const char *name;
	uint64_t dir;
	int r = walk_dir(v, path, &dir, &name);

	if (r < 0)
		return r;
	r = layer_unlink(v->l, &call, dir, name, NULL);
	live_drop(v, dir);
	return r;
}

int live_try_rmdir(struct live *v, const char *path)
{
	const char *name;
	uint64_t dir;
	int r = walk_dir(v, path, &dir, &name);

	if (r < 0)
		return r;
	r = layer_rmdir(v->l, &call, dir, name, NULL);
	live_drop(v, dir);
	return r;
}

int live_try_rename(struct live *v, const char *from, const char *to, unsigned flags)
{
	const char *name, *new_name;
	uint64_t dir, new_dir;
	int r = walk_dir(v, from, &dir, &name);

	if (r < 0)
		return r;
	r = walk_dir(v, to, &new_dir, &new_name);
	if (r >= 0) {
		r = layer_rename(v->l, &call, dir, name, new_dir, new_name, flags, NULL);
		live_drop(v, new_dir);
	}
	live_drop(v, dir);
	return r;
}

int live_try_link(struct live *v, const char *from, const char *to)
{
	struct layer_found node, found;
	const char *name;
	uint64_t dir;
	int r = walk(v, from, strlen(from), &node);

	if (r < 0)
		return r;
	r = walk_dir(v, to, &dir, &name);
	if (r >= 0) {
		r = layer_link(v->l, &call, node.node, dir, name, &found, NULL);
		live_drop(v, dir);
		if (r >= 0)
			live_drop(v, found.node);
	}
	live_drop(v, node.node);
	return r;
}

int live_try_write(struct live *v, const char *path, uint64_t off, const void *data, size_t len)
{
	struct layer_found found;
	struct err err = { 0 };
	int r = walk(v, path, strlen(path), &found);

	if (r < 0)
		return r;
	r = layer_write(v->l, &call, found.node, off, data, len, false, &err);
	live_drop(v, found.node);
	return r;
}

int live_try_truncate(struct live *v, const char *path, uint64_t size)
{
	struct layer_found found;
	struct stat st = { .st_size = (off_t)size };
	int r = walk(v, path, strlen(path), &found);

	if (r < 0)
		return r;
	r = layer_setattr(v->l, &call, found.node, &st, LAYER_SET_SIZE, &st, NULL);
	live_drop(v, found.node);
	return r;
}

int live_try_stat(struct live *v, const char *path, struct stat *ret)
{
	struct layer_found found;
	int r = walk(v, path, strlen(path), &found);

	if (r < 0)
		return r;
	*ret = found.st;
	live_drop(v, found.node);
	return 0;
}

/* --- doing ------------------------------------------------------------------------------ */

void live_mkdir(struct live *v, const char *path)
{
	CHECK_EQ(live_try_make(v, path, S_IFDIR | 0755), 0);
}

void live_put(struct live *v, const char *path, const char *text)
{
	int r = live_try_make(v, path, S_IFREG | 0644);

	CHECK(r == 0 || r == -EEXIST);
	CHECK_EQ(live_try_truncate(v, path, 0), 0);
	CHECK_EQ(live_try_write(v, path, 0, text, strlen(text)), 0);
}

struct stat live_stat(struct live *v, const char *path)
{
	struct stat st;

	CHECK_EQ(live_try_stat(v, path, &st), 0);
	return st;
}

void live_get_node(struct live *v, uint64_t node, struct buf *out)
{
	uint64_t off = 0;

	for (;;) {
		CLEANUP(layer_bytes_done) struct layer_bytes bytes = { 0 };
		struct err err = { 0 };

		CHECK_OK(layer_read(v->l, &call, node, off, LAYER_IO_MAX, &bytes, &err), &err);
		if (bytes.len == 0)
			break;
		for (int i = 0; i < bytes.n; i++)
			CHECK_EQ(buf_append(out, bytes.iov[i].iov_base, bytes.iov[i].iov_len), 0);
		off += bytes.len;
	}
}

void live_get(struct live *v, const char *path, struct buf *out)
{
	uint64_t node = live_hold(v, path);

	live_get_node(v, node, out);
	live_drop(v, node);
}

bool live_has(struct live *v, const char *path, const char *text)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	live_get(v, path, &bytes);
	return bytes.len == strlen(text) &&
	       (bytes.len == 0 || memcmp(bytes.data, text, bytes.len) == 0);
}

struct object_id live_persist(struct live *v)
{
	struct layer_state state;
	struct err err = { 0 };

	CHECK_OK(layer_persist(v->l, BATCH_SAFE, NULL, NULL, &state, &err), &err);
	return state.id;
}

/* --- listing ---------------------------------------------------------------------------- */

struct names {
	char **list;
	size_t n, cap;
	uint64_t next;
	size_t room; /* names that fit into one answer */
};

static int take_name(void *ctx, const char *name, const struct layer_found *found, uint64_t next)
{
	struct names *ns = ctx;

	if (ns->room-- == 0)
		return 1;
	ns->next = next;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (ns->n == ns->cap) {
		ns->cap = ns->cap ? 2 * ns->cap : 16;
		ns->list = reallocarray(ns->list, ns->cap, sizeof(*ns->list));
	}
	ns->list[ns->n++] = strdup(name);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_dir(struct live *v, uint64_t dir, struct names *ns)
{
	struct err err = { 0 };
	uint64_t before;

	do {
		before = ns->next;
		ns->room = 7;
		CHECK_OK(layer_readdir(v->l, &call, dir, ns->next, false, take_name, ns, &err),
			 &err);
	} while (ns->next != before);
	if (ns->n > 1)
		qsort(ns->list, ns->n, sizeof(*ns->list), compare_names);
	for (size_t i = 1; i < ns->n; i++)
		CHECK(strcmp(ns->list[i - 1], ns->list[i]) != 0);
}

static void names_done(struct names *ns)
{
	for (size_t i = 0; i < ns->n; i++)
		free(ns->list[i]);
	free(ns->list);
}

char *live_names(struct live *v, const char *path)
{
	CLEANUP(names_done) struct names ns = { 0 };
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	uint64_t dir = live_hold(v, path);

	list_dir(v, dir, &ns);
	live_drop(v, dir);
	for (size_t i = 0; i < ns.n; i++)
		CHECK_EQ(buf_printf(&b, " %s", ns.list[i]), 0);
	return strdup(buf_str(&b));
}

/* --- dumping ---------------------------------------------------------------------------- */

static uint64_t hash_bytes(const struct buf *b)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < b->len; i++)
		h = (h ^ b->data[i]) * 1099511628211u;
	return h;
}

static void dump_xattrs(struct live *v, uint64_t node, struct buf *out)
{
	char list[4096], value[256];
	struct err err = { 0 };
	ssize_t n = layer_listxattr(v->l, &call, node, list, sizeof(list), &err), len;

	CHECK(n >= 0);
	for (const char *name = list; name < list + n; name += strlen(name) + 1) {
		len = layer_getxattr(v->l, &call, node, name, value, sizeof(value), &err);
		CHECK(len >= 0);
		CHECK_EQ(buf_printf(out, " %s=%.*s", name, (int)len, value), 0);
	}
}

static void dump_node(struct live *v, const char *path, const struct layer_found *f, bool times,
		      struct buf *out)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	char target[4096] = "";

	CHECK_EQ(buf_printf(out, "%s %o n%ju u%u g%u i%ju s%jd", path, f->st.st_mode,
			    (uintmax_t)f->st.st_nlink, f->st.st_uid, f->st.st_gid,
			    (uintmax_t)f->st.st_ino, (intmax_t)f->st.st_size),
		 0);
	if (times)
		CHECK_EQ(buf_printf(out, " m%jd.%09ld c%jd.%09ld", (intmax_t)f->st.st_mtim.tv_sec,
				    f->st.st_mtim.tv_nsec, (intmax_t)f->st.st_ctim.tv_sec,
				    f->st.st_ctim.tv_nsec),
			 0);
	if (S_ISREG(f->st.st_mode) && f->st.st_size < 64 << 20) {
		live_get_node(v, f->node, &bytes);
		CHECK_EQ(bytes.len, f->st.st_size);
		CHECK_EQ(buf_printf(out, " h%016" PRIx64, hash_bytes(&bytes)), 0);
	}
	if (S_ISLNK(f->st.st_mode)) {
		CHECK(layer_readlink(v->l, f->node, target, sizeof(target), NULL) > 0);
		CHECK_EQ(buf_printf(out, " ->%s", target), 0);
	}
	dump_xattrs(v, f->node, out);
	CHECK_EQ(buf_append_u8(out, '\n'), 0);
}

static void dump_path(struct live *v, const char *path, bool times, struct buf *out)
{
	CLEANUP(names_done) struct names ns = { 0 };
	struct layer_found f;

	CHECK_EQ(walk(v, path, strlen(path), &f), 0);
	dump_node(v, path, &f, times, out);
	if (S_ISDIR(f.st.st_mode))
		list_dir(v, f.node, &ns);
	live_drop(v, f.node);
	for (size_t i = 0; i < ns.n; i++) {
		CLEANUP(buf_done) struct buf below = BUF_INIT;

		CHECK_EQ(buf_printf(&below, "%s%s%s", path, *path ? "/" : "", ns.list[i]), 0);
		dump_path(v, buf_str(&below), times, out);
	}
}

void live_dump(struct live *v, struct buf *out, bool times)
{
	buf_reset(out);
	dump_path(v, "", times, out);
	CHECK_EQ(buf_append_u8(out, 0), 0);
}

int live_roll_back(struct layer *l, const struct object_id *root, layer_also_fn also, void *ctx,
		   struct layer_changes *ret, struct err *err)
{
	const struct layer_rebase how = { .also = also, .ctx = ctx, .target = root };

	return layer_rebase(l, &how, ret, err);
}
