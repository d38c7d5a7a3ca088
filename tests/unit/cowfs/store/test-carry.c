/*
 * Chunks that meta.db carries until chunks.db is synced.  A power cut may take them from chunks.db
 * when the process that put them is gone; here a process that ends without closing, and SQL.
 */
#include "cowfs/store/carry-i.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define TEXT      "a text that a power cut took"
#define FEW_NOISE 4 /* blocks that a commit may carry; more than twice as many it may not */

static int64_t count_carried(const char *path)
{
	return damage_ask(path, "meta.db", "SELECT count(*) FROM ref WHERE kind = %d",
			  (int)REF_CARRIED);
}

static int64_t carried_bytes(const char *path)
{
	return damage_ask(path, "meta.db",
			  "SELECT coalesce(sum(length(value)), 0) FROM ref WHERE kind = %d",
			  (int)REF_CARRIED);
}

static int64_t count_chunks(const char *path)
{
	return damage_ask(path, "chunks.db", "SELECT count(*) FROM chunk");
}

/* A snapshot "s" by a process that ends without a word; what it wrote to chunks.db is lost. */
static struct object_id cut_power(const char *path)
{
	struct object_id root;
	int status;
	pid_t pid;

	store_close(stock_open(path, STORE_CREATE));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		stock_snapshot(stock_open(path, STORE_WRITE), "s", TEXT);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK_EQ(count_carried(path), 1);
	CHECK_EQ(count_chunks(path), 1);
	damage_sql(path, "chunks.db", "DELETE FROM chunk");
	{
		CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_READ);

		root = stock_root(s, "s");
	}
	return root;
}

TEST(what_a_power_cut_took_from_the_chunks_is_put_back)
{
	const char *path = test_path("back");
	const struct object_id root = cut_power(path);
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_WRITE);

	CHECK_EQ(count_chunks(path), 1);
	CHECK_EQ(count_carried(path), 0);
	CHECK(stock_root_is_whole(s, &root, TEXT));
	stock_check_clean(s);
}

TEST(a_reader_who_may_not_put_it_back_reads_the_copy)
{
	const char *path = test_path("reader");
	const struct object_id root = cut_power(path);
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_READ);

	CHECK(stock_root_is_whole(s, &root, TEXT));
	CHECK_EQ(count_chunks(path), 0);
	CHECK_EQ(count_carried(path), 1);
}

TEST(a_damaged_copy_is_not_put_back)
{
	const char *path = test_path("damaged");

	cut_power(path);
	damage_sql(path, "meta.db",
		   "UPDATE ref SET value = zeroblob(length(value)) WHERE kind = %d",
		   (int)REF_CARRIED);
	store_close(stock_open(path, STORE_WRITE));
	CHECK_EQ(count_chunks(path), 0);
}

/* --- how much ----------------------------------------------------------------------------------- */

/* One commit of so many new blocks that do not compress, and of a name. */
static void commit_noise(struct store *s, unsigned blocks)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	static uint8_t block[CHUNK_SIZE_MAX];
	static uint64_t seed;
	struct object_id root;
	char name[32];

	for (unsigned i = 0; i < blocks; i++) {
		stock_noise(block, ++seed);
		stock_put(b, OBJECT_CHUNK, block, sizeof(block));
	}
	snprintf(name, sizeof(name), "n%u", (unsigned)seed);
	root = stock_put_root(b, name);
	stock_name(b, REF_SNAPSHOT, name, &root, REF_NEW);
	stock_commit(b);
}

TEST(many_new_chunks_are_synced_and_not_carried)
{
	const char *path = test_path("many");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

	_Static_assert((uint64_t)FEW_NOISE * CHUNK_SIZE_MAX < CARRY_COMMIT_MAX, "few enough");
	commit_noise(s, FEW_NOISE);
	CHECK_EQ(count_carried(path), FEW_NOISE + 1);
	/* They take the place of a sync; once there is one, the next commit drops the copies. */
	commit_noise(s, (unsigned)(CARRY_COMMIT_MAX / CHUNK_SIZE_MAX) + 1);
	CHECK_EQ(count_carried(path), 0);
}

TEST(no_more_is_carried_than_the_limit_however_many_commits)
{
	const char *path = test_path("limit");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	const unsigned commits = 1 + (unsigned)(CARRY_MAX / (FEW_NOISE * CHUNK_SIZE_MAX));
	int64_t most = 0, last = 0;

	for (unsigned i = 0; i < commits; i++) {
		commit_noise(s, FEW_NOISE);
		last = carried_bytes(path);
		most = last > most ? last : most;
		CHECK(last <= (int64_t)CARRY_MAX);
	}
	CHECK(most > (int64_t)CARRY_MAX / 2);
	CHECK(last < most);
}

TEST(closing_leaves_nothing_carried)
{
	const char *path = test_path("closed");
	struct store *s = stock_open(path, STORE_CREATE);

	stock_snapshot(s, "s", TEXT);
	CHECK_EQ(count_carried(path), 1);
	store_close(s);
	CHECK_EQ(count_carried(path), 0);
	CHECK_EQ(count_chunks(path), 1);
}

TEST_MAIN("carry")
