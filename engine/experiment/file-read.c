/*
 * From YAML to a plan.  Each key has a row: what its value must be, and where it goes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/typo.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/experiment/file-i.h"
#include "engine/run/profile-i.h"

enum kind { IS_NOTHING, IS_TEXT, IS_COUNT, IS_TEXTS, IS_WORD, IS_OTHER };

struct file_field {
	const char *name;
	enum kind kind;
	const char *wants; /* what the value must be, for error messages */
	size_t offset, count;
};

#define AT(member) offsetof(struct engine_experiment, member)

static const struct file_field rows[FILE_N_KEYS] = {
	[FILE_DESCRIPTION] = { "description", IS_NOTHING, "a line of text", 0, 0 },
	[FILE_BASE] = { "base", IS_TEXT, "a snapshot or a clone", AT(from), 0 },
	[FILE_PROFILE] = { "profile", IS_TEXT, "the name of a profile", AT(profile), 0 },
	[FILE_NET] = { "net", IS_TEXT, "none, loopback, host or HOST:PORT,...", AT(net), 0 },
	[FILE_ENV] = { "env", IS_OTHER, "a map of names and values", 0, 0 },
	[FILE_PASS_ENV] = { "pass_env", IS_TEXTS, "a list of names of variables", AT(pass_env),
			    AT(n_pass_env) },
	[FILE_RO] = { "ro", IS_TEXTS, "a list of paths", AT(ro), AT(n_ro) },
	[FILE_ARMS] = { "arms", IS_OTHER, "names and commands", 0, 0 },
	[FILE_RUN] = { "run", IS_OTHER, "a line for the shell", 0, 0 },
	[FILE_MATRIX] = { "matrix", IS_OTHER, "names and lists of values", 0, 0 },
	[FILE_EXCLUDE] = { "exclude", IS_OTHER, "a list of combinations", 0, 0 },
	[FILE_CHECKS] = { "checks", IS_TEXTS, "a list of lines for the shell", AT(checks),
			  AT(n_checks) },
	[FILE_SCORE] = { "score", IS_OTHER, "a command, time, cpu, mem, lines or size:FILE", 0, 0 },
	[FILE_BETTER] = { "better", IS_WORD, "lower or higher", 0, 0 },
	[FILE_ROUNDS] = { "rounds", IS_COUNT, "a number from 1 to 1000", AT(rounds), 0 },
	[FILE_REPEAT] = { "repeat", IS_COUNT, "a number from 1 to 1000", AT(repeat), 0 },
	[FILE_JOBS] = { "jobs", IS_COUNT, "a number from 1 to 1000", AT(jobs), 0 },
	[FILE_FIRST_PASS] = { "first_pass", IS_WORD, "true or false", 0, 0 },
	[FILE_STOP_AFTER] = { "stop_after", IS_COUNT, "a number from 1 to 1000", AT(stop_after),
			      0 },
	[FILE_STOP_LOSERS] = { "stop_losers", IS_WORD, "true or false", 0, 0 },
	[FILE_KEEP] = { "keep", IS_WORD, "best, passed, all or none", 0, 0 },
	[FILE_WITHIN] = { "within", IS_TEXTS, "a list of patterns", AT(within), AT(n_within) },
	[FILE_LIMITS] = { "limits", IS_OTHER, "mem, pids, time and disk of an arm", 0, 0 },
	[FILE_ALL] = { "all", IS_OTHER, "mem, time and disk of the whole", 0, 0 },
	[FILE_PROMOTE] = { "promote", IS_WORD, "best or all-compatible", 0, 0 },
	[FILE_ALLOW] = { "allow", IS_TEXTS, "a list of paths", AT(allow), AT(n_allow) },
	[FILE_ALLOW_MISSING] = { "allow_missing", IS_TEXTS, "a list of walls", AT(allow_missing),
				 AT(n_allow_missing) },
	[FILE_ON] = { "on", IS_TEXT, "nats://HOST/NAME or ssh:HOST", AT(on.queue), 0 },
	[FILE_REMOTE] = { "remote", IS_TEXT, "a remote", AT(on.remote), 0 },
	[FILE_LABELS] = { "labels", IS_TEXTS, "a list of labels", AT(on.labels), AT(on.n_labels) },
	[FILE_CREDS] = { "creds", IS_TEXT, "a file of NATS", AT(on.creds), 0 },
};

/* Sizes and times, of an arm and of the whole. */
static const struct {
	const char *name;
	int (*parse)(const char *text, uint64_t *ret);
	const char *wants;
	size_t arm, all; /* 0: the whole has none */
} limit_rows[FILE_N_LIMITS] = {
	[FILE_MEM] = { "mem", size_parse_limit, "a size, as 512M or 2G", AT(limits.mem),
		       AT(all_mem) },
	[FILE_PIDS] = { "pids", size_parse_u64, "a number of processes", AT(limits.pids), 0 },
	[FILE_TIME] = { "time", duration_parse, "a time, as 30s, 15m or 2h", AT(limits.time_ms),
			AT(all_time_ms) },
	[FILE_DISK] = { "disk", size_parse_limit, "a size, as 512M or 2G", AT(limits.disk),
			AT(all_disk) },
};

const char *file_key_name(enum file_key key)
{
	return rows[key].name;
}

const char *file_limit_name(enum file_limit limit)
{
	return limit_rows[limit].name;
}

void file_source_done(struct file_source *src)
{
	for (size_t i = 0; i < src->n_arms; i++) {
		if (src->arms[i].inner)
			file_source_done(src->arms[i].inner);
		free(src->arms[i].inner);
	}
	free(src->arms);
	engine_matrix_done(&src->matrix);
}

static void *member(struct engine_experiment *x, size_t offset)
{
	return (char *)x + offset;
}

/* --- sentences ---------------------------------------------------------------------------- */

int file_complain(const struct file_source *src, struct yaml at, struct err *err, const char *fmt,
		  ...)
{
	char why[300];
	int line, column;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	yaml_place(at, &line, &column);
	return err_set(err, -EINVAL, "%s:%d:%d: %s", src->shown, line, column, why);
}

static int expected(const struct file_source *src, struct yaml at, const char *key,
		    const char *wants, struct err *err)
{
	if (yaml_kind(at) == YAML_TEXT)
		return file_complain(src, at, err, "'%s' is '%.60s', expected %s", key,
				     yaml_text(at), wants);
	return file_complain(src, at, err, "'%s': expected %s", key, wants);
}

static int unknown(const struct file_source *src, struct yaml key, struct err *err)
{
	struct typo t = TYPO_INIT(yaml_text(key), strlen(yaml_text(key)));

	for (size_t i = 0; i < FILE_N_KEYS; i++)
		typo_offer(&t, rows[i].name);
	return t.best ? file_complain(src, key, err, "unknown key '%.60s', did you mean '%s'?",
				      yaml_text(key), t.best)
		      : file_complain(src, key, err, "unknown key '%.60s'", yaml_text(key));
}

/* --- values ------------------------------------------------------------------------------- */

static int add_text(const struct file_source *src, enum file_key key, struct yaml v,
		    struct engine_experiment *x, struct err *err)
{
	char ***list = member(x, rows[key].offset);
	size_t *n = member(x, rows[key].count);

	if (yaml_kind(v) != YAML_TEXT || *yaml_text(v) == '\0')
		return expected(src, v, rows[key].name, rows[key].wants, err);
	if (key == FILE_PASS_ENV && !profile_is_variable(yaml_text(v)))
		return expected(src, v, rows[key].name, "the name of a variable", err);
	if (!VEC_ONE_MORE(*list, *n))
		return err_nomem(err);
	(*list)[*n] = strdup(yaml_text(v));
	return (*list)[(*n)++] ? 0 : err_nomem(err);
}

/* A list of texts, or one text. */
static int read_texts(const struct file_source *src, enum file_key key, struct yaml v,
		      struct engine_experiment *x, struct err *err)
{
	void *iter = NULL;
	struct yaml item;
	int r = 0;

	if (yaml_kind(v) != YAML_LIST)
		return add_text(src, key, v, x, err);
	while (r >= 0 && yaml_next_item(v, &iter, &item))
		r = add_text(src, key, item, x, err);
	return r;
}

static int read_count(const struct file_source *src, enum file_key key, struct yaml v,
		      uint64_t *ret, struct err *err)
{
	if (yaml_kind(v) != YAML_TEXT || size_parse_u64(yaml_text(v), ret) < 0 || *ret == 0 ||
	    *ret > ENGINE_ARMS_MAX)
		return expected(src, v, rows[key].name, rows[key].wants, err);
	return 0;
}

static int read_word(const struct file_source *src, enum file_key key, struct yaml v,
		     struct engine_experiment *x, struct err *err)
{
	static const struct {
		enum file_key key;
		const char *word;
		int value;
	} words[] = {
		{ FILE_BETTER, "lower", 0 },
		{ FILE_BETTER, "higher", 1 },
		{ FILE_FIRST_PASS, "false", 0 },
		{ FILE_FIRST_PASS, "true", 1 },
		{ FILE_STOP_LOSERS, "false", 0 },
		{ FILE_STOP_LOSERS, "true", 1 },
		{ FILE_KEEP, "best", ENGINE_KEEP_BEST },
		{ FILE_KEEP, "passed", ENGINE_KEEP_PASSED },
		{ FILE_KEEP, "all", ENGINE_KEEP_ALL },
		{ FILE_KEEP, "none", ENGINE_KEEP_NONE },
		{ FILE_PROMOTE, "best", ENGINE_PROMOTE_BEST },
		{ FILE_PROMOTE, "all-compatible", ENGINE_PROMOTE_COMPATIBLE },
	};
	const char *text = yaml_kind(v) == YAML_TEXT ? yaml_text(v) : "";
	size_t i = 0;

	while (i < ARRAY_LEN(words) && (words[i].key != key || strcmp(words[i].word, text) != 0))
		i++;
	if (i == ARRAY_LEN(words))
		return expected(src, v, rows[key].name, rows[key].wants, err);
	if (key == FILE_BETTER)
		x->higher = words[i].value == 1;
	else if (key == FILE_FIRST_PASS && words[i].value == 1)
		x->stop_after = 1;
	else if (key == FILE_STOP_LOSERS)
		x->stop_losers = words[i].value == 1;
	else if (key == FILE_KEEP)
		x->keep = (enum engine_arms_kept)words[i].value;
	else if (key == FILE_PROMOTE)
		x->promote = (enum engine_promote_arms)words[i].value;
	return 0;
}

static int read_limit(struct file_source *src, struct yaml key, struct yaml v, bool all,
		      struct engine_experiment *x, struct err *err)
{
	const char *group = rows[all ? FILE_ALL : FILE_LIMITS].name;

	for (size_t i = 0; i < FILE_N_LIMITS; i++) {
		const size_t offset = all ? limit_rows[i].all : limit_rows[i].arm;
		char name[40];

		if (strcmp(limit_rows[i].name, yaml_text(key)) != 0 || offset == 0)
			continue;
		if (!all)
			yaml_place(key, &src->limits[i].line, &src->limits[i].column);
		snprintf(name, sizeof(name), "%s.%s", group, limit_rows[i].name);
		if (yaml_kind(v) != YAML_TEXT ||
		    limit_rows[i].parse(yaml_text(v), member(x, offset)) < 0)
			return expected(src, yaml_kind(v) == YAML_NOTHING ? key : v, name,
					limit_rows[i].wants, err);
		return 0;
	}
	return file_complain(src, key, err, "unknown key '%s.%.60s', expected %s", group,
			     yaml_text(key), rows[all ? FILE_ALL : FILE_LIMITS].wants);
}

static int read_limits(struct file_source *src, struct yaml v, bool all,
		       struct engine_experiment *x, struct err *err)
{
	const enum file_key group = all ? FILE_ALL : FILE_LIMITS;
	struct yaml key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) != YAML_MAP)
		return expected(src, v, rows[group].name, rows[group].wants, err);
	while (r >= 0 && yaml_next_pair(v, &iter, &key, &value))
		r = read_limit(src, key, value, all, x, err);
	return r;
}

static int read_score(const struct file_source *src, struct yaml v, struct engine_experiment *x,
		      struct err *err)
{
	struct err why = { 0 };

	if (yaml_kind(v) != YAML_TEXT || *yaml_text(v) == '\0')
		return expected(src, v, "score", rows[FILE_SCORE].wants, err);
	return engine_experiment_score(x, yaml_text(v), &why) < 0
		   ? file_complain(src, v, err, "'score': %s", why.msg)
		   : 0;
}

static int read_text(const struct file_source *src, enum file_key key, struct yaml v,
		     struct engine_experiment *x, struct err *err)
{
	char **text = member(x, rows[key].offset);
	struct err why = { 0 };

	if (yaml_kind(v) != YAML_TEXT || *yaml_text(v) == '\0')
		return expected(src, v, rows[key].name, rows[key].wants, err);
	if (key == FILE_NET && profile_net_check(yaml_text(v), &why) < 0)
		return file_complain(src, v, err, "'net': %s", why.msg);
	*text = strdup(yaml_text(v));
	return *text ? 0 : err_nomem(err);
}

/* --- keys --------------------------------------------------------------------------------- */

struct reading {
	struct file_source *src;
	struct engine_experiment *x;
	struct yaml exclude; /* read last: it speaks of the matrix */
};

static int read_other(struct reading *rd, enum file_key key, struct yaml v, struct err *err)
{
	switch (key) {
	case FILE_ENV:
		return file_read_env(rd->src, v, "env", &rd->x->env, &rd->x->n_env, err);
	case FILE_ARMS:
		return file_read_arms(rd->src, v, rd->x, err);
	case FILE_RUN:
		return file_read_run(rd->src, v, rd->x, err);
	case FILE_MATRIX:
		return file_read_matrix(rd->src, v, err);
	case FILE_EXCLUDE:
		rd->exclude = v;
		return 0;
	case FILE_SCORE:
		return read_score(rd->src, v, rd->x, err);
	default:
		return read_limits(rd->src, v, key == FILE_ALL, rd->x, err);
	}
}

static int read_key(struct reading *rd, enum file_key key, struct yaml at, struct yaml v,
		    struct err *err)
{
	struct file_source *src = rd->src;

	yaml_place(at, &src->said[key].line, &src->said[key].column);
	if (yaml_kind(v) == YAML_NOTHING)
		return file_complain(src, at, err, "'%s' has no value, expected %s", rows[key].name,
				     rows[key].wants);
	switch (rows[key].kind) {
	case IS_NOTHING:
		return 0;
	case IS_TEXT:
		return read_text(src, key, v, rd->x, err);
	case IS_COUNT:
		return read_count(src, key, v, member(rd->x, rows[key].offset), err);
	case IS_TEXTS:
		return read_texts(src, key, v, rd->x, err);
	case IS_WORD:
		return read_word(src, key, v, rd->x, err);
	case IS_OTHER:
		break;
	}
	return read_other(rd, key, v, err);
}

/* Two keys that exclude each other, or of which one needs the other. */
static int check_keys(const struct file_source *src, struct err *err)
{
	static const struct {
		enum file_key key, other;
		bool together;
	} rules[] = {
		{ FILE_RUN, FILE_ARMS, false },
		{ FILE_RUN, FILE_MATRIX, true },
		{ FILE_EXCLUDE, FILE_MATRIX, true },
		{ FILE_BETTER, FILE_SCORE, true },
		{ FILE_STOP_AFTER, FILE_FIRST_PASS, false },
		{ FILE_STOP_LOSERS, FILE_SCORE, true },
		{ FILE_STOP_LOSERS, FILE_REPEAT, false },
		{ FILE_PROMOTE, FILE_REPEAT, false },
		{ FILE_NET, FILE_ON, false },
		{ FILE_RO, FILE_ON, false },
		{ FILE_REMOTE, FILE_ON, true },
		{ FILE_LABELS, FILE_ON, true },
		{ FILE_CREDS, FILE_ON, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct file_place *at = &src->said[rules[i].key];
		const bool other = src->said[rules[i].other].line > 0;

		if (at->line > 0 && other != rules[i].together)
			return err_set(err, -EINVAL, "%s:%d:%d: '%s' %s '%s'", src->shown, at->line,
				       at->column, rows[rules[i].key].name,
				       rules[i].together ? "needs" : "excludes",
				       rows[rules[i].other].name);
	}
	return 0;
}

/* Every arm that passes is promoted then, so none of them can be beaten. */
static int check_losers(const struct file_source *src, const struct engine_experiment *x,
			struct err *err)
{
	const struct file_place *at = &src->said[FILE_STOP_LOSERS];

	if (x->stop_losers && x->promote == ENGINE_PROMOTE_COMPATIBLE)
		return err_set(err, -EINVAL,
			       "%s:%d:%d: 'stop_losers' excludes 'promote: all-compatible'",
			       src->shown, at->line, at->column);
	return 0;
}

/* What only the whole can have. */
static int check_level(const struct file_source *src, struct err *err)
{
	static const enum file_key whole[] = {
		FILE_BASE, FILE_PROFILE, FILE_NET,    FILE_PASS_ENV, FILE_RO,    FILE_REPEAT,
		FILE_KEEP, FILE_WITHIN,  FILE_ALL,    FILE_PROMOTE,  FILE_ALLOW, FILE_ALLOW_MISSING,
		FILE_ON,   FILE_REMOTE,  FILE_LABELS, FILE_CREDS
	};

	for (size_t i = 0; src->level > 0 && i < ARRAY_LEN(whole); i++) {
		const struct file_place *at = &src->said[whole[i]];

		if (at->line > 0)
			return err_set(err, -EINVAL,
				       "%s:%d:%d: '%s' is of the whole, not of an experiment "
				       "inside of an arm",
				       src->shown, at->line, at->column, rows[whole[i]].name);
	}
	return 0;
}

int file_read_plan(struct file_source *src, struct yaml plan, struct engine_experiment *x,
		   struct err *err)
{
	struct reading rd = { .src = src, .x = x };
	struct yaml key, value;
	void *iter = NULL;
	int line, column, r = 0;

	yaml_place(plan, &line, &column);
	while (r >= 0 && yaml_next_pair(plan, &iter, &key, &value)) {
		size_t i = 0;

		while (i < FILE_N_KEYS && strcmp(rows[i].name, yaml_text(key)) != 0)
			i++;
		r = i < FILE_N_KEYS ? read_key(&rd, (enum file_key)i, key, value, err)
				    : unknown(src, key, err);
	}
	if (r >= 0)
		r = check_keys(src, err);
	if (r >= 0)
		r = check_losers(src, x, err);
	if (r >= 0)
		r = check_level(src, err);
	if (r >= 0 && src->said[FILE_EXCLUDE].line > 0)
		r = file_read_exclude(src, rd.exclude, err);
	if (r >= 0 && x->n_arms == 0)
		return err_set(err, -EINVAL,
			       "%s:%d:%d: there is no arm: 'arms', or 'run' and 'matrix'",
			       src->shown, line, column);
	return r;
}

int file_read(struct file_source *src, const char *text, size_t len, struct engine_experiment *x,
	      struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct yaml root;
	int r = yaml_parse(&doc, src->shown, text, len, &root, err);

	if (r < 0)
		return r;
	if (yaml_kind(root) != YAML_MAP)
		return err_set(err, -EINVAL,
			       "%s:1:1: expected keys and values, as 'arms: {a: ./a.sh}'",
			       src->shown);
	return file_read_plan(src, root, x, err);
}
