/* Plain copies of large promised files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "engine/host/stash-i.h"
#include "tests/lib/test.h"

#define BYTES "a copy"

/* As stash_put() leaves it, which needs a lease. */
static void put_copy(const struct stash_key *key)
{
	char boot[64], capture[CATALOG_HEX_SIZE], promise[OBJECT_HEX_SIZE], path[4096];
	struct err err = { 0 };
	int fd;

	sys_boot_id(boot, sizeof(boot));
	CHECK(boot[0]);
	snprintf(path, sizeof(path), "%s/stash/%s", key->store, boot);
	CHECK_OK(path_make_dirs(path, 0700, &err), &err);
	snprintf(path, sizeof(path), "%s/stash/%s/%s-%s", key->store, boot,
		 catalog_id_hex(&key->capture, capture), object_id_hex(&key->promise, promise));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, BYTES, strlen(BYTES)), (ssize_t)strlen(BYTES));
	close(fd);
}

/* A copy may be all that is left of a file: whoever cannot look must not take it for gone. */
TEST(that_no_descriptor_is_left_does_not_mean_that_there_is_no_copy)
{
	const struct stash_key key = { .store = test_dir(),
				       .capture.b = { 1 },
				       .promise.b = { 2 } };
	struct rlimit before, none;
	int next, fd;

	CHECK_EQ(stash_open(&key, strlen(BYTES)), -ENOENT);
	put_copy(&key);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(0);
	CHECK(next >= 0);
	close(next);
	for (rlim_t left = 0; left < 2; left++) {
		none = before;
		none.rlim_cur = (rlim_t)next + left;
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
		CHECK_EQ(stash_open(&key, strlen(BYTES)), -EMFILE);
	}
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	fd = stash_open(&key, strlen(BYTES));
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(stash_open(&key, strlen(BYTES) + 1), -ENOENT);
	stash_drop(&key);
	CHECK_EQ(stash_open(&key, strlen(BYTES)), -ENOENT);
	stash_tidy(key.store);
}

static int count(const struct object_id *promise, void *ctx)
{
	size_t *n = ctx;

	CHECK_EQ(promise->b[0], 2);
	return (*n)++ == 0 ? 0 : -ENOMEM;
}

/* Nor may a list that ends early be taken for all of them. */
TEST(a_list_that_could_not_be_made_is_not_an_empty_one)
{
	struct stash_key key = { .store = test_dir(), .capture.b = { 1 }, .promise.b = { 2 } };
	struct rlimit before, none;
	size_t n = 0;
	int next;

	CHECK_EQ(stash_each(key.store, &key.capture, count, &n), 0);
	CHECK_EQ(n, 0u);
	put_copy(&key);
	CHECK_EQ(stash_each(key.store, &key.capture, count, &n), 0);
	CHECK_EQ(n, 1u);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(0);
	CHECK(next >= 0);
	close(next);
	none = before;
	none.rlim_cur = (rlim_t)next;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	CHECK_EQ(stash_each(key.store, &key.capture, count, &n), -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	CHECK_EQ(stash_each(key.store, &key.capture, count, &n), -ENOMEM);
	stash_drop(&key);
	stash_tidy(key.store);
}

TEST_MAIN("stash")
