#include "engine/act/growth-i.h"

#include "base/log.h"
#include "cowfs/store/root.h"
#include "engine/find/growth-i.h"

#define EVERY_MS     60000
#define UNCHANGED_MS 600000 /* when the files have the size that they had */

struct sum {
	struct store *store;
	uint64_t logical;
};

static int add_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	((struct sum *)ctx)->logical += s->bytes;
	return 0;
}

static int add_clone(const struct clone *clone, void *ctx, struct err *err)
{
	struct sum *sum = ctx;
	struct root root;
	int r = root_get(sum->store, &clone->root, &root, err);

	if (r >= 0)
		sum->logical += root.top.below.bytes + root.in_links.bytes;
	return r < 0 ? r : 0;
}

static int measure(struct host *h, struct engine_growth_row *ret, struct err *err)
{
	struct sum sum = { .store = h->store };
	uint64_t unused = 0;
	int r = snapshot_each(h->store, add_snapshot, &sum, err);

	if (r < 0)
		return r;
	r = clone_each(h->store, add_clone, &sum, err);
	if (r < 0)
		return r;
	r = store_free_bytes(h->store, &unused, err);
	if (r < 0)
		return r;
	*ret = (struct engine_growth_row){
		.time = engine_now(),
		.logical = sum.logical,
		.disk = store_disk_bytes(h->store),
	};
	ret->used = ret->disk > unused ? ret->disk - unused : 0;
	return 0;
}

/* The keeper and a gc may come at once; there is one store to a process. */
static void add(struct host *h, const struct engine_growth_row *row)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool told;
	struct err err = { 0 };

	LOCKED(&lock);
	if (growth_add(h->dir, row, &err) < 0) {
		if (!told)
			log_warn("%s, continuing", err.msg);
		told = true;
	}
}

static bool look(struct host *h, struct engine_growth_row *ret)
{
	struct err err = { 0 };

	if (measure(h, ret, &err) >= 0)
		return true;
	log_warn("cannot note the size of the store: %s, continuing", err.msg);
	return false;
}

void growth_note(struct host *h)
{
	struct engine_growth_row row;

	if (look(h, &row))
		add(h, &row);
}

void growth_look(struct host *h)
{
	static uint64_t looked_ms, disk; /* of the keeper, the only thread that comes here */
	const uint64_t now = engine_clock_ms(), size = store_disk_bytes(h->store);

	/* Not while the daemon begins, and to add up all snapshots is not for nothing. */
	if (looked_ms == 0)
		looked_ms = now;
	if (now - looked_ms < EVERY_MS || (size == disk && now - looked_ms < UNCHANGED_MS))
		return;
	looked_ms = now;
	disk = size;
	growth_note(h);
}

void growth_before_gc(struct host *h, struct engine_growth_row *ret)
{
	if (!look(h, ret))
		*ret = (struct engine_growth_row){ 0 };
}

void growth_after_gc(struct host *h, struct engine_growth_row *before, uint64_t freed)
{
	struct engine_growth_row after;

	if (before->time == 0 || !look(h, &after))
		return;
	/* Others may have noted something meanwhile, and rows are in the order of time. */
	before->time = after.time - 1;
	before->judged = after.judged = true;
	before->garbage = freed;
	add(h, before);
	add(h, &after);
}
