/*
 * Whatever comes through a queue or over ssh: what is read as a ticket, a result or a question is written as exactly
 * the same bytes, and nothing in it leads out of the project.  The first byte says which of them the rest is.
 */
#include <string.h>

#include "base/cleanup.h"
#include "engine/worker/ticket.h"
#include "remote/ticket-line.h"
#include "tests/fuzz/fuzz.h"

static void check_same(const struct buf *a, const struct buf *b)
{
	FUZZ_CHECK(a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

static void check_ticket(const struct buf *text)
{
	CLEANUP(ticket_done) struct ticket t = { 0 };
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct err err = { 0 };

	if (ticket_decode(text, &t, &err) < 0) {
		FUZZ_CHECK(err.msg[0] != '\0');
		return;
	}
	FUZZ_CHECK(ticket_encode(&t, &again, &err) == 0);
	check_same(text, &again);
	FUZZ_CHECK(text->len <= QUEUE_TICKET_MAX && t.command.n > 0 && t.workdir[0] != '/');
	FUZZ_CHECK(strcmp(t.workdir, "..") != 0 && strncmp(t.workdir, "../", 3) != 0 &&
		   !strstr(t.workdir, "/../"));
	FUZZ_CHECK(!t.profile || !strchr(t.profile, '/'));
	for (size_t i = 0; i < t.labels.n; i++)
		FUZZ_CHECK(queue_word_valid(t.labels.list[i]));
}

static void check_result(const struct buf *text)
{
	CLEANUP(result_done) struct result r = { 0 };
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct err err = { 0 };

	if (result_decode(text, &r, &err) < 0) {
		FUZZ_CHECK(err.msg[0] != '\0');
		return;
	}
	FUZZ_CHECK(result_encode(&r, &again, &err) == 0);
	check_same(text, &again);
	FUZZ_CHECK(r.code <= 255 && strlen(r.ticket) == QUEUE_ID_SIZE - 1);
}

/* A message whose type is the first byte. */
static void check_question(const uint8_t *data, size_t len)
{
	CLEANUP(stream_done) struct stream s = { .in = -1, .out = -1, .at = 1 };
	CLEANUP(stream_done) struct stream again = { .in = -1, .out = -1 };
	CLEANUP(ticket_question_done) struct ticket_question q = { 0 };

	FUZZ_CHECK(buf_append(&s.got, data, len) == 0);
	if (ticket_question_read(&s, &q) < 0)
		return;
	FUZZ_CHECK(q.mode <= TICKET_CANCEL && q.text.len > 0 && q.path);
	stream_begin(&again, (enum stream_type)data[0]);
	stream_add_u32(&again, (uint32_t)q.mode);
	stream_add_text(&again, q.path);
	stream_add_u64(&again, q.attempt);
	stream_add_u64(&again, q.at[0]);
	stream_add_u64(&again, q.at[1]);
	stream_add_raw(&again, q.text.data, q.text.len);
	FUZZ_CHECK(!again.bad && again.sends.len == len + 4 &&
		   memcmp(again.sends.data + 4, data, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (len == 0)
		return 0;
	FUZZ_CHECK(buf_append(&text, data + 1, len - 1) == 0);
	if (data[0] == 't')
		check_ticket(&text);
	else if (data[0] == STREAM_TICKET)
		check_question(data, len);
	else
		check_result(&text);
	return 0;
}
