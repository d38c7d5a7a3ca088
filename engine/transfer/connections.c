#include <errno.h>

#include "engine/transfer/transfer-i.h"

int connections_open(struct connections *l, const char *url, uint64_t rate, uint64_t jobs,
		     struct err *err)
{
	if (jobs > CREW_MAX)
		return err_set(err, -EINVAL, "at most %d jobs work at once", CREW_MAX);
	l->url = url;
	l->n = jobs > 0 ? (unsigned)jobs : CREW_MAX;
	/* Each has its share. */
	l->config.rate = rate > 0 && rate < l->n ? 1 : rate / l->n;
	return depot_open(url, &l->config, &l->list[0], err);
}

void connections_done(struct connections *l)
{
	for (size_t i = 0; i < CREW_MAX; i++)
		depot_close(l->list[i]);
	*l = (struct connections){ 0 };
}

int connections_get(struct connections *l, unsigned member, struct depot **ret, struct err *err)
{
	int r = 0;

	if (!l->list[member])
		r = depot_open(l->url, &l->config, &l->list[member], err);
	*ret = l->list[member];
	return r;
}
