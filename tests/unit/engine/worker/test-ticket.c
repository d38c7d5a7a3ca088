#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/worker/ticket.h"

/* A literal as a string that a ticket owns; nothing here writes to it. */
#define S(text) ((char *)(uintptr_t)(text))

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char *command[] = { S("make"), S("test"), NULL };
static char *labels[] = { S("arm64"), S("big"), NULL };
static char *env[] = { S("A=b=c"), S("EMPTY="), NULL };

static struct ticket sample(void)
{
	return (struct ticket){
		.snapshot = S("sha256:" HEX),
		.name = S("queue-1"),
		.remote = S("dir:/srv/depot"),
		.command = { .list = command, .n = 2 },
		.workdir = S("src/deep"),
		.env = { .list = env, .n = 2 },
		.limits = { .mem = 1 << 20 },
		.labels = { .list = labels, .n = 2 },
		.nonce = S("00112233445566778899aabbccddeeff"),
	};
}

/* Can it be written?  What is written can be read, and what cannot be written is refused when read. */
static int fits(const struct ticket *t)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };

	return ticket_encode(t, &text, &err);
}

TEST(a_ticket_comes_back_as_it_was_and_has_one_id)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, again = BUF_INIT;
	CLEANUP(ticket_done) struct ticket t = { 0 };
	char id[QUEUE_ID_SIZE], other[QUEUE_ID_SIZE];
	struct ticket from = sample();
	struct err err = { 0 };

	CHECK_OK(ticket_encode(&from, &text, &err), &err);
	CHECK_OK(ticket_decode(&text, &t, &err), &err);
	CHECK_STR(t.command.list[1], "test");
	CHECK_STR(t.env.list[0], "A=b=c");
	CHECK_EQ(t.limits.mem, 1 << 20);
	CHECK(!t.profile && !t.arm);
	CHECK_OK(ticket_encode(&t, &again, &err), &err);
	CHECK_STR(ticket_id(&text, id), ticket_id(&again, other));
	from.nonce = S("00112233445566778899aabbccddeef0");
	CHECK_OK(ticket_encode(&from, &again, &err), &err);
	ticket_id(&again, other);
	CHECK(strcmp(id, other) != 0);
}

/* Replace a part of the sample's text, and read that. */
static int read_changed(const char *part, const char *with)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, changed = BUF_INIT;
	CLEANUP(ticket_done) struct ticket t = { 0 };
	struct ticket from = sample();
	struct err err = { 0 };
	const char *all, *at;

	CHECK_OK(ticket_encode(&from, &text, &err), &err);
	all = buf_str(&text);
	at = strstr(all, part);
	CHECK(at != NULL);
	CHECK_EQ(buf_append(&changed, all, (size_t)(at - all)), 0);
	CHECK_EQ(buf_append_str(&changed, with), 0);
	CHECK_EQ(buf_append_str(&changed, at + strlen(part)), 0);
	return ticket_decode(&changed, &t, &err);
}

TEST(a_text_that_is_not_the_one_form_is_refused)
{
	CHECK_EQ(read_changed("{\"schema\"", "{\"more\":1,\"schema\""), -EINVAL);
	CHECK_EQ(read_changed("{\"schema\"", "{ \"schema\""), -EINVAL);
	CHECK_EQ(read_changed("\"deadline\":0", "\"deadline\":0,\"deadline\":0"), -EINVAL);
	CHECK_EQ(read_changed("\"deadline\":0", "\"deadline\":-1"), -EINVAL);
	CHECK_EQ(read_changed("snapcow.ticket/1", "snapcow.ticket/2"), -EINVAL);
	CHECK_EQ(read_changed("src/deep", "src/../.."), -EINVAL);
	CHECK_EQ(read_changed("src/deep", "/etc"), -EINVAL);
	CHECK_EQ(read_changed("\"make\"", "null"), -EINVAL);
	CHECK_EQ(read_changed("\"make\"", "{}"), -EINVAL);
	CHECK_EQ(read_changed("src/deep", "src/deep"), 0);
}

TEST(what_a_ticket_may_not_say_is_refused)
{
	static char *twice[] = { S("big"), S("big"), NULL }, *odd[] = { S("a.b"), NULL },
		    *any[] = { S("any"), NULL }, *unnamed[] = { S("=x"), NULL },
		    *bare[] = { S("NAME"), NULL };
	static char *const paths[] = { S(".."),  S("a/.."), S("/"), S("a//b"),
				       S("./a"), S("a/"),   S(".") };
	struct ticket t = sample();

	CHECK_EQ(fits(&t), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		t.workdir = paths[i];
		CHECK_EQ(fits(&t), -EINVAL);
	}
	t = sample();
	t.snapshot = S("latest");
	CHECK_EQ(fits(&t), -EINVAL);
	t = sample();
	t.command.n = 0;
	CHECK_EQ(fits(&t), -EINVAL);
	t = sample();
	t.labels.list = twice;
	CHECK_EQ(fits(&t), -EINVAL);
	t.labels = (struct strlist){ .list = odd, .n = 1 };
	CHECK_EQ(fits(&t), -EINVAL);
	t.labels.list = any;
	CHECK_EQ(fits(&t), -EINVAL);
	t = sample();
	t.env = (struct strlist){ .list = unnamed, .n = 1 };
	CHECK_EQ(fits(&t), -EINVAL);
	t.env.list = bare;
	CHECK_EQ(fits(&t), -EINVAL);
	t = sample();
	t.profile = S("../strict");
	CHECK_EQ(fits(&t), -EINVAL);
	t = sample();
	t.arm = S("\033[31m");
	CHECK_EQ(fits(&t), -EINVAL);
}

TEST(a_ticket_is_bounded)
{
	static char word[QUEUE_TICKET_MAX];
	static char *words[TICKET_WORDS_MAX + 2];
	struct ticket t = sample();

	memset(word, 'x', sizeof(word) - 1);
	command[1] = word;
	CHECK_EQ(fits(&t), -E2BIG);
	command[1] = S("test");
	for (size_t i = 0; i <= TICKET_WORDS_MAX; i++)
		words[i] = S("x");
	t.command = (struct strlist){ .list = words, .n = TICKET_WORDS_MAX + 1 };
	CHECK_EQ(fits(&t), -EINVAL);
	t.command.n = TICKET_WORDS_MAX;
	CHECK_EQ(fits(&t), 0);
}

TEST(a_result_comes_back_as_it_was_and_lies_about_no_code)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(result_done) struct result r = { 0 };
	struct result from = {
		.ticket = S(HEX), .outcome = S(RESULT_EXIT), .worker = S("w"), .code = 3
	};
	struct err err = { 0 };

	CHECK_OK(result_encode(&from, &text, &err), &err);
	CHECK_OK(result_decode(&text, &r, &err), &err);
	CHECK_EQ(r.code, 3);
	CHECK(!r.snapshot);
	from.code = 256;
	CHECK_EQ(result_encode(&from, &text, &err), -EINVAL);
	from.code = 0;
	from.outcome = S("fine");
	CHECK_EQ(result_encode(&from, &text, &err), -EINVAL);
}

/* What a worker wrote that knew of no signatures: its version is the reason, not what it lacks. */
TEST(a_result_of_another_version_is_refused_as_one)
{
	static const char old[] =
	    "{\"schema\":\"snapcow.result/1\",\"ticket\":\"" HEX "\",\"outcome\":\"exit\"}";
	static const char other[] = "{\"schema\":\"snapcow.ticket/1\"}";
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct result r = { 0 };
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(&text, old), 0);
	CHECK_EQ(result_decode(&text, &r, &err), -EINVAL);
	CHECK(strstr(err.msg, "another version of snapcow") && strstr(err.msg, "result/1"));
	buf_reset(&text);
	CHECK_EQ(buf_append_str(&text, other), 0);
	CHECK_EQ(result_decode(&text, &r, &err), -EINVAL);
	CHECK(strstr(err.msg, "it is no 'snapcow.result/2'"));
}

TEST(what_is_signed_of_a_result_leaves_out_what_its_maker_does_not_know)
{
	CLEANUP(buf_done) struct buf first = BUF_INIT, again = BUF_INIT;
	struct result from = { .ticket = S(HEX), .outcome = S(RESULT_EXIT), .worker = S("w") };
	struct err err = { 0 };

	CHECK_OK(result_statement(&from, &first, &err), &err);
	CHECK(strstr(buf_str(&first), "snapcow result 1\nticket " HEX "\ntext sha256:") ==
	      buf_str(&first));
	from.attempt = 2;
	from.out = from.err = 7;
	from.signature = S("-----BEGIN SSH SIGNATURE-----\n");
	CHECK_OK(result_statement(&from, &again, &err), &err);
	CHECK(strcmp(buf_str(&first), buf_str(&again)) == 0);
	from.code = 1;
	CHECK_OK(result_statement(&from, &again, &err), &err);
	CHECK(strcmp(buf_str(&first), buf_str(&again)) != 0);
	from.signature = S("\033[31m");
	CHECK_EQ(result_encode(&from, &again, &err), -EINVAL);
}

TEST_MAIN("ticket")
