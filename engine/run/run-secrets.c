/*
 * First by names: what is found is to be hidden, and the numbers of all that is hidden with it are
 * remembered.  If one of those may have another name, or is not where it was, then all
 * directories are looked through once more, for the numbers.
 *
 * Memory is bounded by how deep directories are nested, and by what is found.
 */
#include "engine/run/run-secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "engine/run/run-follow.h"
#include "engine/run/secret-name.h"

#define DEPTH_MAX 32768               /* directories in each other */
#define KEY_MAX   ((uint64_t)1 << 20) /* a .pem that is larger counts as one with a key */
#define CLEAN_MAX ((size_t)4 << 20)   /* directories that are remembered */

struct numbers {
	uint64_t *list; /* owned */
	size_t n, cap;
};

/* The first `sorted` can be found. */
struct trees {
	struct object_id *list; /* owned */
	size_t n, cap, sorted;
};

/* How a directory is looked through. */
enum looking {
	BY_NAME,
	BY_NUMBER, /* for what has a number of a secret */
	UNSEEN,    /* it is hidden as a whole: for the numbers of what is a secret by its name */
	ALL,       /* it is one by its name: for all numbers */
};

struct run_search {
	struct run_secrets_in in;
	struct numbers was;    /* secrets of the state before; sorted */
	struct numbers wanted; /* what was looked for by its number last; sorted */
	struct trees clean[2]; /* BY_NAME, BY_NUMBER: nothing is to be found below these */
	bool knows_before;
};

/* A directory on the way down. */
struct level {
	struct tree_iter *it; /* owned */
	struct object_id tree;
	uint64_t ino;
	size_t path_len; /* with the slash behind it */
	enum looking how;
	size_t own;      /* of what was found, in it itself */
	size_t from;     /* what was found before */
	uint64_t traces; /* the same, with what is not hidden itself */
	bool has_dirs;   /* to be looked through */
	bool descending; /* what is in it itself was looked at: now these */
};

/* A directory that a symlink leads to. */
struct led {
	char *path; /* owned */
	uint64_t ino;
	struct object_id tree;
};

struct finding {
	struct run_search *s;
	const struct root *root;
	struct run_secrets_found *found; /* NULL: only the numbers count */
	struct numbers numbers;          /* of all that is found, and of what is hidden with it */
	struct numbers targets;          /* of what symlinks lead to */
	struct led *led;                 /* owned */
	size_t n_led, cap_led;
	bool linked;     /* one of them may have another name */
	uint64_t traces; /* what was met of secrets so far */
	struct level *levels;
	size_t n, cap;
	struct buf path; /* to what is looked at */
};

void run_secrets_found_done(struct run_secrets_found *f)
{
	VEC_FREE(it, f->list, f->n, free(it->path));
	*f = (struct run_secrets_found){ 0 };
}

static void finding_done(struct finding *f)
{
	VEC_FREE(it, f->levels, f->n, tree_iter_free(it->it));
	VEC_FREE(it, f->led, f->n_led, free(it->path));
	free(f->numbers.list);
	free(f->targets.list);
	buf_done(&f->path);
}

/* --- numbers and trees ------------------------------------------------------------------ */

static int add_number(struct numbers *n, uint64_t ino)
{
	if (!VEC_ROOM(n->list, n->n, n->cap))
		return -ENOMEM;
	n->list[n->n++] = ino;
	return 0;
}

static int add_numbers(struct numbers *n, const struct numbers *more)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < more->n; i++)
		r = add_number(n, more->list[i]);
	return r;
}

static void sort_numbers(struct numbers *n)
{
	size_t kept = 0;

	VEC_SORT(n->list, n->n, vec_by_u64);
	for (size_t i = 0; i < n->n; i++)
		if (kept == 0 || n->list[kept - 1] != n->list[i])
			n->list[kept++] = n->list[i];
	n->n = kept;
}

static bool has_number(const struct numbers *n, uint64_t ino)
{
	return n->n > 0 && bsearch(&ino, n->list, n->n, sizeof(ino), vec_by_u64);
}

static bool has_all(const struct numbers *n, const struct numbers *these)
{
	return VEC_ALL(it, these->list, these->n, has_number(n, *it));
}

static bool same_numbers(const struct numbers *a, const struct numbers *b)
{
	return a->n == b->n &&
	       (a->n == 0 || memcmp(a->list, b->list, a->n * sizeof(*a->list)) == 0);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct object_id));
}

static void sort_trees(struct trees *t)
{
	VEC_SORT(t->list, t->n, by_id);
	t->sorted = t->n;
}

static bool has_tree(const struct trees *t, const struct object_id *id)
{
	return t->sorted > 0 && bsearch(id, t->list, t->sorted, sizeof(*id), by_id);
}

/* --- what is one ------------------------------------------------------------------------ */

static ssize_t read_stored(const struct finding *f, const struct content *c, char *text)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct err unused = { 0 };
	int r = content_reader_new(f->s->in.store, c, &rd, &unused);

	return r < 0 ? r : content_reader_read(rd, 0, text, c->size, &unused);
}

/* What is promised is read through the mount, which has the promise kept; it may have been moved meanwhile. */
static ssize_t read_promised(struct finding *f, uint64_t ino, char *text, size_t len)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	const char *path = buf_str(&f->path);
	AUTO_CLOSE int fd = path ? sys_open_below(f->s->in.dir, path, flags) : -ENOMEM;
	struct stat st;

	if (fd < 0)
		return fd;
	return fstat(fd, &st) < 0 || st.st_ino != ino ? -ESTALE : fdio_read(fd, text, len);
}

/* What cannot be read to its end is hidden, too. */
static bool may_have_key(struct finding *f, const struct tree_entry *e)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	AUTO_FREE char *text = NULL;
	struct tree_entry file = *e;
	struct err unused = { 0 };
	struct content c;
	ssize_t n;

	/* The content of a file with several names may change and its directory's id does not. */
	f->traces += e->form == TREE_LINK;
	if (e->form == TREE_LINK &&
	    root_link(f->s->in.store, f->root, e->ino, &file, &hold, &unused) < 0)
		return true;
	c = tree_entry_content(&file);
	text = c.size <= KEY_MAX ? malloc(c.size + 1) : NULL;
	if (!text)
		return true;
	n = c.form == CONTENT_LAZY ? read_promised(f, e->ino, text, c.size)
				   : read_stored(f, &c, text);
	return n < 0 || (uint64_t)n != c.size || memmem(text, c.size, "PRIVATE KEY", 11);
}

static bool is_secret(struct finding *f, const struct tree_entry *e, const char *name)
{
	return secret_name_is(name) ||
	       (S_ISREG(e->mode) && secret_name_may_have_key(name) && may_have_key(f, e));
}

/* --- the way ---------------------------------------------------------------------------- */

static struct level *here(const struct finding *f)
{
	return &f->levels[f->n - 1];
}

/* The path of what is looked at becomes that of a directory. */
static int enter(struct finding *f, const struct object_id *tree, uint64_t ino, enum looking how,
		 struct err *err)
{
	struct level new = { .tree = *tree, .ino = ino, .how = how, .traces = f->traces };
	int r;

	if (how <= BY_NUMBER && has_tree(&f->s->clean[how], tree))
		return 0;
	if (f->n == DEPTH_MAX)
		return err_set(err, -ELOOP,
			       "more than %d directories lie in each other: remove those, or use a "
			       "profile whose 'hide' has names instead of '@secrets'",
			       DEPTH_MAX);
	if (!VEC_ROOM(f->levels, f->n, f->cap) ||
	    (f->path.len > 0 && buf_append_u8(&f->path, '/') < 0))
		return err_nomem(err);
	new.path_len = f->path.len;
	new.from = f->found ? f->found->n : 0;
	r = tree_iter_new(f->s->in.store, tree, &new.it, err);
	if (r >= 0)
		f->levels[f->n++] = new;
	return r;
}

/* Below the directory that is left nothing was found: remember it. */
static int leave(struct finding *f)
{
	const struct level *l = here(f);
	struct trees *clean = l->how <= BY_NUMBER ? &f->s->clean[l->how] : NULL;

	tree_iter_free(l->it);
	f->n--;
	if (!clean || l->traces != f->traces || clean->n == CLEAN_MAX)
		return 0;
	if (!VEC_ROOM(clean->list, clean->n, clean->cap))
		return -ENOMEM;
	clean->list[clean->n++] = l->tree;
	return 0;
}

static int check_path(size_t len, struct err *err)
{
	return len < PATH_MAX
		   ? 0
		   : err_set(err, -ENAMETOOLONG,
			     "one is deeper than a path can be long: remove the directories that "
			     "it lies in");
}

static int add_found(struct finding *f, size_t path_len, uint64_t ino, struct err *err)
{
	struct run_secrets_found *const found = f->found;
	char *path = NULL;
	int r;

	if (!found)
		return 0;
	if (!VEC_ROOM(found->list, found->n, found->cap))
		return err_nomem(err);
	r = f->s->in.each < SIZE_MAX ? check_path(path_len, err) : 0;
	if (r < 0)
		return r;
	if (f->s->in.each < SIZE_MAX) {
		path = strndup((const char *)f->path.data, path_len);
		if (!path)
			return err_nomem(err);
	}
	found->list[found->n++] = (struct run_secret){ path, ino };
	return 0;
}

static int check_room(const struct finding *f, struct err *err)
{
	const size_t max = f->s->in.max;

	/* Those of one directory may yet become one. */
	if (!f->found || f->found->n <= max + (f->n > 1 && f->s->in.each < max ? f->s->in.each : 0))
		return 0;
	return err_set(err, -E2BIG,
		       "more than %zu files and directories look like secrets, which cannot all be "
		       "hidden: use a profile whose 'hide' names those that matter",
		       max);
}

/* It has too many: hide it instead of them. */
static int hide_whole(struct finding *f, struct err *err)
{
	struct level *l = here(f);
	int r;

	while (f->found && f->found->n > l->from)
		free(f->found->list[--f->found->n].path);
	r = add_found(f, l->path_len - 1, l->ino, err);
	if (r < 0)
		return r;
	if (l->how == BY_NUMBER)
		return leave(f) < 0 ? err_nomem(err) : 0;
	l->how = UNSEEN;
	return add_number(&f->numbers, l->ino) < 0 ? err_nomem(err) : 0;
}

static int hide(struct finding *f, const struct tree_entry *e, struct err *err)
{
	struct level *l = here(f);
	int r;

	f->traces++;
	if (l->how != BY_NAME && l->how != BY_NUMBER)
		return 0;
	r = add_found(f, f->path.len, e->ino, err);
	if (r < 0)
		return r;
	if (++l->own > f->s->in.each && f->n > 1)
		return hide_whole(f, err);
	return check_room(f, err);
}

/* --- by names --------------------------------------------------------------------------- */

static int add_led(struct finding *f, const struct buf *path, const struct run_followed *to)
{
	char *text;

	if (VEC_HAS(it, f->led, f->n_led, it->ino == to->ino))
		return 0;
	if (!VEC_ROOM(f->led, f->n_led, f->cap_led))
		return -ENOMEM;
	text = strndup((const char *)path->data, path->len);
	if (!text)
		return -ENOMEM;
	f->led[f->n_led++] = (struct led){ text, to->ino, to->tree };
	return 0;
}

static int follow(struct finding *f, struct err *err)
{
	const struct run_following in = { f->s->in.store, f->root, f->s->in.top };
	CLEANUP(buf_done) struct buf end = BUF_INIT;
	const char *path = buf_str(&f->path);
	struct run_followed to;
	int r;

	f->traces++; /* it may lead to something when the clone has changed */
	if (!path)
		return err_nomem(err);
	r = check_path(f->path.len, err);
	r = r < 0 ? r : run_follow(&in, path, &end, &to, err);
	if (r <= 0)
		return r;
	f->linked |= to.form == TREE_LINK;
	if (add_number(&f->targets, to.ino) < 0 ||
	    (to.form == TREE_DIR && add_led(f, &end, &to) < 0))
		return err_nomem(err);
	return 0;
}

/* It is a secret, or in a directory that is. */
static int take(struct finding *f, const struct tree_entry *e, struct err *err)
{
	const struct object_id tree = e->id;
	const uint64_t ino = e->ino;
	const bool is_dir = e->form == TREE_DIR;
	int r;

	if (S_ISLNK(e->mode))
		return follow(f, err);
	f->linked |= e->form == TREE_LINK;
	if (add_number(&f->numbers, ino) < 0)
		return err_nomem(err);
	r = hide(f, e, err);
	return r < 0 || !is_dir ? r : enter(f, &tree, ino, ALL, err);
}

static int look_at(struct finding *f, const struct tree_entry *e, const char *name, struct err *err)
{
	struct level *l = here(f);

	if (l->how == BY_NUMBER) {
		if (has_number(&f->s->wanted, e->ino))
			return hide(f, e, err);
		l->has_dirs |= e->form == TREE_DIR;
		return 0;
	}
	if (l->how == ALL || is_secret(f, e, name))
		return take(f, e, err);
	l->has_dirs |= e->form == TREE_DIR && !secret_name_is_skipped(name);
	return 0;
}

static int descend(struct finding *f, const struct tree_entry *e, const char *name, struct err *err)
{
	const enum looking how = here(f)->how;
	const bool past = how == BY_NUMBER ? has_number(&f->s->wanted, e->ino)
					   : secret_name_is(name) || secret_name_is_skipped(name);

	return e->form != TREE_DIR || past ? 0 : enter(f, &e->id, e->ino, how, err);
}

/* What is in a directory itself comes first, as it decides whether the directory is hidden as a whole. */
static int begin_descent(struct finding *f, struct err *err)
{
	struct level *l = here(f);

	if (l->descending || !l->has_dirs)
		return leave(f) < 0 ? err_nomem(err) : 0;
	l->descending = true;
	tree_iter_free(TAKE_PTR(l->it));
	return tree_iter_new(f->s->in.store, &l->tree, &l->it, err);
}

static int step(struct finding *f, struct err *err)
{
	struct level *l = here(f);
	struct tree_entry e;
	const char *path;
	int r = tree_iter_next(l->it, &e, err);

	if (r <= 0)
		return r < 0 ? r : begin_descent(f, err);
	if (clock_ms() >= f->s->in.until_ms)
		return err_set(err, -ETIMEDOUT,
			       "it took too long: use a profile whose 'hide' has names instead of "
			       "'@secrets'");
	f->path.len = l->path_len;
	if (buf_append(&f->path, e.name, e.name_len) < 0 || !(path = buf_str(&f->path)))
		return err_nomem(err);
	return l->descending ? descend(f, &e, path + l->path_len, err)
			     : look_at(f, &e, path + l->path_len, err);
}

static int look_through(struct finding *f, const struct object_id *tree, uint64_t ino,
			enum looking how, struct err *err)
{
	int r = enter(f, tree, ino, how, err);

	while (r >= 0 && f->n > 0)
		r = step(f, err);
	return r < 0 ? r : check_room(f, err);
}

/* What symlinks lead to counts, too; where more of them lie in that, only for its own number. */
static int look_by_name(struct finding *f, struct err *err)
{
	int r = look_through(f, &f->root->top.id, f->root->top.ino, BY_NAME, err);
	const size_t n = f->n_led;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		buf_reset(&f->path);
		r = buf_append_str(&f->path, f->led[i].path) < 0 ? err_nomem(err) : 0;
		r = r < 0 ? r : look_through(f, &f->led[i].tree, f->led[i].ino, ALL, err);
	}
	sort_trees(&f->s->clean[BY_NAME]);
	sort_numbers(&f->numbers);
	return r;
}

/* --- one state -------------------------------------------------------------------------- */

static int look_before(struct run_search *s, const struct object_id *now, struct err *err)
{
	struct root was;
	CLEANUP(finding_done) struct finding f = { .s = s, .root = &was };
	int r;

	if (s->knows_before || !s->in.before || object_id_equal(s->in.before, now))
		return 0;
	r = root_get(s->in.store, s->in.before, &was, err);
	r = r < 0 ? r : look_by_name(&f, err);
	if (r < 0)
		return r;
	if (add_numbers(&s->was, &f.numbers) < 0 || add_numbers(&s->was, &f.targets) < 0)
		return err_nomem(err);
	sort_numbers(&s->was);
	s->knows_before = true;
	return 0;
}

/* Everything that has one of the numbers is found, and so what was found by its name as well. */
static int look_by_number(struct run_search *s, const struct finding *named,
			  struct run_secrets_found *ret, struct err *err)
{
	CLEANUP(finding_done) struct finding f = { .s = s, .root = named->root, .found = ret };
	struct numbers all = { 0 };
	int r;

	run_secrets_found_done(ret);
	if (add_numbers(&all, &s->was) < 0 || add_numbers(&all, &named->numbers) < 0 ||
	    add_numbers(&all, &named->targets) < 0) {
		free(all.list);
		return err_nomem(err);
	}
	sort_numbers(&all);
	if (!same_numbers(&all, &s->wanted))
		s->clean[BY_NUMBER].n = s->clean[BY_NUMBER].sorted = 0;
	free(s->wanted.list);
	s->wanted = all;
	r = look_through(&f, &f.root->top.id, f.root->top.ino, BY_NUMBER, err);
	sort_trees(&s->clean[BY_NUMBER]);
	return r;
}

static int look(struct run_search *s, const struct object_id *id, struct run_secrets_found *ret,
		struct err *err)
{
	struct root root;
	CLEANUP(finding_done) struct finding f = { .s = s, .root = &root, .found = ret };
	int r = root_get(s->in.store, id, &root, err);

	r = r < 0 ? r : look_before(s, id, err);
	r = r < 0 ? r : look_by_name(&f, err);
	if (r >= 0 &&
	    (f.linked || !has_all(&f.numbers, &f.targets) || !has_all(&f.numbers, &s->was)))
		r = look_by_number(s, &f, ret, err);
	return r;
}

void run_search_until(struct run_search *s, uint64_t until_ms)
{
	s->in.until_ms = until_ms;
}

int run_search_look(struct run_search *s, const struct object_id *root,
		    struct run_secrets_found *ret, struct err *err)
{
	int r = look(s, root, ret, err);

	return r < 0 ? err_wrap(err, r, "looking for secrets in the clone") : 0;
}

int run_search_new(const struct run_secrets_in *in, struct run_search **ret, struct err *err)
{
	struct run_search *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->in = *in;
	*ret = s;
	return 0;
}

void run_search_free(struct run_search *s)
{
	if (!s)
		return;
	free(s->was.list);
	free(s->wanted.list);
	free(s->clean[BY_NAME].list);
	free(s->clean[BY_NUMBER].list);
	free(s);
}
