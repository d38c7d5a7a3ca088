/*
 * One path through the trail. The stored filters of steps (engine/find/touched-i.h) show which left
 * the path alone, and those are skipped. In the others it is looked up, directory by directory, as
 * far down as they differ from those of the last look-up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sha256.h"
#include "engine/verb/trail-i.h"
#include "snapshot/diff/delta.h"

static int failed(const struct trail *t, size_t at, const char *path, int r, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return err_wrap(err, r, "'%s' of snapshot %s", path, catalog_id_hex(&t->list[at].id, hex));
}

static int remember(struct trail_seen *seen, const char *path, struct err *err)
{
	if (seen->path && strcmp(seen->path, path) == 0)
		return 0;
	free(seen->path);
	*seen = (struct trail_seen){ .path = strdup(path) };
	return seen->path ? 0 : err_nomem(err);
}

/* Is the rest of the way that of the last time? */
static bool is_known(struct trail_seen *seen, size_t level, const struct object_id *dir)
{
	if (level >= TRAIL_LEVELS_MAX)
		return false;
	if (level < seen->n && object_id_equal(&seen->dirs[level], dir))
		return true;
	seen->dirs[level] = *dir;
	return false;
}

/* A symlink is what it points to. */
static struct content content_of(const struct tree_entry *e)
{
	struct content c = { .form = CONTENT_HOLE };
	uint8_t sum[SHA256_SIZE];

	if (S_ISREG(e->mode))
		return tree_entry_content(e);
	c.size = e->rdev;
	if (S_ISLNK(e->mode)) {
		sha256_of(e->target, e->target_len, sum);
		memcpy(c.id.b, sum, sizeof(c.id.b));
	}
	return c;
}

static int walk_to(struct trail *t, const struct root *root, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, link = BUF_INIT;
	struct trail_seen *seen = &t->seen;
	struct tree_entry e = root->top;
	struct object_id dir;
	size_t level = 0, n;
	int r = 0;

	for (const char *p = path; *p != '\0' && r == 0; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		if (e.form != TREE_DIR || !path_name_valid(p, n)) {
			r = -ENOENT;
			break;
		}
		dir = e.id;
		if (is_known(seen, level, &dir))
			return seen->found;
		level++;
		t->lookups++;
		r = tree_lookup(t->store, &dir, p, n, &e, &hold, err);
	}
	seen->n = level < TRAIL_LEVELS_MAX ? level : TRAIL_LEVELS_MAX;
	if (r == 0 && e.form == TREE_LINK) {
		/* The same directory may stand for another file of that number. */
		seen->n = 0;
		r = root_link(t->store, root, e.ino, &e, &link, err);
	}
	if (r == 0 && e.form == TREE_DIR)
		r = -ENOENT;
	if (r < 0)
		return r;
	seen->file = (struct trail_file){ .mode = e.mode, .content = content_of(&e) };
	return 0;
}

int trail_find(struct trail *t, size_t at, const char *path, struct trail_file *ret,
	       struct err *err)
{
	const struct object_id *id = &t->list[at].root;
	struct trail_seen *seen = &t->seen;
	struct root root;
	int r = remember(seen, path, err);

	if (r < 0)
		return r;
	if (!object_id_equal(&seen->root, id)) {
		seen->root = (struct object_id){ 0 };
		r = root_get(t->store, id, &root, err);
		if (r == 0)
			r = walk_to(t, &root, path, err);
		if (r < 0 && r != -ENOENT) {
			seen->n = 0;
			return failed(t, at, path, r, err);
		}
		seen->found = r;
		seen->root = *id;
	}
	if (seen->found == 0)
		*ret = seen->file;
	return seen->found;
}

static bool is_same(const struct trail_file *a, const struct trail_file *b, bool mode)
{
	return content_equal(&a->content, &b->content) &&
	       (a->mode & S_IFMT) == (b->mode & S_IFMT) && (!mode || a->mode == b->mode);
}

static int ask_about(struct trail *t, const char *path, struct err *err)
{
	if (t->asked_path && strcmp(t->asked_path, path) == 0)
		return 0;
	free(t->asked_path);
	t->asked_path = strdup(path);
	return t->asked_path ? touched_path_set(&t->asked, path, err) : err_nomem(err);
}

/* 1 if `path`, which is `file` in `at`, is the same in `before`, which `at` follows. */
static int is_same_before(struct trail *t, size_t at, size_t before, const char *path,
			  const struct trail_file *file, bool mode, struct err *err)
{
	struct trail_file f;
	int r = touched_ask(&t->touched, &t->list[before].root, &t->list[at].root, &t->asked, err);

	if (r < 0)
		return failed(t, at, path, r, err);
	if (r == 0)
		return 1;
	r = trail_find(t, before, path, &f, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return is_same(file, &f, mode);
}

int trail_origin(struct trail *t, size_t *at, const char *path, const struct trail_file *file,
		 bool mode, struct err *err)
{
	size_t before[TRAIL_BEFORE_MAX], n;
	bool moved = true;
	int r = ask_about(t, path, err);

	if (r < 0)
		return r;
	while (moved) {
		moved = false;
		n = trail_before(t, *at, before);
		for (size_t i = 0; i < n && !moved; i++) {
			r = is_same_before(t, *at, before[i], path, file, mode, err);
			if (r < 0)
				return r;
			moved = r > 0;
			if (moved)
				*at = before[i];
		}
	}
	return 0;
}

static int find_rename(struct trail *t, size_t at, size_t before, const char *path, char **ret,
		       struct err *err)
{
	CLEANUP(delta_done) struct delta d = { 0 };
	const struct delta_options options = { .renames = true };
	int r = delta_find(t->store, &t->list[before].root, &t->list[at].root, &options, &d, err);

	if (r < 0)
		return failed(t, at, path, r, err);
	for (size_t i = 0; i < d.n_files; i++) {
		if (d.files[i].status != DELTA_RENAMED || strcmp(d.files[i].path, path) != 0)
			continue;
		*ret = TAKE_PTR(d.files[i].old_path);
		return 0;
	}
	return -ENOENT;
}

int trail_earlier(struct trail *t, size_t at, size_t before, const char *path, bool renames,
		  struct trail_file *ret, char **ret_path, struct err *err)
{
	AUTO_FREE char *old = NULL;
	int r = trail_find(t, before, path, ret, err);

	if (r == -ENOENT && renames) {
		r = find_rename(t, at, before, path, &old, err);
		if (r == 0)
			r = trail_find(t, before, old, ret, err);
	} else if (r == 0) {
		old = strdup(path);
		if (!old)
			return err_nomem(err);
	}
	if (r < 0)
		return r;
	*ret_path = TAKE_PTR(old);
	return 0;
}
