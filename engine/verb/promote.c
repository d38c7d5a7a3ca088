#include "engine/api/promote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/size.h"
#include "engine/api/receipts.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/find/rules-i.h"
#include "engine/transfer/known-i.h"
#include "engine/verb/commits-i.h"
#include "engine/verb/resolve-i.h"

#define TRIES 3 /* attempts, if edits of the project overtake the checks */

/* --- asking ----------------------------------------------------------------------------- */

/* `c` keeps the connection open; NULL: close it.  `again`: ask over the open one. */
static int ask(struct engine *e, const struct promote_options *o, struct control *c, bool again,
	       struct engine_promotion *ret, int64_t *ret_now, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_PROMOTE);
	fields_set(a.options, &wire_promote_options, o);
	fields_set(a.options, &wire_promote_asked, o->asked);
	if (again)
		r = ask_again(&a, e, c, &answer, err);
	else if (c)
		r = ask_keeping(&a, e, ASK_STORE, &o->asked->watch, c, &answer, err);
	else
		r = ask_daemon(&a, e, ASK_STORE, &o->asked->watch, &answer, err);
	if (r == -ECONNRESET && !o->asked->dry_run && !o->check)
		return err_wrap(
		    err, r, "whether it landed is not known yet, and the next cowfsd settles it");
	if (r < 0)
		return r;
	*ret_now = json_get_int(answer, "now");
	return ask_take(&a, answer, &wire_promotion, ret, err);
}

/* Find the receipt to undo and check its age; only this one is then undone. */
static int check_age(struct engine *e, const struct engine_undo_options *o, char id[ENGINE_ID_SIZE],
		     struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	const int64_t oldest = engine_now() - (int64_t)(o->newer_than_ms * 1000000);
	char age[DURATION_TEXT_MAX], most[DURATION_TEXT_MAX];
	int r = engine_receipts(e, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct engine_receipt *one = &all.list[i];

		if (o->what ? strncmp(one->id, o->what, strlen(o->what)) != 0
			    : one->undone || one->kind == ENGINE_RECEIPT_UNDO)
			continue;
		if (one->created < oldest)
			return err_set(
			    err, -ECANCELED,
			    "nothing changed: %s is %s old, and '--if-newer-than' allows %s",
			    one->id,
			    duration_format((uint64_t)(engine_now() - one->created) / 1000000, age),
			    duration_format(o->newer_than_ms, most));
		if (!o->what)
			memcpy(id, one->id, ENGINE_ID_SIZE);
		return 0;
	}
	return r; /* there is none: the undo itself reports that */
}

static int undo(struct engine *e, const struct engine_undo_options *options,
		struct engine_promotion *ret, struct err *err)
{
	const struct engine_promote_options asked = {
		.on_conflict = options->on_conflict,
		.style = options->style,
		.skip_unreadable = options->skip_unreadable,
		.dry_run = options->dry_run,
		.root = options->root,
		.watch = options->watch,
	};
	char id[ENGINE_ID_SIZE] = "";
	struct promote_options o = { .asked = &asked, .undo = true, .receipt = options->what };
	int64_t now;
	int r = options->newer_than_ms > 0 ? check_age(e, options, id, err) : 0;

	if (r < 0)
		return r;
	if (*id != '\0')
		o.receipt = id;
	return ask(e, &o, NULL, false, ret, &now, err);
}

int engine_undo(struct engine *e, const struct engine_undo_options *options,
		struct engine_promotion *ret, struct err *err)
{
	AUTO_FREE char *top = strdup("/");
	char *const dir = e->dir;
	int r;

	if (!options->root)
		return undo(e, options, ret, err);
	if (!top)
		return err_nomem(err);
	e->dir = top;
	r = undo(e, options, ret, err);
	e->dir = dir;
	return r;
}

/* --- checks ----------------------------------------------------------------------------- */

#define TAIL_MAX ((off_t)16 << 10)

/* The last lines of the output. */
static int read_tail(int fd, struct buf *out, struct err *err)
{
	const off_t size = lseek(fd, 0, SEEK_END);
	const off_t from = size > TAIL_MAX ? size - TAIL_MAX : 0;
	const char *begins;
	ssize_t n;

	if (size <= 0)
		return 0;
	buf_reset(out);
	if (buf_reserve(out, (size_t)(size - from)) < 0)
		return err_nomem(err);
	n = pread(fd, out->data, (size_t)(size - from), from);
	if (n < 0)
		return err_sys(err, "reading what a check wrote");
	out->len = (size_t)n;
	begins = from > 0 ? memchr(out->data, '\n', out->len) : NULL;
	if (begins) {
		out->len -= (size_t)(begins + 1 - (const char *)out->data);
		memmove(out->data, begins + 1, out->len);
	}
	return 0;
}

static int run_check(struct engine *e, const struct engine_promote_options *o, const char *command,
		     const char *tree, struct engine_promotion *p, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_FCLOSE FILE *both = tmpfile();
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	struct engine_run_options options = {
		.from = tree,
		.like = p->clone,
		.argv = argv,
		.profile = o->profile,
		.root = o->root,
		.workdir = o->root ? "/" : p->project,
		.in_fd = -1,
		/* One file for both streams keeps the order in which they came. */
		.out_fd = both ? fileno(both) : -1,
		.err_fd = both ? fileno(both) : -1,
	};
	struct engine_checked *c = &p->checks[p->n_checks];
	int r;

	engine_run_limits_init(&options.limits);
	if (o->limits)
		options.limits = *o->limits;
	if (o->checking)
		o->checking(command, NULL, o->checking_ctx);
	r = engine_run(e, &options, &run, err);
	r = r < 0 || !both ? r : read_tail(fileno(both), &run.out, err);
	if (r < 0)
		return err_wrap(err, r, "check '%.100s'", command);
	/* A user who ends the promotion asks for no verdict. */
	if (run.interrupted && o->ret_signal)
		*o->ret_signal = run.interrupted;
	if (run.interrupted)
		return err_set(err, -EINTR, "nothing is promoted: a signal ended check '%.100s'",
			       command);
	if (o->checking)
		o->checking(command, &run, o->checking_ctx);
	*c = (struct engine_checked){
		.command = strdup(command),
		.exit_code = run.exit_code,
		.duration_ms = run.duration_ms,
	};
	memcpy(c->run, run.id, sizeof(c->run));
	p->n_checks += c->command != NULL;
	return c->command ? run.exit_code : err_nomem(err);
}

/* Run the checks up to the first that fails. */
static int run_checks(struct engine *e, const struct engine_promote_options *o,
		      struct engine_promotion *p, struct err *err)
{
	int r = 0;

	p->checks = calloc(o->checks.n + 1, sizeof(*p->checks));
	if (!p->checks)
		return err_nomem(err);
	for (size_t i = 0; i < o->checks.n && r == 0; i++)
		r = run_check(e, o, o->checks.items[i], p->after, p, err);
	if (r > 0)
		p->end = ENGINE_CHECK_FAILED;
	return r;
}

static int checks_json(const struct engine_promotion *p, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	fields_set_list(json_begin(&doc), "checks", &engine_checked_fields, p->checks, p->n_checks);
	return json_append(&doc, out, err);
}

/* Check the merged state, and land it if it is still the same. */
static int land_checked(struct engine *e, struct promote_options *o, struct control *c,
			struct engine_promotion *p, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT;
	struct engine_promotion landed = { 0 };
	char tree[ENGINE_ID_SIZE];
	int r = run_checks(e, o->asked, p, err);

	memcpy(tree, p->after, sizeof(tree));
	p->after[0] = '\0';
	if (r != 0)
		return r < 0 ? r : 0;
	r = checks_json(p, &json, err);
	if (r < 0)
		return r;
	o->check = false;
	o->checked = tree;
	o->checks = buf_str(&json);
	r = ask(e, o, c, true, &landed, &o->now, err);
	o->checked = o->checks = NULL;
	if (r < 0)
		return r;
	landed.checks = TAKE_PTR(p->checks);
	landed.n_checks = p->n_checks;
	p->n_checks = 0;
	engine_promotion_done(p);
	*p = landed;
	return 0;
}

static int promote_once(struct engine *e, const struct engine_promote_options *options,
			struct engine_promotion *ret, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	CLEANUP(buf_done) struct buf remember = BUF_INIT;
	AUTO_FREE char *rules = rules_of_user(e);
	struct promote_options o = { .asked = options, .rules = rules };
	int r = options->dry_run || options->to ? 0 : asked_write(options, &remember, err);

	if (r < 0)
		return r;
	o.remember = remember.len > 0 ? buf_str(&remember) : NULL;
	o.check = options->checks.n > 0 && !options->dry_run;
	r = ask(e, &o, o.check ? &c : NULL, false, &p, &o.now, err);
	if (r < 0)
		return r;
	if (o.check && p.end == ENGINE_PROMOTED && p.after[0] != '\0')
		r = land_checked(e, &o, &c, &p, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(p);
	return 0;
}

static int promote_files(struct engine *e, const struct engine_promote_options *options,
			 struct engine_promotion *ret, struct err *err)
{
	int r = promote_once(e, options, ret, err);

	for (int i = 1; i < TRIES && r >= 0 && ret->end == ENGINE_MOVED; i++) {
		engine_promotion_done(ret);
		r = promote_once(e, options, ret, err);
	}
	return r;
}

/* Except for the last step, everything that can fail with commits comes before the landing. */
static int promote(struct engine *e, const struct engine_promote_options *options,
		   struct engine_promotion *ret, struct err *err)
{
	CLEANUP(commits_done) struct commits commits = { 0 };
	int r = options->git ? commits_bundle(e, options->clone, &commits, err) : 0;

	if (r < 0)
		return r;
	r = promote_files(e, options, ret, err);
	if (r < 0 || !options->git || ret->end != ENGINE_PROMOTED)
		return r;
	if (!options->dry_run)
		r = commits_fetch(ret->clone, &commits, err);
	if (r < 0) {
		engine_promotion_done(ret);
		return err_wrap(err, r, "the files are promoted, but not the commits");
	}
	ret->git = true;
	ret->commits = TAKE_STRUCT(commits.told);
	return 0;
}

/* The same, and if all of the clone landed that started as something fetched, that is noted. */
static int promote_whole(struct engine *e, const struct engine_promote_options *options,
			 struct engine_promotion *ret, struct err *err)
{
	const bool whole =
	    !options->dry_run && !options->root && options->paths.n + options->excludes.n == 0;
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err ignored = { 0 };
	struct store *s;
	int r;

	if (whole && engine_store(e, STORE_READ, &s, &ignored) >= 0)
		IGNORE_RESULT(clone_meant(e, s, options->clone, &clone, &ignored),
			      "the promotion says so");
	r = promote(e, options, ret, err);
	if (r >= 0 && clone.name && ret->end == ENGINE_PROMOTED)
		known_merge(e, &clone.project, clone_start(&clone), ret->after);
	return r;
}

/* To a directory that is no project. */
static int promote_to(struct engine *e, const struct engine_promote_options *options,
		      struct engine_promotion *ret, struct err *err)
{
	AUTO_FREE char *to = *options->to != '\0' ? path_clean(e->dir, options->to) : NULL;
	struct engine_promote_options o = *options;

	if (*options->to == '\0')
		return err_set(err, -EINVAL, "the directory for --to is empty");
	if (options->git || options->again || options->root)
		return err_set(err, -EINVAL, "--%s does not go with --to",
			       options->git     ? "git"
			       : options->again ? "continue"
						: "root");
	o.to = to;
	return to ? promote(e, &o, ret, err) : err_nomem(err);
}

int engine_promote(struct engine *e, const struct engine_promote_options *options,
		   struct engine_promotion *ret, struct err *err)
{
	CLEANUP(asked_done) struct asked asked = { 0 };
	int r;

	if (options->to)
		return promote_to(e, options, ret, err);
	if (!options->again)
		return promote_whole(e, options, ret, err);
	r = asked_read(e, options, &asked, err);
	if (r < 0)
		return r;
	if (!asked.any)
		return err_set(err, -ENOENT, "no promotion met conflicts that could be continued");
	return promote_whole(e, &asked.options, ret, err);
}
