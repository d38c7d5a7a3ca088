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

static void set_number(struct json j, const int *n)
{
	json_set_int(j, "n", *n);
}

TEST(a_list_becomes_an_array_with_an_object_for_each_element)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json j = json_begin(&doc);
	const int list[] = { 3, 1, 2 };

	JSON_SET_LIST(j, "some", list, 2, set_number);
	JSON_SET_LIST(j, "none", list, 0, set_number);
	CHECK_STR(printed(&doc), "{\"some\":[{\"n\":3},{\"n\":1}],\"none\":[]}\n");
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
	CHECK_STR(printed(&doc), "{\"k\":\"\\\\x5cxff\",\"l\":\"\\\\xff\",\"m\":\"\"}\n");
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

/* --- reading ---------------------------------------------------------------------------- */

static struct json parsed(struct json_doc *doc, const char *text)
{
	struct err err = { 0 };
	struct json j;

	CHECK_OK(json_parse(doc, text, strlen(text), &j, &err), &err);
	return j;
}

TEST(every_kind_of_value_is_read_back)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = parsed(&doc, "{\"yes\":true,\"low\":-9223372036854775808,"
				     "\"high\":18446744073709551615,\"text\":\"h\\u00e9\\n\","
				     "\"list\":[{\"n\":1},\"x\\\\xff\"],\"sub\":{\"none\":null}}");
	struct json list = json_get_array(j, "list"), sub = json_get_object(j, "sub");
	AUTO_FREE char *name = NULL;
	struct err err = { 0 };

	CHECK(json_get_bool(j, "yes"));
	CHECK(json_get_int(j, "low") == INT64_MIN);
	CHECK(json_get_uint(j, "high") == UINT64_MAX);
	CHECK_STR(json_get_text(j, "text"), "h\xc3\xa9\n");
	CHECK_EQ(json_length(list), 2);
	CHECK_EQ(json_get_uint(json_at_object(list, 0), "n"), 1);
	name = json_at_name(list, 1);
	CHECK_STR(name, "x\xff");
	CHECK(!json_has(sub, "none"));
	CHECK(!json_has(sub, "absent"));
	CHECK(json_has(j, "yes"));
	CHECK(json_get_text_or_null(sub, "none") == NULL);
	CHECK(json_get_name_or_null(sub, "absent") == NULL);
	CHECK_OK(json_end(&doc, &err), &err);
}

TEST(a_name_with_any_bytes_survives_being_written_and_read)
{
	CLEANUP(json_done) struct json_doc out = { 0 }, in = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *back = NULL;
	struct err err = { 0 };
	char name[256];
	struct json j;

	for (int i = 1; i < 256; i++)
		name[i - 1] = (char)i;
	name[255] = '\0';
	json_set_name(json_begin(&out), "k", name);
	CHECK_OK(json_append(&out, &text, &err), &err);
	CHECK_EQ(text.data[text.len - 1], '\n');
	CHECK_OK(json_parse(&in, (const char *)text.data, text.len - 1, &j, &err), &err);
	back = json_get_name(j, "k");
	CHECK_STR(back, name);
	CHECK_OK(json_end(&in, &err), &err);
}

TEST(what_is_not_as_asked_for_is_said_of_the_first_thing)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "{}", "'k' is missing" },
		{ "{\"k\":null}", "'k' is missing" },
		{ "{\"k\":\"1\"}", "'k' is no number" },
		{ "{\"k\":1.5}", "'k' is no number" },
		{ "{\"k\":-1}", "'k' is negative" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j = parsed(&doc, cases[i].text);
		struct err err = { 0 };

		CHECK_EQ(json_get_uint(j, "k"), 0);
		CHECK_EQ(json_get_uint(j, "later"), 0);
		CHECK_EQ(json_end(&doc, &err), -EINVAL);
		CHECK_STR(err.msg, cases[i].want);
	}
}

TEST(each_type_is_told_from_the_others)
{
	static const char text[] = "{\"bool\":true,\"int\":1,\"text\":\"t\",\"list\":[],\"sub\":{},"
				   "\"large\":9223372036854775808,\"nul\":\"a\\u0000b\"}";
	static const struct {
		const char *key;
		char kind;
		const char *want;
	} cases[] = {
		{ "int", 'b', "'int' is not true or false" },
		{ "sub", 'a', "'sub' is no list" },
		{ "list", 'o', "'list' is no object" },
		{ "int", 't', "'int' is no string" },
		{ "bool", 'n', "'bool' is no string" },
		{ "large", 'i', "'large' is too large" },
		{ "nul", 't', "'nul' has a zero byte in it" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j = parsed(&doc, text);
		struct err err = { 0 };

		switch (cases[i].kind) {
		case 'b':
			CHECK(!json_get_bool(j, cases[i].key));
			break;
		case 'a':
			CHECK_EQ(json_length(json_get_array(j, cases[i].key)), 0);
			break;
		case 'o':
			/* What is asked of an object that is none is as absent as it. */
			CHECK_EQ(json_get_uint(json_get_object(j, cases[i].key), "n"), 0);
			break;
		case 't':
			CHECK(json_get_text(j, cases[i].key) == NULL);
			break;
		case 'n':
			CHECK(json_get_name(j, cases[i].key) == NULL);
			break;
		case 'i':
			CHECK_EQ(json_get_int(j, cases[i].key), 0);
			break;
		}
		CHECK_EQ(json_end(&doc, &err), -EINVAL);
		CHECK_STR(err.msg, cases[i].want);
	}
}

TEST(a_name_with_a_broken_escape_is_none)
{
	static const char *const cases[] = { "\\\\",    "\\\\x",   "\\\\x1",
					     "\\\\xzz", "\\\\x00", "\\\\n41" };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct err err = { 0 };
		char text[64];

		snprintf(text, sizeof(text), "{\"k\":\"a%s\"}", cases[i]);
		CHECK(json_get_name(parsed(&doc, text), "k") == NULL);
		CHECK_EQ(json_end(&doc, &err), -EINVAL);
		CHECK_HAS(err.msg, "'k' is no name");
	}
}

TEST(text_that_is_not_one_object_is_refused)
{
	static const char *const cases[] = {
		"",
		"{",
		"[]",
		"1",
		"null",
		"{\"a\":1",
		"{}{}",
		"{} x",
		"{a:1}",
		"{\"a\":1,}",
		"{\"a\":\"\xff\"}",
		"{\"a\"}",
		"{\"a\":tru}",
		"\"text\"",
		"{\"a\":+1}",
		"{\"\xc3\xa9\":1",
		"{\xc3\xa9:1}",
		"{\"a\":\"\xc3\xa9\"} x",
		"{\"a\":\"\xc3\"}",
		"{\"a\":\"\xed\xa0\x80\"}", /* half a pair of UTF-16 */
		"{\"a\":\"\\\xc3\xa9\"}",   /* an escape of no letter */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct err err = { 0 };
		struct json j;

		CHECK_EQ(json_parse(&doc, cases[i], strlen(cases[i]), &j, &err), -EINVAL);
		CHECK_HAS(err.msg, "JSON at byte ");
		CHECK(doc.root == NULL);
	}
}

/* json-c 0.18 refuses all of these on x86_64, if it sees them. */
TEST(characters_of_every_length_are_read)
{
	static const char text[] = "{\"k\xc3\xa9y\":\"\\\\\xc3\xa9 \xe2\x82\xac "
				   "\xf0\x9f\x98\x80 \xef\xbf\xbf\xf0\x90\x80\x80\"}";
	CLEANUP(json_done) struct json_doc doc = { 0 }, out = { 0 };
	struct err err = { 0 };
	struct json j;

	CHECK_OK(json_parse(&doc, text, strlen(text), &j, &err), &err);
	CHECK_STR(json_get_text(j, "k\xc3\xa9y"),
		  "\\\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbf\xf0\x90\x80\x80");
	CHECK_OK(json_end(&doc, &err), &err);
	j = json_begin(&out);
	CHECK(json_set_parsed(j, "k", "\"\xc3\xa9\"", 4));
	CHECK(!json_set_parsed(j, "k", "\"\xc3\"", 3));
}

TEST(the_byte_at_which_a_text_is_wrong_is_that_of_the_text)
{
	static const char text[] = "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\",\"b\":x}";
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	struct json j;

	CHECK_EQ(json_parse(&doc, text, strlen(text), &j, &err), -EINVAL);
	CHECK_HAS(err.msg, "JSON at byte 18: ");
}

TEST(nesting_without_end_is_refused)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	char text[4096];
	struct json j;

	for (size_t i = 0; i < sizeof(text); i += 5)
		memcpy(text + i, "{\"a\":", sizeof(text) - i < 5 ? sizeof(text) - i : 5);
	CHECK_EQ(json_parse(&doc, text, sizeof(text), &j, &err), -EINVAL);
}

TEST_MAIN("json")
