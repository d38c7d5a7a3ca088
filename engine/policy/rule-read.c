#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "engine/find/config-i.h"
#include "engine/policy/rule-i.h"

struct reading {
	const char *name; /* of the file */
	struct yaml key;  /* that is being read */
	struct err *err;
};

/* An empty value has no place of its own. */
static int complain(const struct reading *rd, struct yaml at, const char *why)
{
	int line, column;

	yaml_place(at, &line, &column);
	return yaml_error(line == 0 ? rd->key : at, rd->name, rd->err, "%s", why);
}

static void rule_done(struct rule *r)
{
	free(r->name);
	ignore_free(r->paths);
	strlist_done(&r->when);
	strlist_done(&r->who);
	strlist_done(&r->approvers);
}

void rule_file_done(struct rule_file *f)
{
	VEC_FREE(it, f->list, f->n, rule_done(it));
	free(f->name);
	*f = (struct rule_file){ 0 };
}

/* --- values ----------------------------------------------------------------------------- */

static int read_paths(const struct reading *rd, struct yaml value, struct rule *r)
{
	CLEANUP(strlist_done) struct strlist list = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int x = yaml_texts(rd->key, value, rd->name, &list, rd->err);

	if (x < 0)
		return x;
	for (size_t i = 0; i < list.n; i++) {
		if (strchr("!#", list.list[i][0]) || strchr(list.list[i], '\n'))
			return complain(rd, value, "a pattern is a line that takes nothing back");
		if (buf_append_str(&text, list.list[i]) < 0 || buf_append_u8(&text, '\n') < 0)
			return err_nomem(rd->err);
	}
	return ignore_parse(text.data, text.len, &r->paths, rd->err);
}

static int read_gates(const struct reading *rd, struct yaml value, struct rule *r)
{
	struct err why = { 0 };
	int x = yaml_texts(rd->key, value, rd->name, &r->when, rd->err);

	for (size_t i = 0; x >= 0 && i < r->when.n; i++)
		if (gate_check(r->when.list[i], &why) < 0)
			x = complain(rd, value, why.msg);
	return x;
}

/* "HH:MM" at *text, which moves behind it; -1: it is none. */
static int read_clock(const char **text)
{
	const char *t = *text;
	int hour, minute;

	for (int i = 0; i < 5; i++)
		if (i == 2 ? t[i] != ':' : t[i] < '0' || t[i] > '9')
			return -1;
	hour = (t[0] - '0') * 10 + t[1] - '0';
	minute = (t[3] - '0') * 10 + t[4] - '0';
	*text += 5;
	return hour < 24 && minute < 60 ? hour * 60 + minute : -1;
}

static int read_hours(const struct reading *rd, struct yaml value, struct rule *r)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	r->from = read_clock(&text);
	if (r->from >= 0 && *text == '-') {
		text++;
		r->until = read_clock(&text);
		if (r->until >= 0 && *text == '\0' && r->from != r->until)
			return 0;
	}
	return complain(rd, value, "'hours' is a span such as 22:00-06:00");
}

/* "5 in 24h" */
static int read_most(const struct reading *rd, struct yaml value, struct rule *r)
{
	AUTO_FREE char *text = strdup(yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "");
	char *in = text ? strstr(text, " in ") : NULL;

	if (!text)
		return err_nomem(rd->err);
	if (in)
		*in = '\0';
	if (!in || size_parse_u64(text, &r->most) < 0 || r->most == 0 ||
	    duration_parse(in + 4, &r->span_ms) < 0 || r->span_ms == 0)
		return complain(rd, value, "'at_most' is a number in a time, such as 5 in 24h");
	return 0;
}

static int read_then(const struct reading *rd, struct yaml value, struct rule *r)
{
	for (enum engine_authority a = ENGINE_MAY_LAND; a <= ENGINE_MAY_NOT; a++)
		if (yaml_kind(value) == YAML_TEXT &&
		    strcmp(yaml_text(value), engine_authority_name(a)) == 0) {
			r->then = a;
			return 0;
		}
	return complain(rd, value, "'then' is not one of land, approve, refuse");
}

static int read_name(const struct reading *rd, struct yaml value, struct rule *r)
{
	if (yaml_kind(value) != YAML_TEXT || *yaml_text(value) == '\0')
		return complain(rd, value, "a name is a text");
	r->name = strdup(yaml_text(value));
	return r->name ? 0 : err_nomem(rd->err);
}

static int read_who(const struct reading *rd, struct yaml value, struct rule *r)
{
	return yaml_texts(rd->key, value, rd->name, &r->who, rd->err);
}

static int read_approvers(const struct reading *rd, struct yaml value, struct rule *r)
{
	return yaml_texts(rd->key, value, rd->name, &r->approvers, rd->err);
}

/* --- rules ------------------------------------------------------------------------------ */

enum { NAME, THEN, PATHS, WHEN, WHO, HOURS, AT_MOST, APPROVERS };

static const struct {
	const char *key;
	int (*read)(const struct reading *rd, struct yaml value, struct rule *r);
} keys[] = {
	[NAME] = { "name", read_name },       [THEN] = { "then", read_then },
	[PATHS] = { "paths", read_paths },    [WHEN] = { "when", read_gates },
	[WHO] = { "who", read_who },          [HOURS] = { "hours", read_hours },
	[AT_MOST] = { "at_most", read_most }, [APPROVERS] = { "approvers", read_approvers },
};

static int read_pair(struct reading *rd, struct yaml key, struct yaml value, struct rule *r,
		     unsigned *seen)
{
	rd->key = key;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (yaml_kind(key) == YAML_TEXT && strcmp(yaml_text(key), keys[i].key) == 0) {
			*seen |= 1U << i;
			return keys[i].read(rd, value, r);
		}
	return complain(rd, key,
			"a rule has name, then, and perhaps paths, when, who, hours, at_most, "
			"approvers");
}

static int read_rule(struct reading *rd, struct yaml at, struct rule *r)
{
	struct yaml key, value;
	void *iter = NULL;
	unsigned seen = 0;
	int x = 0, column;

	if (yaml_kind(at) != YAML_MAP)
		return complain(rd, at, "a rule is a map");
	yaml_place(at, &r->line, &column);
	while (x >= 0 && yaml_next_pair(at, &iter, &key, &value))
		x = read_pair(rd, key, value, r, &seen);
	if (x < 0)
		return x;
	if (!(seen & 1U << NAME))
		return complain(rd, at, "the rule has no 'name'");
	/* A rule that forgot it must not let anything land. */
	if (!(seen & 1U << THEN))
		return complain(rd, at, "the rule has no 'then': land, approve or refuse");
	return 0;
}

static int parse(const struct buf *text, struct rule_file *ret, struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct reading rd = { .name = ret->name, .err = err };
	struct yaml top, item;
	void *iter = NULL;
	int r = yaml_parse(&doc, ret->name, (const char *)text->data, text->len, &top, err);

	if (r < 0 || yaml_kind(top) == YAML_NOTHING)
		return r;
	if (yaml_kind(top) != YAML_LIST)
		return complain(&rd, top, "this is a list of rules");
	while (r >= 0 && yaml_next_item(top, &iter, &item)) {
		if (!VEC_ONE_MORE(ret->list, ret->n))
			return err_nomem(err);
		ret->list[ret->n] = (struct rule){ 0 };
		r = read_rule(&rd, item, &ret->list[ret->n++]);
	}
	return r;
}

int rule_file_read_user(const char *path, struct rule_file *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &text, err);

	ret->name = strdup(path);
	if (!ret->name)
		return err_nomem(err);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? r : parse(&text, ret, err);
}

int rule_file_read_project(const char *project, struct rule_file *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = config_read_project(project, RULE_FILE, &text, err);

	ret->name = path_join(project, ".snap/" RULE_FILE);
	if (!ret->name)
		return err_nomem(err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : parse(&text, ret, err);
}
