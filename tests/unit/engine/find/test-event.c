#include "engine/find/event-i.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/find/engine-i.h"
#include "tests/lib/stock.h"

static struct engine *open_engine(const char *name)
{
	const struct engine_options options = { .dir = test_dir(), .store = test_path(name) };
	struct engine *e = NULL;
	struct err err = { 0 };

	store_close(stock_open(options.store, STORE_CREATE));
	CHECK_OK(engine_open(&options, &e, &err), &err);
	return e;
}

static void put(const struct engine *e, const char *kind, const char *text)
{
	struct event ev;

	event_begin(&ev, kind, (struct event_subject){ .project = "/p", .clone = "c" });
	json_set_text(ev.data, "message", text);
	event_end(&ev, engine_store_path(e));
}

/* One whose line has somewhat more than that many bytes; no byte of it is looked at one by one. */
static void put_large(const struct engine *e, const char *kind, size_t size)
{
	static const unsigned char zeros[EVENTS_LINE_MAX];
	struct event ev;

	event_begin(&ev, kind, (struct event_subject){ .project = "/p", .clone = "c" });
	json_set_raw(ev.data, "raw", zeros, size / 4 * 3);
	event_end(&ev, engine_store_path(e));
}

struct seen {
	uint64_t first, last, n;
	char kind[32], data[64];
};

static int see(const struct engine_event *e, void *ctx, struct err *err)
{
	struct seen *s = ctx;

	(void)err;
	if (s->n++ == 0)
		s->first = e->n;
	else
		CHECK_EQ(e->n, s->last + 1);
	s->last = e->n;
	snprintf(s->kind, sizeof(s->kind), "%s", e->kind);
	snprintf(s->data, sizeof(s->data), "%s", e->data);
	return 0;
}

static struct seen look(struct engine *e, uint64_t since, uint64_t last, uint64_t *lost)
{
	const struct engine_events_options o = {
		.since = since, .last = last, .all = true, .stop_fd = -1
	};
	struct seen s = { 0 };
	struct err err = { 0 };

	CHECK_OK(engine_events(e, &o, lost, see, &s, &err), &err);
	return s;
}

/* The path of the file that begins with this event. */
static const char *file_of(const struct engine *e, uint64_t first)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/" EVENTS_DIR "/%016" PRIx64, engine_store_path(e), first);
	return path;
}

TEST(events_are_numbered_in_order_and_read_from_any_of_them)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s1");
	struct seen s = look(e, 0, 0, NULL);

	CHECK_EQ(s.n, 0);
	for (int i = 0; i < 5; i++)
		put(e, i == 4 ? "last" : "first", "\"quoted\"");
	s = look(e, 0, 0, NULL);
	CHECK_EQ(s.first, 1);
	CHECK_EQ(s.last, 5);
	CHECK_STR(s.kind, "last");
	CHECK_STR(s.data, "{\"message\":\"\\\"quoted\\\"\"}");
	s = look(e, 3, 0, NULL);
	CHECK_EQ(s.first, 4);
	CHECK_EQ(s.n, 2);
	s = look(e, 0, 2, NULL);
	CHECK_EQ(s.first, 4);
	s = look(e, 4, 3, NULL);
	CHECK_EQ(s.first, 5);
	CHECK_EQ(look(e, 9, 0, NULL).n, 0);
}

TEST(what_a_dying_writer_left_is_cut_off_and_nobody_reads_it)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s2");
	int fd;

	put(e, "first", "");
	fd = open(file_of(e, 1), O_WRONLY | O_APPEND);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "{\"n\":2,\"ti", 10), 10);
	close(fd);
	CHECK_EQ(look(e, 0, 0, NULL).last, 1);
	put(e, "second", "");
	CHECK_EQ(look(e, 0, 0, NULL).last, 2);
	CHECK_STR(look(e, 0, 0, NULL).kind, "second");
}

TEST(a_log_that_holds_half_a_line_only_begins_again)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s3");

	put(e, "first", "");
	CHECK_EQ(truncate(file_of(e, 1), 7), 0);
	put(e, "again", "");
	CHECK_EQ(look(e, 0, 0, NULL).first, 1);
	CHECK_STR(look(e, 0, 0, NULL).kind, "again");
}

TEST(behind_a_damaged_end_numbers_go_on_in_another_file)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s4");
	struct seen s;
	int fd;

	put(e, "first", "");
	fd = open(file_of(e, 1), O_WRONLY | O_APPEND);
	CHECK_EQ(write(fd, "garbage\n", 8), 8);
	close(fd);
	put(e, "second", "");
	s = look(e, 1, 0, NULL);
	CHECK_EQ(s.n, 1);
	CHECK(s.first > 1);
	CHECK_STR(s.kind, "second");
}

TEST(the_log_stays_bounded_and_says_what_it_no_longer_keeps)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s5");
	const unsigned n = 1000; /* of which the log holds some 700 */
	AUTO_CLOSE int dir = -1;
	struct event_head head;
	uint64_t lost = 0;
	struct seen s;

	for (unsigned i = 0; i < n; i++)
		put_large(e, "large", 12000);
	s = look(e, 0, 0, &lost);
	/* The head says so too, or an audit would miss them. */
	dir = open(test_path("s5/" EVENTS_DIR), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	event_head_read(dir, &head);
	CHECK_EQ(head.n, n);
	CHECK_EQ(head.first, s.first);
	CHECK_EQ(s.last, n);
	CHECK_EQ(lost, s.first - 1);
	CHECK(lost > 100);
	CHECK(s.n > 500);
	look(e, s.first + 3, 0, &lost);
	CHECK_EQ(lost, 0);
}

TEST(an_event_that_is_too_long_is_left_out_and_harms_no_other)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s6");

	put(e, "first", "");
	put_large(e, "long", EVENTS_LINE_MAX);
	put(e, "second", "");
	CHECK_EQ(look(e, 0, 0, NULL).last, 2);
	CHECK_STR(look(e, 0, 0, NULL).kind, "second");
}

TEST(many_processes_write_and_no_number_is_given_twice)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("s7");
	enum { WRITERS = 6, EACH = 50 };
	int status;

	for (int i = 0; i < WRITERS; i++) {
		if (fork() != 0)
			continue;
		for (int k = 0; k < EACH; k++)
			put(e, "one", "");
		_exit(0);
	}
	for (int i = 0; i < WRITERS; i++) {
		CHECK(wait(&status) > 0);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(look(e, 0, 0, NULL).n, WRITERS * EACH);
}

TEST_MAIN("event")
