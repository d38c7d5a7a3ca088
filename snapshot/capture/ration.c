#include "snapshot/capture/ration.h"

#include <errno.h>

#include "base/lock.h"
#include "snapshot/capture/scout.h"

/* It takes longer to read a file of this size than to look at all names of a small project. */
#define LARGE ((uint64_t)1 << 20)

#define PULSE_MS    50
#define PATIENCE_MS 2000 /* for each such file: on a cold disk a walk over names is slow, too */

void ration_init(struct ration *r, const struct ration_options *options)
{
	*r = (struct ration){ .options = options };
	pthread_mutex_init(&r->lock, NULL);
}

void ration_done(struct ration *r)
{
	scout_end(r->scout);
	pthread_mutex_destroy(&r->lock);
}

static bool decide(struct ration *r)
{
	LOCKED(&r->lock);

	/* What stands against it may pass. */
	if (!r->spent)
		r->spent = r->options->may_begin(r->options->ctx);
	return r->spent;
}

/* What the scout says.  A large file waits for that. */
static bool is_much_ahead(struct ration *r, uint64_t bytes, void (*pulse)(void *ctx), void *ctx)
{
	int x = r->scout ? scout_ask(r->scout, 0) : 0;

	for (unsigned i = 0; x == -EAGAIN && bytes >= LARGE && i < PATIENCE_MS / PULSE_MS; i++) {
		x = scout_ask(r->scout, PULSE_MS);
		if (pulse)
			pulse(ctx);
	}
	return x > 0;
}

bool ration_is_spent(struct ration *r, const struct stat *st, void (*pulse)(void *ctx), void *ctx)
{
	const uint64_t bytes = scout_bytes(st);

	if (r->spent)
		return true;
	if (is_much_ahead(r, bytes, pulse, ctx))
		return decide(r);
	return atomic_fetch_add(&r->taken, bytes) + bytes > r->options->spare && decide(r);
}

void ration_take_back(struct ration *r, uint64_t bytes)
{
	atomic_fetch_sub(&r->promised, bytes);
}

bool ration_promise(struct ration *r, uint64_t bytes)
{
	if (atomic_fetch_add(&r->promised, bytes) + bytes <= r->options->most)
		return true;
	ration_take_back(r, bytes);
	return false;
}
