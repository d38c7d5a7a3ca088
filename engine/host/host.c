#include "engine/host/host-i.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/host/promises-i.h"
#include "engine/wire/control-i.h"
#include "snapshot/apply/apply.h"

int host_new(const char *dir, struct store *s, struct host **ret, struct err *err)
{
	struct host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_nomem(err);
	turns_init(&h->turns);
	recall_init(&h->recall);
	twins_init(&h->twins);
	moments_init(&h->moments, s);
	questions_init(&h->questions);
	pthread_mutex_init(&h->lock, NULL);
	pthread_rwlock_init(&h->snapshots, NULL);
	h->live = MAP_INIT(map_hash_str, map_equal_str);
	h->next_expiry = INT64_MIN; /* unknown: look */
	h->unswept = true;          /* a killed daemon may have left something */
	h->dir = strdup(dir);
	h->clones = path_join(dir, CLONES_DIR);
	if (!h->dir || !h->clones) {
		host_free(h);
		return err_nomem(err);
	}
	r = promises_new(h, &h->promises, err);
	r = r < 0 ? r : warm_clone_new(h, &h->warm_clone, err);
	if (r < 0) {
		host_free(h);
		return r;
	}
	h->store = s;
	*ret = h;
	return 0;
}

void host_free(struct host *h)
{
	if (!h)
		return;
	assert(h->live.n == 0);
	promises_free(h->promises);
	warm_clone_free(h->warm_clone);
	mounts_free(h->mounts);
	layers_free(h->layers);
	store_close(h->store);
	map_done(&h->live);
	turns_done(&h->turns);
	recall_done(&h->recall);
	twins_done(&h->twins);
	moments_done(&h->moments);
	questions_done(&h->questions);
	pthread_mutex_destroy(&h->lock);
	pthread_rwlock_destroy(&h->snapshots);
	free(h->unclosed);
	free(h->clones);
	free(h->dir);
	free(h);
}

void host_sweep(struct host *h, bool (*stop)(void *ctx), void *ctx)
{
	if (atomic_exchange(&h->unswept, false))
		apply_sweep(h->store, stop, ctx);
}

/* --- what may be read ------------------------------------------------------------------- */
