#include <errno.h>

#include "engine/transfer/transfer-i.h"

static int open_one(struct connections *l, unsigned member, struct err *err)
{
	int r = depot_open(l->url, &l->config, &l->list[member], err);

	if (r == 0)
		l->list[member]->cache = &l->cache.depot;
	return r;
}

/* Each has its share of the rate. */
static int open_first(struct connections *l, uint64_t rate, struct err *err)
{
	l->config.rate = rate > 0 && rate < l->n ? 1 : rate / l->n;
	return open_one(l, 0, err);
}

int connections_open(struct engine *e, struct connections *l, const char *url, uint64_t rate,
		     uint64_t jobs, struct err *err)
{
	int r;

	if (jobs > CREW_MAX)
		return err_set(err, -EINVAL, "at most %d jobs work at once", CREW_MAX);
	l->url = url;
	l->n = jobs > 0 ? (unsigned)jobs : CREW_MAX;
	cache_open(e, &l->cache);
	r = open_first(l, rate, err);
	if (r < 0 || l->list[0]->lines == 0 || l->list[0]->lines >= l->n)
		return r;
	/* Fewer than that, with larger shares; nothing was reached for yet. */
	l->n = l->list[0]->lines;
	depot_close(l->list[0]);
	l->list[0] = NULL;
	return open_first(l, rate, err);
}

void connections_done(struct connections *l)
{
	for (size_t i = 0; i < CREW_MAX; i++)
		depot_close(l->list[i]);
	if (l->url)
		cache_close(&l->cache);
	*l = (struct connections){ 0 };
}

int connections_get(struct connections *l, unsigned member, struct depot **ret, struct err *err)
{
	int r = 0;

	if (!l->list[member])
		r = open_one(l, member, err);
	*ret = l->list[member];
	return r;
}
