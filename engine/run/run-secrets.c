/*
 * First by names: what is found is to be hidden, and the numbers of all that is hidden with it are
 * remembered.  If one of those may have another name, or is not where it was, then all
 * directories are looked through once more, for the numbers.  So they are if a directory was hidden as
 * a whole with more than could be remembered: it stays hidden until none is left in it.
 *
 * Memory is bounded by how deep directories are nested, and by what is found.
 */
#include "engine/run/run-secrets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/vec.h"
#include "cowfs/store/record.h"
#include "cowfs/store/root.h"
#include "engine/run/run-follow.h"
#include "engine/run/run-key.h"
#include "engine/run/run-numbers.h"
#include "engine/run/run-trees.h"
#include "snapshot/text/secret-name.h"

#define DEPTH_MAX 32768             /* directories in each other */
#define CLEAN_MAX ((size_t)4 << 20) /* directories that are remembered */

#define INSIDE_MAX 1024                     /* numbers that are kept from one hidden directory */
#define SPARE_MAX  (RECORD_NUMBERS_MAX / 2) /* with so many none is kept from one any more */

/* How a directory is looked through. */
enum looking {
	BY_NAME,
	BY_NUMBER, /* for what has a number of a secret */
	UNSEEN,    /* it is hidden as a whole: for the numbers of what is a secret by its name */
	ALL,       /* it is one by its name: for all numbers */
	LEFT,      /* it was hidden as a whole: for any secret, by name or number */
};

struct run_search {
	struct run_secrets_in in;
	struct numbers known;  /* what is a secret by now, whatever it is called; sorted */
	struct numbers kept;   /* what later searches are to know; sorted */
	struct numbers wholes; /* directories of which not all is among those; sorted */
	struct trees clean[2]; /* BY_NAME, BY_NUMBER: nothing is to be found below these */
	bool knows_before;
};

/* A directory on the way down. */
struct search_level {
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
	struct numbers kept;             /* what was not kept yet */
	struct numbers wholes;           /* the same of directories */
	uint64_t whole;                  /* the directory with too many that this is in, or 0 */
	size_t inside;                   /* so many were met in a directory that is hidden */
	struct led *led;                 /* owned */
	size_t n_led, cap_led;
	bool linked;     /* one of them may have another name */
	uint64_t traces; /* what was met of secrets so far */
	struct search_level *levels;
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
	free(f->kept.list);
	free(f->wholes.list);
	buf_done(&f->path);
}

/* --- what is one ------------------------------------------------------------------------ */

static bool may_have_key(struct finding *f, const struct tree_entry *e, const char *path)
{
	const struct run_key_in in = { f->s->in.store, f->root, f->s->in.dir };

	/* The content of a file with several names may change and its directory's id does not. */
	f->traces += e->form == TREE_LINK;
	return run_key_may_be_in(&in, e, path);
}

static bool is_secret(struct finding *f, const struct tree_entry *e, const char *name)
{
	return secret_name_is(name) || (S_ISREG(e->mode) && secret_name_may_have_key(name) &&
					may_have_key(f, e, buf_str(&f->path)));
}

/* --- the way ---------------------------------------------------------------------------- */

static struct search_level *here(const struct finding *f)
{
	return &f->levels[f->n - 1];
}

/* The path of what is looked at becomes that of a directory. */
static int enter(struct finding *f, const struct object_id *tree, uint64_t ino, enum looking how,
		 struct err *err)
{
	struct search_level new = { .tree = *tree, .ino = ino, .how = how, .traces = f->traces };
	int r;

	if (how <= BY_NUMBER && trees_have(&f->s->clean[how], tree))
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
	const struct search_level *l = here(f);
	struct trees *clean = l->how <= BY_NUMBER ? &f->s->clean[l->how] : NULL;

	tree_iter_free(l->it);
	f->n--;
	if (!clean || l->traces != f->traces || clean->n == CLEAN_MAX)
		return 0;
	return trees_add(clean, &l->tree);
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

static void begin_inside(struct finding *f, uint64_t whole)
{
	f->whole = whole;
	f->inside = 0;
}

/*
 * A directory that is hidden since it has too many is kept by those, and so it is seen again when they are gone.
 * Where not all of them fit, the directory's own number is kept as well.
 */
static int keep(struct finding *f, uint64_t ino, bool must)
{
	const struct numbers *const kept = &f->s->kept;
	const bool inside = here(f)->how >= UNSEEN;
	const bool room = (!inside || f->inside++ < INSIDE_MAX) && kept->n + f->kept.n < SPARE_MAX;

	if (numbers_has(kept, ino))
		return 0;
	if (room || must)
		return numbers_add(&f->kept, ino);
	ino = inside ? f->whole : 0;
	f->whole = 0;
	return ino ? numbers_add(&f->wholes, ino) : 0;
}

/* It has too many: hide it instead of them. */
static int hide_whole(struct finding *f, struct err *err)
{
	struct search_level *l = here(f);
	int r;

	while (f->found && f->found->n > l->from)
		free(f->found->list[--f->found->n].path);
	r = add_found(f, l->path_len - 1, l->ino, err);
	if (r < 0)
		return r;
	if (l->how == BY_NUMBER)
		return leave(f) < 0 ? err_nomem(err) : 0;
	l->how = UNSEEN;
	begin_inside(f, l->ino);
	return 0;
}

/* Something is left in the directory that was hidden as a whole, or below it: hide that. */
static int hide_again(struct finding *f, struct err *err)
{
	const struct search_level *l;
	int r;

	while (f->levels[f->n - 2].how == LEFT)
		tree_iter_free(f->levels[--f->n].it);
	l = here(f);
	f->traces++;
	while (f->found->n > l->from)
		free(f->found->list[--f->found->n].path);
	r = add_found(f, l->path_len - 1, l->ino, err);
	if (r < 0)
		return r;
	r = leave(f);
	return r < 0 ? err_nomem(err) : check_room(f, err);
}

static int hide(struct finding *f, const struct tree_entry *e, struct err *err)
{
	struct search_level *l = here(f);
	const bool inside = l->how >= UNSEEN;
	int r = keep(f, e->ino, f->found && !inside);

	f->traces++;
	if (r < 0)
		return err_nomem(err);
	if (inside)
		return 0;
	r = add_found(f, f->path.len, e->ino, err);
	if (r < 0)
		return r;
	if (++l->own > f->s->in.each && f->n > 1)
		return hide_whole(f, err);
	return check_room(f, err);
}

/* --- by names --------------------------------------------------------------------------- */

static int add_led(struct finding *f, const struct buf *path, const struct tree_entry *to)
{
	char *text;

	if (VEC_HAS(it, f->led, f->n_led, it->ino == to->ino))
		return 0;
	if (!VEC_ROOM(f->led, f->n_led, f->cap_led))
		return -ENOMEM;
	text = strndup((const char *)path->data, path->len);
	if (!text)
		return -ENOMEM;
	f->led[f->n_led++] = (struct led){ text, to->ino, to->id };
	return 0;
}

/* `keys`: only a file that may have a key counts. */
static int follow(struct finding *f, bool keys, struct err *err)
{
	const struct run_following in = { f->s->in.store, f->root, f->s->in.top };
	CLEANUP(buf_done) struct buf end = BUF_INIT;
	const char *path = buf_str(&f->path);
	const struct tree_entry *e;
	struct run_followed to;
	int r;

	f->traces++; /* it may lead to something when the clone has changed */
	if (!path)
		return err_nomem(err);
	r = check_path(f->path.len, err);
	r = r < 0 ? r : run_follow(&in, path, &end, &to, err);
	if (r <= 0)
		return r;
	e = &to.entry;
	if (keys && !(S_ISREG(e->mode) && may_have_key(f, e, buf_str(&end))))
		return 0;
	f->linked |= e->form == TREE_LINK;
	if (numbers_add(&f->targets, e->ino) < 0 || keep(f, e->ino, false) < 0 ||
	    (e->form == TREE_DIR && add_led(f, &end, e) < 0))
		return err_nomem(err);
	return 0;
}

/* It is a secret, or in a directory that is. */
static int take_entry(struct finding *f, const struct tree_entry *e, struct err *err)
{
	const struct object_id tree = e->id;
	const uint64_t ino = e->ino;
	const bool is_dir = e->form == TREE_DIR;
	int r;

	if (S_ISLNK(e->mode))
		return follow(f, false, err);
	f->linked |= e->form == TREE_LINK;
	if (numbers_add(&f->numbers, ino) < 0)
		return err_nomem(err);
	r = hide(f, e, err);
	if (here(f)->how == BY_NAME)
		begin_inside(f, 0);
	return r < 0 || !is_dir ? r : enter(f, &tree, ino, ALL, err);
}

static int look_at(struct finding *f, const struct tree_entry *e, const char *name, struct err *err)
{
	struct search_level *l = here(f);

	if (l->how == BY_NUMBER || l->how == LEFT) {
		if (numbers_has(&f->s->known, e->ino))
			return l->how == LEFT ? hide_again(f, err) : hide(f, e, err);
		if (l->how == LEFT && !S_ISLNK(e->mode) && is_secret(f, e, name))
			return hide_again(f, err);
		l->has_dirs |= e->form == TREE_DIR;
		return 0;
	}
	if (l->how == ALL || is_secret(f, e, name))
		return take_entry(f, e, err);
	if (S_ISLNK(e->mode) && secret_name_may_have_key(name))
		return follow(f, true, err);
	l->has_dirs |= e->form == TREE_DIR && !secret_name_is_skipped(name);
	return 0;
}

/* Of what was hidden as a whole packages are looked through for numbers alone, as they were for those. */
static enum looking how_below(const struct finding *f, const struct tree_entry *e, const char *name)
{
	enum looking how = here(f)->how;

	if (how == LEFT && secret_name_is_skipped(name))
		how = BY_NUMBER;
	return how == BY_NUMBER && numbers_has(&f->s->wholes, e->ino) ? LEFT : how;
}

static int descend(struct finding *f, const struct tree_entry *e, const char *name, struct err *err)
{
	const enum looking how = here(f)->how;
	const bool past = how == BY_NUMBER ? numbers_has(&f->s->known, e->ino)
					   : how != LEFT && (secret_name_is(name) ||
							     secret_name_is_skipped(name));

	return e->form != TREE_DIR || past ? 0
					   : enter(f, &e->id, e->ino, how_below(f, e, name), err);
}

/* What is in a directory itself comes first, as it decides whether the directory is hidden as a whole. */
static int begin_descent(struct finding *f, struct err *err)
{
	struct search_level *l = here(f);

	if (l->descending || !l->has_dirs)
		return leave(f) < 0 ? err_nomem(err) : 0;
	l->descending = true;
	tree_iter_free(TAKE_PTR(l->it));
	return tree_iter_new(f->s->in.store, &l->tree, &l->it, err);
}

static int step(struct finding *f, struct err *err)
{
	struct search_level *l = here(f);
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
		begin_inside(f, 0);
		r = buf_append_str(&f->path, f->led[i].path) < 0 ? err_nomem(err) : 0;
		r = r < 0 ? r : look_through(f, &f->led[i].tree, f->led[i].ino, ALL, err);
	}
	trees_sort(&f->s->clean[BY_NAME]);
	numbers_sort(&f->numbers);
	return r;
}

/* --- one state -------------------------------------------------------------------------- */

/* What is a secret in one state is one in all that are looked through later. */
static int remember(struct run_search *s, struct numbers *all, const struct numbers *these,
		    struct err *err)
{
	const size_t n = all->n;

	if (numbers_join(all, these) < 0)
		return err_nomem(err);
	/* What is new may lie where nothing was found. */
	if (all->n > n)
		trees_forget(&s->clean[BY_NUMBER]);
	return 0;
}

static int remember_found(struct finding *f, struct err *err)
{
	struct run_search *const s = f->s;
	int r = numbers_join(&s->kept, &f->kept) < 0 ? err_nomem(err) : 0;

	r = r < 0 ? r : remember(s, &s->wholes, &f->wholes, err);
	r = r < 0 ? r : remember(s, &s->known, &f->numbers, err);
	return r < 0 ? r : remember(s, &s->known, &f->targets, err);
}

static int look_before(struct run_search *s, const struct object_id *now, struct err *err)
{
	struct root was;
	CLEANUP(finding_done) struct finding f = { .s = s, .root = &was };
	int r;

	if (s->knows_before || !s->in.before || object_id_equal(s->in.before, now))
		return 0;
	r = root_get(s->in.store, s->in.before, &was, err);
	r = r < 0 ? r : look_by_name(&f, err);
	r = r < 0 ? r : remember_found(&f, err);
	s->knows_before = r >= 0;
	return r;
}

/* Everything that has one of the numbers is found, and so what was found by its name as well. */
static int look_by_number(struct run_search *s, const struct root *root,
			  struct run_secrets_found *ret, struct err *err)
{
	CLEANUP(finding_done) struct finding f = { .s = s, .root = root, .found = ret };
	int r;

	run_secrets_found_done(ret);
	r = look_through(&f, &root->top.id, root->top.ino, BY_NUMBER, err);
	trees_sort(&s->clean[BY_NUMBER]);
	return r < 0 ? r : remember_found(&f, err);
}

static int look(struct run_search *s, const struct object_id *id, struct run_secrets_found *ret,
		struct err *err)
{
	struct root root;
	CLEANUP(finding_done) struct finding f = { .s = s, .root = &root, .found = ret };
	int r = root_get(s->in.store, id, &root, err);

	r = r < 0 ? r : look_before(s, id, err);
	r = r < 0 ? r : look_by_name(&f, err);
	r = r < 0 ? r : remember_found(&f, err);
	if (r >= 0 && (f.linked || s->wholes.n > 0 || !numbers_have(&f.numbers, &s->known)))
		r = look_by_number(s, &root, ret, err);
	return r;
}

/* Borrowed. */
static struct numbers numbers_of(const struct record_numbers *n)
{
	return (struct numbers){ .list = n->list, .n = n->n };
}

int run_search_know(struct run_search *s, const struct hidden *h, struct err *err)
{
	const struct numbers files = numbers_of(&h->numbers), dirs = numbers_of(&h->dirs);
	int r = numbers_join(&s->kept, &files) < 0 ? err_nomem(err) : 0;

	r = r < 0 ? r : remember(s, &s->wholes, &dirs, err);
	return r < 0 ? r : remember(s, &s->known, &files, err);
}

struct hidden run_search_kept(const struct run_search *s)
{
	return (struct hidden){
		.numbers = { s->kept.list, s->kept.n },
		.dirs = { s->wholes.list, s->wholes.n },
	};
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
	free(s->known.list);
	free(s->kept.list);
	free(s->wholes.list);
	free(s->clean[BY_NAME].list);
	free(s->clean[BY_NUMBER].list);
	free(s);
}
