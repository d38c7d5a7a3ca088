#include "image/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/path.h"
#include "base/vec.h"

#define TOP_INO      2
#define DEFAULT_MODE 0755

/* What a name stands for; several names may have the same. */
struct draft_file {
	struct tree_entry e; /* without a name; its target is owned */
	uint32_t names;
};

struct node {
	struct draft_file *file;
	struct map in;   /* of a directory: its names */
	unsigned layer;  /* that named it last; 0: none did */
	size_t name_len; /* without the NUL */
	char name[];
};

struct draft {
	struct draft_limits limits;
	uint64_t names, text;
	unsigned layer;
	struct node *top;
	uint64_t ino;             /* the last one given */
	struct draft_file **many; /* owned; files with several names, by number */
	size_t n_many, cap_many;
};

/* --- nodes ------------------------------------------------------------------------------ */

static void file_unref(struct draft_file *f)
{
	if (--f->names > 0)
		return;
	tree_entry_done(&f->e);
	free(f);
}

static bool is_dir(const struct node *n)
{
	return S_ISDIR(n->file->e.mode);
}

static void node_free(struct draft *d, struct node *n)
{
	struct node *in;
	size_t pos = 0;

	while ((in = map_next(&n->in, &pos)))
		node_free(d, in);
	map_done(&n->in);
	d->names--;
	d->text -= n->name_len + n->file->e.target_len;
	file_unref(n->file);
	free(n);
}

static int count(struct draft *d, size_t text, struct err *err)
{
	if (d->names >= d->limits.names)
		return err_set(err, -EDQUOT, "it has more than %llu entries",
			       (unsigned long long)d->limits.names);
	if (text > d->limits.text - d->text)
		return err_set(err, -EDQUOT, "its names have more than %llu bytes",
			       (unsigned long long)d->limits.text);
	d->names++;
	d->text += text;
	return 0;
}

/* Takes a name of `f` on success. */
static int node_new(struct draft *d, const char *name, size_t len, struct draft_file *f,
		    struct node **ret, struct err *err)
{
	struct node *n = malloc(sizeof(*n) + len + 1);
	int r;

	if (!n)
		return err_nomem(err);
	r = count(d, len + f->e.target_len, err);
	if (r < 0) {
		free(n);
		return r;
	}
	*n = (struct node){
		.file = f,
		.in = MAP_INIT(map_hash_str, map_equal_str),
		.layer = d->layer,
		.name_len = len,
	};
	memcpy(n->name, name, len);
	n->name[len] = '\0';
	*ret = n;
	return 0;
}

static int file_new(const struct tree_entry *attr, struct draft_file **ret, struct err *err)
{
	struct draft_file *f = calloc(1, sizeof(*f));

	if (!f || tree_entry_copy(attr, &f->e) < 0) {
		free(f);
		return err_nomem(err);
	}
	f->names = 1;
	*ret = f;
	return 0;
}

int draft_new(const struct draft_limits *limits, struct draft **ret, struct err *err)
{
	const struct tree_entry top = { .form = TREE_DIR, .mode = S_IFDIR | DEFAULT_MODE };
	struct draft *d = calloc(1, sizeof(*d));
	struct draft_file *f = NULL;
	int r = d ? 0 : err_nomem(err);

	if (r < 0)
		return r;
	d->limits = *limits;
	r = file_new(&top, &f, err);
	if (r >= 0)
		r = node_new(d, "", 0, f, &d->top, err);
	if (r < 0) {
		free(f);
		free(d);
		return r;
	}
	d->top->layer = 0;
	d->layer = 1;
	*ret = d;
	return 0;
}

void draft_free(struct draft *d)
{
	if (!d)
		return;
	node_free(d, d->top);
	free(d->many);
	free(d);
}

void draft_next_layer(struct draft *d)
{
	d->layer++;
}

/* --- paths ------------------------------------------------------------------------------ */

static int bad_path(struct stream_span path, const char *why, struct err *err)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;

	if (path_append_shown(&shown, path.at ? path.at : "", path.len > 150 ? 150 : path.len) < 0)
		return err_nomem(err);
	return err_set(err, -EINVAL, "its entry '%s' %s", buf_str(&shown) ? buf_str(&shown) : "",
		       why);
}

/* The next name of a path, without "." and doubled slashes; false at the end. */
static bool next_name(struct stream_span *rest, struct stream_span *ret)
{
	while (rest->len > 0) {
		const char *slash = memchr(rest->at, '/', rest->len);
		const size_t n = slash ? (size_t)(slash - rest->at) : rest->len;

		*ret = (struct stream_span){ rest->at, n };
		rest->at += n + (slash != NULL);
		rest->len -= n + (slash != NULL);
		if (n > 0 && (n != 1 || ret->at[0] != '.'))
			return true;
	}
	return false;
}

static int check_path(struct stream_span path, struct err *err)
{
	struct stream_span rest = path, name;
	unsigned depth = 0;

	if (path.len > 0 && memchr(path.at, '\0', path.len))
		return bad_path(path, "has a NUL in its name", err);
	while (next_name(&rest, &name)) {
		if (name.len == 2 && memcmp(name.at, "..", 2) == 0)
			return bad_path(path, "has '..' in its path", err);
		if (!path_name_valid(name.at, name.len))
			return bad_path(path, "has a name that is too long", err);
		if (++depth > DRAFT_DEPTH_MAX)
			return bad_path(path, "lies too deep", err);
	}
	return 0;
}

static struct node *find_in(const struct node *dir, struct stream_span name)
{
	char text[PATH_NAME_MAX + 1];

	memcpy(text, name.at, name.len);
	text[name.len] = '\0';
	return map_get(&dir->in, text);
}

/* The node at a path that was checked; NULL: there is none. */
static struct node *find_node(struct draft *d, struct stream_span path, struct node **ret_dir)
{
	struct node *at = d->top, *dir = NULL;
	struct stream_span name;

	while (at && next_name(&path, &name)) {
		dir = is_dir(at) ? at : NULL;
		at = dir ? find_in(dir, name) : NULL;
	}
	if (ret_dir)
		*ret_dir = dir;
	return at;
}

static int enter(struct draft *d, struct node *dir, struct stream_span name, struct draft_file *f,
		 struct node **ret, struct err *err)
{
	struct node *n;
	void *other;
	int r = node_new(d, name.at, name.len, f, &n, err);

	if (r < 0)
		return r;
	r = map_add(&dir->in, n->name, n, &other);
	if (r < 0) {
		/* The file stays the caller's. */
		d->names--;
		d->text -= n->name_len + f->e.target_len;
		free(n);
		return err_nomem(err);
	}
	*ret = n;
	return 0;
}

static int enter_dir(struct draft *d, struct node *dir, struct stream_span name, struct node **ret,
		     struct err *err)
{
	const struct tree_entry attr = { .form = TREE_DIR, .mode = S_IFDIR | DEFAULT_MODE };
	struct draft_file *f = NULL;
	int r = file_new(&attr, &f, err);

	if (r < 0)
		return r;
	r = enter(d, dir, name, f, ret, err);
	if (r < 0)
		file_unref(f);
	else
		(*ret)->layer = 0;
	return r;
}

/* The directory that a path lies in, made if it is not there, and the last name; none: the top itself. */
static int find_place(struct draft *d, struct stream_span path, struct node **ret_dir,
		      struct stream_span *ret_name, struct err *err)
{
	struct stream_span rest = path, name, next;
	struct node *dir = d->top, *in;
	int r = check_path(path, err);

	if (r < 0)
		return r;
	*ret_dir = NULL;
	*ret_name = (struct stream_span){ 0 };
	if (!next_name(&rest, &name))
		return 0;
	while (next_name(&rest, &next)) {
		in = find_in(dir, name);
		if (in && S_ISLNK(in->file->e.mode))
			return bad_path(path, "leads through a symbolic link", err);
		if (in && !is_dir(in))
			return bad_path(path, "leads through what is no directory", err);
		r = in ? 0 : enter_dir(d, dir, name, &in, err);
		if (r < 0)
			return r;
		dir = in;
		name = next;
	}
	*ret_dir = dir;
	*ret_name = name;
	return 0;
}

static void drop(struct draft *d, struct node *dir, struct node *n)
{
	map_remove(&dir->in, n->name);
	node_free(d, n);
}

/* --- entering --------------------------------------------------------------------------- */

/* A directory that is there gets other attributes and keeps its names. */
static void take_attributes(struct draft *d, struct node *n, struct draft_file *f)
{
	file_unref(n->file);
	n->file = f;
	n->layer = d->layer;
}

static int put_name(struct draft *d, struct stream_span path, struct draft_file *f, struct err *err)
{
	struct stream_span name;
	struct node *dir, *there;
	int r = find_place(d, path, &dir, &name, err);

	if (r < 0)
		return r;
	if (!dir && !S_ISDIR(f->e.mode))
		return bad_path(path, "is the top and no directory", err);
	there = dir ? find_in(dir, name) : d->top;
	if (there && is_dir(there) && S_ISDIR(f->e.mode)) {
		take_attributes(d, there, f);
		return 0;
	}
	if (there)
		drop(d, dir, there);
	return enter(d, dir, name, f, &there, err);
}

int draft_add(struct draft *d, struct stream_span path, const struct tree_entry *attr,
	      struct draft_file **ret, struct err *err)
{
	struct draft_file *f = NULL;
	int r = file_new(attr, &f, err);

	if (r < 0)
		return r;
	r = put_name(d, path, f, err);
	if (r < 0) {
		file_unref(f);
		return r;
	}
	if (ret)
		*ret = f;
	return 0;
}

void draft_set_content(struct draft_file *f, const struct content *c)
{
	tree_entry_set_content(&f->e, c);
}

int draft_link(struct draft *d, struct stream_span path, struct stream_span target, struct err *err)
{
	struct node *from;
	struct draft_file *f = NULL;
	int r = check_path(target, err);

	if (r < 0)
		return r;
	from = find_node(d, target, NULL);
	if (!from)
		return bad_path(path, "is a hard link to a name that is not in the archive", err);
	if (is_dir(from))
		return bad_path(path, "is a hard link to a directory", err);
	f = from->file;
	f->names++;
	/* A name that it had before and has again: its old name must not take the file along. */
	r = put_name(d, path, f, err);
	if (r < 0)
		file_unref(f);
	return r;
}

/* --- whiteouts -------------------------------------------------------------------------- */

/* Take away what lower layers have in a directory; what this layer named stays. */
static void purge(struct draft *d, struct node *dir)
{
	struct node *n;
	size_t pos = 0;

	while ((n = map_next(&dir->in, &pos))) {
		if (is_dir(n))
			purge(d, n);
		if (n->layer != d->layer && n->in.n == 0)
			drop(d, dir, n);
	}
}

int draft_whiteout(struct draft *d, struct stream_span path, struct err *err)
{
	struct node *dir, *n;
	int r = check_path(path, err);

	if (r < 0)
		return r;
	n = find_node(d, path, &dir);
	if (!n || !dir)
		return 0;
	if (is_dir(n))
		purge(d, n);
	if (n->layer != d->layer && n->in.n == 0)
		drop(d, dir, n);
	return 0;
}

int draft_opaque(struct draft *d, struct stream_span path, struct err *err)
{
	struct node *n;
	int r = check_path(path, err);

	if (r < 0)
		return r;
	n = find_node(d, path, NULL);
	if (n && is_dir(n))
		purge(d, n);
	return 0;
}

/* --- putting ---------------------------------------------------------------------------- */

struct putting {
	struct draft *draft;
	struct tree_builder *builder;
};

static void putting_done(struct putting *p)
{
	tree_builder_free(p->builder);
}

static int by_name(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

	return tree_name_compare(x->name, x->name_len, y->name, y->name_len);
}

static int give_number(struct draft *d, struct draft_file *f, struct err *err)
{
	if (f->e.ino != 0)
		return 0;
	f->e.ino = ++d->ino;
	f->e.ctime_s = f->e.mtime_s;
	f->e.ctime_ns = f->e.mtime_ns;
	if (S_ISDIR(f->e.mode) || f->names == 1)
		return 0;
	if (!VEC_ROOM(d->many, d->n_many, d->cap_many))
		return err_nomem(err);
	d->many[d->n_many++] = f;
	return 0;
}

static int add_name(struct putting *p, const struct node *n, struct err *err)
{
	struct tree_entry e = n->file->e;

	if (!is_dir(n) && n->file->names > 1)
		e = (struct tree_entry){
			.form = TREE_LINK,
			.mode = e.mode & S_IFMT,
			.ino = e.ino,
		};
	e.name = n->name;
	e.name_len = n->name_len;
	return tree_builder_add(p->builder, &e, err);
}

/* Bounded by DRAFT_DEPTH_MAX.  What is below a directory is put before the directory itself. */
static int put_dir(struct putting *p, struct node *dir, struct err *err)
{
	AUTO_FREE struct node **list = calloc(dir->in.n + 1, sizeof(*list));
	struct tree_entry *self = &dir->file->e;
	struct node *n;
	size_t pos = 0, len = 0;
	int r = list ? 0 : err_nomem(err);

	while (r >= 0 && (n = map_next(&dir->in, &pos)))
		list[len++] = n;
	VEC_SORT(list, len, by_name);
	for (size_t i = 0; i < len && r >= 0; i++)
		r = give_number(p->draft, list[i]->file, err);
	self->nlink = 2;
	for (size_t i = 0; i < len && r >= 0; i++) {
		self->nlink += is_dir(list[i]);
		if (is_dir(list[i]))
			r = put_dir(p, list[i], err);
	}
	for (size_t i = 0; i < len && r >= 0; i++)
		r = add_name(p, list[i], err);
	return r < 0 ? r : tree_builder_finish(p->builder, &self->id, &self->below, err);
}

static int put_links(struct putting *p, struct root *root, struct err *err)
{
	const struct draft *d = p->draft;
	char name[ROOT_LINK_NAME_SIZE];
	int r = 0;

	if (d->n_many == 0)
		return 0;
	for (size_t i = 0; i < d->n_many && r >= 0; i++) {
		struct tree_entry e = d->many[i]->e;

		e.name = root_link_name(e.ino, name);
		e.name_len = strlen(name);
		e.nlink = d->many[i]->names;
		r = tree_builder_add(p->builder, &e, err);
	}
	return r < 0 ? r : tree_builder_finish(p->builder, &root->links, &root->in_links, err);
}

int draft_put(struct draft *d, struct batch *b, struct object_id *ret_id, struct root *ret_root,
	      struct err *err)
{
	CLEANUP(putting_done) struct putting p = { .draft = d };
	struct root root = { 0 };
	int r = tree_builder_new(b, &p.builder, err);

	if (r < 0)
		return r;
	d->ino = TOP_INO - 1;
	r = give_number(d, d->top->file, err);
	if (r < 0)
		return r;
	r = put_dir(&p, d->top, err);
	if (r < 0)
		return r;
	root.top = d->top->file->e;
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	r = put_links(&p, &root, err);
	if (r < 0)
		return r;
	r = root_put(b, &root, ret_id, err);
	if (r >= 0)
		*ret_root = root;
	return r;
}
