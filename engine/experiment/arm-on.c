/*
 * The command of an arm on another machine. Its clone is made here as any other, a worker runs the
 * command on the same state, and the result becomes the clone's content; from then on the arm is
 * like one that ran here.
 *
 * The sent state is written down before a ticket names it. So every process writes the same ticket,
 * and a killed and resumed experiment finds the results that are there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/worker/on-clone-i.h"

#define DEADLINE_MAX (UINT64_C(36525) * 86400 * 1000) /* ms; nanoseconds of more do not fit */

static struct on_place place_of(const struct engine_experiment *x)
{
	return (struct on_place){
		.queue = x->on.queue,
		.creds = x->on.creds,
		.insecure = x->on.insecure,
		.remote = x->on.remote,
		.trust = { .required = x->on.signed_only, .signers = x->on.signers },
		.sign = x->on.sign,
		.labels = { .items = (const char *const *)x->on.labels, .n = x->on.n_labels },
	};
}

bool arm_is_elsewhere(const struct work *w, const struct engine_arm *arm)
{
	return w->x->on.queue && arm->state == ENGINE_ARM_RUNNING;
}

/* A file may name it from the project's directory, and a resume may start in another directory. */
static int make_absolute(struct engine *e, char **file, struct err *err)
{
	AUTO_FREE char *path = *file ? path_clean(e->dir, *file) : NULL;

	if (!*file)
		return 0;
	return path ? text_set(file, err, "%s", path) : err_nomem(err);
}

int arm_on_check(struct engine *e, struct engine_experiment *x, struct err *err)
{
	AUTO_FREE char *remote = NULL;
	struct on_place place;
	int r;

	if (!x->on.queue)
		return 0;
	/* The worker's own rules decide about these. */
	if (x->net || x->n_ro > 0)
		return err_set(err, -EINVAL, "options '--%s' and '--on' exclude each other",
			       x->net ? "net" : "ro");
	r = make_absolute(e, &x->on.creds, err);
	place = place_of(x);
	if (r == 0)
		r = on_place_check(e, &place, &remote, err);
	return r < 0 ? r : text_set(&x->on.remote, err, "%s", remote);
}

/* --- the state that it starts from ---------------------------------------------------------- */

static struct engine_sent *find_sent(const struct engine_fleet *on, const char *snapshot)
{
	return VEC_FIND(one, on->sent, on->n_sent, strcmp(one->snapshot, snapshot) == 0);
}

static int take_sent(struct engine_sent *one, struct engine_pushed *pushed, struct err *err)
{
	free(one->name);
	one->name = TAKE_PTR(pushed->name);
	one->sent += pushed->bytes_sent;
	one->skipped += pushed->bytes_skipped;
	one->is_there = true;
	memcpy(one->manifest, pushed->manifest, sizeof(one->manifest));
	return one->snapshot ? 1 : err_nomem(err);
}

int arm_on_send(struct work *w, const struct engine_arm *arm, struct err *err)
{
	CLEANUP(engine_pushed_done) struct engine_pushed pushed = { 0 };
	const struct on_place place = place_of(w->x);
	const char *snapshot = arm_start(w, arm);
	struct engine_fleet *on = &w->x->on;
	struct engine_sent *one = find_sent(on, snapshot);
	int r = 0;

	if (!on->queue || (one && one->is_there))
		return 0;
	if (one)
		r = on_place_has(w->engine, &place, one->manifest, err);
	if (r > 0)
		one->is_there = true;
	if (r != 0)
		return r < 0 ? r : 0;
	r = on_place_send(w->engine, &place, snapshot, &w->options->watch, &pushed, err);
	if (r < 0)
		return r;
	if (!one && !VEC_ONE_MORE(on->sent, on->n_sent))
		return err_nomem(err);
	if (!one) {
		one = &on->sent[on->n_sent++];
		*one = (struct engine_sent){ .snapshot = strdup(snapshot) };
	}
	return take_sent(one, &pushed, err);
}

/* From the record alone, as all of a ticket; so a resumed experiment has the same one. */
static int64_t deadline_of(const struct engine_experiment *x)
{
	const uint64_t ms = x->on.deadline_ms;

	return ms == 0 ? 0
		       : x->created + (int64_t)(ms < DEADLINE_MAX ? ms : DEADLINE_MAX) * 1000000;
}

int arm_on_start(struct work *w, struct engine_arm *arm, const struct engine_run_options *options,
		 struct engine_run *ret, struct err *err)
{
	const char *snapshot = arm_start(w, arm);
	const struct on_place place = place_of(w->x);
	struct on_clone on = { .place = &place,
			       .snapshot = snapshot,
			       .owner = w->x->owner,
			       .deadline = deadline_of(w->x),
			       .experiment = w->x->name,
			       .arm = arm->name };
	const struct engine_sent *sent = find_sent(&w->x->on, snapshot);

	if (!sent)
		return err_set(err, -ENOENT, "the snapshot that arm '%s' starts from was not sent",
			       arm->name);
	on.manifest = sent->manifest;
	on.name = sent->name;
	return on_clone_start(w->engine, options, &on, ret, err);
}

/* --- where it is ---------------------------------------------------------------------------- */

static int copy(char **to, const char *from, struct err *err)
{
	if (from)
		return text_set(to, err, "%s", from);
	free(*to);
	*to = NULL;
	return 0;
}

int arm_on_take(struct engine_arm *arm, const struct engine_run *run, struct err *err)
{
	struct engine_machine *to = &arm->machine, was = *to;
	const struct engine_machine *from = &run->machine;
	int r;

	/* Checks run here. */
	if (*from->ticket == '\0')
		return 0;
	*to = *from;
	to->worker = was.worker;
	to->host = was.host;
	r = copy(&to->worker, from->worker, err);
	return r < 0 ? r : copy(&to->host, from->host, err);
}
