/* Large files that are changed while they are promised, beside other clones. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cowfs/core/partly-fixture.h"

#define PATIENCE_MS 20000

static void set_gate(struct behind *b, bool shut)
{
	pthread_mutex_lock(&b->lock);
	b->shut = shut;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static void await_keeper(struct behind *b)
{
	int r = 0;

	pthread_mutex_lock(&b->lock);
	while (!b->waits && r == 0)
		r = sys_cond_wait_ms(&b->changed, &b->lock, PATIENCE_MS);
	pthread_mutex_unlock(&b->lock);
	CHECK_EQ(r, 0);
}

/* Another clone of the same state. */
static struct live open_other(struct live *v)
{
	CLEANUP(clone_done) struct clone work = { 0 };
	CLEANUP(batch_end_p) struct batch *batch = stock_begin(v->store);
	struct live other = { .store = v->store, .layers = v->layers };
	struct clone clone = { .name = (char[]){ "other" } };
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &work, &err), &err);
	clone.root = work.root;
	CHECK_OK(clone_put(batch, &clone, REF_NEW, &err), &err);
	stock_commit(batch);
	CHECK_OK(layer_open(v->layers, "other", &other.l, &err), &err);
	return other;
}

static void await_persists(struct live *v, uint64_t n)
{
	struct layers_stats stats;

	for (unsigned ms = 0; layers_stats(v->layers, &stats), stats.persists < n; ms++) {
		CHECK(ms < PATIENCE_MS);
		usleep(1000);
	}
}

/* What a clone lost to a kill -9 would else be as much as the time that the file takes. */
TEST(a_clone_that_waits_for_its_promise_keeps_no_other_from_being_persisted)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 20 };
	CLEANUP(behind_done) struct behind b;
	struct live other;
	struct err err = { 0 };

	begin(&v, &b, "apart");
	other = open_other(&v);
	set_gate(&b, true);
	CHECK_EQ(live_try_write(&v, "big", 10, "mine", 4), 0);
	await_keeper(&b);
	live_mkdir(&other, "new");
	await_persists(&v, 1);
	/* As kill -9 would end it; the other one still waits. */
	layer_discard(other.l);
	CHECK(b.waits && b.kept == 0);
	CHECK_OK(layer_open(v.layers, "other", &other.l, &err), &err);
	CHECK(S_ISDIR(live_stat(&other, "new").st_mode));
	layer_discard(other.l);
	/* Its own change is persisted as soon as it can be. */
	set_gate(&b, false);
	await_persists(&v, 2);
	CHECK_EQ(b.kept, 1);
}

TEST_MAIN("partly-apart")
