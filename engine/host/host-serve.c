#include <unistd.h>

#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

static int serve_locked(struct host *h, struct err *err)
{
	const struct layers_options options = {
		.source = { .keep = promises_keep,
			    .peek = promises_peek,
			    .hurry = promises_hurry,
			    .ctx = h->promises },
	};
	int r = h->layers ? 0 : layers_new(h->store, &options, &h->layers, err);

	return r < 0 || h->mounts ? r : mounts_new(&h->mounts, err);
}

int host_serve(struct host *h, struct err *err)
{
	LOCKED(&h->lock);
	return serve_locked(h, err);
}

bool host_for_others(void)
{
	return geteuid() == 0;
}

bool host_is_root(void)
{
	return getuid() == 0 && geteuid() == 0 && getgid() == 0 && getegid() == 0;
}
