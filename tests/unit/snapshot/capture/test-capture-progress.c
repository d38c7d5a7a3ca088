#include "snapshot/capture/capture.h"

#include <time.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* What the linker puts in the place of the real ones (--wrap): each read takes a second. */
ssize_t __real_fdio_pread(int fd, void *data, size_t len, off_t off);
ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

static time_t clock_ahead;

ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off)
{
	clock_ahead++;
	return __real_fdio_pread(fd, data, len, off);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = __real_clock_gettime(clock, t);

	t->tv_sec += clock_ahead;
	return rc;
}

static void count_call(const struct capture_stats *so_far, void *ctx)
{
	(void)so_far;
	(*(unsigned *)ctx)++;
}

TEST(how_far_it_is_is_told_within_a_directory_and_within_a_file)
{
	CLEANUP(scene_done) struct scene sc = scene_new("far");
	const size_t len = 8 * 4 * CHUNK_SIZE_MAX;
	AUTO_FREE char *large = calloc(1, len);
	unsigned told = 0;
	const struct capture_options options = {
		.threads = 1, /* who tells is who reads */
		.progress = count_call,
		.progress_ctx = &told,
	};
	char name[16];

	CHECK(large);
	memset(large, 'x', len);
	scene_mkdir(&sc, "d");
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		scene_text(&sc, name, name);
	}
	scene_write(&sc, "d/large", large, len);
	scene_settle();
	scene_capture_with(&sc, &options);
	/* Ten small files, and eight reads of the large one. */
	CHECK(told >= 18);
}

TEST_MAIN("capture-progress")
