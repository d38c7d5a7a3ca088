#include "tests/lib/test.h"

#include <errno.h>

#include "base/fields.h"
#include "base/vec.h"

enum color { RED, GREEN };

struct leaf {
	char *name;
	char letter;
};

struct plant {
	bool wet;
	int64_t born;
	uint64_t height;
	enum color color;
	char id[5];
	char *title, *note;
	const char *kind;
	struct leaf top;
	struct leaf *leaves;
	size_t n_leaves;
	char **words;
	size_t n_words;
	int untold;
};

static const char *kind_of(const char *text)
{
	return text && strcmp(text, "tree") == 0 ? "tree" : "unknown";
}

static const struct field leaf_fields[] = {
	FIELD(FIELD_NAME, struct leaf, name),
	FIELD(FIELD_CHAR, struct leaf, letter),
};
static const struct fields leaf = FIELDS(struct leaf, leaf_fields);

static const struct field plant_fields[] = {
	FIELD(FIELD_BOOL, struct plant, wet),
	FIELD(FIELD_INT, struct plant, born),
	FIELD(FIELD_UINT, struct plant, height),
	FIELD(FIELD_UINT, struct plant, color),
	FIELD(FIELD_ID, struct plant, id),
	FIELD(FIELD_NAME, struct plant, title),
	FIELD(FIELD_TEXT_OR_NULL, struct plant, note),
	FIELD_WORD_OF(struct plant, kind, kind_of),
	FIELD_OF(struct plant, "crown", top, &leaf),
	FIELD_LIST_OF(FIELD_LIST, struct plant, "leaves", leaves, n_leaves, &leaf),
	FIELD_LIST_OF(FIELD_NAMES, struct plant, "words", words, n_words, NULL),
};
static const struct fields plant = FIELDS(struct plant, plant_fields);

static void plant_done(struct plant *p)
{
	fields_done(&plant, p);
}

/* What is said of `p` is heard as `ret`. */
static int pass(const struct plant *p, struct plant *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc out = { 0 }, in = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j;

	fields_set(json_begin(&out), &plant, p);
	CHECK_OK(json_append(&out, &text, err), err);
	CHECK_OK(json_parse(&in, buf_str(&text), strlen(buf_str(&text)), &j, err), err);
	return fields_read(j, &plant, ret, err);
}

TEST(what_is_said_is_heard)
{
	CLEANUP(plant_done) struct plant got = { .untold = 7 };
	char title[] = "a\xff\\b", one[] = "one", two[] = "two", top[] = "top";
	char *words[] = { two, one };
	struct leaf leaves[] = { { one, 'A' }, { two, 'B' } };
	const struct plant p = {
		.wet = true,
		.born = -5,
		.height = UINT64_MAX,
		.color = GREEN,
		.id = "0123",
		.title = title,
		.kind = "tree",
		.top = { top, '!' },
		.leaves = leaves,
		.n_leaves = 2,
		.words = words,
		.n_words = 2,
		.untold = 9,
	};
	struct err err = { 0 };

	CHECK_OK(pass(&p, &got, &err), &err);
	CHECK(got.wet && got.born == -5 && got.height == UINT64_MAX && got.color == GREEN);
	CHECK_STR(got.id, "0123");
	CHECK_STR(got.title, title);
	CHECK(!got.note);
	CHECK_STR(got.kind, "tree");
	CHECK_STR(got.top.name, "top");
	CHECK(got.top.letter == '!' && got.n_leaves == 2 && got.n_words == 2);
	CHECK_STR(got.leaves[1].name, "two");
	CHECK(got.leaves[1].letter == 'B');
	CHECK_STR(got.words[0], "two");
	CHECK_EQ(got.untold, 7);
}

TEST(a_list_that_was_heard_can_grow)
{
	CLEANUP(plant_done) struct plant got = { 0 };
	char word[] = "word", top[] = "top";
	char *words[] = { word, word, word };
	const struct plant p = {
		.title = word, .kind = "tree", .top = { top, '!' }, .words = words, .n_words = 3
	};
	struct err err = { 0 };

	CHECK_OK(pass(&p, &got, &err), &err);
	for (int i = 0; i < 40; i++) {
		CHECK(VEC_ONE_MORE(got.words, got.n_words));
		got.words[got.n_words++] = strdup("more");
	}
	CHECK_EQ(got.n_words, 43);
	CHECK_STR(got.words[2], "word");
	CHECK_STR(got.words[42], "more");
}

TEST(what_is_not_there_is_said_and_nothing_leaks)
{
	static const char text[] =
	    "{\"wet\":true,\"born\":1,\"height\":1,\"color\":99999999999,"
	    "\"id\":null,\"title\":\"t\",\"note\":\"n\",\"kind\":\"x\","
	    "\"crown\":{\"name\":\"c\",\"letter\":\"c\"},"
	    "\"leaves\":[{\"name\":\"l\",\"letter\":\"l\"},{}],\"words\":[]}";
	CLEANUP(plant_done) struct plant got = { 0 };
	CLEANUP(json_done) struct json_doc in = { 0 };
	struct err err = { 0 };
	struct json j;

	CHECK_OK(json_parse(&in, text, strlen(text), &j, &err), &err);
	CHECK_EQ(fields_read(j, &plant, &got, &err), -EINVAL);
	CHECK(strstr(err.msg, "name") != NULL);
	CHECK_EQ((uint32_t)got.color, UINT32_MAX);
	CHECK_STR(got.kind, "unknown");
	plant_done(&got);
	CHECK(!got.title && !got.leaves && got.n_leaves == 0);
}

TEST_MAIN("fields")
