/*
 * Whatever comes through a queue: what is read as a ticket or a result is written as exactly the same bytes,
 * and nothing in it leads out of the project.  The first byte says which of the two the rest is.
 */
#include <string.h>

#include "base/cleanup.h"
#include "engine/worker/ticket.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (len == 0)
		return 0;
	FUZZ_CHECK(buf_append(&text, data + 1, len - 1) == 0);
	if (data[0] == 't')
		check_ticket(&text);
	else
		check_result(&text);
	return 0;
}
