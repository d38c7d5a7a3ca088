#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "engine/find/config-i.h"
#include "engine/find/rules-i.h"

#define USER_FILE "guard.yaml"

struct reading {
	const char *name; /* of the file */
	struct engine_rules *rules;
	struct err *err;
};

/* Join the list of patterns, one per line. */
static int read_patterns(struct reading *rd, struct yaml value, char **ret)
{
	CLEANUP(buf_done) struct buf lines = BUF_INIT;
	void *iter = NULL;
	struct yaml item;

	if (yaml_kind(value) != YAML_LIST)
		return yaml_error(value, rd->name, rd->err, "'paths' is a list of patterns");
	while (yaml_next_item(value, &iter, &item)) {
		if (yaml_kind(item) != YAML_TEXT || *yaml_text(item) == '\0' ||
		    strchr("!#", yaml_text(item)[0]) || strchr(yaml_text(item), '\n'))
			return yaml_error(item, rd->name, rd->err,
					  "a pattern is a line that takes nothing back");
		if (buf_append_str(&lines, yaml_text(item)) < 0 || buf_append_u8(&lines, '\n') < 0)
			return err_nomem(rd->err);
	}
	if (lines.len == 0)
		return yaml_error(value, rd->name, rd->err, "'paths' names nothing");
	*ret = buf_str(&lines) ? strdup(buf_str(&lines)) : NULL;
	return *ret ? 0 : err_nomem(rd->err);
}

/* People see it on their terminals, and a stranger may have written it. */
static bool is_plain(const char *text)
{
	size_t len = strlen(text), n;

	for (; len > 0; text += n, len -= n) {
		n = utf8_printable(text, len);
		if (n == 0)
			return false;
	}
	return true;
}

static int read_text(struct reading *rd, struct yaml value, char **ret)
{
	if (yaml_kind(value) != YAML_TEXT || *yaml_text(value) == '\0')
		return yaml_error(value, rd->name, rd->err, "this is a text");
	if (!is_plain(yaml_text(value)))
		return yaml_error(value, rd->name, rd->err, "this text holds what cannot be shown");
	*ret = strdup(yaml_text(value));
	return *ret ? 0 : err_nomem(rd->err);
}

/* The parts of a rule. */
enum { NAME, PATHS, WHY, LEVEL, PARTS };

static int read_pair(struct reading *rd, struct yaml key, struct yaml value, char *parts[PARTS])
{
	static const char *const names[] = {
		[NAME] = "name", [PATHS] = "paths", [WHY] = "why", [LEVEL] = "level"
	};

	if (yaml_kind(key) == YAML_TEXT)
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (strcmp(yaml_text(key), names[i]) == 0)
				return i == PATHS ? read_patterns(rd, value, &parts[i])
						  : read_text(rd, value, &parts[i]);
	return yaml_error(key, rd->name, rd->err, "a rule has name, paths, why and perhaps level");
}

static int add(struct reading *rd, char *parts[PARTS], enum guard_level level)
{
	struct engine_rules *r = rd->rules;

	if (!VEC_ONE_MORE(r->list, r->n))
		return err_nomem(rd->err);
	r->list[r->n++] = (struct guard_rule){
		.name = TAKE_PTR(parts[NAME]),
		.patterns = TAKE_PTR(parts[PATHS]),
		.why = TAKE_PTR(parts[WHY]),
		.level = level,
	};
	return 0;
}

static int read_parts(struct reading *rd, struct yaml rule, char *parts[PARTS])
{
	enum guard_level level = GUARD_HOLD;
	struct yaml key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(rule) != YAML_MAP)
		return yaml_error(rule, rd->name, rd->err,
				  "a rule has name, paths, why and perhaps level");
	while (r >= 0 && yaml_next_pair(rule, &iter, &key, &value))
		r = read_pair(rd, key, value, parts);
	if (r < 0)
		return r;
	if (!parts[NAME] || !parts[PATHS] || !parts[WHY])
		return yaml_error(rule, rd->name, rd->err,
				  "a rule has name, paths, why and perhaps level");
	if (parts[LEVEL] && !guard_level_parse(parts[LEVEL], &level))
		return yaml_error(rule, rd->name, rd->err,
				  "'level' is not one of hold, warn, pass");
	return add(rd, parts, level);
}

static int read_rule(struct reading *rd, struct yaml rule)
{
	char *parts[PARTS] = { NULL };
	int r = read_parts(rd, rule, parts);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		free(parts[i]);
	return r;
}

static int parse(struct engine_rules *rules, const char *path, const struct buf *text,
		 struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct reading rd = { .name = path, .rules = rules, .err = err };
	struct yaml top, item;
	void *iter = NULL;
	int r = yaml_parse(&doc, path, (const char *)text->data, text->len, &top, err);

	if (r < 0 || yaml_kind(top) == YAML_NOTHING)
		return r;
	if (yaml_kind(top) != YAML_LIST)
		return yaml_error(top, rd.name, rd.err, "this is a list of rules");
	while (r >= 0 && yaml_next_item(top, &iter, &item))
		r = read_rule(&rd, item);
	return r;
}

int rules_read(struct engine_rules *rules, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &text, err);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? r : parse(rules, path, &text, err);
}

/* Add the rules of the project in this directory. */
static int rules_read_project(struct engine_rules *r, const char *project, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = path_join(project, ".snap/" USER_FILE);
	int x = config_read_project(project, USER_FILE, &text, err);

	if (x == -ENOENT)
		return 0;
	if (x < 0)
		return x;
	return path ? parse(r, path, &text, err) : err_nomem(err);
}

/* Those of people, the project's behind the user's. */
static int read_both(const char *user, const char *project, struct engine_rules *rules,
		     struct err *err)
{
	int r = user ? rules_read(rules, user, err) : 0;

	return r < 0 ? r : rules_read_project(rules, project, err);
}

int rules_guard(const char *user, const char *project, struct engine_rules *rules,
		struct guard **ret, struct err *err)
{
	int r = read_both(user, project, rules, err);

	return r < 0 ? r : guard_new(rules->list, rules->n, ret, err);
}

int rules_guard_system(const char *user, const char *project, struct engine_rules *rules,
		       struct guard **ret, struct err *err)
{
	int r = read_both(user, project, rules, err);
	struct reading rd = { .rules = rules, .err = err };
	size_t n;
	const struct guard_rule *all = guard_system_rules(&n);

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (!all[i].patterns)
			continue; /* judge_access() */
		char *parts[PARTS] = {
			[NAME] = strdup(all[i].name),
			[PATHS] = strdup(all[i].patterns),
			[WHY] = strdup(all[i].why),
		};

		r = parts[NAME] && parts[PATHS] && parts[WHY] ? add(&rd, parts, all[i].level)
							      : err_nomem(err);
		for (size_t k = 0; k < ARRAY_LEN(parts); k++)
			free(parts[k]);
	}
	return r < 0 ? r : guard_new(rules->list, rules->n, ret, err);
}

char *rules_of_user(const struct engine *e)
{
	return config_file(e->home, USER_FILE);
}

int engine_rules(struct engine *e, struct engine_rules *ret, struct err *err)
{
	CLEANUP(engine_rules_done) struct engine_rules rules = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *user = rules_of_user(e);
	struct store *s;
	int r = user ? rules_read(&rules, user, err) : 0;

	if (r < 0)
		return r;
	if (engine_has_store(e) && engine_project(e, &s, &project, NULL) >= 0)
		r = rules_read_project(&rules, project.path, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(rules);
	return 0;
}
