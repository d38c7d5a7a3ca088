/* The chain of receipts, of which somebody cut the oldest entries and computed the rest anew. */
#include "cowfs/store/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "cowfs/store/record-i.h"
#include "tests/lib/stock.h"

#define KEPT (AUDIT_MAX / 2) /* that are left when snap has removed some */

static void add_number(struct sha256 *s, uint64_t n)
{
	uint8_t bytes[8];

	le64_store(bytes, n);
	sha256_add(s, bytes, sizeof(bytes));
}

static void add_text(struct sha256 *s, const char *text)
{
	add_number(s, strlen(text));
	sha256_add(s, text, strlen(text));
}

/* As docs/reference/format.md has it; without a receipt, a time and an entry before it. */
static void digest(struct audit *a, char hex[SHA256_HEX_SIZE])
{
	struct sha256 s;

	sha256_begin(&s);
	add_number(&s, a->number);
	add_number(&s, (uint64_t)a->time);
	add_number(&s, a->first);
	add_number(&s, a->kind);
	add_number(&s, a->gone);
	add_text(&s, a->subject);
	add_text(&s, "");
	add_text(&s, "");
	sha256_end_hex(&s, hex);
	a->digest = hex;
}

static void put_entry(struct batch *b, struct audit *a, const char *name)
{
	CLEANUP(record_ref_done) struct record_ref ref = { 0 };
	struct err err = { 0 };

	a->name = (char *)(uintptr_t)name;
	CHECK_OK(record_write(REF_AUDIT, a, &ref, &err), &err);
	CHECK_OK(ref_put(b, &ref.ref, REF_NEW, &err), &err);
}

static int count_cuts(const char *kind, const char *name, const char *problem, void *ctx,
		      struct err *err)
{
	(void)err;
	if (strstr(problem, "snap did not remove it")) {
		CHECK_STR(kind, "audit entry");
		snprintf(ctx, 17, "%s", name);
	}
	return 0;
}

/* The entry that an audit misses if the chain ends with this one and claims to begin there; "": none. */
static const char *missed(const char *store, uint64_t number, uint64_t first)
{
	static char cut[17];
	CLEANUP(store_close_p) struct store *s = stock_open(test_path(store), STORE_CREATE);
	struct audit a = { .number = number,
			   .time = 1,
			   .first = first,
			   .kind = REF_RECEIPT,
			   .gone = 1,
			   .subject = (char[]){ "0011223344556677" } };
	struct batch *b = stock_begin(s);
	char hex[SHA256_HEX_SIZE], name[17];
	struct audit_state state;
	struct err err = { 0 };

	digest(&a, hex);
	snprintf(name, sizeof(name), "%016" PRIx64, number);
	put_entry(b, &a, name);
	put_entry(b, &a, AUDIT_HEAD);
	stock_commit(b);
	batch_end(b);
	cut[0] = '\0';
	CHECK_OK(audit_verify(s, NULL, count_cuts, cut, &state, &err), &err);
	CHECK_EQ(state.entries, 1);
	CHECK_EQ(state.number, number);
	return cut;
}

TEST(the_oldest_entries_go_when_there_are_too_many_and_not_before)
{
	CHECK_STR(missed("all", 1, 1), "");
	CHECK_STR(missed("many", AUDIT_MAX, 1), "");
	CHECK_STR(missed("cut", 3, 3), "0000000000000002");
	CHECK_STR(missed("few", 100 + KEPT - 1, 100), "0000000000000063");
	CHECK_STR(missed("enough", 100 + KEPT, 100), "");
}

TEST_MAIN("audit")
