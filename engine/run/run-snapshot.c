#include "engine/run/run-snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/api/history.h"

/* The id is the number that the run gets; one that the kernel takes for an error cannot be told. */
static int number_of(const char *id, uint64_t *ret)
{
	*ret = strtoull(id, NULL, 16);
	return *ret > UINT64_MAX - 4095 ? -EIO : 0;
}

static int take(void *ctx, uint64_t *ret)
{
	struct run_snapshots *s = ctx;
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	char message[64], meta[32];
	const struct engine_take_options options = {
		.clone = s->run->clone,
		.message = message,
		.meta = meta,
		.automatic = true, /* of the run: nobody else asked for it */
	};
	struct err err = { 0 };
	int r;

	if (s->tried >= s->most)
		return -EDQUOT;
	s->tried++;
	snprintf(message, sizeof(message), "in run %s, number %llu", s->run->id,
		 (unsigned long long)s->tried);
	snprintf(meta, sizeof(meta), "run=%s", s->run->id);
	r = engine_take(s->engine, &options, &taken, &err);
	if (r < 0) {
		log_warn("the run asked for a snapshot: %s, continuing", err.msg);
		return -EIO;
	}
	return number_of(taken.snapshot.id, ret);
}

void run_snapshots_allow(struct run_snapshots *s, struct sandbox_spec *spec)
{
	if (s->most == 0)
		return;
	spec->snapshot = take;
	spec->snapshot_ctx = s;
}
