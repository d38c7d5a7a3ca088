#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strlist.h"
#include "base/vec.h"
#include "engine/transfer/transfer-i.h"

static int add_entry(struct engine_remote_log *l, const char *name, const struct digest *digest,
		     const struct manifest *m, struct manifest_snapshot *s, struct err *err)
{
	struct engine_remote_entry one = { .created = s->created,
					   .pushed = s->pushed,
					   .files = s->files,
					   .bytes = s->bytes,
					   .packed = manifest_packed(m),
					   .packs = m->n };

	if (!VEC_ONE_MORE(l->list, l->n))
		return err_nomem(err);
	one.name = name ? strdup(name) : NULL;
	one.message = TAKE_PTR(s->message);
	one.who = TAKE_PTR(s->who);
	one.host = TAKE_PTR(s->host);
	digest_text(digest, one.manifest);
	l->list[l->n++] = one;
	return name && !one.name ? err_nomem(err) : 0;
}

/* Of an encrypted one only that it is. */
static int get_snapshot(struct depot *d, const struct manifest *m, struct manifest_snapshot *s,
			struct err *err)
{
	if (!m->sealed)
		return manifest_get_snapshot(d, m, NULL, s, err);
	s->message = strdup("(encrypted)");
	return s->message ? 0 : err_nomem(err);
}

/* One name, and what it meant before, as far as the remote still has it. */
static int follow(struct depot *d, const char *name, size_t max, struct engine_remote_log *l,
		  struct err *err)
{
	AUTO_FREE char *next = strdup(name);
	int r = next ? 0 : err_nomem(err);

	for (size_t i = 0; r == 0 && next && i < max; i++) {
		CLEANUP(manifest_snapshot_done) struct manifest_snapshot s = { 0 };
		CLEANUP(manifest_done) struct manifest m = { 0 };
		struct digest digest;

		r = manifest_get(d, next, &m, NULL, &digest, err);
		if (r == -ENOENT)
			return i > 0 ? 0
				     : err_set(err, r, "'%s' has nothing with the name '%s'",
					       d->url, name);
		if (r == 0)
			r = get_snapshot(d, &m, &s, err);
		if (r < 0)
			return r;
		free(next);
		next = TAKE_PTR(s.parent);
		r = add_entry(l, i == 0 ? name : NULL, &digest, &m, &s, err);
	}
	return r;
}

static int by_pushed(const void *a, const void *b)
{
	const struct engine_remote_entry *x = a, *y = b;

	return (x->pushed < y->pushed) - (x->pushed > y->pushed);
}

static int list_names(struct depot *d, size_t max, struct engine_remote_log *l, struct err *err)
{
	CLEANUP(strlist_done) struct strlist tags = { 0 };
	struct err why = { 0 };
	int r = d->ops->list_tags(d, strlist_add_to, &tags, err);

	for (size_t i = 0; r == 0 && i < tags.n && i < max; i++) {
		r = follow(d, tags.list[i], 1, l, &why);
		/* Others may keep other things there. */
		if (r == -EBADMSG || r == -ENOENT || r == -EPROTO)
			r = 0;
		else if (r < 0 && err)
			*err = why;
	}
	VEC_SORT(l->list, l->n, by_pushed);
	return r;
}

int engine_remote_log(struct engine *e, const char *what, size_t max, struct engine_remote_log *ret,
		      struct err *err)
{
	CLEANUP(engine_remote_log_done) struct engine_remote_log l = { 0 };
	CLEANUP(depot_close_p) struct depot *d = NULL;
	CLEANUP(target_done) struct target t = { 0 };
	int r = target_find(e, what, &t, err);

	if (r == 0)
		r = depot_open(t.url, NULL, &d, err);
	if (r == 0)
		r = t.name ? follow(d, t.name, max, &l, err) : list_names(d, max, &l, err);
	if (r < 0)
		return r;
	l.remote = TAKE_PTR(t.url);
	*ret = TAKE_STRUCT(l);
	return 0;
}
