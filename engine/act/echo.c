#include "engine/act/echo-i.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/keep-i.h"

#define PAGE 1000 /* names */

/* What a client has still to echo. */
struct echoing {
	struct kept kept;
	struct host *host;
	char *clone, *path; /* owned */
	char token[MOUNT_ECHO_SIZE];
	struct layer_replaced *list; /* owned, and the paths in it */
	size_t n;
};

static void echoing_free(struct echoing *g)
{
	if (!g)
		return;
	VEC_FREE(it, g->list, g->n, free(it->path));
	free(g->clone);
	free(g->path);
	free(g);
}
DEFINE_CLEANUP(struct echoing *, echoing_free)

/* If the mount was closed meanwhile, the echo ended with it. */
static void release(struct kept *k)
{
	struct echoing *g = (struct echoing *)k;
	struct turn *turn = NULL;
	struct err err = { 0 };
	struct live *live;

	if (turns_take(&g->host->turns, g->clone, &turn, &err) < 0) {
		/* The mount still borrows the list. */
		log_warn("echoes in clone '%s' cannot be ended: %s, continuing", g->clone, err.msg);
		return;
	}
	live = live_find(g->host, g->clone);
	if (live && live->mount)
		mount_echo_end(live->mount, g->token);
	turn_give(turn);
	echoing_free(g);
}

/* What is in a directory must go before the directory does. */
static int deepest_first(const void *a, const void *b)
{
	const struct layer_replaced *x = a, *y = b;

	return strcmp(y->path, x->path);
}

static int begin(struct task *task, const char *clone, struct mount *m,
		 struct layer_changes *changes, struct err *err)
{
	CLEANUP(echoing_free_p) struct echoing *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_nomem(err);
	g->kept.release = release;
	g->host = task->host;
	g->clone = strdup(clone);
	g->path = live_path(task->host, clone);
	if (!g->clone || !g->path)
		return err_nomem(err);
	g->n = changes->n_replaced;
	g->list = TAKE_PTR(changes->replaced);
	changes->n_replaced = 0;
	qsort(g->list, g->n, sizeof(*g->list), deepest_first);
	r = mount_echo_begin(m, g->list, g->n, g->token, err);
	if (r < 0)
		return r;
	keep_add(task->kept, &TAKE_PTR(g)->kept);
	return r;
}

int echo_announce(struct task *task, const char *clone, struct mount *m,
		  struct layer_changes *changes, struct err *err)
{
	struct err why = { 0 };

	/* Begin before the kernel hears of it, so that it asks again for each echoed name. */
	if (task->kept && changes->n_replaced > 0 && begin(task, clone, m, changes, &why) < 0)
		engine_warn(&task->engine,
			    "programs that watch files in clone '%s' are not told of it: %s", clone,
			    why.msg);
	else if (changes->n_left_out > 0)
		engine_warn(&task->engine,
			    "programs that watch files in clone '%s' are not told of %" PRIu64
			    " of the changes: there are too many",
			    clone, changes->n_left_out);
	return mount_announce(m, changes, err);
}

static struct echoing *find_echoing(const struct task *task)
{
	struct kept *k = task->kept ? *task->kept : NULL;

	while (k && k->release != release)
		k = k->next;
	return (struct echoing *)k;
}

size_t echo_count(const struct task *task)
{
	const struct echoing *g = find_echoing(task);

	return g ? g->n : 0;
}

static void end(struct task *task, struct echoing *g)
{
	struct kept **at = task->kept;

	while (*at != &g->kept)
		at = &(*at)->next;
	*at = g->kept.next;
	release(&g->kept);
}

static char letter(uint32_t mode)
{
	return mode == 0       ? ECHO_NONE
	       : S_ISDIR(mode) ? ECHO_DIR
	       : S_ISREG(mode) ? ECHO_FILE
			       : ECHO_OTHER;
}

static int fill(const struct echoing *g, uint64_t from, struct echo_page *ret, struct err *err)
{
	const size_t n = g->n - from < PAGE ? g->n - (size_t)from : PAGE;

	ret->path = strdup(g->path);
	ret->token = strdup(g->token);
	ret->names = calloc(n, sizeof(*ret->names));
	if (!ret->path || !ret->token || !ret->names)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		const struct layer_replaced *of = &g->list[from + i];

		ret->names[i].path = strdup(of->path);
		if (!ret->names[i].path)
			return err_nomem(err);
		ret->names[i].was = letter(of->was);
		ret->names[i].is = letter(of->is);
		ret->n_names++;
	}
	return 0;
}

int echo_page(struct task *task, uint64_t from, struct echo_page *ret, struct err *err)
{
	struct echoing *g = find_echoing(task);

	*ret = (struct echo_page){ 0 };
	if (g && from < g->n)
		return fill(g, from, ret, err);
	if (g)
		end(task, g);
	return 0;
}
