#include "snapshot/apply/judge.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/xattrs.h"
#include "snapshot/text/secret-name.h"

#define LINKS_MAX   40 /* as many as the kernel follows */
#define CONTENT_MAX ((uint64_t)1 << 20)
#define SCAN_MAX    ((uint64_t)64 << 20) /* of all files together */
#define GIT         ".git"

struct judging {
	struct store *store;
	const struct plan *plan;
	const struct judge_options *options;
	judge_fn fn;
	void *ctx;
	struct err *err;
	struct root to;   /* what the plan leads to */
	uint64_t scanned; /* bytes that were looked through for the clone's path */
};

/* --- the tree to be --------------------------------------------------------------------- */

/* 1 and what stands at `path` (of `len` bytes, from the top) in the tree; 0: nothing. */
static int find_entry(struct judging *j, const char *path, size_t len, struct tree_entry *ret,
		      struct buf *hold)
{
	const char *end = path + len;
	int r = 0;

	*ret = j->to.top;
	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		const size_t n = (size_t)((slash ? slash : end) - path);
		const struct object_id dir = ret->id;

		if (!S_ISDIR(ret->mode))
			return 0;
		r = tree_lookup(j->store, &dir, path, n, ret, hold, j->err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		path += n + (slash != NULL);
	}
	if (ret->form != TREE_LINK)
		return 1;
	r = root_link(j->store, &j->to, ret->ino, ret, hold, j->err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int has(struct judging *j, const char *dir, size_t len, const char *name)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT, hold = BUF_INIT;
	struct tree_entry e;

	if (buf_append(&path, dir, len) < 0 || (len > 0 && buf_append_u8(&path, '/') < 0) ||
	    buf_append_str(&path, name) < 0)
		return err_nomem(j->err);
	return find_entry(j, (const char *)path.data, path.len, &e, &hold);
}

/* --- repositories ----------------------------------------------------------------------- */

/*
 * As git's is_git_directory() has it, but without a look at what HEAD says: HEAD, and objects and refs, which
 * a file 'commondir' lets lie elsewhere.
 */
static int is_repository(struct judging *j, const char *dir, size_t len)
{
	int r = has(j, dir, len, "HEAD");

	if (r <= 0)
		return r;
	r = has(j, dir, len, "commondir");
	if (r != 0)
		return r;
	r = has(j, dir, len, "objects");
	return r <= 0 ? r : has(j, dir, len, "refs");
}

static bool is_of_repository(const char *name, size_t len)
{
	static const char *const names[] = { "HEAD",      "config", "config.worktree",
					     "commondir", "hooks",  "objects",
					     "refs",      "info",   "modules",
					     "worktrees" };

	return VEC_HAS(it, names, ARRAY_LEN(names),
		       strlen(*it) == len && memcmp(*it, name, len) == 0);
}

/* 1 if it belongs to what git would take for a repository that has no '.git' around it. */
static int is_in_repository(struct judging *j, const char *path)
{
	int r = 0;

	for (const char *name = path; r == 0; name++) {
		const size_t n = strcspn(name, "/");

		if (is_of_repository(name, n))
			r = is_repository(j, path, name > path ? (size_t)(name - path) - 1 : 0);
		if (name[n] == '\0')
			break;
		name += n;
	}
	return r;
}

/* --- links ------------------------------------------------------------------------------ */

enum where { INSIDE, OUTSIDE };

struct walk {
	struct buf at;   /* how far it came, from the top; all of it directories or nothing */
	struct buf rest; /* what is still to be walked */
	unsigned links;
};

static void walk_done(struct walk *w)
{
	buf_done(&w->at);
	buf_done(&w->rest);
}

/* Where an absolute path goes on from the top; NULL: outside. */
static const char *below_top(const struct judging *j, const char *path)
{
	const char *top = j->options->top;
	const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

/* A link lies in the way: go on with its target, then with the rest. */
static int follow(struct judging *j, struct walk *w, const char *target, size_t len,
		  enum where *ret)
{
	CLEANUP(buf_done) struct buf rest = BUF_INIT;
	AUTO_FREE char *text = strndup(target, len);
	const char *from = text;

	if (!text)
		return err_nomem(j->err);
	if (*text == '/') {
		from = below_top(j, text);
		w->at.len = 0;
	}
	if (!from || ++w->links > LINKS_MAX || strlen(from) + w->rest.len > 4 * PATH_MAX) {
		*ret = OUTSIDE;
		return 0;
	}
	if (buf_append_str(&rest, from) < 0 || buf_append_u8(&rest, '/') < 0 ||
	    buf_append(&rest, w->rest.data, w->rest.len) < 0)
		return err_nomem(j->err);
	buf_swap(&w->rest, &rest);
	return 0;
}

static bool is_outside(const struct judging *j, const struct buf *at)
{
	for (size_t i = 0; i < j->options->n_outside; i++) {
		const char *dir = j->options->outside[i] + strspn(j->options->outside[i], "/");
		const size_t n = strlen(dir);

		if (at->len >= n && memcmp(at->data, dir, n) == 0 &&
		    (at->len == n || at->data[n] == '/'))
			return true;
	}
	return false;
}

static int step_down(struct judging *j, struct walk *w, const char *name, size_t len,
		     enum where *ret)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const size_t before = w->at.len;
	struct tree_entry e;
	int r;

	/* Also as a file system spells it that knows no case. */
	if (len == strlen(GIT) && strncasecmp(name, GIT, len) == 0) {
		*ret = OUTSIDE;
		return 0;
	}
	if ((before > 0 && buf_append_u8(&w->at, '/') < 0) || buf_append(&w->at, name, len) < 0)
		return err_nomem(j->err);
	r = find_entry(j, (const char *)w->at.data, w->at.len, &e, &hold);
	if (r < 0)
		return r;
	/* Where everybody may put something is no part of a system. */
	if (is_outside(j, &w->at) ||
	    (r > 0 && j->options->system && S_ISDIR(e.mode) && (e.mode & S_IWOTH)))
		*ret = OUTSIDE;
	if (r == 0 || *ret == OUTSIDE || !S_ISLNK(e.mode))
		return 0;
	w->at.len = before;
	return follow(j, w, e.target, e.target_len, ret);
}

static void step_up(struct walk *w, enum where *ret)
{
	const char *at = (const char *)w->at.data;

	if (w->at.len == 0) {
		*ret = OUTSIDE;
		return;
	}
	while (w->at.len > 0 && at[w->at.len - 1] != '/')
		w->at.len--;
	w->at.len -= w->at.len > 0;
}

static int walk_on(struct judging *j, struct walk *w, enum where *ret)
{
	int r = 0;

	while (w->rest.len > 0 && *ret == INSIDE && r >= 0) {
		CLEANUP(buf_done) struct buf was = BUF_INIT;
		const char *name;
		size_t n;

		buf_swap(&was, &w->rest);
		name = (const char *)was.data;
		n = 0;
		while (n < was.len && name[n] != '/')
			n++;
		if (n < was.len && buf_append(&w->rest, name + n + 1, was.len - n - 1) < 0)
			return err_nomem(j->err);
		if (n == 2 && memcmp(name, "..", 2) == 0)
			step_up(w, ret);
		else if (n > 0 && !(n == 1 && *name == '.'))
			r = step_down(j, w, name, n, ret);
	}
	return r;
}

/*
 * A target that goes through a name and up again leads elsewhere once that name becomes a link, and
 * nobody would check this link then.
 */
static bool goes_up_again(const char *target)
{
	bool down = false;

	for (const char *p = target; *p != '\0';) {
		const size_t n = strcspn(p, "/");
		const bool up = n == 2 && memcmp(p, "..", 2) == 0;

		if (up && down)
			return true;
		down = down || !(n == 0 || up || (n == 1 && *p == '.'));
		p += n + (p[n] == '/');
	}
	return false;
}

/* 1 if it leads, or could lead, out of the directory or into .git. */
static int leads_out(struct judging *j, const char *path, const char *target)
{
	CLEANUP(walk_done) struct walk w = { 0 };
	const char *slash = strrchr(path, '/');
	enum where where = INSIDE;
	int r;

	if (goes_up_again(target))
		return 1;
	if (slash && buf_append(&w.at, path, (size_t)(slash - path)) < 0)
		return err_nomem(j->err);
	r = follow(j, &w, target, strlen(target), &where);
	if (r < 0)
		return r;
	if (where == INSIDE)
		r = walk_on(j, &w, &where);
	return r < 0 ? r : where == OUTSIDE;
}

/* --- content ---------------------------------------------------------------------------- */

/* 0 if it is too large to be looked at. */
static int read_content(struct judging *j, const struct tree_entry *e, struct buf *out)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	const struct content c = tree_entry_content(e);
	ssize_t n = 0;
	int r;

	if (c.size > CONTENT_MAX)
		return 0;
	if (buf_reserve(out, (size_t)c.size + 1) < 0)
		return err_nomem(j->err);
	r = content_reader_new(j->store, &c, &rd, j->err);
	while (r >= 0 && out->len < c.size && n >= 0) {
		n = content_reader_read(rd, out->len, out->data + out->len,
					(size_t)c.size - out->len, j->err);
		out->len += n > 0 ? (size_t)n : 0;
	}
	return r < 0 ? r : n < 0 ? (int)n : 1;
}

/* Which scripts or recipes differ; none: the rule has nothing to say. */
static int look_inside(struct judging *j, struct judgement *it, struct buf *detail)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	const struct plan_step *s = it->step;
	const bool scripts = strcmp(it->rule->name, GUARD_SCRIPTS) == 0;
	const bool had = s->act != PLAN_CREATE && S_ISREG(s->before.mode);
	int r;

	if (!S_ISREG(s->after.mode))
		return 0;
	r = read_content(j, &s->after, &after);
	if (r > 0 && had)
		r = read_content(j, &s->before, &before);
	if (r < 0)
		return r;
	if (r == 0)
		return buf_append_str(detail, "it is too large to be compared") < 0
			   ? err_nomem(j->err)
			   : 0;
	r = scripts ? judge_scripts(had ? &before : NULL, &after, detail)
		    : judge_recipes(had ? &before : NULL, &after, detail);
	if (r < 0)
		return err_nomem(j->err);
	if (detail->len == 0)
		it->rule = NULL;
	return 0;
}

/* 1 if it may do what only root may. */
static int is_capable(struct judging *j, const struct plan_step *s)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr unused;
	int r;

	if (!S_ISREG(s->after.mode) || object_id_is_zero(&s->after.xattrs))
		return 0;
	r = xattrs_get(j->store, &s->after.xattrs, &set, j->err);
	return r < 0 ? r
		     : xattrs_find(&set, GUARD_CAPABLE_XATTR, strlen(GUARD_CAPABLE_XATTR), &unused);
}

static bool is_sparse(const struct plan_step *s)
{
	struct content c;

	/* A file that changes in place keeps its bytes. */
	if (!S_ISREG(s->after.mode) || s->act == PLAN_CHANGE)
		return false;
	c = tree_entry_content(&s->after);
	return content_is_sparse(&c);
}

/* 1 if a private key is in it, or could be. */
static int has_key(struct judging *j, const struct tree_entry *e)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r;

	if (j->scanned + e->size > SCAN_MAX)
		return 1;
	j->scanned += e->size;
	r = read_content(j, e, &text);
	return r <= 0 ? r < 0 ? r : 1 : memmem(text.data, text.len, "PRIVATE KEY", 11) != NULL;
}

/* 1 if a run that hides secrets hid it elsewhere, maybe, and does not look for it here. */
static int is_unsearched(struct judging *j, const struct judgement *it)
{
	const struct plan_step *s = it->step;

	if (it->status != 'A' || !S_ISREG(s->after.mode))
		return 0;
	if (secret_name_is_unsearched(s->path, false))
		return 1;
	return secret_name_is_unsearched(s->path, true) ? has_key(j, &s->after) : 0;
}

/* Scripts of a virtualenv, settings, caches: does a text name the place where the clone was? */
static int look_for_mount(struct judging *j, struct judgement *it)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct plan_step *s = it->step;
	const char *mount = j->options->mount;
	int r;

	if (!mount || it->status == 'D' || s->act == PLAN_CHANGE || !S_ISREG(s->after.mode) ||
	    s->after.size > CONTENT_MAX || j->scanned + s->after.size > SCAN_MAX)
		return 0;
	j->scanned += s->after.size;
	r = read_content(j, &s->after, &text);
	if (r <= 0 || text.len == 0)
		return r < 0 ? r : 0;
	if (!memchr(text.data, '\0', text.len) && memmem(text.data, text.len, mount, strlen(mount)))
		it->rule = guard_rule_named(GUARD_MOUNT);
	return 0;
}

/* --- the verdict ------------------------------------------------------------------------ */

/* Rules that need more than the name, and those that apply whatever the name is allowed to do. */
static int look_closer(struct judging *j, struct judgement *it, const char *target)
{
	const struct plan_step *s = it->step;
	const struct judge_options *o = j->options;
	const char *name = NULL;
	int r = is_in_repository(j, s->path);

	if (r > 0)
		name = GUARD_BARE;
	if (r == 0 && target) {
		r = leads_out(j, s->path, target);
		name = r > 0 ? GUARD_LINK : NULL;
	}
	if (r == 0 && it->status != 'D') {
		r = is_capable(j, s);
		name = r > 0 ? GUARD_CAPABLE : NULL;
		if (r == 0 && is_sparse(s))
			name = GUARD_SPARSE;
	}
	if (r == 0 && o->left_out && !S_ISDIR(it->status == 'D' ? s->before.mode : s->after.mode) &&
	    o->left_out(s->path, o->left_out_ctx))
		name = GUARD_LEFT_OUT;
	if (r >= 0 && !name && (!it->rule || it->rule->level == GUARD_WARN)) {
		r = is_unsearched(j, it);
		name = r > 0 ? GUARD_UNSEARCHED : NULL;
	}
	if (name)
		it->rule = guard_rule_named(name);
	return r < 0 ? r : 0;
}

/* A new directory that something allowed is in comes with it, if it is nothing but a directory. */
static bool comes_with_allowed(const struct judgement *it, const struct judge_options *o)
{
	const struct plan_step *s = it->step;
	const size_t len = strlen(s->path);

	if (it->status != 'A' || !S_ISDIR(s->after.mode) || (s->after.mode & (S_ISUID | S_ISGID)))
		return false;
	return VEC_HAS(one, o->allow, o->n_allow,
		       strncmp(*one, s->path, len) == 0 && (*one)[len] == '/');
}

/*
 * A rule about a name, whichever directory above `top` it counts from: `hooks/x` in `/src/.git` is a
 * hook.  Without the bits by which a file itself is judged.
 */
static int match_above(struct judging *j, struct judgement *it, uint32_t mode)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	const struct guard_rule *rule;

	if (buf_printf(&path, "%s/%s", j->options->top, it->step->path) < 0 || !buf_str(&path))
		return err_nomem(j->err);
	for (const char *at = buf_str(&path); (at = strchr(at, '/')) != NULL;) {
		at += strspn(at, "/");
		rule = guard_match(j->options->guard, at, mode & (S_IFMT | 0666), it->status);
		if (rule && rule->level == GUARD_HOLD) {
			it->rule = rule;
			return 0;
		}
	}
	return 0;
}

static int judge(struct judging *j, struct judgement *it, const char *target, struct buf *detail)
{
	const struct plan_step *s = it->step;
	const struct judge_options *o = j->options;
	const uint32_t mode = it->status == 'D' ? s->before.mode : s->after.mode;
	int r = 0;

	if (!o->guard || guard_allowed(s->path, o->allow, o->n_allow))
		return 0;
	if (comes_with_allowed(it, o))
		return o->system ? judge_access(j->store, s, &it->rule, j->err) : 0;
	it->rule = guard_match(o->guard, s->path, mode, it->status);
	if (o->elsewhere && (!it->rule || it->rule->level != GUARD_HOLD))
		r = match_above(j, it, mode);
	if (r < 0)
		return r;
	if (!it->rule || it->rule->level != GUARD_HOLD)
		r = look_closer(j, it, target);
	if (r >= 0 && o->system && it->status != 'D' &&
	    (!it->rule || it->rule->level != GUARD_HOLD))
		r = judge_access(j->store, s, &it->rule, j->err);
	if (r < 0)
		return r;
	if (!it->rule)
		return look_for_mount(j, it);
	if (it->rule->level == GUARD_HOLD)
		return r;
	/* A removed file runs no more, and a directory is nothing to run. */
	if (it->rule->level == GUARD_PASS || it->status == 'D' || S_ISDIR(s->after.mode)) {
		it->rule = NULL;
		return 0;
	}
	return strcmp(it->rule->name, GUARD_SCRIPTS) == 0 ||
		       strcmp(it->rule->name, GUARD_RECIPES) == 0
		   ? look_inside(j, it, detail)
		   : 0;
}

static int judge_step(const struct plan_step *s, void *ctx)
{
	CLEANUP(buf_done) struct buf detail = BUF_INIT;
	AUTO_FREE char *target = NULL;
	struct judging *j = ctx;
	struct judgement it = {
		.step = s,
		.status = s->act == PLAN_CREATE   ? 'A'
			  : s->act == PLAN_REMOVE ? 'D'
						  : 'M',
	};
	int r;

	if (it.status != 'D' && S_ISLNK(s->after.mode)) {
		target = strndup(s->after.target, s->after.target_len);
		if (!target)
			return err_nomem(j->err);
	}
	r = judge(j, &it, target, &detail);
	if (r < 0)
		return r;
	it.detail = target;
	if (detail.len > 0)
		it.detail = buf_str(&detail);
	return detail.len > 0 && !it.detail ? err_nomem(j->err) : j->fn(&it, j->ctx);
}

int judge_plan(struct store *s, const struct plan *plan, const struct judge_options *options,
	       judge_fn fn, void *ctx, struct err *err)
{
	struct judging j = {
		.store = s,
		.plan = plan,
		.options = options,
		.fn = fn,
		.ctx = ctx,
		.err = err,
	};
	int r = plan_is_empty(plan) ? 0 : root_get(s, &plan->to, &j.to, err);

	return r < 0 ? r : plan_each(plan, judge_step, &j);
}
