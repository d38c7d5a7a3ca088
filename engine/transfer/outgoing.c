/*
 * A manifest cannot say that something is not known: the rest of a part, or a file that could not be
 * read, would be taken for deleted at the other end.
 */
#include "engine/transfer/outgoing-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/find/part-i.h"

/*
 * A state that still changes is kept as a snapshot first: what was pushed can be told later.  `clone` NULL: the
 * project, which may be new.
 */
static int take_live(struct engine *e, const char *clone, const struct engine_watch *watch,
		     struct state *ret, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options o = {
		.clone = clone,
		.automatic = true,
		.watch = *watch,
	};
	struct store *s;
	int r = engine_take(e, &o, &taken, err);

	if (r == 0)
		r = engine_store(e, STORE_READ, &s, err);
	return r < 0 ? r : state_find(e, s, taken.snapshot.id, ret, err);
}

static int refuse_part(struct store *s, const struct state *state, const char *text,
		       struct err *err)
{
	AUTO_FREE char *part = NULL;
	int r = part_of_state(s, state, &part, err);

	if (r < 0 || !part)
		return r;
	return err_set(err, -EINVAL,
		       "'%.80s' has only '%.80s', and a part is not pushed: promote its clone "
		       "first, then push the project",
		       text, part);
}

static int refuse_unread(const struct snapshot *s, const char *text, struct err *err)
{
	const char *end = s->lacks ? strstr(s->lacks, "//") : NULL;

	if (!s->lacks)
		return 0;
	if (strcmp(s->lacks, SNAPSHOT_LACKS_MORE) == 0)
		return err_set(err, -EINVAL,
			       "'%.80s' lacks files that could not be read, and would delete them "
			       "elsewhere: make them readable, then push a new snapshot",
			       text);
	return err_set(err, -EINVAL,
		       "'%.80s' lacks '%.*s', which could not be read, and would delete it "
		       "elsewhere: make it readable, then push a new snapshot",
		       text, end ? (int)(end - s->lacks) : (int)strlen(s->lacks), s->lacks);
}

static int find_named(struct engine *e, const struct engine_push_options *options, const char *text,
		      struct state *ret, struct err *err)
{
	CLEANUP(state_done) struct state named = { 0 };
	CLEANUP(project_done) struct project none = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r == -ENOENT)
		return engine_project(e, &s, &none, err);
	if (r == 0)
		r = state_find(e, s, text, &named, err);
	if (r == 0)
		r = refuse_part(s, &named, text, err);
	if (r < 0)
		return r;
	if (named.kind != STATE_SNAPSHOT)
		return take_live(e, named.clone.name, &options->watch, ret, err);
	*ret = TAKE_STRUCT(named);
	return 0;
}

static int find(struct engine *e, const struct engine_push_options *options, const char *text,
		struct state *ret, struct err *err)
{
	int r = strcmp(text, ".") == 0 ? take_live(e, NULL, &options->watch, ret, err)
				       : find_named(e, options, text, ret, err);

	return r < 0 ? r : refuse_unread(&ret->snapshot, text, err);
}

int outgoing_choose(struct engine *e, const struct engine_push_options *options, struct hold *ret,
		    struct err *err)
{
	AUTO_FREE char *here = clone_here(e);
	const char *text = options->state ? options->state : here ? here : ".";
	int r = find(e, options, text, &ret->states[0], err);

	if (r < 0)
		return r;
	ret->n = 1;
	return hold_open(e, ret, &options->watch, err);
}
