#include "engine/run/run-env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/run/run-root.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define SECRET_MAX   65536

extern char **environ;

void run_env_done(struct run_env *e)
{
	strlist_done(&e->words);
	free(e->home);
	scrub_done(&e->secrets);
	*e = (struct run_env){ 0 };
}

/* Variables that describe the caller's terminal and language, and hold no secrets. */
static const char *const passed[] = { "COLORTERM", "HOME",     "LANG", "LANGUAGE",
				      "LOGNAME",   "NO_COLOR", "PATH", "SHELL",
				      "TERM",      "TZ",       "USER" };

/* Who the caller is, and where its programs are: another root has its own. */
static const char *const of_caller[] = { "HOME", "LOGNAME", "PATH", "SHELL", "USER" };

static bool is_among(const char *entry, const char *const *names, size_t n)
{
	const size_t len = strcspn(entry, "=");

	return VEC_HAS(it, names, n, strlen(*it) == len && strncmp(*it, entry, len) == 0);
}

static bool is_passed(const char *entry, bool root)
{
	if (strncmp(entry, "LC_", 3) == 0)
		return true;
	return is_among(entry, passed, ARRAY_LEN(passed)) &&
	       !(root && is_among(entry, of_caller, ARRAY_LEN(of_caller)));
}

/* A later value of the same name replaces the earlier. */
static int env_set(struct run_env *e, const char *name, size_t len, const char *value,
		   struct err *err)
{
	char *entry;
	size_t i = 0;

	if (asprintf(&entry, "%.*s=%s", (int)len, name, value) < 0)
		return err_nomem(err);
	while (i < e->words.n && strncmp(e->words.list[i], entry, len + 1) != 0)
		i++;
	if (i == e->words.n)
		return strlist_take(&e->words, entry) < 0 ? err_nomem(err) : 0;
	free(e->words.list[i]);
	e->words.list[i] = entry;
	return 0;
}

static int check_name(const char *option, const char *given, size_t len, struct err *err)
{
	if (len == 0 || len > 4096)
		return err_set(err, -EINVAL, "option '--%s': '%s' has no name of a variable",
			       option, given);
	return 0;
}

static int add_given(struct run_env *e, const char *given, struct err *err)
{
	const size_t len = strcspn(given, "=");
	int r = check_name("env", given, len, err);

	if (r < 0)
		return r;
	if (given[len] != '=')
		return err_set(err, -EINVAL, "option '--env': '%s' is not NAME=VALUE", given);
	return env_set(e, given, len, given + len + 1, err);
}

static int add_passed(struct run_env *e, const char *name, struct err *err)
{
	const char *value = getenv(name);
	int r = check_name("pass-env", name, strcspn(name, "="), err);

	if (r < 0)
		return r;
	if (strchr(name, '='))
		return err_set(err, -EINVAL, "option '--pass-env': '%s' is not a name", name);
	return value ? env_set(e, name, strlen(name), value, err) : r;
}

/* A line feed at the end of the file is not part of the secret. */
static int read_secret(const char *path, struct buf *value, struct err *err)
{
	int r = fdio_read_file(AT_FDCWD, path, SECRET_MAX, value, err);

	if (r < 0)
		return err_wrap(err, r, "option '--secret'");
	if (value->len > 0 && value->data[value->len - 1] == '\n')
		value->len--;
	if (value->len > 0 && memchr(value->data, '\0', value->len))
		return err_set(err, -EINVAL, "option '--secret': '%s' has a NUL in it", path);
	return 0;
}

static int add_secret(struct run_env *e, const char *given, struct err *err)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;
	const size_t len = strcspn(given, "=");
	AUTO_FREE char *name = strndup(given, len);
	const char *text;
	int r;

	if (!name)
		return err_nomem(err);
	r = check_name("secret", given, len, err);
	if (r < 0)
		return r;
	if (given[len] == '=') {
		r = read_secret(given + len + 1, &value, err);
	} else {
		text = getenv(name);
		r = text ? buf_append_str(&value, text)
			 : err_set(err, -EINVAL, "secret '%s' is not in the environment", name);
	}
	if (r < 0)
		return r;
	r = scrub_add(&e->secrets, name, value.data, value.len, err);
	if (r < 0)
		return r;
	text = buf_str(&value);
	return text ? env_set(e, name, len, text, err) : err_nomem(err);
}

/* An empty directory of its own, at the caller's path; /tmp if that is not possible. */
static int choose_home(struct run_env *e, const struct engine_run_options *o, struct err *err)
{
	const char *home = getenv("HOME");
	AUTO_FREE char *clean = home && *home == '/' ? path_clean("/", home) : NULL;

	if (o->root && !o->as)
		e->home = strdup(RUN_ROOT_HOME);
	else if (o->root || !clean || strcmp(clean, "/") == 0 || path_is_below(clean, "/dev") ||
		 path_is_below(clean, "/proc") || path_is_below(clean, "/sys"))
		e->home = strdup("/tmp");
	else
		e->home = TAKE_PTR(clean);
	return e->home ? 0 : err_nomem(err);
}

static int add_words(struct run_env *e, struct engine_list given, struct engine_list names,
		     struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < names.n; i++)
		r = add_passed(e, names.items[i], err);
	for (size_t i = 0; r >= 0 && i < given.n; i++)
		r = add_given(e, given.items[i], err);
	return r;
}

static struct engine_list list_of(const struct strlist *w)
{
	return (struct engine_list){ (const char *const *)w->list, w->n };
}

int run_env_build(struct run_env *e, const struct engine_run_options *o,
		  const struct engine_profile *profile, struct engine_list ours,
		  struct engine_list git, struct engine_list tls, struct err *err)
{
	int r = choose_home(e, o, err);

	if (r < 0)
		return r;
	r = env_set(e, "PATH", 4, DEFAULT_PATH, err);
	for (char **at = environ; r >= 0 && *at; at++)
		if (is_passed(*at, o->root))
			r = env_set(e, *at, strcspn(*at, "="), strchr(*at, '=') + 1, err);
	if (r < 0)
		return r;
	r = env_set(e, "HOME", 4, e->home, err);
	if (r < 0)
		return r;
	r = add_words(e, run_root_variables(o), (struct engine_list){ 0 }, err);
	if (r < 0)
		return r;
	r = add_words(e, ours, (struct engine_list){ 0 }, err);
	if (r < 0)
		return r;
	r = add_words(e, git, (struct engine_list){ 0 }, err);
	if (r < 0)
		return r;
	r = add_words(e, tls, (struct engine_list){ 0 }, err);
	if (r < 0)
		return r;
	r = add_words(e, list_of(&profile->env), list_of(&profile->pass_env), err);
	if (r < 0)
		return r;
	r = add_words(e, o->env, o->pass_env, err);
	for (size_t i = 0; r >= 0 && i < o->secrets.n; i++)
		r = add_secret(e, o->secrets.items[i], err);
	return r;
}

static bool has_variable(const struct run_env *e, const char *name)
{
	const size_t len = strlen(name);

	return VEC_HAS(it, e->words.list, e->words.n,
		       strncmp(*it, name, len) == 0 && (*it)[len] == '=');
}

int run_env_trace(struct run_env *e, const char *run, char ret[TRACEPARENT_SIZE], struct err *err)
{
	char ours[TRACEPARENT_SIZE];

	if (!traceparent_here(ret) || has_variable(e, TRACEPARENT_VARIABLE))
		return 0;
	memcpy(ours, ret, sizeof(ours));
	traceparent_set_span(ours, run);
	return env_set(e, TRACEPARENT_VARIABLE, strlen(TRACEPARENT_VARIABLE), ours, err);
}
