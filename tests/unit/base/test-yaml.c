#include "tests/lib/test.h"

#include <errno.h>

#include "base/yaml.h"

static void fails(const char *text, const char *why)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct err err = { 0 };
	struct yaml root;

	if (yaml_parse(&doc, "f.yaml", text, strlen(text), &root, &err) == 0)
		fail_msg("'%s' was taken", text);
	CHECK_EQ(err.code, -EINVAL);
	CHECK_HAS(err.msg, why);
}

TEST(a_document_is_read_with_its_places)
{
	static const char text[] = "a: one\nlist:\n  - x\n  - 'y z'\nempty:\nmap: {k: v}\n";
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct yaml root, key, value, item;
	void *iter = NULL, *items = NULL;
	struct err err = { 0 };
	int line, column;

	CHECK_OK(yaml_parse(&doc, "f", text, strlen(text), &root, &err), &err);
	CHECK_EQ(yaml_kind(root), YAML_MAP);
	CHECK(yaml_next_pair(root, &iter, &key, &value));
	CHECK_STR(yaml_text(key), "a");
	CHECK_STR(yaml_text(value), "one");
	yaml_place(value, &line, &column);
	CHECK(line == 1 && column == 4);
	CHECK(yaml_next_pair(root, &iter, &key, &value));
	CHECK_EQ(yaml_kind(value), YAML_LIST);
	yaml_place(value, &line, &column);
	CHECK(line == 3 && column == 5);
	CHECK(yaml_next_item(value, &items, &item) && yaml_next_item(value, &items, &item));
	CHECK_STR(yaml_text(item), "y z");
	CHECK(!yaml_next_item(value, &items, &item));
	CHECK(yaml_next_pair(root, &iter, &key, &value));
	CHECK_EQ(yaml_kind(value), YAML_NOTHING);
	CHECK(yaml_next_pair(root, &iter, &key, &value));
	CHECK_EQ(yaml_kind(value), YAML_MAP);
	CHECK(!yaml_next_pair(root, &iter, &key, &value));
}

TEST(an_empty_document_is_nothing)
{
	static const char *const texts[] = { "", "# only a comment\n", "~\n" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
		struct err err = { 0 };
		struct yaml root;

		CHECK_OK(yaml_parse(&doc, "f", texts[i], strlen(texts[i]), &root, &err), &err);
		CHECK_EQ(yaml_kind(root), YAML_NOTHING);
	}
}

TEST(what_is_no_plain_document_is_refused_with_its_place)
{
	fails("a: [1, 2\nb: 3\n", "f.yaml:");
	fails("a: 1\n b: 2\n", "f.yaml:1:4: ");
	fails("a: 1\na: 2\n", "f.yaml:2:1: ");
	fails("x: &a 1\ny: *a\n", "aliases, anchors and tags");
	fails("x: !!binary aaaa\n", "f.yaml:1:");
	fails("? [a, b]\n: 1\n", "a key must be a word");
	fails("a: \"x\\0y\"\n", "NUL");
	fails("a: x\nb: \xff\n", "f.yaml:2:4: this is no UTF-8");
}

TEST(depth_is_bounded)
{
	char text[2 * 5000 + 1];

	memset(text, '[', 5000);
	memset(text + 5000, ']', 5000);
	text[10000] = '\0';
	fails(text, "f.yaml");
	text[5000 - 40 + 80] = '\0';
	fails(text + 5000 - 40, "f.yaml");
}

TEST(a_document_over_the_limit_is_refused_unread)
{
	AUTO_FREE char *text = malloc(YAML_MAX + 2);

	CHECK(text != NULL);
	memset(text, ' ', YAML_MAX + 1);
	text[YAML_MAX + 1] = '\0';
	fails(text, "f.yaml: larger than");
}

TEST_MAIN("yaml")
