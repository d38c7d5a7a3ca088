/*
 * A test that was deleted or switched off makes a check pass without a fix.  Both show in names
 * and words that test frameworks use; a warning is a reason to look, not a verdict.
 */
#include <string.h>

#include "base/attr.h"
#include "base/vec.h"
#include "engine/experiment/compare-i.h"

static bool is_folder(const char *at, size_t len)
{
	static const char *const names[] = { "test", "tests", "spec", "specs", "__tests__", "t" };

	return VEC_HAS(it, names, ARRAY_LEN(names),
		       strlen(*it) == len && memcmp(*it, at, len) == 0);
}

bool warn_is_test(const char *path)
{
	static const char *const parts[] = { "_test.", ".test.", ".spec.", "_spec.", "Test." };
	const char *at = path;

	for (const char *end; (end = strchr(at, '/')); at = end + 1)
		if (is_folder(at, (size_t)(end - at)))
			return true;
	if (strncmp(at, "test_", 5) == 0 || strncmp(at, "test-", 5) == 0)
		return true;
	return VEC_HAS(it, parts, ARRAY_LEN(parts), strstr(at, *it));
}

bool warn_skips(const char *line, size_t len)
{
	static const char *const words[] = {
		"pytest.mark.skip",
		"pytest.mark.xfail",
		"pytest.skip(",
		"unittest.skip",
		"unittest.expectedFailure",
		"self.skipTest(",
		"it.skip(",
		"test.skip(",
		"describe.skip(",
		"xit(",
		"xdescribe(",
		"#[ignore",
		"t.Skip(",
		"t.Skipf(",
		"t.SkipNow(",
		"@Disabled",
		"@Ignore",
		"GTEST_SKIP(",
		"DISABLED_",
		"skip_if(",
	};

	return VEC_HAS(one, words, ARRAY_LEN(words), memmem(line, len, *one, strlen(*one)));
}

int warn_add(struct comparing *c, size_t side, const char *path, const char *rule, const char *why,
	     struct err *err)
{
	struct engine_compare *res = &c->result;
	struct engine_compare_warning *w;

	if (!VEC_ROOM(res->warnings, res->n_warnings, res->cap_warnings))
		return err_nomem(err);
	w = &res->warnings[res->n_warnings++];
	*w = (struct engine_compare_warning){
		.side = side,
		.path = strdup(path),
		.rule = strdup(rule),
		.why = strdup(why),
	};
	return w->path && w->rule && w->why ? 0 : err_nomem(err);
}

/* Rules that need more than a name and a mode say nothing by these alone. */
static bool looks_inside(const struct guard_rule *rule)
{
	return strcmp(rule->name, GUARD_SCRIPTS) == 0 || strcmp(rule->name, GUARD_RECIPES) == 0;
}

int warn_of_change(struct comparing *c, size_t side, const char *path, uint32_t mode, char status,
		   struct err *err)
{
	const struct guard_rule *rule = guard_match(c->guard, path, mode, status);
	int r = 0;

	if (rule && rule->level != GUARD_PASS && !looks_inside(rule))
		r = warn_add(c, side, path, rule->name, rule->why, err);
	if (r < 0 || status != 'D' || !warn_is_test(path))
		return r;
	return warn_add(c, side, path, "test-deleted", "a file of tests was deleted", err);
}
