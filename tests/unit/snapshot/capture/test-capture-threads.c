#include "snapshot/capture/capture.h"

#include <limits.h>
#include <pthread.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* What the linker puts in the place of the real one (--wrap). */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

static unsigned to_be_had = UINT_MAX, refused;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	if (to_be_had == 0) {
		refused++;
		return EAGAIN;
	}
	to_be_had--;
	return __real_pthread_create(thread, attr, fn, arg);
}

/* Directories for everybody, and files with names in several of them. */
static void fill(struct scene *sc)
{
	char path[64], other[64];

	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "%d", i);
		scene_mkdir(sc, path);
		for (int j = 0; j < 10; j++) {
			snprintf(path, sizeof(path), "%d/%d", i, j);
			scene_mkdir(sc, path);
			snprintf(path, sizeof(path), "%d/%d/f", i, j);
			scene_text(sc, path, path);
			snprintf(other, sizeof(other), "%d/link-%d", 29 - i, j);
			if (j % 3 == 0 && i > 15)
				CHECK_EQ(linkat(sc->fd, path, sc->fd, other, 0), 0);
		}
	}
	scene_settle();
}

TEST(the_number_of_threads_changes_nothing)
{
	CLEANUP(scene_done) struct scene sc = scene_new("threads");
	static const unsigned threads[] = { 1, 2, 8 };
	struct object_id first;

	fill(&sc);
	scene_capture(&sc);
	first = sc.id;
	for (int i = 0; i < 20; i++) {
		const struct capture_options options = { .threads = threads[i % 3] };

		scene_capture_with(&sc, &options);
		CHECK(object_id_equal(&first, &sc.id));
	}
}

TEST(a_thread_that_cannot_be_started_is_not_missed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("refused");
	const struct capture_options alone = { .threads = 1 }, four = { .threads = 4 };
	struct capture_stats stats;
	struct object_id first;

	fill(&sc);
	scene_capture_with(&sc, &alone);
	first = sc.id;
	stats = sc.stats;
	for (unsigned n = 0; n < 3; n++) {
		to_be_had = n;
		refused = 0;
		scene_capture_with(&sc, &four);
		CHECK(refused > 0);
		CHECK(object_id_equal(&first, &sc.id));
		CHECK_EQ(sc.stats.files, stats.files);
		CHECK_EQ(sc.stats.dirs, stats.dirs);
		CHECK_EQ(sc.stats.bytes, stats.bytes);
	}
	to_be_had = UINT_MAX;
}

TEST_MAIN("capture-threads")
