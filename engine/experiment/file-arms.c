/*
 * Arms in a file: "NAME: COMMAND", or "NAME: {run: COMMAND, env: ...}", with other arms inside or not; and the matrix
 * that multiplies them.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/typo.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/experiment/file-i.h"
#include "engine/run/profile-i.h"

int file_read_env(const struct file_source *src, struct yaml v, const char *where, char ***ret,
		  size_t *ret_n, struct err *err)
{
	struct yaml name, value;
	void *iter = NULL;

	if (yaml_kind(v) != YAML_MAP)
		return file_complain(src, v, err, "'%s': expected a map of names and values",
				     where);
	while (yaml_next_pair(v, &iter, &name, &value)) {
		if (!profile_is_variable(yaml_text(name)))
			return file_complain(src, name, err,
					     "'%s': '%.60s' is not the name of a variable", where,
					     yaml_text(name));
		if (yaml_kind(value) != YAML_TEXT)
			return file_complain(src, name, err,
					     "'%s': the value of '%.60s' is no text", where,
					     yaml_text(name));
		if (!VEC_ONE_MORE(*ret, *ret_n))
			return err_nomem(err);
		if (asprintf(&(*ret)[*ret_n], "%s=%s", yaml_text(name), yaml_text(value)) < 0)
			return err_nomem(err);
		(*ret_n)++;
	}
	return 0;
}

/* --- arms --------------------------------------------------------------------------------- */

static int note_place(struct file_source *src, struct yaml at, struct err *err)
{
	if (!VEC_ONE_MORE(src->arms, src->n_arms))
		return err_nomem(err);
	src->arms[src->n_arms] = (struct file_arm){ .inner = NULL };
	yaml_place(at, &src->arms[src->n_arms].at.line, &src->arms[src->n_arms].at.column);
	src->n_arms++;
	return 0;
}

static int read_text(const struct file_source *src, struct yaml key, struct yaml v,
		     const char *wants, char **ret, struct err *err)
{
	if (yaml_kind(v) != YAML_TEXT || *yaml_text(v) == '\0')
		return file_complain(src, key, err, "'%s': expected %s", yaml_text(key), wants);
	free(*ret);
	*ret = strdup(yaml_text(v));
	return *ret ? 0 : err_nomem(err);
}

static int unknown(const struct file_source *src, struct yaml key, struct err *err)
{
	static const char *const words[] = {
		"run", "env", "profile", "base", "after", "experiment"
	};
	struct typo t = TYPO_INIT(yaml_text(key), strlen(yaml_text(key)));

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		typo_offer(&t, words[i]);
	return t.best ? file_complain(src, key, err,
				      "unknown key '%.60s' of an arm, did you mean '%s'?",
				      yaml_text(key), t.best)
		      : file_complain(
			    src, key, err,
			    "unknown key '%.60s': an arm has run, env, profile, base, after, "
			    "experiment",
			    yaml_text(key));
}

/* What is tried inside of the last arm that was read: a plan, or the name of a file that has one. */
static int read_inner(struct file_source *src, struct yaml key, struct yaml v,
		      struct engine_arm *arm, struct err *err)
{
	struct file_arm *at = &src->arms[src->n_arms - 1];
	int r;

	if (src->level + 1 == ENGINE_LEVELS_MAX)
		return file_complain(src, key, err,
				     "'experiment': this arm is %d levels deep and can have no "
				     "arms inside of it",
				     ENGINE_LEVELS_MAX);
	if (yaml_kind(v) != YAML_MAP && yaml_kind(v) != YAML_TEXT)
		return file_complain(src, key, err,
				     "'experiment': expected a plan, as '{arms: {a: ./a.sh}}', or "
				     "the name of a file");
	r = inner_add(arm, err);
	if (r < 0)
		return r;
	if (yaml_kind(v) == YAML_TEXT)
		return read_text(src, key, v, "the name of a file", &arm->inner->file, err);
	at->inner = calloc(1, sizeof(*at->inner));
	if (!at->inner)
		return err_nomem(err);
	at->inner->shown = src->shown;
	at->inner->level = src->level + 1;
	return file_read_plan(at->inner, v, arm->inner, err);
}

static int read_key(struct file_source *src, struct yaml key, struct yaml v, struct engine_arm *arm,
		    struct err *err)
{
	const char *k = yaml_text(key);

	if (src->level > 0 && (strcmp(k, "profile") == 0 || strcmp(k, "base") == 0))
		return file_complain(src, key, err, "'%s': an arm inside of another has its %s", k,
				     strcmp(k, "base") == 0 ? "result to start from" : "profile");
	if (strcmp(k, "experiment") == 0)
		return read_inner(src, key, v, arm, err);
	if (strcmp(k, "run") == 0)
		return read_text(src, key, v, "a line for the shell", &arm->command, err);
	if (strcmp(k, "profile") == 0)
		return read_text(src, key, v, "the name of a profile", &arm->profile, err);
	if (strcmp(k, "base") == 0)
		return read_text(src, key, v, "a snapshot or a clone", &arm->from, err);
	if (strcmp(k, "after") == 0)
		return read_text(src, key, v, "the name of another arm", &arm->after, err);
	if (strcmp(k, "env") == 0)
		return file_read_env(src, v, "env", &arm->env, &arm->n_env, err);
	return unknown(src, key, err);
}

static int fill_arm(struct file_source *src, struct yaml name, struct yaml v,
		    struct engine_arm *arm, struct err *err)
{
	struct yaml key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) == YAML_TEXT)
		return read_text(src, name, v, "a line for the shell", &arm->command, err);
	if (yaml_kind(v) != YAML_MAP)
		return file_complain(
		    src, name, err, "arm '%.60s': expected a line for the shell, or 'run' and more",
		    yaml_text(name));
	while (r >= 0 && yaml_next_pair(v, &iter, &key, &value))
		r = read_key(src, key, value, arm, err);
	if (r >= 0 && !arm->command && arm->n_inner == 0)
		r = file_complain(src, name, err, "arm '%.60s' has no 'run' and no 'experiment'",
				  yaml_text(name));
	return r;
}

/* An arm that has a name and no command yet. */
static int add_arm(struct engine_experiment *x, const char *name, struct err *err)
{
	if (!VEC_ONE_MORE(x->arms, x->n_arms))
		return err_nomem(err);
	x->arms[x->n_arms] = (struct engine_arm){ .name = strdup(name) };
	return x->arms[x->n_arms++].name ? 0 : err_nomem(err);
}

int file_read_arms(struct file_source *src, struct yaml v, struct engine_experiment *x,
		   struct err *err)
{
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) != YAML_MAP)
		return file_complain(src, v, err,
				     "'arms': expected names and commands, as 'a: ./a.sh'");
	while (r >= 0 && yaml_next_pair(v, &iter, &name, &value)) {
		struct err why = { 0 };

		r = experiment_check_name(x, yaml_text(name), strlen(yaml_text(name)), &why);
		if (r < 0)
			return file_complain(src, name, err, "'arms': %s", why.msg);
		r = add_arm(x, yaml_text(name), err);
		if (r < 0)
			return r;
		r = note_place(src, name, err);
		if (r < 0)
			return r;
		r = fill_arm(src, name, value, &x->arms[x->n_arms - 1], err);
	}
	return r;
}

int file_read_run(struct file_source *src, struct yaml v, struct engine_experiment *x,
		  struct err *err)
{
	int r;

	if (yaml_kind(v) != YAML_TEXT || *yaml_text(v) == '\0')
		return file_complain(src, v, err, "'run': expected a line for the shell");
	r = add_arm(x, "", err);
	if (r >= 0)
		r = note_place(src, v, err);
	if (r < 0)
		return r;
	x->arms[x->n_arms - 1].command = strdup(yaml_text(v));
	return x->arms[x->n_arms - 1].command ? 0 : err_nomem(err);
}

/* --- the matrix --------------------------------------------------------------------------- */

static int read_axis(const struct file_source *src, struct yaml name, struct yaml v,
		     struct engine_matrix *m, struct err *err)
{
	struct err why = { 0 };
	void *iter = NULL;
	struct yaml item;
	int r;

	if (yaml_kind(v) != YAML_LIST)
		return file_complain(src, name, err, "'matrix': '%.60s' is no list of values",
				     yaml_text(name));
	r = engine_matrix_axis(m, yaml_text(name), &why);
	if (r < 0)
		return file_complain(src, name, err, "'matrix': %s", why.msg);
	while (r >= 0 && yaml_next_item(v, &iter, &item)) {
		if (yaml_kind(item) != YAML_TEXT)
			return file_complain(src, name, err, "'matrix': a value of '%s' is no text",
					     yaml_text(name));
		r = engine_matrix_value(m, yaml_text(item), &why);
		if (r < 0)
			return file_complain(src, item, err, "'matrix': %s", why.msg);
	}
	if (m->axes[m->n - 1].values.n == 0)
		return file_complain(src, name, err, "'matrix': '%s' has no values",
				     yaml_text(name));
	return r;
}

int file_read_matrix(struct file_source *src, struct yaml v, struct err *err)
{
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) != YAML_MAP)
		return file_complain(src, v, err,
				     "'matrix': expected names and values, as 'cc: [gcc, clang]'");
	while (r >= 0 && yaml_next_pair(v, &iter, &name, &value))
		r = read_axis(src, name, value, &src->matrix, err);
	return r;
}

static int read_pairs(const struct file_source *src, struct yaml v, struct strlist *ret,
		      struct err *err)
{
	struct yaml name, value;
	void *iter = NULL;

	while (yaml_next_pair(v, &iter, &name, &value)) {
		if (yaml_kind(value) != YAML_TEXT)
			return file_complain(src, name, err, "'exclude': '%.60s' is no text",
					     yaml_text(name));
		if (strlist_take(ret, text_format("%s=%s", yaml_text(name), yaml_text(value))) < 0)
			return err_nomem(err);
	}
	return 0;
}

int file_read_exclude(struct file_source *src, struct yaml v, struct err *err)
{
	void *iter = NULL;
	struct yaml item;

	if (yaml_kind(v) != YAML_LIST)
		return file_complain(src, v, err,
				     "'exclude': expected a list, as '- {cc: clang, opt: O1}'");
	while (yaml_next_item(v, &iter, &item)) {
		CLEANUP(strlist_done) struct strlist pairs = { 0 };
		struct err why = { 0 };
		int r;

		if (yaml_kind(item) != YAML_MAP)
			return file_complain(
			    src, item, err,
			    "'exclude': expected names and values, as '{cc: clang}'");
		r = read_pairs(src, item, &pairs, err);
		if (r < 0)
			return r;
		if (pairs.n == 0 || engine_matrix_without(&src->matrix, &pairs, &why) < 0)
			return file_complain(src, item, err, "'exclude': %s",
					     pairs.n == 0 ? "it names nothing" : why.msg);
	}
	return 0;
}
