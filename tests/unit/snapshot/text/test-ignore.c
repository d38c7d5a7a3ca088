/*
 * The table says what git says; tests/cli/test-capture.py compares with git itself, at random.
 */
#include "snapshot/text/ignore.h"

#include <stdio.h>
#include <time.h>

#include "tests/lib/test.h"

static enum ignore_verdict ask(const char *rules, const char *path, bool is_dir)
{
	CLEANUP(ignore_free_p) struct ignore *ig = NULL;
	struct err err = { 0 };

	CHECK_OK(ignore_parse(rules, strlen(rules), &ig, &err), &err);
	return ignore_match(ig, path, is_dir);
}

static const struct {
	const char *rules, *path;
	bool is_dir;
	enum ignore_verdict verdict;
} table[] = {
	{ "", "a", false, IGNORE_SILENT },
	{ "# a\n\na", "# a", false, IGNORE_SILENT },
	{ "\\#a", "#a", false, IGNORE_OUT },
	{ "\\!a", "!a", false, IGNORE_OUT },
	{ "a\n!a", "a", false, IGNORE_IN },
	{ "!a\na", "a", false, IGNORE_OUT },
	{ "a", "x/y/a", false, IGNORE_OUT },
	{ "/a", "x/a", false, IGNORE_SILENT },
	{ "/a", "a", false, IGNORE_OUT },
	{ "x/a", "x/a", false, IGNORE_OUT },
	{ "x/a", "y/x/a", false, IGNORE_SILENT },
	{ "a/", "a", false, IGNORE_SILENT },
	{ "a/", "x/a", true, IGNORE_OUT },
	{ "a  ", "a", false, IGNORE_OUT },
	{ "a\\ ", "a ", false, IGNORE_OUT },
	{ "a\r\n", "a", false, IGNORE_OUT },
	{ "\xef\xbb\xbf"
	  "a",
	  "a", false, IGNORE_OUT },
	{ "*.o", "x/.o", false, IGNORE_OUT },
	{ "a*b*c", "aXbYbc", false, IGNORE_OUT },
	{ "x/*", "x/y/z", false, IGNORE_SILENT },
	{ "x/?", "x/y", false, IGNORE_OUT },
	{ "**/a", "a", false, IGNORE_OUT },
	{ "**/a", "x/y/a", false, IGNORE_OUT },
	{ "x/**", "x", true, IGNORE_SILENT },
	{ "x/**", "x/y/z", false, IGNORE_OUT },
	{ "x/**/z", "x/z", false, IGNORE_OUT },
	{ "x/**/z", "x/a/b/z", false, IGNORE_OUT },
	{ "x/**/z", "x/a/b/zz", false, IGNORE_SILENT },
	{ "x/a**z", "x/a/z", false, IGNORE_SILENT },
	{ "[a-c]x", "bx", false, IGNORE_OUT },
	{ "[!a-c]x", "bx", false, IGNORE_SILENT },
	{ "[^a-c]x", "dx", false, IGNORE_OUT },
	{ "[]-]", "-", false, IGNORE_OUT },
	{ "[[:digit:]_]", "7", false, IGNORE_OUT },
	{ "[[:nothing:]]", "7", false, IGNORE_SILENT },
	{ "[a", "[a", false, IGNORE_SILENT },
	{ "a\\", "a\\", false, IGNORE_SILENT },
	{ "\\*", "*", false, IGNORE_OUT },
	{ "\\*", "a", false, IGNORE_SILENT },
	{ "/", "a", true, IGNORE_SILENT },
};

TEST(rules_mean_what_they_mean_to_git)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (ask(table[i].rules, table[i].path, table[i].is_dir) == table[i].verdict)
			continue;
		fprintf(stderr, "# '%s' and '%s'\n", table[i].rules, table[i].path);
		CHECK(false);
	}
}

/* A matcher that tries every star anew would take longer than anybody lives. */
TEST(a_pattern_of_many_stars_is_matched_in_no_time)
{
	static char rules[4000], path[8000];

	for (size_t i = 0; i + 2 < sizeof(rules); i += 2)
		memcpy(rules + i, "*a", 2);
	memset(path, 'a', sizeof(path) - 2);
	path[sizeof(path) - 2] = 'b';
	CHECK_EQ(ask(rules, path, false), IGNORE_SILENT);
	for (size_t i = 0; i + 5 < sizeof(rules); i += 5)
		memcpy(rules + i, "**/a/", 5);
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "a/", 2);
	path[sizeof(path) - 2] = 'b';
	CHECK_EQ(ask(rules, path, false), IGNORE_SILENT);
}

TEST_MAIN("ignore")
