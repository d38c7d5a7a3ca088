#include "cli/ui/route.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/vec.h"

#define LIST_MAX 100 /* values of one key */

/*
 * A word of a line: itself, or what a value makes of it.
 *   $key          the value, which must be there
 *   ?key          the value, if there is one
 *   ?key=--opt    --opt and the value, if there is one
 *   +key=--opt    --opt if the value is true
 *   *key=--opt    --opt and a value, for each in the list
 */
struct route {
	const char *name;
	const char *words[10];
	const char *
	    seen; /* the value that names what was shown; it must be there, unless it is a dry run */
	bool changes; /* something, unless it is a dry run */
};

#define DRY_RUN "dry_run"

static const struct route routes[] = {
	{ "status", { "status", "?clone" } },
	{ "clones", { "list" } },
	{ "timeline", { "log", "--graph", "?count=--count" } },
	{ "steps", { "log", "--agent", "?count=--count" } },
	{ "diff", { "diff", "--patch", "$a", "?b" } },
	{ "compare", { "compare", "$a", "$b" } },
	{ "runs", { "runs", "?count=--last" } },
	{ "output", { "logs", "--usage", "$run", "?since=--since" } },
	{ "experiments", { "experiment", "list" } },
	{ "experiment", { "experiment", "show", "$name" } },
	{ "changes", { "pipeline", "status", "+all=--all" } },
	{ "stages", { "pipeline", "stages" } },
	{ "store", { "stats" } },
	{ "garbage", { "gc", "--dry-run" } },
	{ "projects", { "projects" } },
	{ "conflicts", { "promote", "--dry-run", "--with-hunks", "$clone" } },

	{ "clone", { "clone", "?name=--name", "?from=--from" }, .changes = true },
	{ "snapshot", { "snapshot", "?clone", "?message=--message" }, .changes = true },
	{ "promote",
	  { "promote", "+dry_run=--dry-run", "*allow=--allow", "*check=--check", "?plan=--plan",
	    "$clone" },
	  .seen = "plan",
	  .changes = true },
	{ "rebase", { "rebase", "+dry_run=--dry-run", "$clone" }, .changes = true },
	{ "rollback",
	  { "rollback", "+dry_run=--dry-run", "--yes", "*allow=--allow", "?clone", "$to" },
	  .changes = true },
	{ "undo", { "undo", "+dry_run=--dry-run", "--yes", "?id" }, .changes = true },
	{ "remove", { "rm", "$clone" }, .changes = true },
	{ "cancel", { "cancel", "$run" }, .changes = true },
	{ "choose",
	  { "experiment", "promote", "?plan=--plan", "$name", "$arm" },
	  .seen = "plan",
	  .changes = true },
	{ "approve",
	  { "approve", "?why=-m", "?stage=--stage", "?digest=--digest", "$change" },
	  .seen = "digest",
	  .changes = true },
	{ "reject", { "reject", "?why=-m", "$change" }, .changes = true },
	{ "gc", { "gc" }, .changes = true },
};

/* --- the table ------------------------------------------------------------------------------ */

static bool is_value(const char *word)
{
	return strchr("$?+*", word[0]) != NULL;
}

/* The key of a word, and behind it the option or NULL. */
static size_t key_length(const char *word, const char **ret_option)
{
	const char *equal = strchr(word, '=');

	*ret_option = equal ? equal + 1 : NULL;
	return equal ? (size_t)(equal - word) - 1 : strlen(word) - 1;
}

static bool is_key(const char *key, const void *ctx)
{
	const struct route *route = ctx;
	const char *option;

	for (size_t i = 0; i < ARRAY_LEN(route->words) && route->words[i]; i++) {
		const char *word = route->words[i];

		if (is_value(word) && strlen(key) == key_length(word, &option) &&
		    strncmp(word + 1, key, strlen(key)) == 0)
			return true;
	}
	return false;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Free text stands behind an option and may begin with anything; a name must not look like one. */
static int add_text(struct strlist *line, const char *key, const char *option, const char *text,
		    struct err *err)
{
	if (!text || (!option && (*text == '\0' || *text == '-')))
		return err_set(err, -EINVAL, "'%s' must be a name that does not begin with '-'",
			       key);
	if (option && strlist_add(line, option) < 0)
		return err_nomem(err);
	return strlist_add(line, text) < 0 ? err_nomem(err) : 0;
}

static int add_number(struct strlist *line, const char *option, int64_t value, struct err *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return add_text(line, option, option, text, err);
}

static int add_list(struct strlist *line, const char *key, const char *option, struct json values,
		    struct err *err)
{
	const size_t n = json_length(values);
	int r = 0;

	if (n > LIST_MAX)
		return err_set(err, -EINVAL, "'%s' has more than %d values", key, LIST_MAX);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = add_text(line, key, option, json_at_text(values, i), err);
	return r;
}

/* What a value makes of a word. */
static int add_value(struct strlist *line, const char *word, struct json body, struct err *err)
{
	const char *option;
	const size_t len = key_length(word, &option);
	AUTO_FREE char *key = strndup(word + 1, len);
	enum json_kind kind;

	if (!key)
		return err_nomem(err);
	kind = json_kind(body, key);
	if (kind == JSON_MISSING)
		return word[0] == '$' ? err_set(err, -EINVAL, "'%s' is missing", key) : 0;
	if (word[0] == '+' && kind == JSON_BOOL) {
		if (json_get_bool(body, key) && strlist_add(line, option) < 0)
			return err_nomem(err);
		return 0;
	}
	if (word[0] == '*' && kind == JSON_ARRAY)
		return add_list(line, key, option, json_get_array(body, key), err);
	if (word[0] != '+' && word[0] != '*' && kind == JSON_TEXT)
		return add_text(line, key, option, json_get_text(body, key), err);
	if (word[0] == '?' && option && kind == JSON_INT)
		return add_number(line, option, json_get_int(body, key), err);
	return err_set(err, -EINVAL, "'%s' is of the wrong type", key);
}

/* --- a question ------------------------------------------------------------------------------- */

static bool is_dry(const struct route *route, struct json body)
{
	return is_key(DRY_RUN, route) && json_kind(body, DRY_RUN) == JSON_BOOL &&
	       json_get_bool(body, DRY_RUN);
}

int route_find(const char *name, const char *body, size_t len, bool read_only, struct strlist *ret,
	       bool *ret_changes, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct route *route =
	    VEC_FIND(at, routes, ARRAY_LEN(routes), strcmp(at->name, name) == 0);
	const char *unknown;
	struct json values;
	int r;

	if (!route)
		return err_set(err, -ENOENT, "there is no question '%s'", name);
	r = json_parse(&doc, len > 0 ? body : "{}", len > 0 ? len : 2, &values, err);
	if (r < 0)
		return r;
	unknown = json_unknown_key(values, is_key, route);
	if (unknown)
		return err_set(err, -EINVAL, "'%s' has no value '%s'", name, unknown);
	*ret_changes = route->changes && !is_dry(route, values);
	if (*ret_changes && read_only)
		return err_set(err, -EPERM, "this page may only look (--read-only)");
	/* A page may be old: what is done is what it showed, or nothing. */
	if (*ret_changes && route->seen && json_kind(values, route->seen) != JSON_TEXT)
		return err_set(err, -EINVAL, "'%s' is missing: it names what was shown",
			       route->seen);
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(route->words) && route->words[i]; i++) {
		const char *word = route->words[i];

		if (is_value(word))
			r = add_value(ret, word, values, err);
		else
			r = strlist_add(ret, word) < 0 ? err_nomem(err) : 0;
	}
	return r;
}
