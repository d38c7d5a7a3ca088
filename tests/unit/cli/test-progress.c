/*
 * Lines of progress, by a clock that the test sets.
 */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

static uint64_t now_ms;

static uint64_t test_clock(void)
{
	return now_ms;
}

struct shown {
	FILE *to;
	char *text;
	size_t len;
	struct progress p;
	struct engine_watch watch;
};

static void show(struct shown *s, enum progress_way way)
{
	now_ms = 1000 * 1000;
	*s = (struct shown){ 0 };
	s->to = open_memstream(&s->text, &s->len);
	CHECK(s->to != NULL);
	progress_init_way(&s->p, s->to, way, test_clock);
	s->watch = progress_watch(&s->p);
}

/* At so many ms after the start. */
static void tell(struct shown *s, uint64_t at, struct engine_progress what)
{
	now_ms = 1000 * 1000 + at;
	s->watch.fn(&what, s->watch.ctx);
}

static void check_shown(struct shown *s, const char *want)
{
	progress_done(&s->p);
	CHECK_EQ(fclose(s->to), 0);
	CHECK_STR(s->text, want);
	free(s->text);
}

#define READING(...) ((struct engine_progress){ .doing = "reading", __VA_ARGS__ })

TEST(on_a_terminal_one_line_is_drawn_again_and_again_and_taken_away)
{
	struct shown s;

	show(&s, PROGRESS_LINE);
	tell(&s, 999, READING(.files = 1));
	tell(&s, 1000, READING(.files = 1200));
	tell(&s, 1099, READING(.files = 1300));
	tell(&s, 1100, READING(.files = 1400));
	check_shown(&s, "\rreading  1,200 files\033[K\rreading  1,400 files\033[K\r\033[K");
}

TEST(what_is_counted_has_a_share_and_a_time_left)
{
	struct shown s;

	show(&s, PROGRESS_LINE);
	tell(&s, 10000, READING(.done = 25, .total = 100));
	check_shown(&s,
		    "\rreading  [======>                 ]  25%  25 of 100 objects  30s left\033[K"
		    "\r\033[K");
}

TEST(off_a_terminal_there_is_a_plain_line_every_few_seconds)
{
	struct shown s;

	show(&s, PROGRESS_PLAIN);
	tell(&s, 1000, READING(.files = 1));
	tell(&s, 4999, READING(.files = 2));
	tell(&s, 5000, READING(.files = 3000));
	tell(&s, 9999, READING(.files = 4000));
	tell(&s, 10000, READING(.files = 5000, .done = 5000, .total = 20000));
	check_shown(&s, "reading  3,000 files\nreading   25%  30s left  5,000 files\n");
}

TEST(a_short_act_and_one_that_nobody_looks_at_have_no_line)
{
	struct shown s;

	show(&s, PROGRESS_PLAIN);
	tell(&s, 4000, READING(.files = 3000));
	check_shown(&s, "");
	show(&s, PROGRESS_NONE);
	tell(&s, 60000, READING(.files = 3000));
	check_shown(&s, "");
}

/* Of an act in two parts the second has its own time. */
TEST(the_time_left_is_that_of_the_part_that_runs)
{
	struct shown s;

	show(&s, PROGRESS_PLAIN);
	tell(&s, 60000, READING(.files = 10));
	tell(&s, 61000, ((struct engine_progress){ .doing = "writing", .total = 100 }));
	tell(&s, 71000, ((struct engine_progress){ .doing = "writing", .done = 50, .total = 100 }));
	check_shown(&s, "reading  10 files\nwriting   50%  50 of 100 objects  10s left\n");
}

TEST(a_check_is_named_on_a_terminal_while_it_runs)
{
	struct shown s;
	char word[100];

	show(&s, PROGRESS_LINE);
	progress_show_check(&s.p, "make\a test");
	check_shown(&s, "\rchecking  make\\x07 test\033[K\r\033[K");
	memset(word, 'a', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	show(&s, PROGRESS_LINE);
	progress_show_check(&s.p, word);
	check_shown(&s, "\rchecking\033[K\r\033[K");
	show(&s, PROGRESS_PLAIN);
	progress_show_check(&s.p, "make test");
	check_shown(&s, "");
}

TEST_MAIN("progress")
