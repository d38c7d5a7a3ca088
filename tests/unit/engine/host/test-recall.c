#include "engine/host/recall-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"
#include "snapshot/capture/lease.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

static struct signatures *make(size_t bytes)
{
	struct signatures *s = calloc(1, sizeof(*s));

	CHECK(s != NULL);
	CHECK_EQ(buf_append_zero(&s->bytes, bytes), 0);
	return s;
}

static const struct stat file = { .st_dev = 1, .st_ino = 2, .st_size = 3 };

TEST(signatures_are_recalled_for_their_file_and_by_one_at_a_time)
{
	CLEANUP(recall_done) struct recall r;
	CLEANUP(signatures_free_p) struct signatures *s = make(100);
	struct signatures *const given = s;

	recall_init(&r);
	CHECK(recall_take(&r, &file) == NULL);
	recall_give(&r, TAKE_PTR(s), &file);
	s = recall_take(&r, &file);
	CHECK(s == given);
	CHECK(recall_take(&r, &file) == NULL);
}

TEST(of_a_file_that_was_replaced_or_written_nothing_is_recalled)
{
	CLEANUP(recall_done) struct recall r;
	struct stat other[5] = { file, file, file, file, file };

	recall_init(&r);
	recall_give(&r, make(100), &file);
	other[0].st_ino++;
	other[1].st_size++;
	SYS_ST_MTIM(&other[2]).tv_nsec++;
	SYS_ST_CTIM(&other[3]).tv_nsec++;
	other[4].st_dev++;
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		CHECK(recall_take(&r, &other[i]) == NULL);
}

TEST(what_was_recalled_last_is_kept_unless_it_is_large)
{
	CLEANUP(recall_done) struct recall r;
	CLEANUP(signatures_free_p) struct signatures *s = NULL;
	struct stat other = file;

	other.st_ino++;
	recall_init(&r);
	recall_give(&r, make(100), &file);
	recall_give(&r, make(RECALL_MAX + 1), &other);
	recall_give(&r, NULL, &other);
	CHECK(recall_take(&r, &other) == NULL);
	recall_give(&r, make(RECALL_MAX), &other);
	CHECK(recall_take(&r, &file) == NULL);
	s = recall_take(&r, &other);
	CHECK(s != NULL);
}

/* What a lazy capture knows of a project whose file system went away, and came back. */
TEST(a_project_that_is_absent_stays_so_until_its_directory_is_open)
{
	struct host host = { .store = stock_open(test_path("absent-store"), STORE_CREATE) };
	struct promises all = { .host = &host };
	struct promising p = { .all = &all, .top = -1, .record.project = { { 1 } } };
	struct project project = { .id = p.record.project };
	struct sys_identity is = { 0 };
	struct rlimit limit, none;
	struct err err = { 0 };
	struct batch *b;
	char path[512];

	pthread_mutex_init(&all.lock, NULL);
	snprintf(path, sizeof(path), "%s", test_path("absent"));
	CHECK_EQ(mkdir(path, 0700), 0);
	if (sys_identify(path, &is) < 0 || is.fs == 0 || sys_is_in_memory(path)) {
		store_close(host.store);
		return; /* this file system cannot be told from another one */
	}
	project.path = path;
	for (int back = 0; back < 2; back++) {
		project.fs = back ? is.fs : is.fs + 1;
		b = stock_begin(host.store);
		CHECK_OK(project_put(b, &project, back ? REF_REPLACE : REF_NEW, &err), &err);
		stock_commit(b);
		batch_end(b);
		if (!back)
			CHECK_EQ(promising_find_top(&p, &err), -EIO);
		CHECK(p.absent && p.top < 0);
		CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
		none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
		CHECK_EQ(promising_find_top(&p, &err), -EMFILE);
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
		CHECK(p.absent && p.top < 0);
	}
	CHECK_OK(promising_find_top(&p, &err), &err);
	CHECK(!p.absent && p.top >= 0);
	close(p.top);
	free(p.dir);
	pthread_mutex_destroy(&all.lock);
	store_close(host.store);
}

TEST(the_end_does_not_wait_for_a_walk_that_a_writer_waits_for)
{
	const struct object_id promise = { { 1 } };
	struct lease_trial trial;
	struct promises_walk walk = { 0 };
	struct promises *all = NULL;
	struct host host = { .store = stock_open(test_path("full-store"), STORE_CREATE) };
	AUTO_FREE char *dir = strdup(test_path("full-store"));
	struct err err = { 0 };
	int r, status = -1;
	char path[512];
	pid_t writer;
	int fd;

	store_set_limit(host.store, 1); /* no room for a copy, with which the writer would go on */
	CHECK(dir != NULL);
	host.dir = dir;
	snprintf(path, sizeof(path), "%s", test_path("written"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && close(fd) == 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_OK(promises_new(&host, &all, &err), &err);
	CHECK(promises_may_begin(all, &walk));
	r = promises_lease(all, fd, &trial);
	if (r == -ENOTSUP) {
		promises_free(all);
		store_close(host.store);
		close(fd);
		TEST_SKIP("no leases on the file system of the test directory");
	}
	CHECK_EQ(r, 0);
	CHECK(promises_hold(all, &promise, fd, 0, &trial));
	writer = fork();
	CHECK(writer >= 0);
	if (writer == 0)
		_exit(open(path, O_WRONLY) >= 0 ? 0 : 1);
	WAIT_FOR(fcntl(fd, F_GETLEASE) != F_RDLCK);
	promises_free(all);
	store_close(host.store);
	CHECK_EQ(waitpid(writer, &status, 0), writer);
	CHECK_EQ(status, 0);
}

TEST_MAIN("recall")
