#include "engine/api/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/find/gitdir-i.h"
#include "engine/find/part-i.h"
#include "engine/verb/diff-distro.h"

/* --- which two -------------------------------------------------------------------------- */

static int add_state(struct engine *e, struct store *s, struct hold *h, const char *text,
		     struct err *err)
{
	int r = state_find(e, s, text, &h->states[h->n], err);

	h->n += r >= 0;
	return r;
}

/* Compare the clone's base with the clone. */
static int add_clone(struct engine *e, struct store *s, struct hold *h, const char *name,
		     struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r = clone_find(s, name, &clone, err);

	if (r < 0)
		return r;
	r = engine_as_damage(err, add_state(e, s, h, catalog_id_hex(&clone.base, hex), err));
	return r < 0 ? r : add_state(e, s, h, name, err);
}

static int add_project(struct engine *e, struct store *s, struct hold *h, struct err *err)
{
	int r = add_state(e, s, h, "@", err);

	return r < 0 ? r : add_state(e, s, h, ".", err);
}

static int add_one(struct engine *e, struct store *s, struct hold *h, const char *text,
		   struct err *err)
{
	AUTO_FREE char *here = clone_here(e);
	int r = add_state(e, s, h, text, err);

	if (r < 0)
		return r;
	if (h->states[0].kind == STATE_SNAPSHOT)
		return add_state(e, s, h, here ? here : ".", err);
	state_done(&h->states[--h->n]);
	return strcmp(text, ".") == 0 ? add_project(e, s, h, err) : add_clone(e, s, h, text, err);
}

static int choose(struct engine *e, struct store *s, const struct engine_diff_options *o,
		  struct hold *h, struct err *err)
{
	AUTO_FREE char *here = clone_here(e);
	int r;

	if (!o->a)
		return here ? add_clone(e, s, h, here, err) : add_project(e, s, h, err);
	if (!o->b)
		return add_one(e, s, h, o->a, err);
	r = add_state(e, s, h, o->a, err);
	return r < 0 ? r : add_state(e, s, h, o->b, err);
}

/* --- paths ------------------------------------------------------------------------------ */

struct limits {
	char **paths; /* owned, and each of them */
	size_t n;
};

static void limits_done(struct limits *l)
{
	texts_free(l->paths, l->n);
}

/* The top of the state's tree, if the current directory is in it; else NULL. */
static int find_top(struct engine *e, const struct state *state, char **ret, struct err *err)
{
	AUTO_FREE char *here = clone_here(e);
	AUTO_FREE char *real = here ? realpath(e->store_path, NULL) : NULL;
	AUTO_FREE char *clones = real ? path_join(real, CLONES_DIR) : NULL;

	*ret = NULL;
	if (here) {
		*ret = clones ? path_join(clones, here) : NULL;
		return *ret ? 0 : err_nomem(err);
	}
	if (path_is_below(e->dir, state->project.path))
		*ret = strdup(state->project.path);
	return 0;
}

static int add_limit(struct engine *e, struct limits *l, const char *top, const char *path,
		     struct err *err)
{
	AUTO_FREE char *clean = path_clean(top ? e->dir : "/", path);
	const char *rest;

	if (!clean)
		return err_nomem(err);
	if (top && !path_is_below(clean, top))
		return err_set(err, -EINVAL, "'%s' is outside of '%s'", path, top);
	rest = clean + (top ? strlen(top) : 0);
	l->paths[l->n] = strdup(rest + strspn(rest, "/"));
	if (!l->paths[l->n])
		return err_nomem(err);
	l->n++;
	return 0;
}

static int limit(struct engine *e, const struct engine_diff_options *o, const struct state *state,
		 struct limits *l, struct err *err)
{
	AUTO_FREE char *top = NULL;
	int r;

	if (o->n_paths == 0)
		return 0;
	l->paths = calloc(o->n_paths, sizeof(*l->paths));
	if (!l->paths)
		return err_nomem(err);
	r = find_top(e, state, &top, err);
	for (size_t i = 0; i < o->n_paths && r >= 0; i++)
		r = add_limit(e, l, top, o->paths[i], err);
	return r;
}

/* --- the verb --------------------------------------------------------------------------- */

static int report_delta(struct store *s, const struct hold *h, const struct delta *d,
			const struct engine_diff_options *o, const struct engine_diff_sink *sink,
			struct err *err)
{
	const struct engine_state from = { h->states[0].text, h->held[0].time };
	const struct engine_state to = { h->states[1].text, h->held[1].time };
	int r = sink->begin ? sink->begin(&from, &to, d, sink->ctx, err) : 0;

	if (r >= 0)
		r = diff_report_distro(s, &h->held[0].root, &h->held[1].root, d, sink, err);
	for (size_t i = 0; i < d->n_files && r >= 0; i++) {
		const bool wanted = !sink->wants || sink->wants(&d->files[i], sink->ctx);
		const patch_fn text = wanted ? sink->text : NULL;
		struct patch_counts counts = { 0 };

		if (text || o->count)
			r = patch_file(s, &d->files[i], o->context, text, sink->ctx, &counts, err);
		if (r < 0)
			return r;
		r = sink->file ? sink->file(&d->files[i], &counts, sink->ctx, err) : 0;
	}
	return r;
}

/* The two trees that are compared. */
struct compared {
	struct store *store;
	const struct hold *hold;
	char *parts[2]; /* owned; that they hold alone; both NULL if that is the same */
	bool links;     /* gitdir_has_links() */
};

static void compared_done(struct compared *c)
{
	free(c->parts[0]);
	free(c->parts[1]);
}

static int find_parts(struct compared *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(c->parts) && r >= 0; i++)
		r = part_of_state(c->store, &c->hold->states[i], &c->parts[i], err);
	if (r < 0 || !part_same(c->parts[0], c->parts[1]))
		return r;
	compared_done(c);
	c->parts[0] = c->parts[1] = NULL;
	return 0;
}

/* Of what one of the two never looked at nothing can be said. */
static bool is_left_out(const char *path, const void *ctx)
{
	const struct compared *c = ctx;

	if (!part_has(c->parts[0], path) || !part_has(c->parts[1], path))
		return true;
	return c->links &&
	       gitdir_is_link(c->store, &c->hold->held[0].root, &c->hold->held[1].root, path) > 0;
}

int engine_diff(struct engine *e, const struct engine_diff_options *options,
		const struct engine_diff_sink *sink, struct err *err)
{
	CLEANUP(hold_done) struct hold h = HOLD_INIT;
	CLEANUP(limits_done) struct limits limits = { 0 };
	CLEANUP(delta_done) struct delta delta = { 0 };
	CLEANUP(project_done) struct project none = { 0 };
	CLEANUP(compared_done) struct compared both = { .hold = &h };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	/* Without a store, "no project here" is the better message. */
	if (r == -ENOENT)
		return engine_project(e, &s, &none, err);
	if (r < 0)
		return r;
	r = choose(e, s, options, &h, err);
	if (r < 0)
		return r;
	r = limit(e, options, &h.states[1], &limits, err);
	if (r < 0)
		return r;
	both.store = s;
	both.links = gitdir_has_links(s, &h.states[0], &h.states[1]);
	r = find_parts(&both, err);
	r = r < 0 ? r : hold_open(e, &h, &options->watch, err);
	if (r < 0)
		return r;
	r = delta_find(
	    s, &h.held[0].root, &h.held[1].root,
	    &(struct delta_options){
		.paths = (const char *const *)limits.paths,
		.n_paths = limits.n,
		.leaves_out = both.links || both.parts[0] || both.parts[1] ? is_left_out : NULL,
		.leaves_out_ctx = &both,
		.renames = !options->no_renames,
	    },
	    &delta, err);
	return r < 0 ? r : report_delta(s, &h, &delta, options, sink, err);
}
