/*
 * Whether one thread n_puts what was frozen or several do must not show, but in who was busy.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/crew.h"
#include "cowfs/core/persist-i.h"
#include "cowfs/core/traffic.h"
#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

/* --- who n_puts --------------------------------------------------------------------------- */

static pthread_t caller;
static _Atomic unsigned n_puts, n_of_others;
static unsigned fails_at;      /* the number of the put; 0: none */
static void (*at_first)(void); /* done by the first put */

int __real_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);
int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);

int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err)
{
	if (!pthread_equal(pthread_self(), caller))
		n_of_others++;
	if (++n_puts == 1 && at_first)
		at_first();
	if (n_puts == fails_at)
		return err_set(err, -EIO, "the put that was to fail");
	return __real_batch_put(b, kind, data, len, ret_id, err);
}

static void count_from_here(void)
{
	caller = pthread_self();
	n_puts = n_of_others = 0;
}

/* --- what is frozen --------------------------------------------------------------------- */

#define WIDE 300 /* directories beside each other, and files in one */
#define DEEP 60  /* directories in each other, each with files */

static void open_many(struct live *v, const char *name)
{
	*v = (struct live){ .options.persist_ms = 3600 * 1000 };
	live_open(v, name);
}

/* Of each kind that names another, or may be the same as another. */
static void make_odd(struct live *v)
{
	uint64_t node;

	live_put(v, "linked", "two names");
	CHECK_EQ(live_try_link(v, "linked", "flat/linked"), 0);
	CHECK_EQ(live_try_symlink(v, "linked", "symlink"), 0);
	CHECK_EQ(live_try_truncate(v, "linked", 200000), 0);
	CHECK_EQ(live_try_write(v, "linked", 130000, "behind a hole", 13), 0);
	live_mkdir(v, "empty");
	node = live_hold(v, "linked");
	CHECK_EQ(layer_setxattr(v->l, &call, node, "user.a", "b", 1, XATTR_CREATE, NULL), 0);
	live_drop(v, node);
}

static void make_many(struct live *v, const char *text)
{
	char path[8 * DEEP], data[64];
	int len = 0;

	for (int i = 0; i < WIDE; i++) {
		snprintf(data, sizeof(data), "%s %d", text, i % 7 ? i : 0);
		snprintf(path, sizeof(path), "flat/%d", i);
		live_put(v, path, data);
		snprintf(path, sizeof(path), "wide/%d/of-it", i);
		live_put(v, path, data);
	}
	for (int i = 0; i < DEEP; i++) {
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%sd", i ? "/" : "");
		snprintf(path + len, sizeof(path) - (size_t)len, "/file");
		snprintf(data, sizeof(data), "%s, so deep: %d", text, i);
		live_put(v, path, data);
	}
}

static void make_dirs(struct live *v)
{
	char path[8 * DEEP];
	int len = 0;

	live_mkdir(v, "flat");
	live_mkdir(v, "wide");
	for (int i = 0; i < WIDE; i++) {
		snprintf(path, sizeof(path), "wide/%d", i);
		live_mkdir(v, path);
	}
	for (int i = 0; i < DEEP; i++) {
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%sd", i ? "/" : "");
		live_mkdir(v, path);
	}
}

static int nothing_more(struct batch *b, const struct layer_state *state, void *ctx,
			struct err *err)
{
	(void)b;
	(void)state;
	(void)ctx;
	(void)err;
	return 0;
}

/* A look, which leaves all to be put again; several threads do it. */
static struct object_id root_of_look(struct live *v)
{
	struct layer_state now;
	struct err err = { 0 };

	CHECK_OK(layer_look(v->l, nothing_more, NULL, &now, &err), &err);
	return now.id;
}

static struct object_id root_of_aside(struct live *v)
{
	struct layer_state now;
	struct err err = { 0 };

	CHECK_OK(persist_aside(v->l, &err), &err);
	CHECK_OK(layer_persist(v->l, BATCH_SAFE, NULL, NULL, &now, &err), &err);
	return now.id;
}

/* --- the tests -------------------------------------------------------------------------- */

TEST(several_threads_put_the_root_that_one_puts)
{
	struct object_id by_many, by_one;
	struct live v;

	open_many(&v, "freeze-same");
	make_dirs(&v);
	make_many(&v, "first");
	make_odd(&v);
	for (int round = 0; round < 3; round++) {
		by_many = root_of_look(&v);
		by_one = root_of_aside(&v);
		CHECK(object_id_equal(&by_many, &by_one));
		make_many(&v, round ? "third" : "second");
	}
	live_close(&v);
}

TEST(all_is_there_after_it_was_put_by_several)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct live v;

	open_many(&v, "freeze-there");
	make_dirs(&v);
	make_many(&v, "text");
	make_odd(&v);
	live_dump(&v, &before, true);
	live_persist(&v);
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_MEM(before.data, before.len, after.data, after.len);
	live_close(&v);
}

TEST(who_waits_has_all_processors_and_nobody_else_has)
{
	struct live v;

	open_many(&v, "freeze-busy");
	make_dirs(&v);
	make_many(&v, "text");
	count_from_here();
	root_of_look(&v);
	CHECK(n_puts > 2 * WIDE);
	if (crew_size(n_puts) > 1)
		CHECK(n_of_others > 0);
	count_from_here();
	root_of_aside(&v);
	CHECK(n_puts > 2 * WIDE);
	CHECK_EQ(n_of_others, 0);

	live_put(&v, "flat/0", "little is no work for two");
	count_from_here();
	live_persist(&v);
	CHECK(n_puts > 0);
	CHECK_EQ(n_of_others, 0);
	live_close(&v);
}

TEST(processor_time_of_threads_that_help_is_charged_to_the_clone)
{
	struct live v;

	open_many(&v, "freeze-charged");
	make_dirs(&v);
	make_many(&v, "text");
	/* Whoever puts all of it alone knows what that took. */
	root_of_aside(&v);
	CHECK_EQ(*traffic_work(v.l), 0);
	make_many(&v, "other text");
	count_from_here();
	root_of_look(&v);
	CHECK(n_of_others == 0 || *traffic_work(v.l) > 0);
	live_close(&v);
}

TEST(processor_time_of_the_committer_is_charged_to_the_clone)
{
	struct live v = { .options.persist_ms = 20 };

	live_open(&v, "freeze-committer");
	live_put(&v, "file", "text");
	WAIT_FOR(*traffic_work(v.l) > 0);
	live_close(&v);
}

static struct live *begun;
static pthread_t other;

static void *look_too(void *unused)
{
	(void)unused;
	root_of_look(begun);
	return NULL;
}

static void have_it_waited_for(void)
{
	CHECK_EQ(pthread_create(&other, NULL, look_too, NULL), 0);
	WAIT_FOR(begun->l->waiting > 0);
}

TEST(who_comes_to_wait_for_what_was_begun_makes_it_faster)
{
	struct err err = { 0 };
	struct live v;

	open_many(&v, "freeze-comes");
	make_dirs(&v);
	make_many(&v, "text");
	begun = &v;
	count_from_here();
	at_first = have_it_waited_for;
	CHECK_OK(persist_aside(v.l, &err), &err);
	at_first = NULL;
	CHECK_EQ(pthread_join(other, NULL), 0);
	/* The caller that waited found little left but the root. */
	CHECK(n_puts > 2 * WIDE && n_puts < 4 * WIDE);
	if (crew_size(n_puts) > 1)
		CHECK(n_of_others > 10);
	live_close(&v);
}

TEST(a_put_that_fails_anywhere_is_told_and_nothing_is_settled)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct layer_state now;
	struct object_id first;
	struct live v;

	open_many(&v, "freeze-fails");
	make_dirs(&v);
	first = live_persist(&v);
	make_many(&v, "text");
	live_dump(&v, &before, true);
	for (unsigned at = 1; at < 3 * WIDE; at += 97) {
		struct err err = { 0 };

		count_from_here();
		fails_at = at;
		CHECK_EQ(layer_persist(v.l, BATCH_SAFE, NULL, NULL, &now, &err), -EIO);
		CHECK_STR(err.msg, "clone 'work': the put that was to fail");
		fails_at = 0;
	}
	now.id = live_persist(&v);
	CHECK(!object_id_equal(&now.id, &first));
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_MEM(before.data, before.len, after.data, after.len);
	live_close(&v);
}

/* The directory, the top and the root. */
static void rename_and_count(struct live *v, const char *from, const char *to)
{
	CHECK_EQ(live_try_rename(v, from, to, 0), 0);
	count_from_here();
	live_persist(v);
	CHECK_EQ(n_puts, 3);
}

/* As for each fsync of a program that syncs and renames file after file. */
TEST(a_rename_puts_the_directories_above_it_and_nothing_else)
{
	struct live v;

	open_many(&v, "freeze-rename");
	live_mkdir(&v, "dir");
	live_put(&v, "dir/a", "text");
	live_persist(&v);
	rename_and_count(&v, "dir/a", "dir/b");
	live_put(&v, "linked", "two names");
	CHECK_EQ(live_try_link(&v, "linked", "dir/linked"), 0);
	live_persist(&v);
	rename_and_count(&v, "dir/b", "dir/c");
	live_close(&v);
}

TEST_MAIN("freeze-put")
