/*
 * From YAML to a profile.  Each key has a row: its kind, and where its value goes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/size.h"
#include "base/text.h"
#include "base/typo.h"
#include "base/vec.h"
#include "engine/run/profile-i.h"
#include "runner/net/allow.h"

enum kind { IS_TEXT, IS_SIZE, IS_COUNT, IS_DURATION, IS_CPUS, IS_WORDS, IS_OTHER };

struct profile_field {
	const char *name;
	enum kind kind;
	const char *wants; /* what the value must be, for error messages */
	size_t offset;
};

#define AT(member) offsetof(struct engine_profile, member)

static const struct profile_field rows[PROFILE_N_KEYS] = {
	[KEY_NAME] = { "name", IS_OTHER, "the name of the file without '.yaml'", 0 },
	[KEY_EXTENDS] = { "extends", IS_TEXT, "the name of another profile", AT(extends) },
	[KEY_DESCRIPTION] = { "description", IS_TEXT, "a line of text", AT(description) },
	[KEY_CPU] = { "cpu", IS_CPUS, "a number of processors, as 2 or 0.5", AT(cpus_milli) },
	[KEY_MEM] = { "mem", IS_SIZE, "a size, as 512M or 2G", AT(mem) },
	[KEY_DISK] = { "disk", IS_SIZE, "a size, as 512M or 2G", AT(disk) },
	[KEY_INODES] = { "inodes", IS_COUNT, "a number of files and directories", AT(inodes) },
	[KEY_FSIZE] = { "fsize", IS_SIZE, "a size, as 512M or 2G", AT(fsize) },
	[KEY_PIDS] = { "pids", IS_COUNT, "a number of processes", AT(pids) },
	[KEY_NOFILE] = { "nofile", IS_COUNT, "a number of open files", AT(nofile) },
	[KEY_TIME] = { "time", IS_DURATION, "a time, as 30s, 15m or 2h", AT(time_ms) },
	[KEY_LIFETIME] = { "lifetime", IS_DURATION, "a time, as 30s, 15m or 2h", AT(lifetime_ms) },
	[KEY_NET] = { "net", IS_OTHER, "none, loopback, host or HOST:PORT,...", AT(net) },
	[KEY_NET_OUT] = { "net_out", IS_SIZE, "a size, as 512M or 2G", AT(net_out) },
	[KEY_ASK] = { "ask", IS_DURATION, "a time, as 60s, or 0", AT(ask_ms) },
	[KEY_SNAPSHOTS] = { "snapshots", IS_COUNT, "how many a run may take of its clone, or 0",
			    AT(snapshots) },
	[KEY_SECCOMP] = { "seccomp", IS_OTHER, "strict, default or the path of a filter",
			  AT(seccomp) },
	[KEY_CAPS] = { "caps", IS_OTHER, "an empty list", 0 },
	[KEY_MOUNTS] = { "mounts", IS_OTHER, "a list of {host, guest, mode}", 0 },
	[KEY_HIDE] = { "hide", IS_OTHER, "a list of paths", AT(hide) },
	[KEY_ENV] = { "env", IS_OTHER, "a map of names and values", AT(env) },
	[KEY_PASS_ENV] = { "pass_env", IS_OTHER, "a list of names of variables", AT(pass_env) },
	[KEY_SECRET_FOR] = { "secret_for", IS_WORDS, "a list of http://HOST=NAME", AT(secret_for) },
	[KEY_TLS_INSPECT] = { "tls_inspect", IS_WORDS, "a list of hosts", AT(tls_inspect) },
	[KEY_ENTRYPOINT] = { "entrypoint", IS_WORDS, "a list of words", AT(entrypoint) },
	[KEY_ROOT] = { "root", IS_OTHER, "true or false", AT(root) },
};

static void *member(struct engine_profile *p, enum profile_key key)
{
	return (char *)p + rows[key].offset;
}

uint64_t *profile_number(struct engine_profile *p, enum profile_key key)
{
	const enum kind k = rows[key].kind;

	return k == IS_SIZE || k == IS_COUNT || k == IS_DURATION || k == IS_CPUS ? member(p, key)
										 : NULL;
}

const char *profile_key_name(enum profile_key key)
{
	return rows[key].name;
}

/* --- sentences ---------------------------------------------------------------------------- */

static int expected(const struct profile_source *src, struct yaml at, const char *key,
		    const char *wants, struct err *err)
{
	if (yaml_kind(at) == YAML_TEXT)
		return yaml_error(at, src->shown, err, "'%s' is '%.60s', expected %s", key,
				  yaml_text(at), wants);
	return yaml_error(at, src->shown, err, "'%s': expected %s", key, wants);
}

static int unknown(const struct profile_source *src, struct yaml key, const char *const *words,
		   size_t n, struct err *err)
{
	struct typo t = TYPO_INIT(yaml_text(key), strlen(yaml_text(key)));

	for (size_t i = 0; i < n; i++)
		typo_offer(&t, words[i]);
	if (t.best)
		return yaml_error(key, src->shown, err, "unknown key '%.60s', did you mean '%s'?",
				  yaml_text(key), t.best);
	return yaml_error(key, src->shown, err, "unknown key '%.60s'", yaml_text(key));
}

/* --- values ------------------------------------------------------------------------------- */

/* "2", "0.5", "1.25": thousandths. */
static int parse_cpus(const char *text, uint64_t *ret)
{
	const char *dot = strchr(text, '.');
	size_t n = dot ? (size_t)(dot - text) : strlen(text), digits = dot ? strlen(dot + 1) : 0;
	char number[16];

	if (n == 0 || n > 6 || digits > 3 || (dot && digits == 0))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s%s%.*s", (int)n, text, dot ? dot + 1 : "",
		 (int)(3 - digits), "000");
	return size_parse_u64(number, ret);
}

static int read_number(enum kind kind, const char *text, uint64_t *ret)
{
	switch (kind) {
	case IS_SIZE:
		return size_parse_limit(text, ret);
	case IS_COUNT:
		return size_parse_u64(text, ret);
	case IS_DURATION:
		return duration_parse(text, ret);
	case IS_CPUS:
		return parse_cpus(text, ret);
	case IS_TEXT:
	case IS_WORDS:
	case IS_OTHER:
		break;
	}
	return -EINVAL;
}

/* Absolute and clean; "~/" is the home, a relative path starts in the project. */
static int read_path(const struct profile_source *src, struct yaml at, const char *key, char **ret,
		     struct err *err)
{
	const char *text = yaml_kind(at) == YAML_TEXT ? yaml_text(at) : "";
	const bool homely = strcmp(text, "~") == 0 || strncmp(text, "~/", 2) == 0;
	const char *base = homely ? src->home : src->project;

	if (*text == '\0')
		return expected(src, at, key, "a path", err);
	for (const char *c = text; *c != '\0'; c += strcspn(c, "/"), c += *c == '/')
		if (strncmp(c, "..", 2) == 0 && (c[2] == '/' || c[2] == '\0'))
			return yaml_error(at, src->shown, err, "'%s': '%.100s' has a '..' in it",
					  key, text);
	if (*text != '/' && !base)
		return yaml_error(at, src->shown, err,
				  "'%s': '%.100s' is a path in %s, and there is none", key, text,
				  homely ? "the home directory" : "a project");
	*ret = homely ? path_clean(base, text[1] ? text + 2 : ".")
		      : path_clean(base ? base : "/", text);
	return *ret ? 0 : err_nomem(err);
}

bool profile_is_variable(const char *name)
{
	if (*name == '\0' || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name != '\0'; name++)
		if (!(*name == '_' || (*name >= '0' && *name <= '9') ||
		      ((*name | 32) >= 'a' && (*name | 32) <= 'z')))
			return false;
	return true;
}

static int read_words(const struct profile_source *src, enum profile_key key, struct yaml v,
		      struct strlist *ret, struct err *err)
{
	void *iter = NULL;
	struct yaml item;
	int r = 0;

	if (yaml_kind(v) != YAML_LIST)
		return expected(src, v, rows[key].name, rows[key].wants, err);
	while (r == 0 && yaml_next_item(v, &iter, &item)) {
		AUTO_FREE char *path = NULL;

		if (yaml_kind(item) != YAML_TEXT)
			return expected(src, item, rows[key].name, rows[key].wants, err);
		if (key == KEY_PASS_ENV && !profile_is_variable(yaml_text(item)))
			return expected(src, item, rows[key].name, "the name of a variable", err);
		if (key == KEY_HIDE && strcmp(yaml_text(item), ENGINE_HIDE_SECRETS) != 0)
			r = read_path(src, item, rows[key].name, &path, err);
		if (r == 0)
			r = strlist_add(ret, path ? path : yaml_text(item)) < 0 ? err_nomem(err)
										: 0;
	}
	return r;
}

static int read_env(const struct profile_source *src, struct yaml v, struct strlist *ret,
		    struct err *err)
{
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) != YAML_MAP)
		return expected(src, v, "env", rows[KEY_ENV].wants, err);
	while (r == 0 && yaml_next_pair(v, &iter, &name, &value)) {
		char *both;

		if (!profile_is_variable(yaml_text(name)))
			return yaml_error(name, src->shown, err,
					  "'env': '%.60s' is not the name of a variable",
					  yaml_text(name));
		if (yaml_kind(value) != YAML_TEXT)
			return yaml_error(name, src->shown, err,
					  "'env': the value of '%.60s' is no text",
					  yaml_text(name));
		both = text_format("%s=%s", yaml_text(name), yaml_text(value));
		r = strlist_take(ret, both) < 0 ? err_nomem(err) : 0;
	}
	return r;
}

/* --- mounts ------------------------------------------------------------------------------- */

static int read_mount_key(const struct profile_source *src, struct yaml key, struct yaml v,
			  struct engine_profile_mount *m, struct err *err)
{
	static const char *const words[] = { "host", "guest", "mode", "optional" };
	const char *k = yaml_text(key), *text = yaml_kind(v) == YAML_TEXT ? yaml_text(v) : "";

	if (strcmp(k, "host") == 0)
		return read_path(src, v, "host", &m->host, err);
	if (strcmp(k, "guest") == 0)
		return read_path(src, v, "guest", &m->guest, err);
	if (strcmp(k, "mode") == 0) {
		m->writable = strcmp(text, "rw") == 0;
		if (!m->writable && strcmp(text, "ro") != 0)
			return expected(src, v, "mode", "ro or rw", err);
		return 0;
	}
	if (strcmp(k, "optional") != 0)
		return unknown(src, key, words, ARRAY_LEN(words), err);
	m->optional = strcmp(text, "true") == 0;
	if (!m->optional && strcmp(text, "false") != 0)
		return expected(src, v, "optional", "true or false", err);
	return 0;
}

static int read_mounts(const struct profile_source *src, struct yaml v, struct engine_profile *p,
		       struct err *err)
{
	struct yaml item, key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(v) != YAML_LIST)
		return expected(src, v, "mounts", rows[KEY_MOUNTS].wants, err);
	while (yaml_next_item(v, &iter, &item)) {
		struct engine_profile_mount *m;
		void *pairs = NULL;

		if (!VEC_ONE_MORE(p->mounts, p->n_mounts))
			return err_nomem(err);
		m = &p->mounts[p->n_mounts++];
		*m = (struct engine_profile_mount){ 0 };
		if (yaml_kind(item) != YAML_MAP)
			return expected(src, item, "mounts", rows[KEY_MOUNTS].wants, err);
		while (r == 0 && yaml_next_pair(item, &pairs, &key, &value))
			r = read_mount_key(src, key, value, m, err);
		if (r == 0 && !m->host)
			r = yaml_error(item, src->shown, err, "'mounts': there is no 'host'");
		if (r == 0 && !m->guest && !(m->guest = strdup(m->host)))
			r = err_nomem(err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- keys --------------------------------------------------------------------------------- */

/* A list of rules is the text that has a comma between them. */
static int join_rules(const struct profile_source *src, struct yaml v, struct buf *ret,
		      struct err *err)
{
	void *iter = NULL;
	struct yaml item;
	int r = 0;

	while (r == 0 && yaml_next_item(v, &iter, &item)) {
		if (yaml_kind(item) != YAML_TEXT)
			return expected(src, item, "net", rows[KEY_NET].wants, err);
		r = ret->len > 0 ? buf_append_u8(ret, ',') : 0;
		if (r == 0)
			r = buf_append_str(ret, yaml_text(item));
	}
	return r;
}

static int read_net(const struct profile_source *src, struct yaml v, char **ret, struct err *err)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	CLEANUP(buf_done) struct buf rules = BUF_INIT;
	struct err why = { 0 };
	const char *text;
	int r = 0;

	if (yaml_kind(v) == YAML_LIST)
		r = join_rules(src, v, &rules, err);
	else if (yaml_kind(v) == YAML_TEXT)
		r = buf_append_str(&rules, yaml_text(v));
	else
		return expected(src, v, "net", rows[KEY_NET].wants, err);
	text = r == 0 ? buf_str(&rules) : NULL;
	if (!text)
		return r < 0 && r != -ENOMEM ? r : err_nomem(err);
	if (allow_parse(text, &allow, &why) < 0)
		return yaml_error(v, src->shown, err, "'net': %s", why.msg);
	*ret = strdup(text);
	return *ret ? 0 : err_nomem(err);
}

static int read_other(const struct profile_source *src, enum profile_key key, struct yaml v,
		      struct engine_profile *p, struct err *err)
{
	void *iter = NULL;
	struct yaml item;

	switch (key) {
	case KEY_NAME:
		if (yaml_kind(v) != YAML_TEXT || strcmp(yaml_text(v), p->name) != 0)
			return expected(src, v, "name", rows[key].wants, err);
		return 0;
	case KEY_NET:
		return read_net(src, v, &p->net, err);
	case KEY_SECCOMP:
		if (yaml_kind(v) == YAML_TEXT && strcmp(yaml_text(v), "default") == 0)
			return 0;
		if (yaml_kind(v) == YAML_TEXT && strcmp(yaml_text(v), ENGINE_SECCOMP_STRICT) == 0)
			return (p->seccomp = strdup(ENGINE_SECCOMP_STRICT)) ? 0 : err_nomem(err);
		return read_path(src, v, "seccomp", &p->seccomp, err);
	case KEY_CAPS:
		if (yaml_kind(v) != YAML_LIST)
			return expected(src, v, "caps", rows[key].wants, err);
		if (yaml_next_item(v, &iter, &item))
			return yaml_error(item, src->shown, err,
					  "'caps': a run never has a capability");
		return 0;
	case KEY_ROOT:
		p->root = yaml_kind(v) == YAML_TEXT && strcmp(yaml_text(v), "true") == 0;
		if (!p->root && (yaml_kind(v) != YAML_TEXT || strcmp(yaml_text(v), "false") != 0))
			return expected(src, v, "root", rows[key].wants, err);
		return 0;
	case KEY_MOUNTS:
		return read_mounts(src, v, p, err);
	case KEY_ENV:
		return read_env(src, v, &p->env, err);
	default:
		return read_words(src, key, v, member(p, key), err);
	}
}

static int read_key(struct profile_source *src, enum profile_key key, struct yaml at, struct yaml v,
		    struct engine_profile *p, struct err *err)
{
	const struct profile_field *row = &rows[key];
	char **text = member(p, key);

	yaml_place(at, &src->said[key].line, &src->said[key].column);
	if (yaml_kind(v) == YAML_NOTHING)
		return yaml_error(at, src->shown, err, "'%s' has no value, expected %s", row->name,
				  row->wants);
	if (row->kind == IS_OTHER || row->kind == IS_WORDS)
		return read_other(src, key, v, p, err);
	if (yaml_kind(v) != YAML_TEXT)
		return expected(src, v, row->name, row->wants, err);
	if (row->kind != IS_TEXT) {
		if (read_number(row->kind, yaml_text(v), member(p, key)) < 0)
			return expected(src, v, row->name, row->wants, err);
		return 0;
	}
	*text = strdup(yaml_text(v));
	return *text ? 0 : err_nomem(err);
}

int profile_read(struct profile_source *src, const char *text, size_t len,
		 struct engine_profile *ret, struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	const char *names[PROFILE_N_KEYS];
	struct yaml root, key, value;
	void *iter = NULL;
	int r = yaml_parse(&doc, src->shown, text, len, &root, err);

	if (r < 0 || yaml_kind(root) == YAML_NOTHING)
		return r;
	if (yaml_kind(root) != YAML_MAP)
		return yaml_error(root, src->shown, err, "expected keys and values, as 'mem: 2G'");
	for (size_t i = 0; i < PROFILE_N_KEYS; i++)
		names[i] = rows[i].name;
	while (r == 0 && yaml_next_pair(root, &iter, &key, &value)) {
		size_t i = 0;

		while (i < PROFILE_N_KEYS && strcmp(names[i], yaml_text(key)) != 0)
			i++;
		if (i == PROFILE_N_KEYS)
			return unknown(src, key, names, PROFILE_N_KEYS, err);
		r = read_key(src, (enum profile_key)i, key, value, ret, err);
	}
	return r;
}
