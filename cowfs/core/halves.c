/*
 * A piece that may have a successor ends at a page's end; for each thread the last such piece is
 * kept. The system and the layer's caller say whether the thread is still in that write(2): it has
 * left if it sleeps without awaiting an answer, has sent another request, or has run for a while
 * since.
 */
#include "cowfs/core/halves-i.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/sys.h"

#define PAGE        4096 /* or a multiple, by the machine: then some are kept for nothing */
#define HALVES      64
#define PROBES      4
#define PIECES_MAX  8    /* let in of one write while others are held */
#define PATIENCE_MS 1000 /* nobody is between two pieces that long, on a busy machine either */
#define BETWEEN_MS  10   /* a thread runs less between two; the system counts in such steps */
#define LOOK_NS     100000

struct half {
	uint32_t writer; /* 0: none */
	unsigned pieces; /* let in while writes are held */
	uint64_t node, end;
	int64_t when;
	uint64_t serial; /* another one for each piece */
	uint64_t cpu_ms;
	bool looked_at; /* cpu_ms is known */
};

struct halves {
	uint64_t serial;
	struct half list[HALVES];
};

/* The thread's own place, or one to take: free, or the oldest of those that could be. */
static struct half *place_of(struct halves *h, uint32_t writer)
{
	struct half *found = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct half *half = &h->list[(writer + i) % HALVES];

		if (half->writer == writer)
			return half;
		if (!found || half->writer == 0 || (found->writer != 0 && half->when < found->when))
			found = half;
	}
	return found;
}

static struct half *find_half(struct layer *l, uint32_t writer)
{
	struct half *half = l->halves ? place_of(l->halves, writer) : NULL;

	return half && half->writer == writer ? half : NULL;
}

void halves_note(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		 size_t len)
{
	const uint64_t end = off + len;
	struct half *half;
	unsigned pieces = 0;

	if (call->writer == 0)
		return;
	half = find_half(l, call->writer);
	if (end % PAGE != 0) {
		if (half)
			half->writer = 0;
		return;
	}
	/* Without memory for it a state may show half a write, as after a crash. */
	if (!l->halves)
		l->halves = calloc(1, sizeof(*l->halves));
	if (!l->halves)
		return;
	if (half && half->node == node && half->end == off)
		pieces = half->pieces + 1;
	if (!half)
		half = place_of(l->halves, call->writer);
	*half = (struct half){
		.writer = call->writer,
		.pieces = l->holding ? pieces : 0,
		.node = node,
		.end = end,
		.when = layers_clock(),
		.serial = ++l->halves->serial,
	};
}

bool halves_let_in(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off)
{
	struct half *half = call->writer != 0 ? find_half(l, call->writer) : NULL;

	if (!half)
		return false;
	if (half->node == node && half->end == off && half->pieces < PIECES_MAX)
		return true;
	half->writer = 0;
	return false;
}

/* --- waiting ---------------------------------------------------------------------------- */

/* Wait for this piece no longer.  If its thread was seen in the write(2), it may still be there. */
static void give_up(const struct layer *l, struct half *half)
{
	if (half->looked_at)
		log_warn("clone '%s': thread %u did not get on with a write for a second, "
			 "continuing; the state may hold a part of it",
			 l->record.name, half->writer);
	half->writer = 0;
}

/* Copy those that are young enough to matter; how many. */
static size_t collect(struct layer *l, struct half list[HALVES])
{
	const int64_t now = layers_clock();
	size_t n = 0;

	for (size_t i = 0; l->halves && i < HALVES; i++) {
		struct half *half = &l->halves->list[i];

		if (half->writer != 0 && now - half->when >= PATIENCE_MS)
			give_up(l, half);
		if (half->writer != 0)
			list[n++] = *half;
	}
	return n;
}

static bool has_left(const struct layer *l, struct half *half)
{
	struct sys_task task;

	if (sys_look_at_task((pid_t)half->writer, &task) < 0)
		return true;
	if (l->witness ? l->witness(l->witness_ctx, half->writer, half->node, half->end)
		       : task.asleep)
		return true;
	if (half->looked_at && task.cpu_ms > half->cpu_ms + BETWEEN_MS)
		return true;
	if (!half->looked_at)
		half->cpu_ms = task.cpu_ms;
	half->looked_at = true;
	return false;
}

/* What was learned of it counts if no other piece came meanwhile. */
static void give_back(struct layer *l, const struct half *seen, bool left)
{
	struct half *half = find_half(l, seen->writer);

	if (!half || half->serial != seen->serial)
		return;
	if (left)
		half->writer = 0;
	half->looked_at = seen->looked_at;
	half->cpu_ms = seen->cpu_ms;
}

static void look_at_halves(struct layer *l, struct half *list, size_t n)
{
	bool left[HALVES] = { false };

	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < n; i++)
		left[i] = has_left(l, &list[i]);
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < n; i++)
		give_back(l, &list[i], left[i]);
}

void halves_hold(struct layer *l)
{
	const int64_t until = layers_clock() + PATIENCE_MS;
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct half list[HALVES];
	size_t n;

	l->holding = true;
	while ((n = collect(l, list)) > 0 && layers_clock() < until) {
		look_at_halves(l, list, n);
		if (collect(l, list) == 0)
			break;
		pthread_mutex_unlock(&l->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&l->lock);
	}
}

void halves_release(struct layer *l)
{
	if (!l->holding)
		return;
	l->holding = false;
	pthread_cond_broadcast(&l->calm);
}

void layer_set_witness(struct layer *l, layer_witness_fn fn, void *ctx)
{
	LOCKED(&l->lock);
	l->witness = fn;
	l->witness_ctx = ctx;
}
