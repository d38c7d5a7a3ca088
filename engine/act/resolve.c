#include "engine/act/resolve-i.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/host/host-i.h"
#include "engine/wire/control-i.h"

/* Held from reading the resolutions to writing them; no other lock is taken meanwhile. */
static pthread_mutex_t deciding = PTHREAD_MUTEX_INITIALIZER;

/* --- merging ---------------------------------------------------------------------------- */

static void fill_choices(const struct resolve_set *set, struct merge_choice *choices,
			 struct merge_options *o)
{
	o->choices = choices;
	for (size_t i = 0; i < set->n; i++) {
		const struct resolution *r = &set->list[i];

		if (r->valid)
			choices[o->n_choices++] = (struct merge_choice){
				.path = r->path,
				.take = r->side,
				.bytes = r->take == ENGINE_TAKE_FILE ? &r->bytes : NULL,
			};
	}
}

int resolve_merge(struct store *s, const struct object_id *base, const struct object_id *ours,
		  const struct object_id *theirs, const struct merge_options *options,
		  struct resolve_set *set, struct merge *ret, struct err *err)
{
	AUTO_FREE struct merge_choice *choices = calloc(set->n + 1, sizeof(*choices));
	int r;

	if (!choices)
		return err_nomem(err);
	for (size_t i = 0; i < set->n; i++)
		set->list[i].valid = false;
	for (;;) {
		CLEANUP(batch_end_p) struct batch *b = NULL;
		struct merge_options o = *options;

		merge_done(ret);
		fill_choices(set, choices, &o);
		r = batch_begin(s, &b, err);
		if (r < 0)
			return r;
		r = merge_trees(b, base, ours, theirs, &o, ret, err);
		if (r < 0)
			return r;
		if (resolve_set_match(set, ret) == 0)
			return batch_commit(b, BATCH_SAFE, err);
	}
}

/* --- keeping ---------------------------------------------------------------------------- */

static int put_set(struct store *s, struct batch *b, const struct clone *clone,
		   const struct resolve_set *set, struct err *err)
{
	int r = set->n == 0 && !set->asked ? resolve_forget(s, b, clone->name, err)
					   : resolve_set_put(b, clone, set, err);

	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

int resolve_forget(struct store *s, struct batch *b, const char *clone, struct err *err)
{
	CLEANUP(resolutions_done) struct resolutions record = { 0 };
	int r = resolutions_get(s, clone, &record, err);

	/* Damaged resolutions are removed, too. */
	if (r == -ENOENT)
		return 0;
	return ref_delete(b, REF_RESOLUTIONS, clone, strlen(clone), err);
}

static int remember(struct store *s, const struct clone *clone, const char *asked, struct err *err)
{
	CLEANUP(resolve_set_done) struct resolve_set set = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = resolve_set_load(s, clone, &set, err);

	if (r < 0 || (set.asked && strcmp(set.asked, asked) == 0))
		return r;
	free(set.asked);
	set.asked = strdup(asked);
	r = set.asked ? batch_begin(s, &b, err) : err_nomem(err);
	return r < 0 ? r : put_set(s, b, clone, &set, err);
}

int resolve_remember(struct task *task, const struct clone *clone, const char *asked,
		     struct err *err)
{
	LOCKED(&deciding);
	return remember(task->engine.store, clone, asked, err);
}

static int drop_used(struct store *s, const struct clone *clone, const struct resolve_set *used,
		     struct err *err)
{
	CLEANUP(resolve_set_done) struct resolve_set set = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = resolve_set_load(s, clone, &set, err);

	for (size_t i = 0; i < used->n && r >= 0; i++) {
		const struct resolution *u = &used->list[i], *r2 = resolve_set_find(&set, u->path);

		if (u->valid && r2 && strcmp(r2->versions, u->versions) == 0)
			resolve_set_drop(&set, r2);
	}
	free(set.asked);
	set.asked = NULL;
	if (r < 0)
		return r;
	r = batch_begin(s, &b, err);
	return r < 0 ? r : put_set(s, b, clone, &set, err);
}

void resolve_used(struct task *task, const struct clone *clone, const struct resolve_set *used)
{
	struct err err = { 0 };
	int r = 0;

	if (used->n == 0 && !used->asked)
		return;
	pthread_mutex_lock(&deciding);
	r = drop_used(task->engine.store, clone, used, &err);
	pthread_mutex_unlock(&deciding);
	/* The resolutions are stale now, so leaving them does no harm. */
	if (r < 0)
		log_warn("removing used resolutions of clone '%s': %s, continuing", clone->name,
			 err.msg);
}

/* --- deciding --------------------------------------------------------------------------- */

static int open_given(const struct host *h, const char *name, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int fd;

	if (strchr(name, '/') || *name == '.')
		return err_set(err, -EINVAL, "'%s' is not the name of a resolved file", name);
	path = text_format("%s/%s/%s", h->dir, CONTROL_DIR, name);
	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, "opening the resolved file") : fd;
}

static int take_bytes(const struct host *h, struct batch *b, const char *name, struct content *ret,
		      struct err *err)
{
	CLEANUP(content_writer_free_p) struct content_writer *w = NULL;
	AUTO_FREE char *piece = malloc(CHUNK_SIZE_MAX);
	AUTO_CLOSE int fd = piece ? open_given(h, name, err) : err_nomem(err);
	ssize_t n = 1;
	int r = fd < 0 ? fd : content_writer_new(b, &w, err);

	while (r >= 0 && n > 0) {
		n = read(fd, piece, CHUNK_SIZE_MAX);
		if (n < 0)
			return err_sys(err, "reading the resolved file");
		if (n > 0)
			r = content_writer_add(w, piece, (size_t)n, err);
	}
	return r < 0 ? r : content_writer_finish(w, ret, err);
}

static int change_set(const struct task *task, struct batch *b,
		      const struct engine_resolve_options *o, struct resolve_set *set,
		      struct err *err)
{
	struct resolution *r = resolve_set_find(set, o->path);

	if (!r && o->take == ENGINE_TAKE_NONE)
		return err_set(err, -ENOENT, "nothing was decided for '%s'", o->path);
	if (o->take == ENGINE_TAKE_NONE) {
		resolve_set_drop(set, r);
		return 0;
	}
	if (!r)
		r = resolve_set_add(set, o->path);
	if (!r)
		return err_nomem(err);
	r->take = o->take;
	r->bytes = (struct content){ 0 };
	snprintf(r->versions, sizeof(r->versions), "%s", o->versions);
	return o->take == ENGINE_TAKE_FILE ? take_bytes(task->host, b, o->file, &r->bytes, err) : 0;
}

static int decide(struct task *task, const struct clone *clone,
		  const struct engine_resolve_options *o, struct err *err)
{
	CLEANUP(resolve_set_done) struct resolve_set set = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = resolve_set_load(task->engine.store, clone, &set, err);

	if (r < 0)
		return r;
	r = batch_begin(task->engine.store, &b, err);
	if (r < 0)
		return r;
	r = change_set(task, b, o, &set, err);
	if (r < 0)
		return r;
	r = task_wanted(task, err);
	return r < 0 ? r : put_set(task->engine.store, b, clone, &set, err);
}

int resolve_do(struct task *task, const struct engine_resolve_options *options, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct store *s;
	int r;

	if (options->take > ENGINE_TAKE_FILE ||
	    (options->take != ENGINE_TAKE_NONE && !options->versions) ||
	    (options->take == ENGINE_TAKE_FILE && !options->file))
		return err_set(err, -EINVAL, "there is no such way to settle a conflict");
	r = engine_store(&task->engine, STORE_WRITE, &s, err);
	if (r < 0)
		return r;
	r = clone_meant(&task->engine, s, options->clone, &clone, err);
	if (r < 0)
		return r;
	LOCKED(&deciding);
	r = decide(task, &clone, options, err);
	return r;
}
