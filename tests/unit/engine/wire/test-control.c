#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdio.h"
#include "engine/wire/control-i.h"

/* Two ends of one line. */
struct ends {
	struct control ours;
	int theirs;
};

static void ends_done(struct ends *e)
{
	control_done(&e->ours);
	cleanup_close(&e->theirs);
}

static struct ends ends_make(void)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	return (struct ends){ .ours = { .fd = fds[0] }, .theirs = fds[1] };
}

static void say(const struct ends *e, const char *text)
{
	CHECK_EQ(fdio_write(e->theirs, text, strlen(text)), 0);
}

static uint64_t read_number(struct ends *e)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	struct json j;

	CHECK_EQ(control_read(&e->ours, 1000, &doc, &j, &err), 1);
	return json_get_uint(j, "n");
}

TEST(lines_are_read_one_by_one_however_they_come)
{
	CLEANUP(ends_done) struct ends e = ends_make();
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	struct json j;

	say(&e, "{\"n\":1}\n{\"n\":2}\n{\"n\"");
	CHECK_EQ(read_number(&e), 1);
	CHECK_EQ(read_number(&e), 2);
	say(&e, ":3}\n");
	CHECK_EQ(read_number(&e), 3);
	say(&e, "{\"n\":4"); /* half a line before the end is none */
	shutdown(e.theirs, SHUT_WR);
	CHECK_EQ(control_read(&e.ours, 1000, &doc, &j, &err), 0);
}

TEST(a_line_that_is_too_long_or_no_object_is_refused)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	struct json j;

	for (int i = 0; i < 3; i++) {
		CLEANUP(ends_done) struct ends e = ends_make();

		say(&e, i == 0   ? "{\"text\":\"aaaaaaaaaaaaaaaaaaaaaaaa\"}\n"
			: i == 1 ? "{\"text\":\"aaaaaaaaaaaaaaaaaaaaaaaa"
				 : "hello\n");
		CHECK_EQ(control_read(&e.ours, 16, &doc, &j, &err), i < 2 ? -EMSGSIZE : -EPROTO);
		CHECK_HAS(err.msg, "a line on the control socket");
	}
}

TEST(who_does_not_listen_is_not_waited_for_unless_wanted)
{
	CLEANUP(ends_done) struct ends e = ends_make();
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	size_t sent = 0;
	int r;

	json_set_uint(json_begin(&doc), "n", 7);
	do
		r = control_write(e.theirs, &doc, false, &err);
	while (r >= 0 && ++sent < 1000000);
	CHECK_EQ(r, -EAGAIN);
	for (; sent > 0; sent--)
		CHECK_EQ(read_number(&e), 7); /* every line that went is whole */
	CHECK_OK(control_write(e.theirs, &doc, true, &err), &err);
	CHECK_EQ(read_number(&e), 7);
}

TEST(who_is_gone_is_an_error_and_no_signal)
{
	CLEANUP(ends_done) struct ends e = ends_make();
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };

	json_set_uint(json_begin(&doc), "n", 7);
	close(TAKE_FD(e.theirs));
	CHECK_EQ(control_write(e.ours.fd, &doc, true, &err), -EPIPE);
}

/* What was written, read back. */
static struct json back(const struct json_doc *doc, struct json_doc *ret, struct buf *text)
{
	struct err err = { 0 };
	struct json j;

	CHECK_OK(json_append(doc, text, &err), &err);
	CHECK_OK(json_parse(ret, (const char *)text->data, text->len - 1, &j, &err), &err);
	return j;
}

TEST(every_failure_keeps_its_code_and_its_sentence)
{
	for (int code = 1; code < 134; code++) {
		CLEANUP(json_done) struct json_doc out = { 0 }, in = { 0 };
		CLEANUP(buf_done) struct buf text = BUF_INIT;
		struct err err = { 0 }, got = { 0 };

		err_set(&err, -code, "'a\xff\n\\b': it failed");
		control_set_error(json_begin(&out), -code, &err);
		CHECK_EQ(control_get_error(back(&out, &in, &text), &got), -code);
		CHECK_EQ(got.code, -code);
		CHECK_STR(got.msg, err.msg);
	}
}

TEST(a_failure_without_a_sentence_has_none_on_the_other_side)
{
	CLEANUP(json_done) struct json_doc out = { 0 }, in = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 }, got = { 0 };

	err_set(&err, -EIO, "of something else");
	control_set_error(json_begin(&out), -ENOENT, &err);
	CHECK_EQ(control_get_error(back(&out, &in, &text), &got), -ENOENT);
	CHECK_EQ(got.code, 0);
}

TEST(an_error_of_no_known_kind_is_still_an_error)
{
	static const char *const lines[] = {
		"{\"error\":{\"code\":\"EFUTURE\",\"message\":\"m\"}}",
		"{\"error\":{\"code\":\"\",\"message\":\"m\"}}",
		"{\"error\":{\"code\":\"E0\",\"message\":\"m\"}}",
		"{\"error\":{}}",
		"{\"error\":7}",
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct err err = { 0 };
		struct json j;

		CHECK_OK(json_parse(&doc, lines[i], strlen(lines[i]), &j, &err), &err);
		CHECK_EQ(control_get_error(j, &err), i < 3 ? -EIO : -EPROTO);
	}
}

TEST(a_greeting_and_progress_survive_the_way)
{
	CLEANUP(json_done) struct json_doc out = { 0 }, in = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct control_hello hello = {
		.protocol = 1, .version = "1.2.3", .pid = 42, .busy = true, .mounted = 7
	};
	const struct engine_progress p = {
		.doing = "reading", .files = 1, .bytes = 2, .done = 3, .total = 4
	};
	struct control_hello got;
	struct engine_progress q;
	struct err err = { 0 };
	struct json j = json_begin(&out);

	control_set_hello(j, &hello);
	control_set_progress(j, &p);
	j = back(&out, &in, &text);
	CHECK_OK(control_get_hello(j, &got, &err), &err);
	CHECK_STR(got.version, "1.2.3");
	CHECK(got.protocol == 1 && got.pid == 42 && got.busy && got.mounted == 7);
	q = control_get_progress(j);
	CHECK_STR(q.doing, "reading");
	CHECK(q.files == 1 && q.bytes == 2 && q.done == 3 && q.total == 4);
}

TEST_MAIN("control")
