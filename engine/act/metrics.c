#include "engine/act/metrics-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/core/traffic.h"
#include "cowfs/fuse/meter.h"

_Static_assert(ENGINE_METER_BUCKETS == METER_BUCKETS, "a bucket for each bound, and one beyond");

static int add_meters(struct engine_daemon_metrics *m, struct err *err)
{
	struct meter_row rows[METER_ROWS_MAX];
	const size_t n = meter_read(rows);

	m->ops = calloc(n + 1, sizeof(*m->ops));
	if (!m->ops)
		return err_nomem(err);
	for (; m->n_ops < n; m->n_ops++) {
		const struct meter_row *row = &rows[m->n_ops];

		m->ops[m->n_ops] = (struct engine_meter){
			.op = strdup(row->op),
			.count = row->count,
			.sum_ns = row->sum_ns,
			.us10 = row->buckets[0],
			.us100 = row->buckets[1],
			.ms1 = row->buckets[2],
			.ms10 = row->buckets[3],
			.ms100 = row->buckets[4],
			.s1 = row->buckets[5],
			.longer = row->buckets[6],
		};
		if (!m->ops[m->n_ops].op)
			return err_nomem(err);
	}
	return 0;
}

static int add_traffic(const char *clone, const struct traffic *t, void *ctx)
{
	struct engine_daemon_metrics *m = ctx;
	struct engine_traffic *one;

	if (!VEC_ONE_MORE(m->traffic, m->n_traffic))
		return -ENOMEM;
	one = &m->traffic[m->n_traffic];
	*one = (struct engine_traffic){
		.clone = strdup(clone),
		.requests = t->requests,
		.read = t->read,
		.written = t->written,
		.waiting = t->waiting,
		.rests = t->rests,
	};
	m->n_traffic += one->clone != NULL;
	return one->clone ? 0 : -ENOMEM;
}

int metrics_collect(struct host *h, struct engine_daemon_metrics *ret, struct err *err)
{
	struct layers_stats stats = { 0 };
	struct layers *layers;

	pthread_mutex_lock(&h->lock);
	layers = h->layers;
	pthread_mutex_unlock(&h->lock);
	/* They stay until the host goes, which waits for this. */
	if (layers)
		layers_stats(layers, &stats);
	if (layers && traffic_each(layers, add_traffic, ret) < 0)
		return err_nomem(err);
	ret->mounted = live_count(h);
	ret->dirty_bytes = stats.dirty;
	ret->nodes = stats.nodes;
	ret->commits = stats.persists;
	ret->sweeps = stats.sweeps;
	ret->store_waits = stats.store_waits;
	ret->room_waits = stats.room_waits;
	ret->cache_hits = stats.cache.found;
	ret->cache_misses = stats.cache.loaded;
	ret->cache_bytes = stats.cache.chunk_bytes + stats.cache.meta_bytes;
	return add_meters(ret, err);
}
