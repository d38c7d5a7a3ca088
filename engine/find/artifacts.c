#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/find/artifact-i.h"

/* --- one -------------------------------------------------------------------------------- */

static int split_paths(const char *text, struct engine_artifact *to)
{
	for (const char *at = text, *end; at; at = *end != '\0' ? end + 2 : NULL) {
		end = strstr(at, ARTIFACT_BETWEEN);
		end = end ? end : at + strlen(at);
		if (!VEC_ONE_MORE(to->paths, to->n_paths))
			return -ENOMEM;
		to->paths[to->n_paths] = strndup(at, (size_t)(end - at));
		if (!to->paths[to->n_paths])
			return -ENOMEM;
		to->n_paths++;
	}
	return 0;
}

int artifact_entry(const struct artifact *a, struct engine_artifact *ret, struct err *err)
{
	CLEANUP(engine_artifact_done) struct engine_artifact made = {
		.created = a->created,
		.files = a->files,
		.bytes = a->bytes,
		.clone = strdup(a->clone),
		.meta = a->meta ? strdup(a->meta) : NULL,
	};

	if (!made.clone || (a->meta && !made.meta) || split_paths(a->paths, &made) < 0)
		return err_nomem(err);
	catalog_id_hex(&a->id, made.id);
	snprintf(made.sha256, sizeof(made.sha256), "%s", a->sha256);
	snprintf(made.run, sizeof(made.run), "%s", a->run ? a->run : "");
	*ret = TAKE_STRUCT(made);
	return 0;
}

struct search {
	const struct catalog_id *project;
	char digits[ENGINE_SHA256_SIZE];
	struct engine_artifact found;
	struct object_id root;
};

static void search_done(struct search *s)
{
	engine_artifact_done(&s->found);
}

static int match(const struct artifact *a, void *ctx, struct err *err)
{
	struct search *s = ctx;
	const size_t n = strlen(s->digits);
	char hex[CATALOG_HEX_SIZE];

	if (!catalog_id_same(&a->project, s->project))
		return 0;
	if (strncmp(catalog_id_hex(&a->id, hex), s->digits, n) != 0 &&
	    strncmp(a->sha256, s->digits, n) != 0)
		return 0;
	/* Several with the same digest hold the same. */
	if (*s->found.id != '\0' && strcmp(s->found.sha256, a->sha256) == 0 &&
	    strncmp(a->sha256, s->digits, n) == 0)
		return 0;
	if (*s->found.id != '\0')
		return err_set(err, -EINVAL, "several artifacts begin with '%s'", s->digits);
	s->root = a->root;
	return artifact_entry(a, &s->found, err);
}

int artifact_find(struct store *store, const struct catalog_id *project, const char *id,
		  struct engine_artifact *ret, struct object_id *ret_root, struct err *err)
{
	CLEANUP(search_done) struct search s = { .project = project };
	const size_t n = strlen(id);
	int r = 0;

	if (n == 0 || strspn(id, "0123456789abcdefABCDEF") != n)
		return err_set(err, -EINVAL, "'%.64s' is not the id of an artifact", id);
	for (size_t i = 0; i < n && i < sizeof(s.digits) - 1; i++)
		s.digits[i] = (char)tolower((unsigned char)id[i]);
	if (n < sizeof(s.digits))
		r = artifact_each(store, match, &s, err);
	if (r < 0)
		return r;
	if (*s.found.id == '\0')
		return err_set(err, -ENOENT, "this project has no artifact '%.64s'", id);
	if (ret_root)
		*ret_root = s.root;
	*ret = TAKE_STRUCT(s.found);
	return 0;
}

int engine_artifact_find(struct engine *e, const char *id, struct engine_artifact *ret,
			 struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	return r < 0 ? r : artifact_find(s, &project.id, id, ret, NULL, err);
}

/* --- all -------------------------------------------------------------------------------- */

struct listing {
	const struct project *project;
	struct engine_artifacts all;
};

static void listing_done(struct listing *l)
{
	engine_artifacts_done(&l->all);
}

static int add(const struct artifact *a, void *ctx, struct err *err)
{
	struct listing *l = ctx;
	int r;

	if (!catalog_id_same(&a->project, &l->project->id))
		return 0;
	if (!VEC_ONE_MORE(l->all.list, l->all.n))
		return err_nomem(err);
	r = artifact_entry(a, &l->all.list[l->all.n], err);
	if (r < 0)
		return r;
	l->all.n++;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct engine_artifact *x = a, *y = b;

	return x->created == y->created ? strcmp(x->id, y->id) : x->created < y->created ? 1 : -1;
}

int engine_artifacts(struct engine *e, struct engine_artifacts *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(listing_done) struct listing l = { .project = &project };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	if (r < 0)
		return r;
	r = artifact_each(s, add, &l, err);
	if (r < 0)
		return r;
	VEC_SORT(l.all.list, l.all.n, newest_first);
	l.all.project = TAKE_PTR(project.path);
	*ret = TAKE_STRUCT(l.all);
	return 0;
}
