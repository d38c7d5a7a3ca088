#include "engine/act/stage-i.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/find/run-record.h"
#include "engine/host/host-i.h"
#include "tests/lib/stock.h"

#define KILLED 77
#define LEFT   3 /* clones whose runs have died: 1 and so on */
#define HELD   4 /* the one whose run is alive */

/* What the linker puts in the place of the real one (--wrap). */
int __real_clone_remove(struct task *task, const char *name, bool force, struct engine_removed *ret,
			struct err *err);
int __wrap_clone_remove(struct task *task, const char *name, bool force, struct engine_removed *ret,
			struct err *err);

static struct {
	unsigned n, at; /* 0: at none */
	bool die;       /* else it fails */
} fault;

int __wrap_clone_remove(struct task *task, const char *name, bool force, struct engine_removed *ret,
			struct err *err)
{
	if (++fault.n != fault.at)
		return __real_clone_remove(task, name, force, ret, err);
	if (fault.die)
		_exit(KILLED);
	return err_set(err, -EIO, "clone '%s' cannot be removed", name);
}

/* A store with clones as a daemon that died has left them. */
struct wreck {
	const char *path;
	struct run_record held;
};

static void put_clone(struct batch *b, const char *name, uint64_t run)
{
	struct clone c = { .root = stock_put_root(b, name), .created = 1, .run = run };
	AUTO_FREE char *own = strdup(name);
	struct err err = { 0 };

	c.name = own;
	CHECK(own);
	CHECK_OK(catalog_id_new(&c.project, &err), &err);
	CHECK_OK(clone_put(b, &c, REF_NEW, &err), &err);
}

static struct wreck wreck_new(const char *name)
{
	static char nothing[] = "";
	struct engine_run run = {
		.clone = nothing, .project = nothing, .cwd = nothing, .net = nothing
	};
	struct wreck w = { .path = test_path(name), .held = RUN_RECORD_INIT };
	struct store *s = stock_open(w.path, STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct err err = { 0 };
	char clone[16];

	for (unsigned i = 1; i <= LEFT; i++) {
		snprintf(clone, sizeof(clone), "left-%u", i);
		put_clone(b, clone, i);
	}
	put_clone(b, "held", HELD);
	put_clone(b, "own", 0);
	stock_commit(b);
	batch_end(TAKE_PTR(b));
	store_close(s);
	run_record_id(HELD, run.id);
	CHECK_OK(run_record_begin(w.path, &run, &w.held, &err), &err);
	return w;
}

static void wreck_done(struct wreck *w)
{
	run_record_done(&w->held);
}

/* As the next daemon does it when it starts. */
static void sweep(const struct wreck *w, unsigned at, bool die)
{
	CLEANUP(host_free_p) struct host *h = NULL;
	struct store *s = stock_open(w->path, STORE_WRITE);
	struct err err = { 0 };

	CHECK_OK(host_new(w->path, s, &h, &err), &err);
	fault.n = 0;
	fault.at = at;
	fault.die = die;
	stage_sweep(h);
	fault.at = 0;
}

static int count(const struct clone *c, void *ctx, struct err *err)
{
	(void)err;
	if (strncmp(c->name, "left-", 5) == 0)
		(*(unsigned *)ctx)++;
	return 0;
}

/* How many are left of dead runs; the others must be there. */
static unsigned left(const struct wreck *w)
{
	CLEANUP(store_close_p) struct store *s = stock_open(w->path, STORE_READ);
	CLEANUP(clone_done) struct clone held = { 0 }, own = { 0 };
	struct err err = { 0 };
	unsigned n = 0;

	CHECK_OK(clone_find(s, "held", &held, &err), &err);
	CHECK_OK(clone_find(s, "own", &own, &err), &err);
	CHECK_OK(clone_each(s, count, &n, &err), &err);
	return n;
}

TEST(a_clone_that_cannot_be_removed_keeps_no_other_and_is_tried_again)
{
	for (unsigned at = 1; at <= LEFT; at++) {
		char name[16];

		snprintf(name, sizeof(name), "fails-%u", at);
		CLEANUP(wreck_done) struct wreck w = wreck_new(name);

		sweep(&w, at, false);
		CHECK_EQ(left(&w), 1);
		sweep(&w, 0, false);
		CHECK_EQ(left(&w), 0);
	}
}

TEST(a_sweep_that_is_killed_is_finished_by_the_next)
{
	for (unsigned at = 1; at <= LEFT; at++) {
		char name[16];
		int status;
		pid_t pid;

		snprintf(name, sizeof(name), "killed-%u", at);
		CLEANUP(wreck_done) struct wreck w = wreck_new(name);

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			sweep(&w, at, true);
			_exit(0);
		}
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == KILLED);
		CHECK_EQ(left(&w), LEFT - at + 1);
		sweep(&w, 0, false);
		CHECK_EQ(left(&w), 0);
	}
}

TEST_MAIN("stage")
