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
	uint16_t port;
	int code;
	char place[6];
	struct strlist strings;
	struct leaf last[2];
	size_t n_last;
	uint64_t weight, depth;
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

/* A weight travels in words, and none does not. */
static void set_weight(struct json j, const char *key, const void *member)
{
	const uint64_t *weight = member;

	if (*weight > 0)
		json_set_text(j, key, *weight > 9 ? "heavy" : "light");
}

static int get_weight(struct json j, const char *key, void *member)
{
	const char *text = json_get_text_or_null(j, key);
	uint64_t *weight = member;

	*weight = !text ? 0 : strcmp(text, "heavy") == 0 ? 10 : 1;
	if (*weight == 1 && strcmp(text, "light") != 0)
		json_refuse(j, key, "is no weight");
	return 0;
}

static void free_weight(void *member)
{
	uint64_t *weight = member;

	*weight = 0;
}

static const struct field_codec by_weight = { set_weight, get_weight, free_weight };

static const struct field root_fields[] = { FIELD(FIELD_UINT, struct plant, depth) };
static const struct fields root = FIELDS(struct plant, root_fields);

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
	FIELD(FIELD_UINT | FIELD_LATER, struct plant, port),
	FIELD(FIELD_INT | FIELD_LATER, struct plant, code),
	FIELD(FIELD_CHARS | FIELD_LATER, struct plant, place),
	FIELD_STRINGS(FIELD_STRLIST | FIELD_LATER, struct plant, "strings", strings),
	FIELD_LIST_OF(FIELD_ARRAY | FIELD_LATER, struct plant, "last", last, n_last, &leaf),
	FIELD_BY(struct plant, "weight", weight, &by_weight),
	FIELD_PART("root", &root),
};
static const struct fields plant = FIELDS(struct plant, plant_fields);

static DEFINE_FIELDS_DONE(plant_done, struct plant, plant)

/* Read `text` as `ret`. */
static int read_plant(const char *text, struct plant *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc in = { 0 };
	struct json j;

	CHECK_OK(json_parse(&in, text, strlen(text), &j, err), err);
	return fields_read(j, &plant, ret, err);
}

/* What is said of `p` is heard as `ret`. */
static int pass(const struct plant *p, struct plant *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc out = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	fields_set(json_begin(&out), &plant, p);
	CHECK_OK(json_append(&out, &text, err), err);
	return read_plant(buf_str(&text), ret, err);
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

/* Of version 1, and how the object goes on. */
#define OLD                                                                              \
	"{\"wet\":true,\"born\":1,\"height\":1,\"color\":1,\"id\":null,\"title\":\"t\"," \
	"\"note\":null,\"kind\":\"tree\",\"crown\":{\"name\":\"c\",\"letter\":\"c\"},"   \
	"\"leaves\":[],\"words\":[],\"root\":{\"depth\":3}"

TEST(small_numbers_arrays_and_string_lists_come_back)
{
	CLEANUP(plant_done) struct plant got = { 0 };
	char word[] = "word", top[] = "top", more[] = "a\\b";
	char *strings[] = { word, more };
	const struct plant p = {
		.title = word,
		.kind = "tree",
		.top = { top, '!' },
		.port = 8080,
		.code = -7,
		.place = "here",
		.strings = { strings, 2, 2 },
		.last = { { word, 'A' }, { more, 'B' } },
		.n_last = 2,
		.weight = 12,
		.depth = 4,
	};
	struct err err = { 0 };

	CHECK_OK(pass(&p, &got, &err), &err);
	CHECK(got.port == 8080 && got.code == -7 && got.weight == 10 && got.depth == 4);
	CHECK_STR(got.place, "here");
	CHECK(got.strings.n == 2 && !got.strings.list[2]);
	CHECK_STR(got.strings.list[1], more);
	CHECK_OK(strlist_add(&got.strings, "third"), &err);
	CHECK_EQ(got.n_last, 2);
	CHECK_STR(got.last[1].name, more);
	plant_done(&got);
	CHECK(!got.strings.list && got.strings.n == 0 && got.n_last == 0 && !got.last[0].name &&
	      got.port == 0 && got.code == 0);
}

TEST(what_older_texts_lack_stays_as_it_was)
{
	CLEANUP(plant_done) struct plant got = { .port = 5, .code = 6, .place = "mine" };
	struct err err = { 0 };

	CHECK_OK(read_plant(OLD "}", &got, &err), &err);
	CHECK(got.port == 5 && got.code == 6 && got.weight == 0 && got.depth == 3);
	CHECK_STR(got.place, "mine");
	CHECK(got.strings.n == 0 && got.n_last == 0);
}

TEST(what_does_not_fit_is_cut)
{
	static const char text[] = OLD ",\"port\":70000,\"code\":-9999999999,"
				       "\"place\":\"far away\",\"last\":["
				       "{\"name\":\"1\",\"letter\":\"1\"},"
				       "{\"name\":\"2\",\"letter\":\"2\"},"
				       "{\"name\":\"3\",\"letter\":\"3\"}]}";
	CLEANUP(plant_done) struct plant got = { 0 };
	struct err err = { 0 };

	CHECK_OK(read_plant(text, &got, &err), &err);
	CHECK(got.port == UINT16_MAX && got.code == INT32_MIN && got.n_last == 2);
	CHECK_STR(got.place, "far a");
	CHECK_STR(got.last[1].name, "2");
}

TEST(what_a_codec_refuses_is_said)
{
	CLEANUP(plant_done) struct plant got = { 0 };
	struct err err = { 0 };

	CHECK_EQ(read_plant(OLD ",\"weight\":\"green\"}", &got, &err), -EINVAL);
	CHECK_STR(err.msg, "'weight' is no weight");
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
