#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "engine/api/history.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/run/run-snapshot.h"
#include "engine/wire/wire-i.h"
#include "runner/net/loop.h"

/* One that cowfsd was asked for. */
struct taking {
	struct taking *next;
	struct run_snapshots *all;
	struct ask ask;
	struct control control; /* its descriptor belongs to the watch */
	struct loop_watch watch;
	uint64_t call; /* that waits for it */
	bool over;
};

struct run_snapshots {
	struct run_snapshots_options options;
	struct sandbox_snapshots sandbox;
	struct loop loop;
	struct taking *first;
	uint64_t tried;
};

static void taking_free(struct taking *t)
{
	loop_stop(&t->all->loop, &t->watch);
	t->control.fd = -1;
	control_done(&t->control);
	ask_done(&t->ask);
	free(t);
}

/* The id is the number that the run gets; one that the kernel takes for an error cannot be told. */
static int number_of(const char *id, uint64_t *ret)
{
	*ret = strtoull(id, NULL, 16);
	return *ret > UINT64_MAX - 4095 ? -EIO : 0;
}

static int warn(const struct err *err)
{
	log_warn("the run asked for a snapshot: %s, continuing", err->msg);
	return -EIO;
}

static void on_answer(struct loop_watch *w)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	struct taking *t = w->owner;
	struct err err = { 0 };
	uint64_t number = 0;
	struct json answer;
	int r = ask_peek(&t->ask, t->all->options.engine, &t->control, &answer, &err);

	if (r == -EAGAIN)
		return;
	if (r >= 0)
		r = ask_take(&t->ask, answer, &wire_taken, &taken, &err);
	else if (r == -ESHUTDOWN)
		r = err_set(&err, r, "cowfsd is stopping");
	r = r < 0 ? warn(&err) : number_of(taken.snapshot.id, &number);
	sandbox_snapshots_answer(&t->all->sandbox, t->call, r, number);
	t->over = true;
}

static int send(struct taking *t, struct err *err)
{
	const struct run_snapshots_options *o = &t->all->options;
	const struct engine_watch unwatched = { 0 };
	char message[64], meta[32];
	const struct engine_take_options options = {
		.clone = o->run->clone,
		.message = message,
		.meta = meta,
		.automatic = true, /* of the run: nobody else asked for it */
	};

	snprintf(message, sizeof(message), "in run %s, number %llu", o->run->id,
		 (unsigned long long)t->all->tried);
	snprintf(meta, sizeof(meta), "run=%s", o->run->id);
	ask_begin(&t->ask, o->engine, VERB_TAKE);
	fields_set(t->ask.options, &wire_take_options, &options);
	/* The clone of the run is there, so cowfsd is. */
	if (!ask_ahead(&t->ask, o->engine, &unwatched, &t->control))
		return err_set(err, -ESRCH, "cowfsd does not answer");
	t->watch.fd = t->control.fd;
	if (loop_watch(&t->all->loop, &t->watch, EPOLLIN) < 0)
		return err_nomem(err);
	return 0;
}

static int ask_one(void *ctx, uint64_t id)
{
	struct run_snapshots *s = ctx;
	struct err err = { 0 };
	struct taking *t;

	if (s->tried >= s->options.most)
		return -EDQUOT;
	s->tried++;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->all = s;
	t->call = id;
	t->control = CONTROL_INIT;
	t->watch = (struct loop_watch){ .fd = -1, .ready = on_answer, .owner = t };
	if (send(t, &err) < 0) {
		t->watch.fd = t->control.fd;
		taking_free(t);
		return warn(&err);
	}
	t->next = s->first;
	s->first = t;
	return 0;
}

static void drop_over(struct run_snapshots *s, bool all)
{
	for (struct taking **at = &s->first, *t; (t = *at);) {
		if (!t->over && !all) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		taking_free(t);
	}
}

static int step(void *ctx, struct err *err)
{
	struct run_snapshots *s = ctx;
	int r = loop_step(&s->loop, 0, err);

	drop_over(s, false);
	return r < 0 ? r : 0;
}

int run_snapshots_open(const struct run_snapshots_options *options, struct sandbox_spec *spec,
		       struct run_snapshots **ret, struct err *err)
{
	CLEANUP(run_snapshots_close_p) struct run_snapshots *s = NULL;
	int r;

	*ret = NULL;
	if (options->most == 0)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	s->options = *options;
	s->sandbox = (struct sandbox_snapshots){ .ask = ask_one, .ctx = s, .listener = -1 };
	r = loop_open(&s->loop, err);
	if (r < 0)
		return r;
	spec->snapshots = &s->sandbox;
	spec->beside[spec->n_beside++] =
	    (struct sandbox_beside){ .step = step, .ctx = s, .fd = s->loop.fd };
	*ret = TAKE_PTR(s);
	return 0;
}

void run_snapshots_close(struct run_snapshots *s)
{
	if (!s)
		return;
	drop_over(s, true);
	loop_close(&s->loop);
	free(s);
}
