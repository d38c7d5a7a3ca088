/*
 * A plan as bytes: docs/design/apply.md, "The journal". We wrote them and a hash guards them, but a
 * journal decides what is renamed and removed in somebody's project. So the decoder believes
 * nothing: it bounds every length and index before use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/le.h"
#include "base/path.h"
#include "snapshot/apply/plan.h"

#define PATH_LEN_MAX  ((size_t)1 << 20)
#define NO_STEP       UINT32_MAX
#define STEP_SIZE_MIN 40

enum step_flag { HAD = 1, HAS = 2, WAS_LINKED = 4, IS_LINKED = 8, ANCHORED = 16 };

/* --- writing ---------------------------------------------------------------------------- */

static int put_string(struct buf *out, const char *s, size_t len)
{
	int r = buf_append_u32(out, (uint32_t)len);

	return r >= 0 && len > 0 ? buf_append(out, s, len) : r;
}

static int put_entry(struct buf *out, const struct tree_entry *e)
{
	const uint32_t small[] = { e->form,     e->mode,     e->uid,  e->gid,
				   e->mtime_ns, e->ctime_ns, e->nlink };
	const uint64_t large[] = {
		e->ino, e->size, (uint64_t)e->mtime_s, (uint64_t)e->ctime_s, e->data, e->rdev,
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(small) && r >= 0; i++)
		r = buf_append_u32(out, small[i]);
	for (size_t i = 0; i < ARRAY_LEN(large) && r >= 0; i++)
		r = buf_append_u64(out, large[i]);
	if (r < 0 || buf_append(out, e->id.b, sizeof(e->id.b)) < 0 ||
	    buf_append(out, e->xattrs.b, sizeof(e->xattrs.b)) < 0)
		return -ENOMEM;
	return put_string(out, e->target, e->target_len);
}

static int put_step(struct buf *out, const struct plan_step *s)
{
	const bool had = s->act != PLAN_CREATE, has = s->act != PLAN_REMOVE;
	const unsigned flags = (had ? HAD : 0) | (has ? HAS : 0) |
			       (s->before_linked ? WAS_LINKED : 0) |
			       (s->after_linked ? IS_LINKED : 0) | (s->anchor ? ANCHORED : 0);

	if (buf_append_u32(out, s->act) < 0 || buf_append_u32(out, s->what) < 0 ||
	    buf_append_u32(out, flags) < 0 ||
	    buf_append_u32(out, s->dir == PLAN_NONE ? NO_STEP : (uint32_t)s->dir) < 0 ||
	    buf_append_u32(out, s->first == PLAN_NONE ? NO_STEP : (uint32_t)s->first) < 0 ||
	    buf_append_u64(out, s->old_ino) < 0 || buf_append_u64(out, s->new_ino) < 0 ||
	    put_string(out, s->path, strlen(s->path)) < 0 ||
	    (s->anchor && put_string(out, s->anchor, strlen(s->anchor)) < 0) ||
	    (had && put_entry(out, &s->before) < 0))
		return -ENOMEM;
	return has ? put_entry(out, &s->after) : 0;
}

int plan_encode(const struct plan *p, struct buf *out, struct err *err)
{
	if (buf_append(out, p->from.b, sizeof(p->from.b)) < 0 ||
	    buf_append(out, p->to.b, sizeof(p->to.b)) < 0 ||
	    buf_append_u64(out, (uint64_t)p->as_of) < 0 ||
	    buf_append_u32(out, (uint32_t)p->n_dirs) < 0 ||
	    buf_append_u32(out, (uint32_t)p->n_files) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < p->n_dirs; i++)
		if (put_step(out, &p->dirs[i]) < 0)
			return err_nomem(err);
	for (size_t i = 0; i < p->n_files; i++)
		if (put_step(out, &p->files[i]) < 0)
			return err_nomem(err);
	return 0;
}

/* --- reading ---------------------------------------------------------------------------- */

struct cursor {
	const uint8_t *at;
	size_t left;
	bool short_of; /* a read went past the end; it gave zeros */
};

static const void *take_bytes(struct cursor *c, size_t n)
{
	static const uint8_t zeros[OBJECT_ID_SIZE];
	const uint8_t *p = c->at;

	if (n > c->left) {
		c->short_of = true;
		return zeros;
	}
	c->at += n;
	c->left -= n;
	return p;
}

static uint32_t take_u32(struct cursor *c)
{
	return le32_load(take_bytes(c, 4));
}

static uint64_t take_u64(struct cursor *c)
{
	return le64_load(take_bytes(c, 8));
}

/* NULL for an empty one, or with an error. */
static int take_string(struct cursor *c, size_t max, char **ret, size_t *ret_len)
{
	const size_t len = take_u32(c);
	char *s;

	if (len > max || len > c->left)
		return -EBADMSG;
	s = malloc(len + 1);
	if (!s)
		return -ENOMEM;
	memcpy(s, take_bytes(c, len), len);
	s[len] = '\0';
	*ret = s;
	*ret_len = len;
	return 0;
}

/* One that leads from the top to something below it, and nowhere else. */
static int take_path(struct cursor *c, char **ret)
{
	size_t len, n;
	int r = take_string(c, PATH_LEN_MAX, ret, &len);

	if (r < 0)
		return r;
	if (strlen(*ret) != len)
		return -EBADMSG;
	for (const char *p = *ret; len > 0; p += n + 1) {
		n = strcspn(p, "/");
		if (!path_name_valid(p, n))
			return -EBADMSG;
		if (p[n] == '\0')
			break;
	}
	return 0;
}

static int take_entry(struct cursor *c, bool dir, struct tree_entry *e)
{
	char *target = NULL;
	size_t len;
	int r;

	*e = (struct tree_entry){ 0 };
	e->form = (enum tree_form)take_u32(c);
	e->mode = take_u32(c);
	e->uid = take_u32(c);
	e->gid = take_u32(c);
	e->mtime_ns = take_u32(c);
	e->ctime_ns = take_u32(c);
	e->nlink = take_u32(c);
	e->ino = take_u64(c);
	e->size = take_u64(c);
	e->mtime_s = (int64_t)take_u64(c);
	e->ctime_s = (int64_t)take_u64(c);
	e->data = take_u64(c);
	e->rdev = take_u64(c);
	memcpy(e->id.b, take_bytes(c, OBJECT_ID_SIZE), OBJECT_ID_SIZE);
	memcpy(e->xattrs.b, take_bytes(c, OBJECT_ID_SIZE), OBJECT_ID_SIZE);
	r = take_string(c, TREE_TARGET_LEN_MAX, &target, &len);
	if (r < 0)
		return r;
	if (len == 0) {
		free(target);
		target = NULL;
	}
	e->target = target;
	e->target_len = len;
	return c->short_of || (e->form == TREE_DIR) != dir || S_ISDIR(e->mode) != dir ||
		       S_ISLNK(e->mode) != (len > 0) || e->mtime_ns >= 1000000000
		   ? -EBADMSG
		   : 0;
}

static bool flags_fit(enum plan_act act, unsigned flags)
{
	const unsigned sides = flags & (HAD | HAS);

	switch (act) {
	case PLAN_REMOVE:
		return sides == HAD;
	case PLAN_CREATE:
		return sides == HAS;
	case PLAN_TOUCH:
	case PLAN_CHANGE:
	case PLAN_REPLACE:
		return sides == (HAD | HAS);
	}
	return false;
}

static int take_step(struct cursor *c, bool dir, const struct plan *p, struct plan_step *s)
{
	unsigned flags;
	uint32_t in, first;
	bool needs_dir;
	int r;

	s->act = (enum plan_act)take_u32(c);
	s->what = take_u32(c);
	flags = take_u32(c);
	in = take_u32(c);
	first = take_u32(c);
	s->old_ino = take_u64(c);
	s->new_ino = take_u64(c);
	s->before_linked = (flags & WAS_LINKED) != 0;
	s->after_linked = (flags & IS_LINKED) != 0;
	s->dir = in == NO_STEP ? PLAN_NONE : in;
	s->first = dir ? PLAN_NONE : first;
	needs_dir = !dir || s->act == PLAN_CREATE || s->act == PLAN_REMOVE;
	if (!flags_fit(s->act, flags) || (needs_dir && in >= p->n_dirs) ||
	    (!dir && first >= p->n_files))
		return -EBADMSG;
	r = take_path(c, &s->path);
	if (r < 0)
		return r;
	if (flags & ANCHORED)
		r = take_path(c, &s->anchor);
	if (r < 0)
		return r;
	if (flags & HAD)
		r = take_entry(c, dir, &s->before);
	return r >= 0 && (flags & HAS) ? take_entry(c, dir, &s->after) : r;
}

int plan_decode(const void *data, size_t len, struct plan *ret, struct err *err)
{
	struct cursor c = { .at = data, .left = len };
	CLEANUP(plan_done) struct plan p = { 0 };
	size_t n_dirs, n_files;
	int r = 0;

	memcpy(p.from.b, take_bytes(&c, OBJECT_ID_SIZE), OBJECT_ID_SIZE);
	memcpy(p.to.b, take_bytes(&c, OBJECT_ID_SIZE), OBJECT_ID_SIZE);
	p.as_of = (int64_t)take_u64(&c);
	n_dirs = take_u32(&c);
	n_files = take_u32(&c);
	if (c.short_of || n_dirs + n_files > c.left / STEP_SIZE_MIN)
		return err_set(err, -EBADMSG, "the plan is damaged");
	p.dirs = calloc(n_dirs + 1, sizeof(*p.dirs));
	p.files = calloc(n_files + 1, sizeof(*p.files));
	if (!p.dirs || !p.files)
		return err_nomem(err);
	/* Count them first, so that all are released whatever happens. */
	p.n_dirs = n_dirs;
	p.n_files = n_files;
	for (size_t i = 0; i < n_dirs && r >= 0; i++)
		r = take_step(&c, true, &p, &p.dirs[i]);
	for (size_t i = 0; i < n_files && r >= 0; i++)
		r = take_step(&c, false, &p, &p.files[i]);
	if (r == -ENOMEM)
		return err_nomem(err);
	/* A plan with any step has the top directory. */
	if (r < 0 || c.short_of || c.left > 0 || n_dirs == 0 || p.dirs[0].path[0] != '\0')
		return err_set(err, -EBADMSG, "the plan is damaged");
	*ret = TAKE_STRUCT(p);
	return 0;
}
