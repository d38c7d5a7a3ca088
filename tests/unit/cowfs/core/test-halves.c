/*
 * Writes that arrive in pieces.  The thread that writes is a process that sleeps, and what it would
 * send comes from the witness, which is asked while writes are held.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/lib/live.h"

#define PAGE 4096

static const char zeros[2 * PAGE];

/* The log names the writer that is given up (--wrap). */
static unsigned told;

void __wrap_log_at(enum log_level level, const char *fmt, ...);

void __wrap_log_at(enum log_level level, const char *fmt, ...)
{
	told += level == LOG_WARN && strstr(fmt, "did not get on with a write");
}

struct scene {
	struct live v;
	uint64_t file;
	uint32_t writer;  /* asleep until the end */
	unsigned asked;   /* times */
	uint64_t in_file; /* bytes, in the state that was taken */
	int tried;        /* what another write returned meanwhile */
};

static void scene_open(struct scene *s, const char *name)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(60); /* a test that fails does not end it */
		for (;;)
			pause();
	}
	s->writer = (uint32_t)pid;
	told = 0;
	live_open(&s->v, name);
	live_put(&s->v, "file", "");
	live_put(&s->v, "other", "");
	s->file = live_hold(&s->v, "file");
}

static void scene_close(struct scene *s)
{
	layer_set_witness(s->v.l, NULL, NULL);
	live_drop(&s->v, s->file);
	live_close(&s->v);
	kill((pid_t)s->writer, SIGKILL);
	waitpid((pid_t)s->writer, NULL, 0);
}

static int write_piece(struct scene *s, uint32_t writer, uint64_t off, size_t len)
{
	const struct layer_call call = { .writer = writer };

	return layer_write(s->v.l, &call, s->file, off, zeros, len, false, NULL);
}

static int see_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct scene *s = ctx;

	s->in_file = state->bytes;
	return 0;
}

static void take_state(struct scene *s, layer_witness_fn witness)
{
	struct layer_state state;
	struct err err = { 0 };

	layer_set_witness(s->v.l, witness, s);
	CHECK_OK(layer_persist(s->v.l, BATCH_SAFE, see_state, s, &state, &err), &err);
}

/* It is on its way when first asked, and arrives then. */
static bool send_the_rest(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct scene *s = ctx;

	CHECK_EQ(writer, s->writer);
	CHECK_EQ(node, s->file);
	CHECK_EQ(off, PAGE);
	if (s->asked++ > 0)
		CHECK_EQ(write_piece(s, s->writer, PAGE, 100), 0);
	return false;
}

TEST(a_state_waits_for_the_rest_of_a_write)
{
	struct scene s = { 0 };

	scene_open(&s, "rest");
	CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
	take_state(&s, send_the_rest);
	CHECK_EQ(s.asked, 2);
	CHECK_EQ(s.in_file, PAGE + 100);
	CHECK_EQ(told, 0);
	scene_close(&s);
}

static bool try_another(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct scene *s = ctx;

	s->tried = write_piece(s, s->writer + 1, PAGE, 100);
	return true;
}

static bool try_elsewhere(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct scene *s = ctx;

	s->asked++;
	s->tried = write_piece(s, s->writer, 5 * PAGE, 100);
	return false; /* that is for the layer to see */
}

TEST(other_writes_wait_until_it_is_taken)
{
	const layer_witness_fn tries[] = { try_another, try_elsewhere };

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		struct scene s = { 0 };

		scene_open(&s, i == 0 ? "another" : "elsewhere");
		CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
		take_state(&s, tries[i]);
		CHECK_EQ(s.tried, -EAGAIN);
		CHECK(s.asked <= 1);
		CHECK_EQ(s.in_file, PAGE);
		CHECK_EQ(write_piece(&s, s.writer + 1, 0, 100), 0);
		scene_close(&s);
	}
}

static bool count(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct scene *s = ctx;

	s->asked++;
	return s->tried == 0;
}

TEST(a_thread_that_has_gone_on_is_not_waited_for)
{
	struct scene s = { 0 };

	scene_open(&s, "gone-on");
	CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
	take_state(&s, count);
	CHECK_EQ(s.asked, 1);
	CHECK_EQ(s.in_file, PAGE);
	scene_close(&s);
}

TEST(a_write_that_ended_within_a_page_is_all_of_it)
{
	struct scene s = { 0 };

	scene_open(&s, "within");
	CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
	CHECK_EQ(write_piece(&s, s.writer, PAGE, 1), 0);
	take_state(&s, count);
	CHECK_EQ(s.asked, 0);
	CHECK_EQ(s.in_file, PAGE + 1);
	scene_close(&s);
}

TEST(what_never_comes_is_not_waited_for_for_ever)
{
	struct scene s = { .tried = 1 };

	scene_open(&s, "never");
	CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
	take_state(&s, count);
	CHECK(s.asked > 1);
	CHECK_EQ(s.in_file, PAGE);
	CHECK_EQ(told, 1);
	scene_close(&s);
}

/* One page after the other, for as long as they are taken. */
static bool send_for_ever(void *ctx, uint32_t writer, uint64_t node, uint64_t off)
{
	struct scene *s = ctx;

	s->asked++;
	s->tried = write_piece(s, writer, off, PAGE);
	return false;
}

TEST(a_write_without_end_is_cut)
{
	struct scene s = { 0 };

	scene_open(&s, "endless");
	CHECK_EQ(write_piece(&s, s.writer, 0, PAGE), 0);
	take_state(&s, send_for_ever);
	CHECK_EQ(s.tried, -EAGAIN);
	CHECK_EQ(s.in_file, s.asked * PAGE);
	scene_close(&s);
}

TEST_MAIN("halves")
