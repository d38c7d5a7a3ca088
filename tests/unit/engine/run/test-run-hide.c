#include "engine/run/run-hide.h"

#include "cowfs/store/catalog.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/ask/ask-stage-i.h"
#include "engine/find/hidden-i.h"
#include "tests/lib/live.h"

/* The clone, and cowfsd, which the linker puts in the place of the real one (--wrap). */
static struct {
	struct live live;
	unsigned looks;          /* so many states were held */
	unsigned asked;          /* so often something was kept */
	void (*meanwhile)(void); /* called between the first look and the second */
} t;

int __wrap_engine_store(struct engine *e, enum store_mode mode, struct store **ret,
			struct err *err);
int __wrap_hold_ask_names(struct engine *e, const char *clone, uint64_t ms, struct control *c,
			  struct object_id *ret, struct err *err);
int __wrap_stage_ask_hide(struct engine *e, const char *clone, const struct hidden *more,
			  struct err *err);

int __wrap_engine_store(struct engine *e, enum store_mode mode, struct store **ret, struct err *err)
{
	*ret = t.live.store;
	return 0;
}

int __wrap_hold_ask_names(struct engine *e, const char *clone, uint64_t ms, struct control *c,
			  struct object_id *ret, struct err *err)
{
	if (++t.looks == 2 && t.meanwhile)
		t.meanwhile();
	*ret = live_persist(&t.live);
	return 0;
}

static void load_kept(struct hidden *ret)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(t.live.store, "work", &clone, &err), &err);
	CHECK_OK(hidden_load(t.live.store, &clone, ret, &err), &err);
}

int __wrap_stage_ask_hide(struct engine *e, const char *clone, const struct hidden *more,
			  struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(t.live.store);

	CHECK_STR(clone, "work");
	CHECK(more->numbers.n <= STAGE_HIDDEN_MAX && more->dirs.n <= STAGE_HIDDEN_MAX);
	t.asked++;
	load_kept(&h);
	CHECK_EQ(hidden_add(&h, more), 1);
	CHECK_OK(hidden_put(b, &h, err), err);
	stock_commit(b);
	return 0;
}

/* Look through the clone as a run does. */
static size_t look(void (*meanwhile)(void), uint64_t **ret)
{
	const struct stage stage = { .clone = (char[]){ "work" }, .project = (char[]){ "/p" } };
	const struct run_hiding how = { .stage = &stage, .shown = "/", .clone_fd = -1 };
	struct err err = { 0 };
	size_t n;

	t.looks = t.asked = 0;
	t.meanwhile = meanwhile;
	CHECK_OK(run_hide_numbers(&how, ret, &n, &err), &err);
	return n;
}

static void begin_another_run(void)
{
	struct err err = { 0 };
	uint64_t number;

	live_put(&t.live, "e/.env", "secret");
	number = live_stat(&t.live, "e/.env").st_ino;
	CHECK_OK(__wrap_stage_ask_hide(NULL, "work", &(struct hidden){ .numbers = { &number, 1 } },
				       &err),
		 &err);
	CHECK_EQ(live_try_rename(&t.live, "e", "vendor/e", 0), 0);
}

TEST(what_another_run_hid_and_moved_meanwhile_is_hidden)
{
	AUTO_FREE uint64_t *got = NULL;

	live_open(&t.live, "meanwhile");
	live_mkdir(&t.live, "e");
	live_mkdir(&t.live, "vendor");
	CHECK_EQ(look(begin_another_run, &got), 1);
	CHECK_EQ(got[0], live_stat(&t.live, "vendor/e/.env").st_ino);
	live_close(&t.live);
}

TEST(what_is_in_hidden_directories_is_kept_once_and_in_pieces)
{
	CLEANUP(hidden_done) struct hidden kept = { 0 };

	live_open(&t.live, "pieces");
	for (unsigned i = 0; i < 5 * 1000; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d%u", i / 1000);
		if (i % 1000 == 0) {
			live_mkdir(&t.live, path);
			strcat(path, "/.ssh");
			live_mkdir(&t.live, path);
		}
		snprintf(path, sizeof(path), "d%u/.ssh/%u", i / 1000, i);
		live_put(&t.live, path, "secret");
	}
	for (unsigned i = 0; i < 2; i++) {
		AUTO_FREE uint64_t *got = NULL;

		CHECK_EQ(look(NULL, &got), 5);
		CHECK_EQ(t.asked, i == 0 ? 2 : 0);
	}
	load_kept(&kept);
	CHECK_EQ(kept.numbers.n, 5 + 5 * 1000);
	live_close(&t.live);
}

TEST_MAIN("run-hide")
