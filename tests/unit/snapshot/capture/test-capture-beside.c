#include "snapshot/capture/capture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* --- a thread that writes --------------------------------------------------------------- */

/* A thread that disturbs while captures go on. */
struct pest {
	struct scene *sc;
	atomic_bool stop;
	pthread_t thread;
};

static void pest_start(struct pest *p, void *(*fn)(void *))
{
	CHECK_EQ(pthread_create(&p->thread, NULL, fn, p), 0);
}

static void pest_stop(struct pest *p)
{
	atomic_store(&p->stop, true);
	CHECK_EQ(pthread_join(p->thread, NULL), 0);
}

static void pause_us(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

#define VERSION_SIZE (8 * CHUNK_SIZE_MAX) /* takes more than one read */
#define PIECE        4096

/* Write version after version over the old one, front to back: every byte is the number. */
static void *rewrite(void *ctx)
{
	struct pest *p = ctx;
	AUTO_CLOSE int fd = openat(p->sc->fd, "f", O_WRONLY | O_CLOEXEC);
	uint8_t piece[PIECE];

	for (unsigned version = 1; !atomic_load(&p->stop); version++) {
		memset(piece, (int)(version & 0xff), sizeof(piece));
		for (size_t at = 0; at < VERSION_SIZE; at += PIECE)
			if (fdio_pwrite(fd, piece, PIECE, (off_t)at) < 0)
				return NULL;
		pause_us(2000);
	}
	return NULL;
}

/* The new version so far, then the one before it: nothing else was ever in the file. */
static bool existed(const struct buf *b)
{
	size_t i = 1;

	if (b->len != VERSION_SIZE)
		return false;
	while (i < b->len && b->data[i] == b->data[0])
		i++;
	if (i < b->len && b->data[i] != (uint8_t)(b->data[0] - 1))
		return false;
	for (size_t rest = i; rest < b->len; rest++)
		if (b->data[rest] != b->data[i])
			return false;
	return true;
}

TEST(of_a_file_that_is_rewritten_meanwhile_some_version_is_captured_that_existed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("rewritten");
	static const uint8_t first[VERSION_SIZE];
	struct pest p = { .sc = &sc };
	bool ok = true;

	scene_write(&sc, "f", first, sizeof(first));
	pest_start(&p, rewrite);
	for (int i = 0; i < 30 && ok; i++) {
		CLEANUP(buf_done) struct buf hold = BUF_INIT;
		CLEANUP(buf_done) struct buf bytes = BUF_INIT;
		struct tree_entry e;
		struct err err = { 0 };
		int r = scene_try(&sc, NULL, &err);

		if (r == -EBUSY)
			continue;
		ok = r == 0;
		if (ok) {
			e = scene_entry(&sc, "f", &hold);
			bytes = scene_read(&sc, &e);
			ok = existed(&bytes);
		}
	}
	pest_stop(&p);
	CHECK(ok);
	scene_capture(&sc);
}

/* One name is in turn a file, a symlink to what must not be read, a FIFO, a directory, nothing. */
static void *shift_shape(void *ctx)
{
	struct pest *p = ctx;
	const int fd = p->sc->fd;

	while (!atomic_load(&p->stop)) {
		AUTO_CLOSE int file =
		    openat(fd, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		if (file < 0 || fdio_write(file, "open", 4) < 0 ||
		    renameat(fd, "new", fd, "name") < 0)
			break;
		pause_us(20);
		if (symlinkat("../secret", fd, "new") < 0 || renameat(fd, "new", fd, "name") < 0)
			break;
		pause_us(20);
		if (mkfifoat(fd, "new", 0600) < 0 || renameat(fd, "new", fd, "name") < 0)
			break;
		pause_us(20);
		if (unlinkat(fd, "name", 0) < 0 || mkdirat(fd, "name", 0755) < 0)
			break;
		pause_us(20);
		if (unlinkat(fd, "name", AT_REMOVEDIR) < 0)
			break;
	}
	return NULL;
}

/* A file was perhaps not yet written when it was captured under its other name. */
static void check_shape(struct scene *sc, const char *name)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_entry e;

	if (scene_find(sc, name, &e, &hold) < 0)
		return;
	if (S_ISLNK(e.mode))
		CHECK_MEM(e.target, e.target_len, "../secret", 9);
	if (!S_ISREG(e.mode))
		return;
	bytes = scene_read(sc, &e);
	CHECK_MEM(bytes.data, bytes.len, "open", bytes.len == 0 ? 0 : 4);
}

TEST(a_name_that_keeps_turning_into_other_things_is_never_followed_nor_waited_for)
{
	CLEANUP(scene_done) struct scene sc = scene_new("shapes");
	struct pest p = { .sc = &sc };
	struct err err = { 0 };
	int r = 0;

	scene_text(&sc, "../secret", "must not be read");
	alarm(60);
	pest_start(&p, shift_shape);
	for (int i = 0; i < 300 && (r == 0 || r == -EBUSY); i++) {
		r = scene_try(&sc, NULL, &err);
		if (r == 0) {
			check_shape(&sc, "name");
			check_shape(&sc, "new");
		}
	}
	pest_stop(&p);
	alarm(0);
	CHECK(r == 0 || r == -EBUSY);
}

/* --- a process that does everything --------------------------------------------------------- */

#define STORM_NAMES 12

/* A version says of itself what it is: its number, so many times as its number says. */
static size_t make_version(uint32_t number, uint32_t *words)
{
	const size_t n = 1 + number % 3000;

	for (size_t i = 0; i < n; i++)
		words[i] = number;
	return n * sizeof(*words);
}

static void storm_path(struct test_rng *rng, char path[32])
{
	snprintf(path, 32, "%c/%c", (char)('a' + test_rand(rng) % 3),
		 (char)('p' + test_rand(rng) % STORM_NAMES));
}

/* Never returns.  Whole versions appear by rename, or by one write into an empty file. */
NORETURN static void storm(int dir)
{
	static uint32_t words[3001];
	struct test_rng rng = { 5 };
	char path[32], other[32];

	for (uint32_t number = 1;; number++) {
		const size_t len = make_version(number, words);
		int fd;

		storm_path(&rng, path);
		storm_path(&rng, other);
		switch (test_rand(&rng) % 6) {
		case 0:
			unlinkat(dir, path, 0);
			break;
		case 1:
			renameat(dir, path, dir, other);
			break;
		case 2:
			IGNORE_RESULT(linkat(dir, path, dir, other, 0),
				      "whatever it comes to is a state to capture");
			break;
		case 3:
			renameat(dir, "a", dir, "x");
			renameat(dir, "b", dir, "a");
			renameat(dir, "x", dir, "b");
			break;
		default:
			fd = openat(dir, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
			if (fd >= 0 && fdio_write(fd, words, len) == 0)
				renameat(dir, "new", dir, path);
			cleanup_close(&fd);
		}
	}
}

static void check_versions(struct scene *sc, const struct object_id *tree)
{
	static uint32_t words[3001];
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct err err = { 0 };
	struct tree_entry e;

	CHECK_OK(tree_iter_new(sc->s, tree, &it, &err), &err);
	while (tree_iter_next(it, &e, &err) == 1) {
		CLEANUP(buf_done) struct buf hold = BUF_INIT, bytes = BUF_INIT;
		uint32_t number;
		size_t len;

		if (e.form == TREE_DIR) {
			check_versions(sc, &e.id);
			continue;
		}
		if (e.form == TREE_LINK)
			CHECK_OK(root_link(sc->s, &sc->root, e.ino, &e, &hold, &err), &err);
		if (e.size == 0)
			continue; /* made, and not yet written */
		bytes = scene_read(sc, &e);
		memcpy(&number, bytes.data, sizeof(number));
		len = make_version(number, words);
		/* Its writer may have been stopped between two pages. */
		if (e.name_len == strlen("new") && memcmp(e.name, "new", e.name_len) == 0 &&
		    bytes.len < len)
			len = bytes.len;
		CHECK_MEM(bytes.data, bytes.len, words, len);
	}
}

TEST(beside_a_storm_of_writes_renames_and_removals_every_captured_file_existed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("storm");
	const int times = getenv("SNAP_TESTS_LONG") ? 2000 : 100;
	struct err err = { 0 };
	int r = 0, good = 0;
	pid_t pid;

	sc.incremental = true;
	scene_mkdir(&sc, "a");
	scene_mkdir(&sc, "b");
	scene_mkdir(&sc, "c");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		storm(sc.fd);
	for (int i = 0; i < times && (r == 0 || r == -EBUSY || r == -ESTALE); i++) {
		r = scene_try(&sc, NULL, &err);
		if (r == 0)
			check_versions(&sc, &sc.root.top.id);
		good += r == 0;
	}
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(r == 0 || r == -EBUSY || r == -ESTALE);
	CHECK(good > 0);
	scene_capture(&sc);
	check_versions(&sc, &sc.root.top.id);
	stock_check_clean(sc.s);
}

TEST_MAIN("capture-beside")
