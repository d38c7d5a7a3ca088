#include "engine/run/run-terms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/log.h"
#include "engine/find/allow-i.h"
#include "engine/run/profile-i.h"
#include "runner/net/allow.h"
#include "runner/oci.h"

#define FILTER_MAX ((size_t)1 << 20) /* bytes of a filter's file */

void engine_run_limits_init(struct engine_run_limits *l)
{
	*l = (struct engine_run_limits){
		.mem = ENGINE_UNSAID,
		.cpus_milli = ENGINE_UNSAID,
		.pids = ENGINE_UNSAID,
		.time_ms = ENGINE_UNSAID,
		.disk = ENGINE_UNSAID,
		.inodes = ENGINE_UNSAID,
		.fsize = ENGINE_UNSAID,
		.nofile = ENGINE_UNSAID,
		.output = ENGINE_UNSAID,
		.net_out = ENGINE_UNSAID,
	};
}

void run_terms_done(struct run_terms *t)
{
	engine_profile_done(&t->profile);
	free(t->argv);
	buf_done(&t->filter);
	free(t->allowed);
	*t = (struct run_terms){ 0 };
}

static uint64_t said_or(uint64_t said, uint64_t otherwise)
{
	return said == ENGINE_UNSAID ? otherwise : said;
}

static void choose_limits(struct run_terms *t, const struct engine_run_limits *said)
{
	const struct engine_profile *p = &t->profile;

	t->limits = (struct engine_run_limits){
		.mem = said_or(said->mem, p->mem),
		.cpus_milli = said_or(said->cpus_milli, p->cpus_milli),
		.pids = said_or(said->pids, p->pids),
		.time_ms = said_or(said->time_ms, p->time_ms),
		.disk = said_or(said->disk, p->disk),
		.inodes = said_or(said->inodes, p->inodes),
		.fsize = said_or(said->fsize, p->fsize),
		.nofile = said_or(said->nofile, p->nofile),
		.output = said_or(said->output, ENGINE_RUN_OUTPUT),
		.net_out = said_or(said->net_out, p->net_out),
	};
	t->mem_by_name = said->mem != ENGINE_UNSAID || p->mem_said;
}

static int join_argv(struct run_terms *t, const char *const *command, struct err *err)
{
	const struct strlist *first = &t->profile.entrypoint;
	size_t n = 0;

	while (command[n])
		n++;
	t->argv = calloc(first->n + n + 1, sizeof(*t->argv));
	if (!t->argv)
		return err_nomem(err);
	for (size_t i = 0; i < first->n; i++)
		t->argv[i] = first->list[i];
	for (size_t i = 0; i < n; i++)
		t->argv[first->n + i] = command[i];
	return 0;
}

static int read_filter(struct run_terms *t, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *path = t->profile.seccomp;
	int r;

	if (!path)
		return 0;
	if (strcmp(path, ENGINE_SECCOMP_STRICT) == 0) {
		t->strict_calls = true;
		return 0;
	}
	r = fdio_read_file(AT_FDCWD, path, FILTER_MAX, &text, err);
	r = r < 0 ? r : oci_compile((const char *)text.data, text.len, &t->filter, err);
	return r < 0 ? err_wrap(err, r, "profile '%s': filter '%s'", t->profile.name, path) : 0;
}

/* --- what is allowed to the clone --------------------------------------------------------- */

/* Where the run lists single requests, a rule for the whole host would void them. */
static int keep_beside(const struct allow *listed, const char *clone, const char *rule,
		       struct strlist *kept)
{
	CLEANUP(allow_done) struct allow more = ALLOW_INIT;

	if (allow_parse(rule, &more, NULL) == 0 && allow_voids(&more, listed)) {
		log_warn("'%s' is allowed to clone '%s', but here only single requests to it are "
			 "listed, and only they count, continuing",
			 rule, clone);
		return 0;
	}
	return strlist_add(kept, rule);
}

static int join_allowed(struct run_terms *t, const struct strlist *rules, const char *clone,
			struct err *err)
{
	CLEANUP(allow_done) struct allow listed = ALLOW_INIT;
	CLEANUP(strlist_done) struct strlist kept = { 0 };
	const bool lists = t->net && strchr(t->net, ':');
	AUTO_FREE char *more = NULL;
	int r = lists ? allow_parse(t->net, &listed, NULL) : 0;

	if (r < 0)
		return 0; /* run_net_choose() says why */
	for (size_t i = 0; r == 0 && i < rules->n; i++)
		r = keep_beside(&listed, clone, rules->list[i], &kept);
	if (r == 0 && kept.n == 0)
		return 0;
	more = r == 0 ? allowed_join(&kept) : NULL;
	if (!more ||
	    asprintf(&t->allowed, "%s%s%s", lists ? t->net : "", lists ? "," : "", more) < 0) {
		t->allowed = NULL;
		return err_nomem(err);
	}
	t->net = t->allowed;
	return 0;
}

/*
 * Add the hosts that the clone allows.  An option or a profile that says "nothing" or "everything" is
 * left as it is.
 */
static int add_allowed(struct run_terms *t, struct engine *e, const struct engine_run_options *o,
		       struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed a = { 0 };
	const bool lists = t->net && strchr(t->net, ':');
	int r;

	if (!o->clone || (o->net && !lists) || (t->net && strcmp(t->net, "host") == 0))
		return 0;
	r = engine_allowed(e, o->clone, &a, err);
	if (r < 0 || a.rules.n == 0)
		return r == -ENOENT ? 0
				    : r; /* who makes the clone ready says that it is not there */
	if (!lists && o->profile && strcmp(o->profile, "default") != 0) {
		log_warn("profile '%s' has no network: what is allowed to clone '%s' does not "
			 "count, continuing",
			 o->profile, o->clone);
		return 0;
	}
	return join_allowed(t, &a.rules, o->clone, err);
}

/* A profile that lends secrets says where they go; an option may narrow that. */
static int check_lent(const struct run_terms *t, const struct engine_run_options *o,
		      struct err *err)
{
	const struct engine_profile *p = &t->profile;

	if (!o->net || p->secret_for.n == 0 || profile_net_check(o->net, NULL) < 0 ||
	    profile_net_narrows(o->net, p->net))
		return 0;
	return err_set(err, -EINVAL,
		       "option '--net': '%s' allows more than profile '%s', which has secrets "
		       "(secret_for): leave '--net' out, or list it in the profile's 'net'",
		       o->net, p->name);
}

int run_terms_choose(struct run_terms *t, struct engine *e, const struct engine_run_options *o,
		     struct err *err)
{
	int r = engine_profile(e, o->profile, &t->profile, err);

	if (r < 0)
		return r;
	choose_limits(t, &o->limits);
	r = check_lent(t, o, err);
	if (r < 0)
		return r;
	t->net = o->net ? o->net : t->profile.net;
	r = add_allowed(t, e, o, err);
	if (r < 0)
		return r;
	t->ask_ms = said_or(o->ask_ms, t->profile.ask_ms);
	if (t->ask_ms > ENGINE_ASK_MS_MAX)
		return err_set(err, -EINVAL, "a question waits one hour at most (--ask-time)");
	if (t->profile.snapshots > ENGINE_RUN_SNAPSHOTS_MAX)
		return err_set(err, -EINVAL, "profile '%s': a run can take %d snapshots at most",
			       t->profile.name, ENGINE_RUN_SNAPSHOTS_MAX);
	t->ttl_ms = said_or(o->ttl_ms, t->profile.lifetime_ms);
	r = join_argv(t, o->argv, err);
	if (r < 0)
		return r;
	r = read_filter(t, err);
	if (r >= 0 && t->filter.len > 0 && t->profile.snapshots > 0)
		r = err_set(err, -EINVAL,
			    "profile '%s': 'snapshots' does not go with a filter of your own",
			    t->profile.name);
	return r;
}
