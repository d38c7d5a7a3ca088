#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/run/scrub.h"

static void add(struct scrub *s, const char *value)
{
	struct err err = { 0 };

	CHECK_OK(scrub_add(s, "NAME", value, strlen(value), &err), &err);
}

/* What comes of a stream that is written in pieces of so many bytes. */
static void expect(const struct scrub *s, const char *in, size_t piece, const char *want)
{
	CLEANUP(scrub_stream_done) struct scrub_stream stream = { .scrub = s };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const size_t len = strlen(in);

	for (size_t at = 0; at < len; at += piece)
		CHECK_EQ(scrub_write(&stream, in + at, len - at < piece ? len - at : piece, &out),
			 0);
	CHECK_EQ(scrub_end(&stream, &out), 0);
	CHECK_STR(buf_str(&out), want);
}

TEST(a_secret_is_taken_out_however_it_is_cut)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };

	add(&s, "hunter2");
	for (size_t piece = 1; piece < 40; piece++) {
		expect(&s, "a hunter2, hunter2hunter2 and huntehunter2", piece,
		       "a ***, ****** and hunte***");
		expect(&s, "hunter", piece, "hunter");
		expect(&s, "", piece, "");
	}
}

TEST(the_longest_of_several_counts)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };

	add(&s, "abcd");
	add(&s, "abcdefgh");
	add(&s, "cdxx");
	for (size_t piece = 1; piece < 30; piece++) {
		expect(&s, "abcdefgh abcdefg abcdxx abcabcd", piece, "*** ***efg *** abc***");
		expect(&s, "abcdef", piece, "***ef");
	}
}

TEST(of_secrets_that_overlap_nothing_stays_readable)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };

	add(&s, "swordfish");
	add(&s, "fishmonger");
	add(&s, "gerbils");
	for (size_t piece = 1; piece < 40; piece++) {
		expect(&s, "a swordfishmonger, swordfishmongerbils.", piece, "a ***, ***.");
		expect(&s, "swordfishmongerbil", piece, "***bil");
		expect(&s, "swordfishmong", piece, "***mong");
	}
}

TEST(what_is_clear_is_not_held_back)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };
	CLEANUP(scrub_stream_done) struct scrub_stream stream = { .scrub = &s };
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	add(&s, "hunter2");
	CHECK_EQ(scrub_write(&stream, "say hunt", 8, &out), 0);
	CHECK_STR(buf_str(&out), "say ");
	CHECK_EQ(scrub_write(&stream, "s", 1, &out), 0);
	CHECK_STR(buf_str(&out), "say hunts");
}

TEST(without_secrets_all_passes)
{
	const struct scrub s = { 0 };
	AUTO_FREE char *text = scrub_text(&s, "as it is");

	expect(&s, "as it is", 3, "as it is");
	CHECK_STR(text, "as it is");
}

TEST(a_secret_that_is_too_short_is_refused_and_not_told)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };
	struct err err = { 0 };

	CHECK_EQ(scrub_add(&s, "PIN", "123", 3, &err), -EINVAL);
	CHECK(strstr(err.msg, "'PIN'"));
	CHECK(!strstr(err.msg, "123"));
	CHECK_EQ(scrub_add(&s, "PIN", "", 0, &err), -EINVAL);
}

TEST(a_secret_of_many_lines_is_taken_out_as_a_whole_and_by_its_lines)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };

	add(&s, "-----BEGIN KEY-----\nMIIEvQIBADAN\n  BgkqhkiG9w0B  \r\n}\nname\n");
	for (size_t piece = 1; piece < 80; piece++) {
		expect(&s, "a-----BEGIN KEY-----\nMIIEvQIBADAN\n  BgkqhkiG9w0B  \r\n}\nname\nb",
		       piece, "a***b");
		expect(&s, "> MIIEvQIBADAN\r\n> BgkqhkiG9w0B\r\n", piece, "> ***\r\n> ***\r\n");
		expect(&s, "{ name } MIIEvQ", piece, "{ name } MIIEvQ");
	}
}

TEST(the_end_of_a_line_is_no_part_of_a_secret)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };

	add(&s, "pass\n");
	expect(&s, "pass, pass\n", 1, "***, ***");
}

TEST(a_word_is_scrubbed_as_a_whole)
{
	CLEANUP(scrub_done) struct scrub s = { 0 };
	AUTO_FREE char *text = NULL;

	add(&s, "hunter2");
	text = scrub_text(&s, "--password=hunter2");
	CHECK_STR(text, "--password=***");
}

TEST_MAIN("scrub")
