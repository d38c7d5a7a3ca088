#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>

#include "base/json.h"

/* What json_print() writes, in a buffer that the next call replaces. */
static const char *printed(const struct json_doc *doc)
{
	static char text[4096];
	struct err err = { 0 };
	FILE *f = fmemopen(text, sizeof(text), "w");

	CHECK(f != NULL);
	CHECK_OK(json_print(doc, f, &err), &err);
	fclose(f);
	return text;
}

/* Undo the escape of names, by the rule of json.h and nothing else. */
static size_t unescape(const char *s, char *out)
{
	size_t n = 0;
	unsigned byte;

	while (*s != '\0') {
		if (*s == '\\') {
			CHECK_EQ(sscanf(s, "\\\\x%2x", &byte), 1); /* the JSON text doubles it */
			out[n++] = (char)byte;
			s += 5;
		} else {
			out[n++] = *s++;
		}
	}
	return n;
}

TEST(every_kind_of_value_is_printed_compactly_in_the_order_it_was_set)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), list, sub;

	json_set_null(j, "none");
	json_set_bool(j, "yes", true);
	json_set_int(j, "low", INT64_MIN);
	json_set_uint(j, "high", UINT64_MAX);
	json_set_double(j, "ratio", 2.0 / 3, 2);
	json_set_text(j, "text", "a/b");
	list = json_set_array(j, "list");
	json_add_text(list, "x");
	json_add_name(list, "y");
	json_set_uint(json_add_object(list), "n", 1);
	sub = json_set_object(j, "sub");
	json_set_text(sub, "absent", NULL);
	json_set_name(sub, "nameless", NULL);
	CHECK_STR(
	    printed(&doc),
	    "{\"none\":null,\"yes\":true,\"low\":-9223372036854775808,"
	    "\"high\":18446744073709551615,\"ratio\":0.67,\"text\":\"a/b\","
	    "\"list\":[\"x\",\"y\",{\"n\":1}],\"sub\":{\"absent\":null,\"nameless\":null}}\n");
}

TEST(a_key_set_twice_keeps_the_last_value)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	json_set_uint(j, "k", 1);
	json_set_uint(j, "k", 2);
	CHECK_STR(printed(&doc), "{\"k\":2}\n");
}

TEST(text_keeps_every_valid_character_and_shows_the_bytes_that_are_none)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	json_set_text(j, "a", "h\xc3\xa9\n\"\\x");
	json_set_text(j, "b", "h\xff\xc3!");
	json_set_text_len(j, "c", "x\0y", 3);
	json_set_text(j, "d", "");
	CHECK_STR(printed(&doc), "{\"a\":\"h\xc3\xa9\\n\\\"\\\\x\",\"b\":\"h\\\\xff\\\\xc3!\","
				 "\"c\":\"x\\u0000y\",\"d\":\"\"}\n");
}

TEST(a_name_survives_whatever_bytes_it_has)
{
	char name[256], back[4 * 256], *start, *end;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	for (int i = 1; i < 256; i++)
		name[i - 1] = (char)i;
	name[255] = '\0';
	name['"' - 1] = 'q'; /* JSON's own escape of the quote is not under test */
	json_set_name(j, "k", name);
	start = strstr(printed(&doc), "\":\"");
	CHECK(start != NULL);
	start += 3;
	end = strrchr(start, '"');
	CHECK(end != NULL);
	*end = '\0';
	CHECK_MEM(back, unescape(start, back), name, 255);
}

TEST(a_backslash_in_a_name_cannot_pose_as_an_escape)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	json_set_name(j, "k", "\\xff");
	json_set_name(j, "l", "\xff");
	json_set_name(j, "m", "");
	json_set_name_len(j, "n", "h\xc3\xa9llo", 3);
	CHECK_STR(printed(&doc), "{\"k\":\"\\\\x5cxff\",\"l\":\"\\\\xff\",\"m\":\"\","
				 "\"n\":\"h\xc3\xa9\"}\n");
}

TEST(raw_bytes_become_base64)
{
	static const struct {
		const char *raw, *want;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "\xff\xfe", "//4=" },
		{ "\xfb\xef\xbe", "++++" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j = json_begin(&doc);
		char want[64];

		json_set_raw(j, "k", cases[i].raw, strlen(cases[i].raw));
		snprintf(want, sizeof(want), "{\"k\":\"%s\"}\n", cases[i].want);
		CHECK_STR(printed(&doc), want);
	}
}

TEST(a_document_that_ran_out_of_memory_is_not_printed)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	char text[64] = "";
	struct err err = { 0 };
	FILE *f = fmemopen(text, sizeof(text), "w");

	doc.failed = true;
	json_set_uint(json_set_object(j, "sub"), "n", 1);
	CHECK_EQ(json_print(&doc, f, &err), -ENOMEM);
	fclose(f);
	CHECK_STR(text, "");
	CHECK_STR(err.msg, "out of memory");
}

TEST(a_stream_that_takes_nothing_is_a_failure)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	struct err err = { 0 };
	FILE *f = fopen("/dev/full", "we");

	if (!f)
		TEST_SKIP("there is no /dev/full");
	setvbuf(f, NULL, _IONBF, 0);
	json_set_uint(j, "n", 1);
	CHECK_EQ(json_print(&doc, f, &err), -ENOSPC);
	fclose(f);
}

TEST_MAIN("json")
