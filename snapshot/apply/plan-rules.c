/*
 * Which names a capture takes depends on the rules in the directory and above it. The rules are
 * captured too, so a root itself shows what it could not hold.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/content.h"
#include "snapshot/apply/plan-i.h"
#include "snapshot/text/ignore.h"

/* A directory, as the root has it. */
struct ruled {
	struct ruled *parent; /* NULL: the top */
	char *path;           /* owned; its key in plan_rules.dirs */
	size_t from;          /* where the paths begin that its rules speak of */
	bool is_there;
	bool is_out; /* with all below it */
	struct object_id tree;
	struct ignore *ignore; /* owned; NULL: it holds no rules */
};

static void ruled_free(struct ruled *d)
{
	if (!d)
		return;
	ignore_free(d->ignore);
	free(d->path);
	free(d);
}
DEFINE_CLEANUP(struct ruled *, ruled_free)

void plan_rules_done(struct plan_rules *r)
{
	struct ruled *d;
	size_t pos = 0;

	while ((d = map_next(&r->dirs, &pos)))
		ruled_free(d);
	map_done(&r->dirs);
}

/* --- directories ------------------------------------------------------------------------ */

/* 1 and the entry, whose strings are invalid; 0 if there is no such name. */
static int look_up(struct plan_rules *rules, const struct object_id *tree, const char *name,
		   struct tree_entry *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, behind = BUF_INIT;
	int r = tree_lookup(rules->store, tree, name, strlen(name), ret, &hold, err);

	if (r >= 0 && ret->form == TREE_LINK)
		r = root_link(rules->store, &rules->root, ret->ino, ret, &behind, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Like a capture: only a regular file holds rules. */
static int read_rules(struct plan_rules *rules, struct ruled *d, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE char *text = NULL;
	struct tree_entry e;
	struct content c;
	ssize_t n;
	int r = look_up(rules, &d->tree, IGNORE_FILE, &e, err);

	if (r <= 0 || !S_ISREG(e.mode) || e.size == 0 || e.size > IGNORE_SIZE_MAX)
		return r < 0 ? r : 0;
	text = malloc((size_t)e.size);
	if (!text)
		return err_nomem(err);
	c = tree_entry_content(&e);
	r = content_reader_new(rules->store, &c, &rd, err);
	if (r < 0)
		return r;
	for (size_t at = 0; at < e.size; at += (size_t)n) {
		n = content_reader_read(rd, at, text + at, (size_t)e.size - at, err);
		if (n <= 0)
			return n < 0 ? (int)n : err_set(err, -EBADMSG, "it ends too early");
	}
	return ignore_parse(text, (size_t)e.size, &d->ignore, err);
}

/* The rules in the deepest directory that mention the path win. */
static bool is_ignored(const struct ruled *d, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	enum ignore_verdict verdict = IGNORE_SILENT;

	if (d->is_out)
		return true;
	if (strcmp(slash ? slash + 1 : path, IGNORE_FILE) == 0)
		return false;
	for (; d && verdict == IGNORE_SILENT; d = d->parent)
		if (d->ignore)
			verdict = ignore_match(d->ignore, path + d->from, is_dir);
	return verdict == IGNORE_OUT;
}

static int find_tree(struct plan_rules *rules, struct ruled *d, struct err *err)
{
	const char *slash = strrchr(d->path, '/');
	struct tree_entry e = rules->root.top;
	int r = 1;

	if (d->parent)
		r = look_up(rules, &d->parent->tree, slash ? slash + 1 : d->path, &e, err);
	if (r <= 0 || e.form != TREE_DIR)
		return r < 0 ? r : 0;
	d->is_there = true;
	d->tree = e.id;
	return read_rules(rules, d, err);
}

/* The one of that path; its parent is known. */
static int enter(struct plan_rules *rules, struct ruled *parent, char *path, struct ruled **ret,
		 struct err *err)
{
	CLEANUP(ruled_free_p) struct ruled *d = calloc(1, sizeof(*d));
	void *existing;
	int r = 0;

	if (!d || !path) {
		free(path);
		return err_nomem(err);
	}
	*d = (struct ruled){ .parent = parent, .path = path, .from = strlen(path) };
	d->from += d->from > 0;
	d->is_out = parent && is_ignored(parent, path, true);
	if (!parent || parent->is_there)
		r = find_tree(rules, d, err);
	if (r < 0)
		return err_wrap(err, r, "rules of '%s'", path);
	if (map_add(&rules->dirs, d->path, d, &existing) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(d);
	return 0;
}

/* The directory that holds `path`, and all on the way to it. */
static int find_dir(struct plan_rules *rules, const char *path, struct ruled **ret, struct err *err)
{
	struct ruled *d = NULL;
	size_t len = 0;
	int r = 0;

	for (const char *slash = path; slash && r >= 0; slash = strchr(path + len, '/')) {
		AUTO_FREE char *part = strndup(path, (size_t)(slash - path));
		struct ruled *known = part ? map_get(&rules->dirs, part) : NULL;

		if (known)
			d = known;
		else
			r = enter(rules, d, TAKE_PTR(part), &d, err);
		len = (size_t)(slash - path) + (slash > path);
	}
	*ret = d;
	return r;
}

int plan_rules_open(struct plan_rules *rules, struct store *s, const struct object_id *root,
		    struct err *err)
{
	rules->store = s;
	return root_get(s, root, &rules->root, err);
}

int plan_rules_leave_out(struct plan_rules *rules, const char *path, bool is_dir, struct err *err)
{
	struct ruled *d;
	int r;

	if (path[0] == '\0')
		return 0;
	r = find_dir(rules, path, &d, err);
	return r < 0 ? r : is_ignored(d, path, is_dir);
}
