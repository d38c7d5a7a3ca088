/*
 * kill -9, at random moments of a process that puts, deletes and collects, and at every
 * single thing such a process asks of the disk.  What it had acknowledged must be there
 * afterwards, what it was about to commit may be, whole, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fdio.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

#define LIVES            200
#define NOTES_MOST       8     /* that a life writes before it may end */
#define LIFE_US          20000 /* and how long it then lives on at most */
#define CREATIONS        40
#define CREATION_US      15000
#define REFS_MANY        12 /* from here on a life deletes as often as it puts */
#define NUMBERS_PER_LIFE 100000
#define BULK_CHUNKS      300 /* more than BATCH_PENDING_MAX: written before the commit */

static const char *program;
static struct test_rng rng;

/* What a life tells on its standard output, a pipe.  A note fits a pipe's atomic write. */
enum note_kind { NOTE_STARTED, NOTE_WILL, NOTE_DID };

struct note {
	uint64_t kind;
	uint64_t put, drop; /* numbers, 0 for none */
};

/* --- a life: runs in a process of its own until it is killed ------------------------------ */

struct life {
	struct store *s;
	struct test_rng rng;
	uint64_t next;
	uint64_t refs[64];
	size_t n_refs;
};

NORETURN static void die(const char *doing, const struct err *err)
{
	fprintf(stderr, "life: %s: %s\n", doing, err->msg);
	_exit(1);
}

static void must(int r, const struct err *err, const char *doing)
{
	if (r < 0)
		die(doing, err);
}

static void note(enum note_kind kind, uint64_t put, uint64_t drop)
{
	struct note n = { .kind = kind, .put = put, .drop = drop };

	if (fdio_write(STDOUT_FILENO, &n, sizeof(n)) < 0)
		_exit(1);
}

static int remember_ref(const struct ref *ref, void *ctx, struct err *err)
{
	struct life *l = ctx;

	if (l->n_refs == ARRAY_LEN(l->refs))
		return err_set(err, -E2BIG, "too many refs");
	return specimen_number(ref->name, ref->name_len, &l->refs[l->n_refs++]);
}

static void put_bulk(struct life *l, struct batch *b)
{
	static uint64_t noise[CHUNK_SIZE_MAX / 8];
	struct err err = { 0 };
	struct object_id id;

	for (unsigned i = 0; i < BULK_CHUNKS; i++) {
		for (size_t at = 0; at < ARRAY_LEN(noise); at++)
			noise[at] = test_rand(&l->rng);
		must(batch_put(b, OBJECT_CHUNK, noise, sizeof(noise), &id, &err), &err, "putting");
	}
}

static void change(struct life *l)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };
	uint64_t put = ++l->next, drop = 0;
	size_t victim = 0;

	if (test_rand(&l->rng) % 4)
		put |= SPECIMEN_SMALL;
	must(batch_begin(l->s, &b, &err), &err, "beginning");
	if (l->n_refs >= REFS_MANY || (l->n_refs > 0 && test_rand(&l->rng) % 4 == 0)) {
		victim = test_rand(&l->rng) % l->n_refs;
		drop = l->refs[victim];
		must(specimen_drop(b, drop, &err), &err, "deleting");
	}
	if (test_rand(&l->rng) % 64 == 0)
		put_bulk(l, b);
	must(specimen_put(b, put, &err), &err, "putting");
	if (test_rand(&l->rng) % 16 == 0)
		return;
	note(NOTE_WILL, put, drop);
	must(batch_commit(b, test_rand(&l->rng) % 2 ? BATCH_SAFE : BATCH_DURABLE, &err), &err,
	     "committing");
	note(NOTE_DID, put, drop);
	if (drop)
		l->refs[victim] = put;
	else
		l->refs[l->n_refs++] = put;
}

static void collect(struct store *s, struct test_rng *r)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	struct gc_progress progress;
	struct err err = { 0 };
	int more;

	must(gc_begin(s, &g, &err), &err, "beginning a gc");
	do {
		more = gc_step(g, 1 + (unsigned)(test_rand(r) % 64), &progress, &err);
		must(more, &err, "collecting");
	} while (more > 0);
}

static void *collector(void *arg)
{
	struct life *l = arg;
	struct test_rng r = { ~l->rng.s };

	for (;;)
		collect(l->s, &r);
	return NULL;
}

/* argv: "life", store, seed, first number. */
NORETURN static void live(char **argv)
{
	struct life l = {
		.rng = { strtoull(argv[2], NULL, 0) },
		.next = strtoull(argv[3], NULL, 0),
	};
	struct err err = { 0 };
	pthread_t thread;
	bool beside;

	note(NOTE_STARTED, 0, 0);
	must(store_open(argv[1], STORE_CREATE, &l.s, &err), &err, "opening");
	must(ref_each(l.s, REF_SNAPSHOT, NULL, 0, remember_ref, &l, &err), &err, "listing");
	beside = test_rand(&l.rng) % 2;
	if (beside && pthread_create(&thread, NULL, collector, &l) != 0)
		_exit(1);
	for (;;) {
		change(&l);
		if (!beside && test_rand(&l.rng) % 4 == 0)
			collect(l.s, &l.rng);
		if (test_rand(&l.rng) % 8 == 0)
			must(store_checkpoint(l.s, &err), &err, "moving the logs");
	}
}

/* --- the one who kills -------------------------------------------------------------------- */

/* What must be in the store. */
struct ledger {
	struct held {
		uint64_t number;
		struct object_id root;
	} held[128];
	size_t n;
	uint64_t commits;
};

static struct held *ledger_find(struct ledger *l, uint64_t number)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->held[i].number == number)
			return &l->held[i];
	return NULL;
}

static void ledger_apply(struct ledger *l, const struct note *n)
{
	if (n->drop) {
		struct held *h = ledger_find(l, n->drop);

		CHECK(h);
		*h = l->held[--l->n];
	}
	CHECK(l->n < ARRAY_LEN(l->held));
	l->held[l->n++] = (struct held){ .number = n->put };
	l->commits++;
}

struct child {
	pid_t pid;
	int fd;
};

/* Spawned, not forked: to copy the page tables of a sanitized process takes longer than to live. */
static struct child start_life(const char *path, uint64_t first)
{
	char seed[32], from[32], life[] = "life";
	AUTO_FREE char *self = strdup(program), *store = strdup(path);
	char *argv[] = { self, life, store, seed, from, NULL };
	posix_spawn_file_actions_t actions;
	struct child c;
	int fds[2];

	CHECK(self && store);
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	snprintf(seed, sizeof(seed), "%" PRIu64, test_rand(&rng));
	snprintf(from, sizeof(from), "%" PRIu64, first);
	CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
	CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO), 0);
	CHECK_EQ(posix_spawn(&c.pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	c.fd = fds[0];
	return c;
}

/* Wait until so many notes are there to be read. */
static void await_notes(const struct child *c, unsigned notes)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int bytes = 0;

	CHECK_EQ(poll(&p, 1, 60000), 1);
	for (unsigned i = 0; i < 60000 && (size_t)bytes < notes * sizeof(struct note); i++) {
		CHECK(ioctl(c->fd, FIONREAD, &bytes) == 0);
		nanosleep(&nap, NULL);
	}
	CHECK((size_t)bytes >= notes * sizeof(struct note));
}

/* Let it write so many notes and live on for a while, then end it; it must not have ended by itself. */
static void kill_after(const struct child *c, unsigned notes, uint64_t us)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = (long)us * 1000 };
	int status = 0;

	await_notes(c, notes);
	nanosleep(&pause, NULL);
	CHECK(kill(c->pid, SIGKILL) == 0);
	CHECK_EQ(waitpid(c->pid, &status, 0), c->pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGKILL);
}

/* Enter what was acknowledged.  *ret is what was about to happen, if anything. */
static bool read_notes(const struct child *c, struct ledger *l, struct note *ret)
{
	struct note n;
	bool open = false;
	ssize_t got;

	while ((got = fdio_read(c->fd, &n, sizeof(n))) == sizeof(n)) {
		if (n.kind == NOTE_DID)
			ledger_apply(l, &n);
		open = n.kind == NOTE_WILL;
		*ret = n;
	}
	CHECK_EQ(got, 0);
	close(c->fd);
	return open;
}

/* The commit that was under way: it happened or not, never half of it. */
static void settle(struct store *s, struct ledger *l, const struct note *n)
{
	struct err err = { 0 };
	int put = specimen_find(s, n->put, &err);

	CHECK_OK(put, &err);
	if (n->drop)
		CHECK_EQ(specimen_find(s, n->drop, &err), !put);
	if (put)
		ledger_apply(l, n);
}

struct comparing {
	struct store *s;
	struct ledger *l;
	size_t seen;
};

/* A ref of before must name the same root; a new one is read to its last byte. */
static int compare_ref(const struct ref *ref, void *ctx, struct err *err)
{
	static const struct object_id unknown;
	struct comparing *c = ctx;
	struct held *h;
	uint64_t number;
	int r;

	r = specimen_number(ref->name, ref->name_len, &number);
	h = r < 0 ? NULL : ledger_find(c->l, number);
	if (!h)
		return err_set(err, -EILSEQ, "a ref that nobody put");
	c->seen++;
	if (object_id_equal(&h->root, &unknown)) {
		h->root = ref->root;
		r = specimen_find(c->s, number, err);
		return r < 0 ? r : r == 1 ? 0 : -ENOENT;
	}
	return object_id_equal(&h->root, &ref->root) ? 0 : err_set(err, -EILSEQ, "a ref has moved");
}

static void inspect(const char *path, struct ledger *l, const struct note *about_to)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct comparing c = { .l = l };
	struct err err = { 0 };

	CHECK_OK(store_open(path, STORE_CREATE, &s, &err), &err);
	CHECK_OK(specimen_store_sound(s, &err), &err);
	if (about_to)
		settle(s, l, about_to);
	c.s = s;
	CHECK_OK(ref_each(s, REF_SNAPSHOT, NULL, 0, compare_ref, &c, &err), &err);
	CHECK_EQ(c.seen, l->n);
}

static void one_life(const char *path, struct ledger *l, uint64_t first, uint64_t us)
{
	struct child c = start_life(path, first);
	struct note last;
	bool open;

	kill_after(&c, 1 + (unsigned)(test_rand(&rng) % NOTES_MOST), us);
	open = read_notes(&c, l, &last);
	inspect(path, l, open ? &last : NULL);
}

static void collect_everything(const char *path, struct ledger *l)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(store_open(path, STORE_WRITE, &s, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
	CHECK_OK(specimen_store_sound(s, &err), &err);
	for (size_t i = 0; i < l->n; i++) {
		CHECK_EQ(specimen_find(s, l->held[i].number, &err), 1);
		CHECK_OK(specimen_remove(s, l->held[i].number, &err), &err);
	}
	CHECK_OK(specimen_store_empties(s, &err), &err);
	CHECK_OK(specimen_store_sound(s, &err), &err);
}

TEST(whoever_is_killed_200_times_loses_nothing_that_was_committed)
{
	const char *path = test_path("lives");
	static struct ledger ledger;

	for (uint64_t i = 1; i <= LIVES; i++)
		one_life(path, &ledger, i * NUMBERS_PER_LIFE, test_rand(&rng) % LIFE_US);
	printf("# %" PRIu64 " commits in %d lives\n", ledger.commits, LIVES);
	CHECK(ledger.commits > LIVES / 10);
	collect_everything(path, &ledger);
}

TEST(a_store_whose_maker_was_killed_can_be_made_and_used)
{
	char name[32];

	for (uint64_t i = 1; i <= CREATIONS; i++) {
		struct ledger ledger = { 0 };

		snprintf(name, sizeof(name), "made-%" PRIu64, i);
		one_life(test_path(name), &ledger, i * NUMBERS_PER_LIFE,
			 test_rand(&rng) % CREATION_US);
	}
}

/* --- killed at every call ----------------------------------------------------------------- */

/* How far a script came; shared with the process that runs it. */
enum script_step { STEP_NONE, STEP_PUT, STEP_DROPPED, STEP_COLLECTED, STEP_MOVED, STEP_CLOSED };

#define BEFORE (SPECIMEN_SMALL | 11)
#define AFTER  (SPECIMEN_SMALL | 12)

NORETURN static void run_script(const char *path, uint64_t n, enum disk_fault fault,
				atomic_int *step)
{
	struct gc_progress progress;
	struct err err = { 0 };
	struct store *s = NULL;

	disk_fail_at(n, fault, false);
	must(store_open(path, STORE_CREATE, &s, &err), &err, "opening");
	must(specimen_commit(s, AFTER, n % 2 ? BATCH_DURABLE : BATCH_SAFE, &err), &err, "putting");
	*step = STEP_PUT;
	must(specimen_remove(s, BEFORE, &err), &err, "deleting");
	*step = STEP_DROPPED;
	must(gc_run(s, &progress, &err), &err, "collecting");
	*step = STEP_COLLECTED;
	must(store_checkpoint(s, &err), &err, "moving the logs");
	*step = STEP_MOVED;
	store_close(s);
	*step = STEP_CLOSED;
	_exit(0);
}

/* Put the store back to where the script starts. */
static void rewind_store(const char *path)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(store_open(path, STORE_CREATE, &s, &err), &err);
	if (specimen_find(s, AFTER, &err) == 1)
		CHECK_OK(specimen_remove(s, AFTER, &err), &err);
	if (specimen_find(s, BEFORE, &err) == 0)
		CHECK_OK(specimen_commit(s, BEFORE, BATCH_SAFE, &err), &err);
	CHECK_OK(gc_run(s, &progress, &err), &err);
}

static void inspect_script(const char *path, enum script_step step)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct err err = { 0 };
	int before, after;

	CHECK_OK(store_open(path, STORE_WRITE, &s, &err), &err);
	CHECK_OK(specimen_store_sound(s, &err), &err);
	before = specimen_find(s, BEFORE, &err);
	CHECK_OK(before, &err);
	after = specimen_find(s, AFTER, &err);
	CHECK_OK(after, &err);
	if (step >= STEP_PUT)
		CHECK_EQ(after, 1);
	else
		CHECK_EQ(before, 1);
	if (step >= STEP_DROPPED)
		CHECK_EQ(before, 0);
}

/* Was it killed, rather than done before call number n? */
static bool killed_at(const char *path, uint64_t n, enum disk_fault fault, atomic_int *step)
{
	int status = 0;
	pid_t pid;

	rewind_store(path);
	*step = STEP_NONE;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		run_script(path, n, fault, step);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	inspect_script(path, (enum script_step) * step);
	return WIFSIGNALED(status);
}

TEST(a_store_survives_the_death_of_its_writer_at_every_call)
{
	static const enum disk_fault faults[] = { DISK_KILL, DISK_KILL_HALF };
	const char *path = test_path("script");
	atomic_int *step =
	    mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(step != MAP_FAILED);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		uint64_t n = 1;

		/* Safe and durable commits take turns and differ by a call: two in a row tell the end. */
		for (unsigned quiet = 0; quiet < 2; n++)
			quiet = killed_at(path, n, faults[i], step) ? 0 : quiet + 1;
		printf("# %" PRIu64 " places\n", n - 3);
		CHECK(n > 50);
	}
	munmap(step, sizeof(*step));
}

int main(int argc, char **argv)
{
	disk_install();
	if (argc == 5 && strcmp(argv[1], "life") == 0)
		live(argv + 1);
	program = argv[0];
	rng.s = test_seed();
	return test_run_all("kill");
}
