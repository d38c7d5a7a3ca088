#include "engine/api/matrix.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/run/profile-i.h"

#define VALUE_MAX 64

void engine_matrix_done(struct engine_matrix *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->axes[i].name);
		strlist_done(&m->axes[i].values);
	}
	VEC_FREE(it, m->without, m->n_without, strlist_done(it));
	*m = (struct engine_matrix){ 0 };
}

/* --- making ------------------------------------------------------------------------------- */

static const struct engine_axis *find_axis(const struct engine_matrix *m, const char *name,
					   size_t len)
{
	return VEC_FIND(it, m->axes, m->n,
			strlen(it->name) == len && strncmp(it->name, name, len) == 0);
}

int engine_matrix_axis(struct engine_matrix *m, const char *name, struct err *err)
{
	const size_t len = strlen(name);

	if (len > ENGINE_ARM_NAME_MAX || !profile_is_variable(name))
		return err_set(err, -EINVAL,
			       "'%.60s' is no name of a variable with up to %d characters", name,
			       ENGINE_ARM_NAME_MAX);
	if (find_axis(m, name, len))
		return err_set(err, -EINVAL, "'%s' is in the matrix twice", name);
	if (m->n == ENGINE_AXES_MAX)
		return err_set(err, -EINVAL, "a matrix has up to %d variables", ENGINE_AXES_MAX);
	m->axes[m->n] = (struct engine_axis){ .name = strdup(name) };
	if (!m->axes[m->n].name)
		return err_nomem(err);
	m->n++;
	return 0;
}

/* It becomes part of a name that people read and type. */
static bool is_printable(const char *text)
{
	const size_t len = strlen(text);

	for (size_t at = 0, n; at < len; at += n) {
		n = utf8_visible(text + at, len - at);
		if (n == 0)
			return false;
	}
	return len > 0 && len <= VALUE_MAX;
}

int engine_matrix_value(struct engine_matrix *m, const char *value, struct err *err)
{
	struct engine_axis *axis = &m->axes[m->n - 1];

	if (!is_printable(value))
		return err_set(err, -EINVAL, "a value of '%s' is no text of 1 to %d characters",
			       axis->name, VALUE_MAX);
	if (strlist_has(&axis->values, value))
		return err_set(err, -EINVAL, "'%s' has the value '%s' twice", axis->name, value);
	return strlist_add(&axis->values, value) < 0 ? err_nomem(err) : 0;
}

int engine_matrix_without(struct engine_matrix *m, const struct strlist *pairs, struct err *err)
{
	struct strlist *one;

	for (size_t i = 0; i < pairs->n; i++) {
		const size_t len = strcspn(pairs->list[i], "=");
		const struct engine_axis *axis = find_axis(m, pairs->list[i], len);

		if (pairs->list[i][len] == '\0' || !axis ||
		    !strlist_has(&axis->values, pairs->list[i] + len + 1))
			return err_set(err, -EINVAL, "no arm has '%.80s', which is to be left out",
				       pairs->list[i]);
	}
	if (!VEC_ONE_MORE(m->without, m->n_without))
		return err_nomem(err);
	one = &m->without[m->n_without++];
	*one = (struct strlist){ 0 };
	for (size_t i = 0; i < pairs->n; i++)
		if (strlist_add(one, pairs->list[i]) < 0)
			return err_nomem(err);
	return 0;
}

/* Parts between commas. */
static int split(const char *text, struct strlist *ret, struct err *err)
{
	for (const char *at = text;; at++) {
		const size_t len = strcspn(at, ",");

		if (strlist_take(ret, strndup(at, len)) < 0)
			return err_nomem(err);
		at += len;
		if (*at == '\0')
			return 0;
	}
}

int engine_matrix_add(struct engine_matrix *m, const char *text, struct err *err)
{
	CLEANUP(strlist_done) struct strlist values = { 0 };
	const size_t len = strcspn(text, "=");
	AUTO_FREE char *name = strndup(text, len);
	int r;

	if (!name)
		return err_nomem(err);
	if (text[len] == '\0')
		return err_set(err, -EINVAL, "'%.60s' has no values: NAME=VALUE,VALUE...", text);
	r = split(text + len + 1, &values, err);
	if (r >= 0)
		r = engine_matrix_axis(m, name, err);
	for (size_t i = 0; i < values.n && r >= 0; i++)
		r = engine_matrix_value(m, values.list[i], err);
	return r;
}

int engine_matrix_exclude(struct engine_matrix *m, const char *text, struct err *err)
{
	CLEANUP(strlist_done) struct strlist pairs = { 0 };
	int r = split(text, &pairs, err);

	return r < 0 ? r : engine_matrix_without(m, &pairs, err);
}

/* --- multiplying -------------------------------------------------------------------------- */

static bool has_pair(const struct strlist *pairs, const struct strlist *all)
{
	return VEC_ALL(it, pairs->list, pairs->n, strlist_has(all, *it));
}

static bool is_left_out(const struct engine_matrix *m, const struct strlist *pairs)
{
	return VEC_HAS(it, m->without, m->n_without, has_pair(it, pairs));
}

/* The k-th combination, as NAME=VALUE of each axis; the last axis turns fastest. */
static int combine(const struct engine_matrix *m, size_t k, struct strlist *ret, struct err *err)
{
	const char *values[ENGINE_AXES_MAX];

	for (size_t i = m->n; i-- > 0; k /= m->axes[i].values.n)
		values[i] = m->axes[i].values.list[k % m->axes[i].values.n];
	for (size_t i = 0; i < m->n; i++)
		if (strlist_take(ret, text_format("%s=%s", m->axes[i].name, values[i])) < 0)
			return err_nomem(err);
	return 0;
}

static char *name_of(const char *arm, const struct strlist *pairs)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int r = buf_append_str(&b, arm);

	for (size_t i = 0; i < pairs->n && r >= 0; i++) {
		if (b.len > 0)
			r = buf_append_u8(&b, ',');
		if (r >= 0)
			r = buf_append_str(&b, pairs->list[i]);
	}
	return r >= 0 && buf_str(&b) ? strdup(buf_str(&b)) : NULL;
}

/* *all are those that there are by now at all levels. */
static int add_arm(struct engine_experiment *x, const struct engine_arm *of,
		   const struct strlist *pairs, size_t *all, struct err *err)
{
	struct engine_arm *arm;
	int r;

	*all += 1 + (of->n_inner > 0 ? engine_arms_count(of->inner) : 0);
	if (*all > ENGINE_ARMS_MAX)
		return err_set(err, -EINVAL, "the matrix makes more than %d arms", ENGINE_ARMS_MAX);
	if (!VEC_ONE_MORE(x->arms, x->n_arms))
		return err_nomem(err);
	arm = &x->arms[x->n_arms++];
	*arm = (struct engine_arm){ .name = name_of(of->name, pairs) };
	if (!arm->name)
		return err_nomem(err);
	if (strlen(arm->name) > ENGINE_ARM_LABEL_MAX)
		return err_set(err, -EINVAL, "the name '%.60s...' of an arm has more than %d bytes",
			       arm->name, ENGINE_ARM_LABEL_MAX);
	r = arm_copy_plan(arm, of, err);
	if (r >= 0 && of->after) {
		free(arm->after);
		arm->after = name_of(of->after, pairs);
		r = arm->after ? 0 : err_nomem(err);
	}
	for (size_t i = 0; i < pairs->n && r >= 0; i++)
		r = arm_add_env(arm, pairs->list[i], err);
	return r;
}

static int count_combinations(const struct engine_matrix *m, size_t *ret, struct err *err)
{
	*ret = 1;
	for (size_t i = 0; i < m->n; i++) {
		*ret *= m->axes[i].values.n;
		if (*ret == 0)
			return err_set(err, -EINVAL, "'%s' of the matrix has no values",
				       m->axes[i].name);
		if (*ret > ENGINE_ARMS_MAX)
			return err_set(err, -EINVAL, "the matrix makes more than %d arms",
				       ENGINE_ARMS_MAX);
	}
	return 0;
}

int engine_matrix_apply(const struct engine_matrix *m, struct engine_experiment *x, struct err *err)
{
	CLEANUP(engine_experiment_done)
	struct engine_experiment plain = { .arms = x->arms, .n_arms = x->n_arms };
	size_t n, all = 0;
	int r;

	x->arms = NULL;
	x->n_arms = 0;
	r = count_combinations(m, &n, err);
	for (size_t i = 0; i < plain.n_arms && r >= 0; i++)
		for (size_t k = 0; k < n && r >= 0; k++) {
			CLEANUP(strlist_done) struct strlist pairs = { 0 };

			r = combine(m, k, &pairs, err);
			if (r >= 0 && !is_left_out(m, &pairs))
				r = add_arm(x, &plain.arms[i], &pairs, &all, err);
		}
	if (r >= 0 && x->n_arms == 0)
		return err_set(err, -EINVAL, "nothing is left of the matrix");
	return r;
}
