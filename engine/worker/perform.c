#include "engine/worker/perform.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/api/history.h"
#include "engine/api/profile.h"
#include "engine/api/remote.h"
#include "engine/find/engine-i.h"
#include "engine/transfer/signers-i.h"
#include "remote/keygen.h"
#include "remote/seal.h"

#define SHORT_HEX   32 /* digits of a digest in names of ours */
#define PUSH_TRIES  8
#define TAG_PREFIX  "ticket/" /* of the states that were fetched */
#define STATES_KEPT 8
#define OTHERS_KEPT 64

/* --- rules -------------------------------------------------------------------------------- */

static bool has(const struct engine_list *l, const char *text)
{
	return VEC_HAS(it, l->items, l->n, strcmp(*it, text) == 0);
}

/* As profiles of a project may: no more than the worker's own. */
static int check_limits(const struct engine_run_limits *t, const struct engine_profile *p,
			struct err *err)
{
	const struct {
		const char *name;
		uint64_t wanted, most;
	} all[] = {
		{ "mem", t->mem, p->mem },
		{ "cpus", t->cpus_milli, p->cpus_milli },
		{ "pids", t->pids, p->pids },
		{ "time", t->time_ms, p->time_ms },
		{ "disk", t->disk, p->disk },
		{ "inodes", t->inodes, p->inodes },
		{ "fsize", t->fsize, p->fsize },
		{ "nofile", t->nofile, p->nofile },
		{ "output", t->output, ENGINE_RUN_OUTPUT },
		{ "net_out", t->net_out, p->net_out },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].most > 0 && all[i].wanted > all[i].most)
			return err_set(err, -ECANCELED,
				       "the ticket wants '%s' %" PRIu64
				       ", and profile '%s' of the worker has %" PRIu64,
				       all[i].name, all[i].wanted, p->name, all[i].most);
	return 0;
}

/* -ECANCELED with a sentence if the worker's rules do not allow it. */
static int check_rules(struct engine *e, const struct perform_rules *rules, const struct ticket *t,
		       const char **ret_profile, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	int r;

	if (strcmp(t->remote, rules->url) != 0)
		return err_set(
		    err, -ECANCELED,
		    "this worker only uses '%.100s', and the ticket's state is in '%.100s'",
		    rules->url, t->remote);
	if (t->profile && !rules->any && !has(&rules->profiles, t->profile))
		return err_set(err, -ECANCELED, "this worker does not offer the profile '%.80s'",
			       t->profile);
	for (size_t i = 0; !rules->any && i < t->pass_env.n; i++)
		if (!has(&rules->pass_env, t->pass_env.list[i]))
			return err_set(err, -ECANCELED, "this worker does not pass '%.80s' on",
				       t->pass_env.list[i]);
	*ret_profile = t->profile ? t->profile : rules->profiles.items[0];
	r = engine_profile(e, *ret_profile, &p, err);
	return r < 0 ? r : check_limits(&t->limits, &p, err);
}

/* --- the snapshot ------------------------------------------------------------------------- */

/* The id of what was fetched before, while it is still here. */
static bool find_here(struct engine *e, const char *tag, char id[ENGINE_ID_SIZE])
{
	CLEANUP(state_done) struct state state = { 0 };
	struct err ignored = { 0 };
	struct store *store;

	if (!engine_has_store(e) || engine_store(e, STORE_READ, &store, &ignored) < 0 ||
	    state_find(e, store, tag, &state, &ignored) < 0 || state.kind != STATE_SNAPSHOT)
		return false;
	catalog_id_hex(&state.snapshot.id, id);
	return true;
}

/*
 * All clients of a machine share one project.  The remote is part of the key, so that a client who may use one depot
 * alone cannot start from a state of another whose digest he knows or guesses; the whole digest is, too.
 */
static int make_tag(const struct target *from, const char *snapshot, char **ret, struct err *err)
{
	char hex[SHA256_HEX_SIZE];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, from->url, strlen(from->url));
	sha256_add(&s, " ", 1);
	sha256_add(&s, snapshot, strlen(snapshot));
	return text_set(ret, err, TAG_PREFIX "%.*s", SHORT_HEX, sha256_end_hex(&s, hex));
}

/* What is here came before a list of signers did, perhaps: then it is looked at again. */
static int may_reuse(struct engine *e, const struct target *from, struct err *err)
{
	const int r = signers_demanded(e, from, err);

	return r < 0 ? r : r == 0;
}

/* 1 if it was here, which is not looked at with `anew`. */
static int fetch(struct engine *e, const struct perform_rules *rules, const struct ticket *t,
		 bool anew, char id[ENGINE_ID_SIZE], struct result *res, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched got = { 0 };
	CLEANUP(target_done) struct target target = { 0 };
	AUTO_FREE char *from = NULL, *tag = NULL;
	struct engine_fetch_options o = { .manifest = t->snapshot,
					  .identity = rules->keys.identity };
	int r = text_set(&from, err, "%s:%s", rules->remote, t->name);

	if (r == 0)
		r = target_find(e, rules->remote, &target, err);
	if (r == 0)
		r = make_tag(&target, t->snapshot, &tag, err);
	if (r == 0 && !anew)
		r = may_reuse(e, &target, err);
	if (r < 0 || (r > 0 && find_here(e, tag, id)))
		return r;
	o.from = from;
	o.tag = tag;
	r = engine_fetch(e, &o, &got, err);
	if (r < 0)
		return r;
	memcpy(id, got.snapshot.id, ENGINE_ID_SIZE);
	res->fetched = got.bytes_received;
	return 0;
}

/* --- what it no longer needs -------------------------------------------------------------- */

static const char *ticket_tag(const struct engine_snapshot *s)
{
	for (size_t i = 0; i < s->n_tags; i++)
		if (strncmp(s->tags[i], TAG_PREFIX, strlen(TAG_PREFIX)) == 0)
			return s->tags[i];
	return NULL;
}

/*
 * The last states stay, since the next ticket is likely to start from one of them, and so do the last snapshots
 * that were taken to push a result, since another slot may be at it.  What a clone started from stays in
 * any case.  All of it is of the worker's own project.
 */
static void tidy(struct engine *e)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	size_t states = 0, others = 0;
	struct err ignored = { 0 };

	if (engine_log_all(e, &h, &ignored) < 0)
		return;
	for (size_t i = 0; i < h.n; i++) {
		const char *tag = ticket_tag(&h.list[i]);
		char id[ENGINE_ID_SIZE];

		if (tag ? ++states <= STATES_KEPT : h.list[i].n_tags > 0 || ++others <= OTHERS_KEPT)
			continue;
		IGNORE_RESULT(
		    engine_remove_snapshot(e, tag ? tag : h.list[i].id, true, id, &ignored),
		    "one that is in use goes later");
	}
}

/* --- the run ------------------------------------------------------------------------------ */

static uint64_t narrowed(uint64_t wanted)
{
	return wanted > 0 ? wanted : ENGINE_UNSAID;
}

static int run(struct engine *e, const struct ticket *t, const char *profile, const char *from,
	       int out_fd, int err_fd, struct engine_waiting **waits, struct engine_run *ret,
	       struct err *err)
{
	CLEANUP(strlist_done) struct strlist argv = { 0 };
	const struct engine_run_limits *l = &t->limits;
	struct engine_run_options o = {
		.from = from,
		.profile = profile,
		.limits = { .mem = narrowed(l->mem),
			    .cpus_milli = narrowed(l->cpus_milli),
			    .pids = narrowed(l->pids),
			    .time_ms = narrowed(l->time_ms),
			    .disk = narrowed(l->disk),
			    .inodes = narrowed(l->inodes),
			    .fsize = narrowed(l->fsize),
			    .nofile = narrowed(l->nofile),
			    .output = narrowed(l->output),
			    .net_out = narrowed(l->net_out) },
		.ask_ms = 0,
		.workdir = t->workdir[0] != '\0' ? t->workdir : NULL,
		.env = { (const char *const *)t->env.list, t->env.n },
		.pass_env = { (const char *const *)t->pass_env.list, t->pass_env.n },
		.ttl_ms = ENGINE_UNSAID,
		.waits = waits,
		.in_fd = -1,
		.out_fd = out_fd,
		.err_fd = err_fd,
	};

	for (size_t i = 0; i < t->command.n; i++)
		if (strlist_add(&argv, t->command.list[i]) < 0)
			return err_nomem(err);
	o.argv = (const char *const *)argv.list;
	return engine_run(e, &o, ret, err);
}

static int describe(struct result *res, const struct engine_run *run, const char *profile,
		    struct err *err)
{
	if (text_copy(&res->outcome, run->timed_out ? RESULT_TIME : RESULT_EXIT, err) < 0 ||
	    text_copy(&res->run, run->id, err) < 0 || text_copy(&res->profile, profile, err) < 0 ||
	    text_copy(&res->limit, *run->limit != '\0' ? run->limit : NULL, err) < 0 ||
	    text_copy(&res->problem, run->problem, err) < 0)
		return -ENOMEM;
	res->code = (uint64_t)run->exit_code;
	res->signal = (uint64_t)run->signal;
	res->duration_ms = run->duration_ms;
	res->cpu_ms = run->cpu_ms;
	res->max_rss = run->max_rss;
	res->added = run->added;
	res->modified = run->modified;
	res->deleted = run->deleted;
	return 0;
}

/* --- what it left ------------------------------------------------------------------------- */

static int push(struct engine *e, const struct perform_rules *rules, const struct ticket *t,
		const char *id, const char *clone, struct result *res, struct err *err)
{
	CLEANUP(engine_pushed_done) struct engine_pushed pushed = { 0 };
	AUTO_FREE char *to = NULL;
	struct engine_push_options o = { .state = clone,
					 .base = t->snapshot,
					 .force = true,
					 .encrypt_to = rules->keys.encrypt_to.items,
					 .n_encrypt_to = rules->keys.encrypt_to.n,
					 .identity = rules->keys.identity,
					 .sign = rules->keys.sign };
	int r = text_set(&to, err, "%s:result-%.*s", rules->remote, SHORT_HEX, id);

	if (r < 0)
		return r;
	o.to = to;
	/* A worker that was cut off may push the same result: then the next try follows it. */
	for (int tries = 0; tries < PUSH_TRIES; tries++) {
		r = engine_push(e, &o, &pushed, err);
		if (r != -ESTALE)
			break;
	}
	if (r < 0)
		return r;
	res->pushed = pushed.bytes_sent;
	res->skipped = pushed.bytes_skipped;
	return text_set(&res->snapshot, err, "%s", pushed.manifest);
}

/* --- all of it ---------------------------------------------------------------------------- */

/* Would somebody else, or we ourselves later, fare better? */
static bool may_pass(int r)
{
	switch (r) {
	case -EAGAIN:
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -ENOSPC:
	case -EDQUOT:
	case -ENOMEM:
	case -EBUSY:
	case -EACCES:
	case -EPROTONOSUPPORT:
	case -ENOTSUP:
	case -EINTR:
	case -ESTALE:
		return true;
	default:
		return false;
	}
}

static int end(struct result *res, const char *outcome, int code, const struct err *why,
	       struct err *err)
{
	int r = text_set(&res->outcome, err, "%s", outcome);

	/* Nothing of what the command did counts. */
	free(TAKE_PTR(res->snapshot));
	res->added = res->modified = res->deleted = 0;
	res->code = (uint64_t)code;
	return r < 0 ? r : text_set(&res->problem, err, "%s", why->msg);
}

static int work(struct engine *e, const struct perform_rules *rules, const struct ticket *t,
		const char *profile, const char *id, int out_fd, int err_fd, struct result *res,
		struct err *err)
{
	CLEANUP(engine_waiting_free_p) struct engine_waiting *waits = NULL;
	CLEANUP(engine_run_done) struct engine_run ran = { 0 };
	char from[ENGINE_ID_SIZE];
	int here = fetch(e, rules, t, false, from, res, err), r = here;

	if (r >= 0)
		r = run(e, t, profile, from, out_fd, err_fd, &waits, &ran, err);
	/* Another slot may have tidied it away before there was a clone of it. */
	if (r == -ENOENT && here > 0) {
		engine_run_done(&ran);
		r = fetch(e, rules, t, true, from, res, err);
		if (r >= 0)
			r = run(e, t, profile, from, out_fd, err_fd, &waits, &ran, err);
	}
	if (r < 0)
		return r;
	/* Of what the command wrote, some may have died with cowfsd. */
	if (!ran.compared)
		return err_set(err, -EAGAIN, "cowfsd could not tell what the command changed");
	r = describe(res, &ran, profile, err);
	if (r == 0 && waits && ran.added + ran.modified + ran.deleted > 0)
		r = push(e, rules, t, id, ran.clone, res, err);
	return r < 0 || !waits ? r : engine_waiting_discard(waits, err);
}

/*
 * 0 and what came of it, a refusal too.  A negative errno with a sentence says that it can be done later, here
 * or elsewhere: a remote that does not answer, no memory, a cowfsd that died.
 */
static int perform_ticket(struct engine *e, const struct perform_rules *rules,
			  const struct ticket *t, const char *id, int out_fd, int err_fd,
			  struct result *ret, struct err *err)
{
	const char *profile = NULL;
	struct err why = { 0 };
	int r;

	ret->started = engine_now();
	r = check_rules(e, rules, t, &profile, &why);
	if (r < 0)
		return end(ret, RESULT_REFUSED, 125, &why, err);
	r = work(e, rules, t, profile, id, out_fd, err_fd, ret, &why);
	ret->ended = engine_now();
	/* Of one that neither brought nor left anything there is nothing. */
	if (ret->fetched > 0 || ret->snapshot)
		tidy(e);
	if (r >= 0)
		return 0;
	if (may_pass(r))
		return err_set(err, r, "%s", why.msg);
	return end(ret, RESULT_FAILED, 125, &why, err);
}

static int describe_ticket(struct result *res, const struct perform_rules *rules,
			   const struct ticket *t, const char *id, struct err *err)
{
	if (text_copy(&res->ticket, id, err) < 0 ||
	    text_copy(&res->worker, rules->worker, err) < 0 ||
	    text_copy(&res->host, rules->host, err) < 0 ||
	    text_set(&res->command, err, "%.200s", t->command.list[0]) < 0 ||
	    text_copy(&res->experiment, t->experiment, err) < 0 ||
	    text_copy(&res->arm, t->arm, err) < 0)
		return -ENOMEM;
	return 0;
}

/* --- keys --------------------------------------------------------------------------------- */

static int sign_result(struct result *res, const char *key, struct err *err)
{
	CLEANUP(buf_done) struct buf statement = BUF_INIT;
	int r = result_statement(res, &statement, err);

	return r < 0 ? r : keygen_sign(KEYGEN_RESULT, &statement, key, &res->signature, err);
}

int perform_check_keys(const struct engine_worker_keys *keys, struct err *err)
{
	CLEANUP(seal_done) struct seal readers = { 0 };
	CLEANUP(buf_done) struct buf nothing = BUF_INIT;
	AUTO_FREE char *ignored = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < keys->encrypt_to.n; i++)
		r = seal_add_recipient(&readers, keys->encrypt_to.items[i], err);
	if (r < 0)
		return r;
	if (keys->identity && access(keys->identity, R_OK) < 0)
		return err_sys(err, "reading the key '%s'", keys->identity);
	if (!keys->sign)
		return 0;
	if (access(keys->sign, R_OK) < 0)
		return err_sys(err, "reading the key '%s'", keys->sign);
	if (buf_append_str(&nothing, "snapcow nothing 1\n") < 0)
		return err_nomem(err);
	/* Nobody is there to type a passphrase when a result is signed. */
	if (setenv("SSH_ASKPASS_REQUIRE", "force", 1) < 0 || setenv("SSH_ASKPASS", "false", 1) < 0)
		return err_nomem(err);
	return keygen_sign(KEYGEN_RESULT, &nothing, keys->sign, &ignored, err);
}

int perform_text(const struct perform_config *c, const struct buf *text, int out_fd, int err_fd,
		 struct result *ret, struct err *err)
{
	const struct engine_options options = { .dir = c->dir, .store = c->store };
	CLEANUP(engine_close_p) struct engine *e = NULL;
	CLEANUP(ticket_done) struct ticket t = { 0 };
	char id[QUEUE_ID_SIZE];
	int r = ticket_decode(text, &t, err);

	if (r == 0)
		r = engine_open(&options, &e, err);
	if (r == 0)
		r = describe_ticket(ret, c->rules, &t, ticket_id(text, id), err);
	if (r == 0)
		r = perform_ticket(e, c->rules, &t, id, out_fd, err_fd, ret, err);
	return r < 0 || !c->rules->keys.sign ? r : sign_result(ret, c->rules->keys.sign, err);
}
