/*
 * Inheritance of profiles, and the bounds of a project's profile.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/run/profile-i.h"
#include "runner/net/allow.h"

/* --- narrowing ---------------------------------------------------------------------------- */

static int refuse(const struct profile_source *src, enum profile_key key,
		  const struct engine_profile *base, const char *why, struct err *err)
{
	return err_set(err, -ECANCELED,
		       "%s:%d:%d: '%s' %s '%s' has, and a profile of the project may only narrow",
		       src->shown, src->said[key].line, src->said[key].column,
		       profile_key_name(key), why, base->name);
}

bool profile_net_narrows(const char *inner, const char *outer)
{
	CLEANUP(allow_done) struct allow a = ALLOW_INIT, b = ALLOW_INIT;

	return allow_parse(inner, &a, NULL) == 0 &&
	       allow_parse(outer ? outer : "none", &b, NULL) == 0 && allow_within(&a, &b);
}

int profile_net_check(const char *text, struct err *err)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;

	return allow_parse(text, &allow, err);
}

/* Only of our own filters do we know which is narrower. */
static bool filter_narrows(const char *inner, const char *outer)
{
	if (!inner || (outer && strcmp(inner, outer) == 0))
		return !inner ? !outer : true;
	return !outer && strcmp(inner, ENGINE_SECCOMP_STRICT) == 0;
}

static bool mounts_narrow(const struct profile_source *src, const struct engine_profile *p)
{
	return VEC_ALL(it, p->mounts, p->n_mounts,
		       !it->writable && path_is_below(it->host, src->project));
}

int profile_narrows(const struct profile_source *src, const struct engine_profile *p,
		    const struct engine_profile *base, struct err *err)
{
	struct engine_profile mine = *p, theirs = *base;

	for (enum profile_key key = 0; key < PROFILE_N_KEYS; key++) {
		const uint64_t *n = profile_number(&mine, key),
			       *most = profile_number(&theirs, key);

		/* Of questions and snapshots 0 is none at all. */
		if (key == KEY_ASK && *n > *most)
			return refuse(src, key, base, "waits longer for an answer than", err);
		if (key == KEY_SNAPSHOTS && *n > *most)
			return refuse(src, key, base, "takes more snapshots than", err);
		if (n && key != KEY_ASK && key != KEY_SNAPSHOTS && src->said[key].line > 0 &&
		    *most > 0 && (*n == 0 || *n > *most))
			return refuse(src, key, base, "is more than", err);
	}
	if (p->root && !base->root)
		return refuse(src, KEY_ROOT, base, "asks for a whole machine, which is more than",
			      err);
	if (p->net && !profile_net_narrows(p->net, base->net))
		return refuse(src, KEY_NET, base, "allows more than", err);
	if (src->said[KEY_SECCOMP].line > 0 && !filter_narrows(p->seccomp, base->seccomp))
		return refuse(src, KEY_SECCOMP, base, "is another filter than", err);
	if (!mounts_narrow(src, p))
		return refuse(src, KEY_MOUNTS, base,
			      "shows more than the project, or is writable, which is more than",
			      err);
	for (size_t i = 0; i < p->pass_env.n; i++)
		if (!strlist_has(&base->pass_env, p->pass_env.list[i]))
			return refuse(src, KEY_PASS_ENV, base, "names a variable more than", err);
	for (size_t i = 0; i < p->secret_for.n; i++)
		if (!strlist_has(&base->secret_for, p->secret_for.list[i]))
			return refuse(src, KEY_SECRET_FOR, base, "uses a secret more than", err);
	for (size_t i = 0; i < p->tls_inspect.n; i++)
		if (!strlist_has(&base->tls_inspect, p->tls_inspect.list[i]))
			return refuse(src, KEY_TLS_INSPECT, base, "inspects a host more than", err);
	return 0;
}

/* --- inheriting --------------------------------------------------------------------------- */

static int join_words(struct strlist *own, struct strlist *base, struct err *err)
{
	CLEANUP(strlist_done) struct strlist all = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < base->n; i++)
		if (!strlist_has(own, base->list[i]))
			r = strlist_add(&all, base->list[i]);
	for (size_t i = 0; r == 0 && i < own->n; i++)
		r = strlist_add(&all, own->list[i]);
	strlist_done(own);
	if (r < 0)
		return err_nomem(err);
	*own = TAKE_STRUCT(all);
	return 0;
}

static bool sets(const struct strlist *env, const char *assignment)
{
	const size_t n = strcspn(assignment, "=") + 1;

	return VEC_HAS(it, env->list, env->n, strncmp(*it, assignment, n) == 0);
}

/* What the profile sets itself overrides what it extends. */
static void drop_set(struct strlist *base, const struct strlist *own)
{
	size_t n = 0;

	for (size_t i = 0; i < base->n; i++) {
		if (sets(own, base->list[i]))
			free(base->list[i]);
		else
			base->list[n++] = base->list[i];
	}
	base->n = n;
	if (base->list)
		base->list[n] = NULL;
}

static int join_mounts(struct engine_profile *p, struct engine_profile *base, struct err *err)
{
	struct engine_profile_mount *all;

	if (base->n_mounts == 0)
		return 0;
	all = reallocarray(base->mounts, base->n_mounts + p->n_mounts, sizeof(*all));
	if (!all)
		return err_nomem(err);
	if (p->n_mounts > 0)
		memcpy(all + base->n_mounts, p->mounts, p->n_mounts * sizeof(*all));
	free(p->mounts);
	p->mounts = all;
	p->n_mounts += base->n_mounts;
	base->mounts = NULL;
	base->n_mounts = 0;
	return 0;
}

int profile_inherit(const struct profile_source *src, struct engine_profile *p,
		    struct engine_profile *base, struct err *err)
{
	int r;

	for (enum profile_key key = 0; key < PROFILE_N_KEYS; key++) {
		uint64_t *n = profile_number(p, key);

		if (n && src->said[key].line == 0)
			*n = *profile_number(base, key);
	}
	if (src->said[KEY_ROOT].line == 0)
		p->root = base->root;
	if (!p->net)
		p->net = TAKE_PTR(base->net);
	if (src->said[KEY_SECCOMP].line == 0)
		p->seccomp = TAKE_PTR(base->seccomp);
	if (src->said[KEY_ENTRYPOINT].line == 0) {
		p->entrypoint = TAKE_STRUCT(base->entrypoint);
	}
	drop_set(&base->env, &p->env);
	r = join_words(&p->env, &base->env, err);
	if (r == 0)
		r = join_words(&p->hide, &base->hide, err);
	if (r == 0)
		r = join_words(&p->pass_env, &base->pass_env, err);
	if (r == 0)
		r = join_words(&p->secret_for, &base->secret_for, err);
	if (r == 0)
		r = join_words(&p->tls_inspect, &base->tls_inspect, err);
	return r == 0 ? join_mounts(p, base, err) : r;
}
