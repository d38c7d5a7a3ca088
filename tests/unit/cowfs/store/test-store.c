#include "cowfs/store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/path.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

static const enum store_mode modes[] = { STORE_READ, STORE_WRITE, STORE_CREATE };

/* A closed store with stock_fill() in it. */
static const char *filled_store(const char *name)
{
	const char *path = test_path(name);
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

	stock_fill(s);
	return path;
}

static void check_refused(const char *path, enum store_mode mode, int code, const char *why)
{
	struct store *s = NULL;
	struct err err = { 0 };

	CHECK_EQ(store_open(path, mode, &s, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, why);
	CHECK(!s);
}

static bool there(const char *dir, const char *name)
{
	AUTO_FREE char *path = path_join(dir, name);

	CHECK(path);
	return access(path, F_OK) == 0;
}

static void remove_file(const char *dir, const char *name)
{
	AUTO_FREE char *path = path_join(dir, name);

	CHECK(path);
	CHECK_EQ(unlink(path), 0);
}

static void copy_file(const char *from, const char *to, const char *name)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	damage_read(from, name, &bytes);
	damage_write(to, name, bytes.data, bytes.len);
}

/* --- making and opening ----------------------------------------------------------------------- */

TEST(a_store_is_made_once_and_kept_by_every_further_create)
{
	const char *path = test_path("made");
	struct object_key key;
	struct object_id root;

	{
		CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

		CHECK_STR(store_path(s), path);
		CHECK_EQ(stock_rows(s), 0);
		key = *store_key(s);
		root = stock_snapshot(s, "one", "text");
	}
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		CLEANUP(store_close_p) struct store *s = stock_open(path, modes[i]);

		CHECK_MEM(store_key(s), sizeof(key), &key, sizeof(key));
		CHECK(stock_has_snapshot(s, "one"));
		CHECK(stock_root_is_whole(s, &root, "text"));
	}
}

TEST(two_stores_have_two_keys)
{
	CLEANUP(store_close_p) struct store *a = stock_open(test_path("key-a"), STORE_CREATE);
	CLEANUP(store_close_p) struct store *b = stock_open(test_path("key-b"), STORE_CREATE);

	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		CHECK(memcmp(store_key(a)->secret[kind], store_key(b)->secret[kind],
			     OBJECT_SECRET_SIZE) != 0);
		CHECK(kind == 0 || memcmp(store_key(a)->secret[kind], store_key(a)->secret[0],
					  OBJECT_SECRET_SIZE) != 0);
	}
}

static mode_t mode_of(const char *dir, const char *name)
{
	AUTO_FREE char *path = path_join(dir, name);
	struct stat st;

	CHECK(path);
	CHECK_EQ(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

TEST(what_a_store_makes_is_for_its_owner_alone)
{
	static const char *const files[] = { "meta.db",   "meta.db-wal",   "meta.db-shm",
					     "chunks.db", "chunks.db-wal", "chunks.db-shm",
					     "lock" };
	const mode_t old = umask(0);
	const char *path = test_path("modes/a/b");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

	stock_fill(s);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		CHECK_EQ(mode_of(path, files[i]), 0600);
	CHECK_EQ(mode_of(path, "."), 0700);
	CHECK_EQ(mode_of(path, ".."), 0700);
	umask(old);
}

TEST(a_closed_store_is_two_databases_and_a_lock)
{
	static const char want[] = "chunks.db lock meta.db ";
	const char *path = filled_store("closed");
	CLEANUP(buf_done) struct buf names = BUF_INIT;
	static const char *const all[] = { "chunks.db",     "chunks.db-shm", "chunks.db-wal",
					   "chunks.db.new", "lock",          "meta.db",
					   "meta.db-shm",   "meta.db-wal",   "meta.db.new" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (there(path, all[i]))
			CHECK_EQ(buf_printf(&names, "%s ", all[i]), 0);
	CHECK_MEM(names.data, names.len, want, strlen(want));
}

TEST(a_directory_without_a_store_is_refused_and_left_untouched)
{
	const char *empty = test_path("empty"), *full = test_path("full");

	CHECK_EQ(mkdir(empty, 0700), 0);
	CHECK_EQ(mkdir(full, 0700), 0);
	damage_write(full, "letter", "dear all", 8);
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

		damage_survey(full, NULL, &before);
		check_refused(empty, modes[i], -ENOENT, "no store in");
		check_refused(full, modes[i], -ENOENT, full);
		check_refused(test_path("nowhere"), modes[i], -ENOENT, "no store in");
		check_refused(test_path("full/letter"), modes[i], -ENOENT, "no store in");
		damage_survey(full, NULL, &after);
		CHECK_MEM(after.data, after.len, before.data, before.len);
		damage_survey(empty, NULL, &after);
		CHECK_MEM(after.data, after.len, before.data, before.len);
		CHECK(!there(test_dir(), "nowhere"));
	}
}

TEST(a_store_is_made_beside_what_a_directory_holds_already)
{
	const char *path = test_path("beside");
	CLEANUP(buf_done) struct buf letter = BUF_INIT;

	CHECK_EQ(mkdir(path, 0700), 0);
	damage_write(path, "letter", "dear all", 8);
	store_close(stock_open(path, STORE_CREATE));
	damage_read(path, "letter", &letter);
	CHECK_MEM(letter.data, letter.len, "dear all", 8);
}

TEST(a_path_may_hold_whatever_a_path_can_hold)
{
	static const char *const odd[] = { "%41", "a?b=c", "a#b", "a b", "\303\251\377", "x'y\"z" };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		const char *path = test_path(odd[i]);
		struct object_id root;
		struct store *s;

		s = stock_open(path, STORE_CREATE);
		root = stock_snapshot(s, "s", "text");
		store_close(s);
		s = stock_open(path, STORE_READ);
		CHECK(stock_root_is_whole(s, &root, "text"));
		store_close(s);
		CHECK(there(path, "meta.db"));
	}
}

TEST(a_path_that_is_a_file_cannot_become_a_store)
{
	struct store *s = NULL;
	struct err err = { 0 };

	damage_write(test_dir(), "plain", "x", 1);
	CHECK(store_open(test_path("plain"), STORE_CREATE, &s, &err) < 0);
	CHECK_HAS(err.msg, "plain");
}

/* --- half a store ----------------------------------------------------------------------------- */

TEST(a_creation_that_was_cut_short_is_done_again)
{
	const char *path = test_path("cut");
	struct store *s = stock_open(path, STORE_CREATE);

	store_close(s);
	remove_file(path, "meta.db");
	damage_write(path, "meta.db.new", "half", 4);
	damage_write(path, "meta.db.new-wal", "half", 4);
	damage_write(path, "chunks.db.new", "half", 4);
	check_refused(path, STORE_READ, -ENOENT, "no store in");
	check_refused(path, STORE_WRITE, -ENOENT, "no store in");

	s = stock_open(path, STORE_CREATE);
	stock_fill(s);
	store_close(s);
	CHECK(!there(path, "meta.db.new") && !there(path, "meta.db.new-wal"));
	CHECK(!there(path, "chunks.db.new"));
}

/* Content went in and out, and the log of it is still there when the other half disappears. */
TEST(the_log_of_a_lost_store_is_not_taken_for_that_of_the_new_one)
{
	const char *path = test_path("stale-log");
	CLEANUP(buf_done) struct buf log = BUF_INIT;
	struct store *s;

	s = stock_open(path, STORE_CREATE);
	stock_fill(s);
	damage_sql(path, "chunks.db",
		   "DELETE FROM chunk; INSERT INTO setting VALUES(x'7374616c65', x'00', 0)");
	damage_read(path, "chunks.db-wal", &log);
	CHECK(log.len > 0);
	store_close(s);
	remove_file(path, "meta.db");
	damage_write(path, "chunks.db-wal", log.data, log.len);

	s = stock_open(path, STORE_CREATE);
	CHECK_EQ(stock_rows(s), 0);
	CHECK_EQ(damage_ask(path, "chunks.db",
			    "SELECT count(*) FROM setting WHERE name = x'7374616c65'"),
		 0);
	stock_fill(s);
	store_close(s);
	s = stock_open(path, STORE_READ);
	stock_check_clean(s);
	store_close(s);
}

TEST(content_without_its_names_is_refused_and_kept)
{
	const char *path = filled_store("nameless");
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

	remove_file(path, "meta.db");
	damage_read(path, "chunks.db", &before);
	check_refused(path, STORE_READ, -ENOENT, "no store in");
	check_refused(path, STORE_WRITE, -ENOENT, "no store in");
	check_refused(path, STORE_CREATE, -EBADMSG, "has content but its meta.db is missing");
	CHECK(!there(path, "meta.db"));
	damage_read(path, "chunks.db", &after);
	CHECK_MEM(after.data, after.len, before.data, before.len);
}

TEST(names_without_their_content_are_refused_and_nothing_is_made_in_its_place)
{
	const char *path = filled_store("contentless");

	remove_file(path, "chunks.db");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		check_refused(path, modes[i], -EBADMSG, "chunks.db' is missing");
		CHECK(!there(path, "chunks.db"));
	}
}

TEST(a_file_of_another_store_is_refused)
{
	static const char *const files[] = { "meta.db", "chunks.db" };

	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		const char *a = filled_store(f ? "swap-c" : "swap-m");
		const char *b = filled_store(f ? "swap-c2" : "swap-m2");

		copy_file(a, b, files[f]);
		for (size_t i = 0; i < ARRAY_LEN(modes); i++)
			check_refused(b, modes[i], -EBADMSG, "belong to different stores");
	}
}

TEST(the_two_files_cannot_stand_for_each_other)
{
	const char *path = filled_store("mixed-up");
	CLEANUP(buf_done) struct buf chunks = BUF_INIT;

	damage_read(path, "chunks.db", &chunks);
	damage_write(path, "meta.db", chunks.data, chunks.len);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		check_refused(path, modes[i], -EBADMSG, "meta.db");
}

TEST(row_numbers_that_are_used_up_keep_the_store_from_being_written)
{
	const char *path = filled_store("used-up");

	damage_sql(path, "meta.db",
		   "UPDATE object SET seq = 9223372036854775807"
		   " WHERE seq = (SELECT max(seq) FROM object)");
	check_refused(path, STORE_WRITE, -EBADMSG, "row number");
	store_close(stock_open(path, STORE_READ));
}

/* --- one writer ------------------------------------------------------------------------------- */

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check_busy(const char *path, pid_t holder)
{
	const double start = seconds_now();
	char who[32];

	snprintf(who, sizeof(who), "process %ld", (long)holder);
	check_refused(path, STORE_WRITE, -EBUSY, who);
	check_refused(path, STORE_CREATE, -EBUSY, path);
	CHECK(seconds_now() - start < 2);
}

TEST(a_second_writer_is_told_at_once_who_holds_the_store)
{
	const char *path = test_path("busy");
	struct store *s = stock_open(path, STORE_CREATE);

	stock_fill(s);
	check_busy(path, getpid());
	CHECK(stock_has_snapshot(s, "one"));
	stock_snapshot(s, "later", "text");
	store_close(s);
	s = stock_open(path, STORE_WRITE);
	CHECK(stock_has_snapshot(s, "later"));
	store_close(s);
}

/*
 * A process that has the store open, commits a snapshot "held" and waits to be killed.
 * Its other end of the pair is closed with this process, whatever becomes of the test.
 */
static pid_t start_holder(const char *path)
{
	int pair[2];
	char byte;
	pid_t pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct store *s;

		close(pair[0]);
		s = stock_open(path, STORE_CREATE);
		stock_snapshot(s, "held", "text");
		CHECK_EQ(write(pair[1], "r", 1), 1);
		IGNORE_RESULT(read(pair[1], &byte, 1), "it only waits");
		_exit(0);
	}
	close(pair[1]);
	CHECK_EQ(read(pair[0], &byte, 1), 1);
	return pid;
}

TEST(the_store_is_free_again_when_its_holder_dies)
{
	const char *path = test_path("holder");
	const pid_t pid = start_holder(path);
	struct store *s;
	int status;

	check_busy(path, pid);
	s = stock_open(path, STORE_READ);
	CHECK(stock_has_snapshot(s, "held"));
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(stock_has_snapshot(s, "held"));
	store_close(s);

	s = stock_open(path, STORE_WRITE);
	CHECK(stock_has_snapshot(s, "held"));
	stock_snapshot(s, "after", "text");
	check_busy(path, getpid());
	store_close(s);
}

TEST(a_failed_open_does_not_keep_the_store)
{
	const char *path = filled_store("failed-open");
	CLEANUP(buf_done) struct buf chunks = BUF_INIT;

	damage_read(path, "chunks.db", &chunks);
	damage_write(path, "chunks.db", "", 0);
	check_refused(path, STORE_WRITE, -EBADMSG, "chunks.db");
	damage_write(path, "chunks.db", chunks.data, chunks.len);
	store_close(stock_open(path, STORE_WRITE));
}

TEST_MAIN("store")
