/*
 * A command on some worker: push, post, follow, fetch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/api/worker.h"
#include "engine/worker/on-i.h"
#include "engine/worker/on-note.h"
#include "engine/worker/on-trust.h"
#include "engine/worker/posted-i.h"
#include "remote/slurm.h"
#include "remote/ssh.h"

#define OUTPUT_MAX ((size_t)16 << 20) /* of each stream, in a result that is not passed on */

void engine_on_done(struct engine_on *r)
{
	free(r->outcome);
	free(r->worker);
	free(r->host);
	free(r->problem);
	free(r->limit);
	free(r->signer);
	free(r->pushed);
	free(r->tag);
	buf_done(&r->out);
	buf_done(&r->err);
	*r = (struct engine_on){ 0 };
}

struct on {
	struct engine *e;
	const struct engine_on_options *options;
	struct engine_on *to;
	struct target target;
	struct engine_pushed pushed;
	struct posted posted;
	struct signals signals;
	struct buf text; /* of the ticket */
	struct strlist labels;
};

static void on_free(struct on *o)
{
	posted_done(&o->posted);
	(void)signals_end(&o->signals);
	target_done(&o->target);
	engine_pushed_done(&o->pushed);
	buf_done(&o->text);
	strlist_done(&o->labels);
}

/* --- what is to be done ------------------------------------------------------------------- */

/* The project now needs no preparation, as for any run. */
static int take_project(struct on *o, char id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options t = { .automatic = true, .watch = o->options->watch };
	AUTO_FREE char *clone = clone_here(o->e);
	int r = clone ? 0 : engine_take(o->e, &t, &taken, err);

	if (r == 0 && !clone)
		memcpy(id, taken.snapshot.id, ENGINE_ID_SIZE);
	return r;
}

static int push(struct on *o, struct err *err)
{
	char id[ENGINE_ID_SIZE] = "";
	int r = o->options->state ? 0 : take_project(o, id, err);

	if (r == 0)
		r = on_push(o->e, &o->target, id[0] != '\0' ? id : o->options->state,
			    o->options->sign, &o->options->watch, &o->pushed, err);
	if (r < 0)
		return r;
	o->to->sent = o->pushed.bytes_sent;
	o->to->skipped = o->pushed.bytes_skipped;
	return text_set(&o->to->pushed, err, "%s", o->pushed.state);
}

static int write_ticket(struct on *o, struct err *err)
{
	const struct engine_on_options *p = o->options;
	AUTO_FREE char *workdir = NULL;
	uint8_t random[16];
	char nonce[33];
	struct ticket t = {
		.snapshot = o->pushed.manifest,
		.name = o->pushed.name,
		.remote = o->target.url,
		.profile = (char *)(uintptr_t)p->profile,
		.command = { .list = (char **)(uintptr_t)p->argv },
		.env = on_names(&p->env),
		.pass_env = on_names(&p->pass_env),
		.limits = on_limits(&p->limits),
		.deadline =
		    p->deadline_ms > 0 ? engine_now() + (int64_t)p->deadline_ms * 1000000 : 0,
		.nonce = nonce,
	};
	int r = sys_random(random, sizeof(random));

	if (r < 0)
		return err_set(err, r, "no random bytes");
	hex_encode(random, sizeof(random), nonce);
	while (p->argv[t.command.n])
		t.command.n++;
	r = on_workdir(o->e, p->workdir, &workdir, err);
	t.workdir = workdir;
	if (r == 0)
		r = on_labels(&p->labels, &o->labels, err);
	t.labels = o->labels;
	if (r == 0)
		r = ticket_encode(&t, &o->text, err);
	if (r == 0)
		ticket_id(&o->text, o->to->ticket);
	return r;
}

static int prepare(struct on *o, struct err *err)
{
	int r = on_choose_remote(o->e, o->options->queue, o->options->remote, &o->options->trust,
				 &o->target, err);

	if (r == 0)
		r = push(o, err);
	if (r == 0)
		r = write_ticket(o, err);
	return r < 0 ? r
		     : on_note_save(o->e, o->to->ticket, o->options->queue, o->pushed.state,
				    &o->text, err);
}

static bool is_same_command(const struct strlist *l, const char *const *argv)
{
	size_t n = 0;

	while (argv[n] && n < l->n && strcmp(argv[n], l->list[n]) == 0)
		n++;
	return !argv[n] && n == l->n;
}

/* As prepare(), for a ticket that was sent before. */
static int take_up(struct on *o, struct err *err)
{
	CLEANUP(ticket_done) struct ticket t = { 0 };
	char id[QUEUE_ID_SIZE];
	const bool by_queue = !ssh_is_host(o->options->queue) && !slurm_is_place(o->options->queue);
	const int days = by_queue ? ON_NOTE_DAYS_QUEUE : ON_NOTE_DAYS_TRAY;
	int r = on_note_load(o->e, o->options->ticket, o->options->queue, days, &o->pushed.state,
			     &o->text, err);

	if (r == 0)
		r = ticket_decode(&o->text, &t, err);
	if (r < 0)
		return r;
	if (strcmp(ticket_id(&o->text, id), o->options->ticket) != 0)
		return err_set(err, -EBADMSG, "the note of ticket %s is damaged",
			       o->options->ticket);
	if (!is_same_command(&t.command, o->options->argv))
		return err_set(err, -EINVAL, "ticket %.12s is of another command: '%.100s ...'", id,
			       t.command.list[0]);
	r = on_find_remote(o->e, o->options->remote, t.remote, &o->options->trust, &o->target, err);
	if (r < 0)
		return r;
	memcpy(o->to->ticket, id, sizeof(id));
	snprintf(o->pushed.manifest, sizeof(o->pushed.manifest), "%s", t.snapshot);
	o->labels = TAKE_STRUCT(t.labels);
	return text_set(&o->to->pushed, err, "%s", o->pushed.state);
}

/* --- following ---------------------------------------------------------------------------- */

static void on_again(uint64_t attempt, void *ctx)
{
	struct on *o = ctx;

	log_warn("the worker no longer answers, and the command begins again (attempt %llu)",
		 (unsigned long long)attempt);
	buf_reset(&o->to->out);
	buf_reset(&o->to->err);
}

static int on_output(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	struct on *o = ctx;
	const int fd = of_stderr ? o->options->err_fd : o->options->out_fd;
	struct buf *text = of_stderr ? &o->to->err : &o->to->out;
	int r;

	if (fd < 0) {
		const size_t room = text->len < OUTPUT_MAX ? OUTPUT_MAX - text->len : 0;

		return buf_append(text, data, len < room ? len : room) < 0 ? err_nomem(err) : 0;
	}
	r = fdio_write(fd, data, len);
	return r < 0 ? err_set(err, r, "passing output on") : 0;
}

static int post(struct on *o, struct err *err)
{
	const struct posted_options options = { .queue = o->options->queue,
						.creds = o->options->creds,
						.insecure = o->options->insecure,
						.remote = o->target.url,
						.client = "snap run",
						.stop_fd = o->signals.pipe[0],
						.output = on_output,
						.again = on_again,
						.ctx = o };
	int r = posted_begin(&o->posted, &options, err);

	if (r == 0)
		r = posted_follow(&o->posted, o->to->ticket, &o->labels, &o->text, err);
	posted_end(&o->posted);
	return r;
}

/* --- what came of it ---------------------------------------------------------------------- */

static int fetch(struct on *o, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched got = { 0 };
	AUTO_FREE char *from = NULL;
	struct engine_fetch_options f = { .trust = o->options->trust,
					  .manifest = o->posted.result.snapshot,
					  .base_manifest = o->pushed.manifest,
					  .base_snapshot = o->pushed.state,
					  .watch = o->options->watch };
	int r = text_set(&from, err, "%s:result-%.32s", target_remote(&o->target), o->to->ticket);

	if (r == 0)
		r = o->options->tag ? text_set(&o->to->tag, err, "%s", o->options->tag)
				    : text_set(&o->to->tag, err, "run/%.12s", o->to->ticket);
	if (r < 0)
		return r;
	f.from = from;
	f.tag = o->to->tag;
	r = engine_fetch(o->e, &f, &got, err);
	if (r < 0)
		return r;
	memcpy(o->to->snapshot, got.snapshot.id, sizeof(o->to->snapshot));
	o->to->received = got.bytes_received;
	on_forget(&o->target, o->to->ticket, f.manifest, f.base_manifest);
	return 0;
}

static void fill(struct on *o)
{
	struct result *res = &o->posted.result;
	struct engine_on *to = o->to;

	to->outcome = TAKE_PTR(res->outcome);
	to->worker = TAKE_PTR(res->worker);
	to->host = TAKE_PTR(res->host);
	to->problem = TAKE_PTR(res->problem);
	to->limit = TAKE_PTR(res->limit);
	to->code = (int)res->code;
	to->attempt = res->attempt;
	to->duration_ms = res->duration_ms;
	to->cpu_ms = res->cpu_ms;
	to->max_rss = res->max_rss;
	to->added = res->added;
	to->modified = res->modified;
	to->deleted = res->deleted;
	to->worker_received = res->fetched;
	to->worker_sent = res->pushed;
	to->missing = o->posted.missing;
}

static int go(struct on *o, struct err *err)
{
	int r = o->options->ticket ? take_up(o, err) : prepare(o, err);

	if (r == 0)
		r = signals_begin(&o->signals, 0, err);
	if (r == 0)
		r = post(o, err);
	(void)signals_end(&o->signals);
	if (r == 0)
		r = on_trust_check(o->e, &o->target, &o->options->trust, o->to->ticket,
				   &o->posted.result, &o->to->signer, err);
	if (r == 0 && o->posted.result.snapshot)
		r = fetch(o, err);
	if (r == 0)
		fill(o);
	o->to->cancelled = o->posted.cancelled;
	/* Until then it can be taken up again. */
	if (r == 0 || o->posted.cancelled)
		on_note_drop(o->e, o->to->ticket);
	return r;
}

int engine_run_on(struct engine *e, const struct engine_on_options *options, struct engine_on *ret,
		  struct err *err)
{
	CLEANUP(on_free) struct on o = {
		.e = e, .options = options, .to = ret, .signals = SIGNALS_INIT
	};
	const uint64_t start = engine_clock_ms();
	int r = go(&o, err);

	ret->elapsed_ms = engine_clock_ms() - start;
	return r;
}
