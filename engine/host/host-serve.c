#include <unistd.h>

#include "engine/host/host-i.h"

int host_serve(struct host *h, struct err *err)
{
	const struct layers_options options = { 0 };
	int r = 0;

	pthread_mutex_lock(&h->lock);
	if (!h->layers)
		r = layers_new(h->store, &options, &h->layers, err);
	if (r >= 0 && !h->mounts)
		r = mounts_new(&h->mounts, err);
	pthread_mutex_unlock(&h->lock);
	return r;
}

bool host_for_others(void)
{
	return geteuid() == 0;
}

bool host_is_root(void)
{
	return getuid() == 0 && geteuid() == 0 && getgid() == 0 && getegid() == 0;
}
