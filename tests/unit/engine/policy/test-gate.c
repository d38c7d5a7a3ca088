/*
 * Conditions on the facts of a change: which hold, and which are none.
 */
#include "tests/lib/test.h"

#include <errno.h>

#include "engine/policy/gate-i.h"

static const struct engine_facts facts = {
	.files = 3,
	.lines_added = 150,
	.lines_removed = 50,
	.kind = "docs",
	.experiment = "won",
	.scored = true,
	.score = 12.5,
	.risk = ENGINE_RISK_MEDIUM,
};
static const struct gate_facts all = { .facts = &facts, .tests = "pass" };

TEST(conditions_hold_or_not)
{
	static const struct {
		const char *text;
		int holds;
	} table[] = {
		{ "files==3", 1 },          { "files != 3", 0 },  { "files<3", 0 },
		{ "files<=3", 1 },          { "files>3", 0 },     { "files>=3", 1 },
		{ "lines<=200", 1 },        { "lines < 200", 0 }, { "lines_added==150", 1 },
		{ "lines_removed>=51", 0 }, { "risk<=low", 0 },   { "risk<=medium", 1 },
		{ "risk!=high", 1 },        { "risk>low", 1 },    { "kind==docs", 1 },
		{ "kind!=docs", 0 },        { "tests==pass", 1 }, { "tests!=fail", 1 },
		{ "refusals==0", 1 },       { " held == 0 ", 1 }, { "experiment==won", 1 },
		{ "experiment!=won", 0 },   { "score>=12.5", 1 }, { "score > 12.5", 0 },
		{ "score<=-1", 0 },         { "score!=12", 1 },   { "score<1e3", 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct err err = { 0 };
		int r = gate_holds(table[i].text, &all, &err);

		CHECK_OK(r, &err);
		if (r != table[i].holds)
			fail_msg("%s: %d", table[i].text, r);
	}
}

TEST(a_change_without_a_score_passes_no_gate_for_it)
{
	static const char *const table[] = { "score>=0", "score<0", "score!=1", "score==0" };
	static const struct engine_facts none = { .kind = "docs", .experiment = "none" };
	const struct gate_facts f = { .facts = &none, .tests = "pass" };
	char text[GATE_TEXT_MAX];
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (gate_holds(table[i], &f, &err) != 0)
			fail_msg("%s holds", table[i]);
	gate_tell("score>=0", &f, text);
	assert_string_equal(text, "it has no score");
}

TEST(nonsense_is_refused_and_never_holds)
{
	static const char *const table[] = {
		"",
		"files",
		"files=3",
		"files==",
		"files==-1",
		"files==x",
		"files==3x",
		"==3",
		"risk<=all",
		"kind<docs",
		"kind==c",
		"tests>=pass",
		"nothing==1",
		"files 3",
		"files=<3",
		"score>=x",
		"score>=nan",
		"score==",
		"experiment>=won",
		"experiment==first",
		"lines<=1.5",
		"risk==0",
		"files==99999999999999999999999999",
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct err err = { 0 };

		if (gate_holds(table[i], &all, &err) != -EINVAL || err.msg[0] == '\0')
			fail_msg("'%s' is taken for a condition", table[i]);
		assert_int_equal(gate_check(table[i], NULL), -EINVAL);
	}
}

TEST(the_value_that_decided_can_be_told)
{
	char text[GATE_TEXT_MAX];

	gate_tell("lines<=100", &all, text);
	assert_string_equal(text, "lines is 200");
	gate_tell("risk<=low", &all, text);
	assert_string_equal(text, "risk is medium");
	gate_tell("kind==code", &all, text);
	assert_string_equal(text, "kind is docs");
}

TEST_MAIN("gate")
