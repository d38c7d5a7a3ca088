#include "engine/run/run-follow.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"

#define LINKS_MAX 40 /* symlinks on one way, as the kernel has it */

/* A directory that one came through. */
struct passed {
	struct object_id tree;
	uint64_t ino;
	size_t path_len; /* of the way to it */
};

struct follow {
	const struct run_following *in;
	struct passed *dirs; /* owned; the first is the top */
	size_t n, cap;
	struct buf *way;
	char *left; /* owned: the names that are to come */
	unsigned links;
};

static void follow_done(struct follow *f)
{
	free(f->dirs);
	free(f->left);
}

static int enter(struct follow *f, const struct object_id *tree, uint64_t ino)
{
	if (!VEC_ROOM(f->dirs, f->n, f->cap))
		return -ENOMEM;
	f->dirs[f->n++] = (struct passed){ *tree, ino, f->way->len };
	return 0;
}

static void go_back_to(struct follow *f, size_t n)
{
	f->n = n;
	f->way->len = f->dirs[n - 1].path_len;
}

/* 1, or 0: the absolute path is not below the top. */
static int begin_again(struct follow *f, const char *path)
{
	const char *const top = f->in->top;
	char *left;

	if (!path_is_below(path, top))
		return 0;
	left = strdup(path + (strcmp(top, "/") == 0 ? 0 : strlen(top)));
	if (!left)
		return -ENOMEM;
	go_back_to(f, 1);
	free(f->left);
	f->left = left;
	return 1;
}

/* 1, or 0 if the symlink leads out of the tree or is one too many. */
static int go_through(struct follow *f, const struct tree_entry *e, const char *rest)
{
	AUTO_FREE char *target = strndup(e->target, e->target_len);
	AUTO_FREE char *left = target ? path_join(target, rest) : NULL;

	if (!left)
		return -ENOMEM;
	if (++f->links > LINKS_MAX)
		return 0;
	if (*left == '/')
		return begin_again(f, left);
	free(f->left);
	f->left = TAKE_PTR(left);
	return 1;
}

/* The same for what is above the top, and may come back below it. */
static int go_above(struct follow *f, const char *rest)
{
	AUTO_FREE char *above = path_join("..", rest);
	AUTO_FREE char *path = above ? path_clean(f->in->top, above) : NULL;

	return path ? begin_again(f, path) : -ENOMEM;
}

static int add_name(struct follow *f, const char *name, size_t len)
{
	if (f->way->len > 0 && buf_append_u8(f->way, '/') < 0)
		return -ENOMEM;
	return buf_append(f->way, name, len);
}

/* 1 at the end, with *ret; 0: there is none; 2: further. */
static int look_up(struct follow *f, const char *name, size_t len, struct run_followed *ret,
		   struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, other = BUF_INIT;
	const char *rest = name + len + strspn(name + len, "/");
	struct tree_entry e;
	int r;

	if (len > TREE_NAME_LEN_MAX)
		return 0;
	r = tree_lookup(f->in->store, &f->dirs[f->n - 1].tree, name, len, &e, &hold, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (S_ISLNK(e.mode)) {
		if (e.form == TREE_LINK)
			r = root_link(f->in->store, f->in->root, e.ino, &e, &other, err);
		r = r < 0 ? r : go_through(f, &e, rest);
		return r == 1 ? 2 : r;
	}
	if (add_name(f, name, len) < 0)
		return err_nomem(err);
	ret->entry = e;
	ret->entry.name = NULL;
	if (e.form != TREE_DIR)
		return *rest == '\0';
	if (enter(f, &e.id, e.ino) < 0)
		return err_nomem(err);
	memmove(f->left, rest, strlen(rest) + 1);
	return 2;
}

/* The same for what comes next. */
static int go_on(struct follow *f, struct run_followed *ret, struct err *err)
{
	const char *name = f->left + strspn(f->left, "/");
	const size_t len = strcspn(name, "/");
	const bool up = len == 2 && memcmp(name, "..", 2) == 0;
	const struct passed *at = &f->dirs[f->n - 1];
	int r;

	if (len == 0) {
		ret->entry =
		    (struct tree_entry){ .form = TREE_DIR, .ino = at->ino, .id = at->tree };
		return f->n > 1;
	}
	if (!up && !(len == 1 && *name == '.'))
		return look_up(f, name, len, ret, err);
	if (up && f->n == 1) {
		r = go_above(f, name + len);
		return r == 1 ? 2 : r;
	}
	if (up)
		go_back_to(f, f->n - 1);
	memmove(f->left, name + len, strlen(name + len) + 1);
	return 2;
}

int run_follow(const struct run_following *in, const char *path, struct buf *end,
	       struct run_followed *ret, struct err *err)
{
	CLEANUP(follow_done) struct follow f = { .in = in, .way = end, .left = strdup(path) };
	int r = 2;

	buf_reset(end);
	if (!f.left || enter(&f, &in->root->top.id, in->root->top.ino) < 0)
		return err_nomem(err);
	while (r == 2)
		r = go_on(&f, ret, err);
	return r == -ENOMEM ? err_nomem(err) : r;
}
