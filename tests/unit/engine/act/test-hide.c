#include "engine/act/hide-i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/act/acts-i.h"
#include "engine/find/hidden-i.h"
#include "engine/host/host-i.h"
#include "tests/lib/stock.h"

int __real_hidden_get(struct store *s, const char *clone, struct hidden *ret, struct err *err);
int __wrap_hidden_get(struct store *s, const char *clone, struct hidden *ret, struct err *err);

static bool disk_fails;
static struct host *removing; /* clone `c`, just before its list is looked at */

static void remove_now(void)
{
	struct task task = task_of(TAKE_PTR(removing));
	struct engine_removed removed;
	struct err err = { 0 };

	CHECK_OK(clone_remove(&task, "c", false, &removed, &err), &err);
}

int __wrap_hidden_get(struct store *s, const char *clone, struct hidden *ret, struct err *err)
{
	if (removing && strcmp(clone, "c") == 0)
		remove_now();
	return disk_fails ? err_set(err, -EIO, "the disk fails")
			  : __real_hidden_get(s, clone, ret, err);
}

/* A store as cowfsd has it open. */
static struct host *host_at(const char *path)
{
	struct store *s = stock_open(path, STORE_CREATE);
	struct err err = { 0 };
	struct host *h;

	CHECK_OK(host_new(path, s, &h, &err), &err);
	return h;
}

static struct clone make_clone(struct batch *b, const char *name, int64_t created)
{
	struct clone c = { .root = stock_put_root(b, name), .created = created };
	struct err err = { 0 };

	c.name = strdup(name);
	CHECK(c.name);
	CHECK_OK(catalog_id_new(&c.project, &err), &err);
	CHECK_OK(clone_put(b, &c, REF_NEW, &err), &err);
	return c;
}

static void put_clone(struct host *h, const char *name, int64_t created)
{
	struct batch *b = stock_begin(h->store);
	struct clone c = make_clone(b, name, created);

	stock_commit(b);
	batch_end(b);
	clone_done(&c);
}

static int try_hide(struct host *h, const char *clone, const uint64_t *list, size_t n,
		    struct err *err)
{
	const struct hidden more = { .numbers = { (uint64_t *)(uintptr_t)list, n } };
	struct task task = task_of(h);

	return hide_add(&task, clone, &more, err);
}

static void hide(struct host *h, const char *clone, const uint64_t *list, size_t n)
{
	struct err err = { 0 };

	CHECK_OK(try_hide(h, clone, list, n, &err), &err);
}

static void check_hidden(struct host *h, const char *name, const uint64_t *want, size_t n)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(hidden_done) struct hidden got = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_find(h->store, name, &clone, &err), &err);
	CHECK_OK(hidden_load(h->store, &clone, &got, &err), &err);
	CHECK_EQ(got.numbers.n, n);
	if (n > 0)
		CHECK_MEM(got.numbers.list, n * sizeof(*want), want, n * sizeof(*want));
}

TEST(numbers_of_several_runs_are_kept_until_the_clone_goes)
{
	static const uint64_t one[] = { 3, 7 }, two[] = { 5, 7 }, all[] = { 3, 5, 7 };
	const char *path = test_path("several");
	CLEANUP(host_free_p) struct host *h = host_at(path);
	struct engine_removed removed;
	struct err err = { 0 };
	struct task task;

	put_clone(h, "c", 1);
	check_hidden(h, "c", NULL, 0);
	hide(h, "c", one, 2);
	hide(h, "c", two, 2);
	host_free(TAKE_PTR(h));
	h = host_at(path);
	check_hidden(h, "c", all, 3);
	task = task_of(h);
	CHECK_OK(clone_remove(&task, "c", false, &removed, &err), &err);
	CHECK_EQ(hidden_get(h->store, "c", &(struct hidden){ 0 }, &err), -ENOENT);
	CHECK_EQ(try_hide(h, "c", one, 2, &err), -ENOENT);
}

TEST(a_list_of_an_earlier_clone_of_that_name_counts_no_more)
{
	static const uint64_t one[] = { 3 }, two[] = { 4 };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("earlier"));
	struct batch *b;
	struct err err = { 0 };

	put_clone(h, "c", 1);
	hide(h, "c", one, 1);
	b = stock_begin(h->store);
	CHECK_OK(ref_delete(b, REF_CLONE, "c", 1, &err), &err);
	stock_commit(b);
	batch_end(b);
	put_clone(h, "c", 2);
	check_hidden(h, "c", NULL, 0);
	hide(h, "c", two, 1);
	check_hidden(h, "c", two, 1);
}

TEST(a_clone_of_a_clone_begins_with_its_list)
{
	static char from[] = "c";
	static const uint64_t one[] = { 3 };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("inherited"));
	struct err err = { 0 };
	struct batch *b;

	put_clone(h, "c", 5);
	hide(h, "c", one, 1);
	b = stock_begin(h->store);
	for (int i = 0; i < 3; i++) {
		/* Of the clone; of an earlier clone of that name; of the project. */
		const struct snapshot start = { .clone = i < 2 ? from : NULL,
						.created = i == 0 ? 6 : 4 };
		char name[16];

		snprintf(name, sizeof(name), "d%d", i);
		CLEANUP(clone_done) struct clone c = make_clone(b, name, 7);
		CHECK_OK(hide_inherit(h->store, b, &start, &c, &err), &err);
	}
	stock_commit(b);
	batch_end(b);
	check_hidden(h, "d0", one, 1);
	check_hidden(h, "d1", NULL, 0);
	check_hidden(h, "d2", NULL, 0);
}

TEST(a_clone_that_gets_the_state_of_another_has_both_lists)
{
	static char from[] = "c";
	static const uint64_t one[] = { 3, 4 }, two[] = { 4, 5 }, all[] = { 3, 4, 5 };
	const struct snapshot to = { .clone = from, .created = 6 };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("both"));
	CLEANUP(clone_done) struct clone d = { 0 };
	struct err err = { 0 };
	struct batch *b;

	put_clone(h, "c", 5);
	put_clone(h, "d", 5);
	hide(h, "c", one, 2);
	hide(h, "d", two, 2);
	CHECK_OK(clone_find(h->store, "d", &d, &err), &err);
	b = stock_begin(h->store);
	CHECK_OK(hide_inherit(h->store, b, &to, &d, &err), &err);
	stock_commit(b);
	batch_end(b);
	check_hidden(h, "c", one, 2);
	check_hidden(h, "d", all, 3);
}

/* A snapshot of the clone, with a tag if there is a name for that. */
static struct snapshot put_snapshot(struct batch *b, const struct clone *c, char *name)
{
	static char message[] = "";
	struct snapshot s = { .clone = c->name,
			      .message = message,
			      .created = c->created + 1,
			      .project = c->project };
	struct tag tag = { .name = name };
	struct err err = { 0 };

	s.root = c->root;
	CHECK_OK(catalog_id_new(&s.id, &err), &err);
	tag.snapshot = s.id;
	CHECK_OK(snapshot_put(b, &s, REF_NEW, &err), &err);
	if (name)
		CHECK_OK(tag_put(b, &tag, REF_NEW, &err), &err);
	return s;
}

/* A new clone of it has this list. */
static void check_hidden_of(struct host *h, const struct snapshot *s, const char *clone,
			    const uint64_t *want, size_t n)
{
	struct batch *b = stock_begin(h->store);
	CLEANUP(clone_done) struct clone d = make_clone(b, clone, s->created + 1);
	struct err err = { 0 };

	CHECK_OK(hide_inherit(h->store, b, s, &d, &err), &err);
	stock_commit(b);
	batch_end(b);
	check_hidden(h, clone, want, n);
}

TEST(a_snapshot_that_outlives_its_clone_keeps_the_list)
{
	static char name[] = "kept", fetched[] = "fetched";
	static uint64_t one[] = { 3, 7 }, theirs[] = { 4 };
	const struct hidden own = { .numbers = { theirs, 1 } };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("outlives"));
	CLEANUP(clone_done) struct clone c = { 0 };
	struct snapshot stays, goes, came;
	struct hidden got = { 0 };
	struct engine_removed removed;
	struct err err = { 0 };
	struct task task = task_of(h);
	struct batch *b;

	put_clone(h, "c", 5);
	hide(h, "c", one, 2);
	CHECK_OK(clone_find(h->store, "c", &c, &err), &err);
	b = stock_begin(h->store);
	stays = put_snapshot(b, &c, name);
	goes = put_snapshot(b, &c, NULL);
	came = put_snapshot(b, &c, fetched);
	CHECK_OK(hidden_put_of(b, &came.id, &own, &err), &err);
	stock_commit(b);
	batch_end(b);
	CHECK_OK(clone_remove(&task, "c", false, &removed, &err), &err);
	CHECK_EQ(removed.snapshots, 1);
	CHECK_EQ(hidden_load_of(h->store, &goes, &got, &err), 0);
	check_hidden_of(h, &stays, "d", one, 2);
	check_hidden_of(h, &came, "e", theirs, 1);
}

TEST(a_list_is_found_while_the_clone_leaves_it_to_the_snapshot)
{
	static char name[] = "kept";
	static const uint64_t one[] = { 3 };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("leaves"));
	CLEANUP(clone_done) struct clone c = { 0 };
	CLEANUP(hidden_done) struct hidden got = { 0 };
	struct err err = { 0 };
	struct snapshot stays;
	struct batch *b;

	put_clone(h, "c", 5);
	hide(h, "c", one, 1);
	CHECK_OK(clone_find(h->store, "c", &c, &err), &err);
	b = stock_begin(h->store);
	stays = put_snapshot(b, &c, name);
	stock_commit(b);
	batch_end(b);
	removing = h;
	CHECK_EQ(hidden_load_of(h->store, &stays, &got, &err), 1);
	CHECK_EQ(got.numbers.n, 1);
}

TEST(a_list_that_cannot_be_read_now_is_not_lost)
{
	static const uint64_t one[] = { 3 };
	CLEANUP(host_free_p) struct host *h = host_at(test_path("unread"));
	struct task task = task_of(h);
	struct engine_removed removed;
	struct err err = { 0 };

	put_clone(h, "c", 1);
	hide(h, "c", one, 1);
	disk_fails = true;
	CHECK_EQ(clone_remove(&task, "c", false, &removed, &err), -EIO);
	disk_fails = false;
	check_hidden(h, "c", one, 1);
}

static void note(const char *text, void *ctx)
{
	snprintf(ctx, 512, "%s", text);
}

TEST(a_damaged_list_goes_with_its_clone_and_one_is_told)
{
	const struct ref damaged = {
		.kind = REF_HIDDEN, .name = "c", .name_len = 1, .value = "\1", .value_len = 1
	};
	CLEANUP(host_free_p) struct host *h = host_at(test_path("damaged"));
	struct task task = task_of(h);
	struct engine_removed removed;
	struct hidden unused = { 0 };
	char told[512] = "";
	struct err err = { 0 };
	struct batch *b;

	task.engine.warn = note;
	task.engine.warn_ctx = told;
	put_clone(h, "c", 1);
	b = stock_begin(h->store);
	CHECK_OK(ref_put(b, &damaged, REF_REPLACE, &err), &err);
	stock_commit(b);
	batch_end(b);
	CHECK_OK(clone_remove(&task, "c", false, &removed, &err), &err);
	CHECK_EQ(hidden_get(h->store, "c", &unused, &err), -ENOENT);
	CHECK_HAS(told, "clone 'c' is removed, but which files its runs must not see is lost");
	CHECK_HAS(told, "list of hidden files 'c'");
}

static void check_malformed(const char *text)
{
	struct hidden got = { 0 };
	struct err err = { 0 };

	CHECK_EQ(hidden_read(text, &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "is malformed");
	CHECK(!got.numbers.list && !got.dirs.list);
}

TEST(a_list_travels_as_text)
{
	static uint64_t files[] = { 0, 7, UINT64_MAX }, dirs[] = { 0x4d2 };
	struct hidden h = { .numbers = { files, 3 }, .dirs = { dirs, 1 } };
	CLEANUP(hidden_done) struct hidden got = { 0 };
	AUTO_FREE char *text = NULL, *none = NULL;
	struct err err = { 0 };

	CHECK_OK(hidden_write(&h, &text, &err), &err);
	CHECK_STR(text, "0 7 fffffffffffffff8/4d2");
	CHECK_OK(hidden_read(text, &got, &err), &err);
	CHECK_MEM(got.numbers.list, got.numbers.n * sizeof(*files), files, sizeof(files));
	CHECK_MEM(got.dirs.list, got.dirs.n * sizeof(*dirs), dirs, sizeof(dirs));
	CHECK_OK(hidden_write(&(struct hidden){ 0 }, &none, &err), &err);
	CHECK(!none);
	/* Twice, not rising, too large, no numbers, a third list. */
	check_malformed("3 0/");
	check_malformed("ffffffffffffffff 1/");
	check_malformed("10000000000000000/");
	check_malformed("3  4/");
	check_malformed("3 x/");
	check_malformed("3/4/5");
}

TEST(a_list_of_the_longest_kind_can_travel_or_is_refused)
{
	AUTO_FREE uint64_t *list = calloc(RECORD_NUMBERS_MAX, sizeof(*list));
	struct hidden h = { .numbers = { list, RECORD_NUMBERS_MAX } };
	AUTO_FREE char *text = NULL;
	char *unused = NULL;
	struct err err = { 0 };

	CHECK(list);
	/* 10 bytes each, and 14. */
	for (size_t i = 0; i < RECORD_NUMBERS_MAX; i++)
		list[i] = i << 32;
	CHECK_OK(hidden_write(&h, &text, &err), &err);
	for (size_t i = 0; i < RECORD_NUMBERS_MAX; i++)
		list[i] = i << 48;
	CHECK_EQ(hidden_write(&h, &unused, &err), -E2BIG);
	CHECK(!unused);
}

TEST(a_text_with_more_numbers_than_a_clone_can_have_is_refused)
{
	CLEANUP(hidden_done) struct hidden got = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };

	for (size_t i = 1; i < RECORD_NUMBERS_MAX; i++)
		CHECK_OK(buf_append_str(&text, "1 "), &err);
	CHECK_OK(buf_append_str(&text, "/1"), &err);
	CHECK_OK(hidden_read(buf_str(&text), &got, &err), &err);
	CHECK_EQ(got.numbers.n + got.dirs.n, RECORD_NUMBERS_MAX);
	CHECK_OK(buf_append_str(&text, " 1"), &err);
	check_malformed(buf_str(&text));
}

TEST(a_list_that_would_be_too_long_is_refused)
{
	CLEANUP(host_free_p) struct host *h = host_at(test_path("long"));
	AUTO_FREE uint64_t *list = calloc(RECORD_NUMBERS_MAX + 1, sizeof(*list));
	struct err err = { 0 };

	CHECK(list);
	for (size_t i = 0; i <= RECORD_NUMBERS_MAX; i++)
		list[i] = i;
	put_clone(h, "c", 1);
	hide(h, "c", list, RECORD_NUMBERS_MAX);
	CHECK_EQ(try_hide(h, "c", list + RECORD_NUMBERS_MAX, 1, &err), -E2BIG);
	CHECK_HAS(err.msg, "more than 65536 files were hidden from runs of clone 'c': promote");
	CHECK_HAS(err.msg, "a new clone of the project");
	check_hidden(h, "c", list, RECORD_NUMBERS_MAX);
}

TEST_MAIN("hide")
