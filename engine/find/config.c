#include "engine/find/config-i.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "engine/api/settings.h"
#include "engine/find/engine-i.h"

struct reading {
	const char *name; /* of the file */
	struct config config;
	struct err *err;
};

static int read_limit(struct reading *rd, struct yaml key, struct yaml value)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	if (size_parse(text, &rd->config.store_limit) < 0)
		return yaml_error(key, rd->name, rd->err, "'limit' expects a size, as 512M or 20G");
	if (rd->config.store_limit > 0 && rd->config.store_limit < CONFIG_LIMIT_MIN)
		return yaml_error(key, rd->name, rd->err, "'limit' is at least 32M, or 0 for none");
	return 0;
}

static int read_eager(struct reading *rd, struct yaml key, struct yaml value)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	if (strcmp(text, "all") == 0)
		rd->config.eager = CONFIG_EAGER_ALL;
	else if (size_parse(text, &rd->config.eager) < 0)
		return yaml_error(key, rd->name, rd->err,
				  "'eager' expects a size, as 256M, or 'all'");
	return 0;
}

static int read_checks(struct reading *rd, struct yaml key, struct yaml list)
{
	struct yaml item;
	void *iter = NULL;

	if (yaml_kind(list) != YAML_LIST)
		return yaml_error(key, rd->name, rd->err,
				  "'checks' expects a list, as '[make test]'");
	while (yaml_next_item(list, &iter, &item)) {
		if (yaml_kind(item) != YAML_TEXT || *yaml_text(item) == '\0')
			return yaml_error(key, rd->name, rd->err,
					  "a check is a line for the shell");
		if (strlist_add(&rd->config.checks, yaml_text(item)) < 0)
			return err_nomem(rd->err);
	}
	return 0;
}

static int read_tasks(struct reading *rd, struct yaml key, struct yaml map)
{
	struct yaml name, value;
	void *iter = NULL;

	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(key, rd->name, rd->err,
				  "'tasks' expects names and commands, as 'test: make test'");
	while (yaml_next_pair(map, &iter, &name, &value)) {
		if (yaml_kind(value) != YAML_TEXT || *yaml_text(value) == '\0')
			return yaml_error(name, rd->name, rd->err,
					  "a task is a line for the shell");
		if (strlist_add(&rd->config.task_names, yaml_text(name)) < 0 ||
		    strlist_add(&rd->config.task_lines, yaml_text(value)) < 0)
			return err_nomem(rd->err);
	}
	return 0;
}

static int read_steps(struct reading *rd, struct yaml key, struct yaml value)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	rd->config.steps =
	    strspn(text, "0123456789") == strlen(text) ? strtoull(text, NULL, 10) : 0;
	if (rd->config.steps < 2 || rd->config.steps > ENGINE_STEPS_MAX)
		return yaml_error(key, rd->name, rd->err, "'steps' expects a number from 2 to %d",
				  ENGINE_STEPS_MAX);
	return 0;
}

static int read_remote(struct reading *rd, struct yaml key, struct yaml map)
{
	const struct {
		const char *name;
		struct strlist *list;
	} keys[] = {
		{ "signers", &rd->config.remote_signers },
		{ "revoked", &rd->config.remote_revoked },
		{ "recipients", &rd->config.remote_recipients },
		{ "identity", &rd->config.remote_identity },
	};
	const char *path[ARRAY_LEN(keys)] = { "", "", "", "" };
	struct yaml name, value;
	void *iter = NULL;
	size_t i;

	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(key, rd->name, rd->err,
				  "a remote expects keys and values, as 'signers: FILE'");
	while (yaml_next_pair(map, &iter, &name, &value)) {
		const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

		for (i = 0; i < ARRAY_LEN(keys) && strcmp(yaml_text(name), keys[i].name) != 0;)
			i++;
		if (i == ARRAY_LEN(keys))
			return yaml_error(name, rd->name, rd->err,
					  "unknown key 'remote.%.30s.%.30s'", yaml_text(key),
					  yaml_text(name));
		if (text[0] != '/' && strncmp(text, "~/", 2) != 0)
			return yaml_error(name, rd->name, rd->err,
					  "'%s' expects an absolute path, or one below ~/",
					  keys[i].name);
		path[i] = text;
	}
	if (strlist_add(&rd->config.remotes, yaml_text(key)) < 0)
		return err_nomem(rd->err);
	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (strlist_add(keys[i].list, path[i]) < 0)
			return err_nomem(rd->err);
	return 0;
}

static int read_remotes(struct reading *rd, struct yaml key, struct yaml map)
{
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(key, rd->name, rd->err,
				  "'remote' expects names of remotes, each with keys and values");
	while (r >= 0 && yaml_next_pair(map, &iter, &name, &value))
		r = read_remote(rd, name, value);
	return r;
}

static bool is_header_name(const char *name)
{
	return *name != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789-_") == strlen(name);
}

/* A line break in a value would begin another header. */
static bool is_header_value(const char *value)
{
	for (const char *c = value; *c != '\0'; c++)
		if (iscntrl((unsigned char)*c))
			return false;
	return *value != '\0';
}

static int read_headers(struct reading *rd, struct yaml key, struct yaml map)
{
	struct yaml name, value;
	void *iter = NULL;

	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(key, rd->name, rd->err,
				  "'otlp_headers' expects names and values, as 'X-Api-Key: abc'");
	while (yaml_next_pair(map, &iter, &name, &value)) {
		const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";
		AUTO_FREE char *line = NULL;

		if (!is_header_name(yaml_text(name)) || !is_header_value(text))
			return yaml_error(name, rd->name, rd->err,
					  "'%.60s' is no header: a name and a line of text",
					  yaml_text(name));
		line = text_format("%s: %s", yaml_text(name), text);
		if (!line)
			return err_nomem(rd->err);
		if (strlist_add(&rd->config.otlp_headers, line) < 0)
			return err_nomem(rd->err);
	}
	return 0;
}

static int read_otlp(struct reading *rd, struct yaml key, struct yaml value)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0)
		return yaml_error(key, rd->name, rd->err,
				  "'otlp' expects an address, as http://127.0.0.1:4318");
	rd->config.otlp = strdup(text);
	return rd->config.otlp ? 0 : err_nomem(rd->err);
}

/* A section is read by a function, or key by key. */
static const struct section {
	const char *name;
	int (*read)(struct reading *rd, struct yaml key, struct yaml value);
	const char *example;
	struct {
		const char *name; /* NULL ends */
		int (*read)(struct reading *rd, struct yaml key, struct yaml value);
	} keys[3];
} sections[] = {
	{ "store", NULL, "limit: 20G", { { "limit", read_limit } } },
	{ "capture", NULL, "eager: 256M", { { "eager", read_eager } } },
	{ "promote", NULL, "checks: [make test]", { { "checks", read_checks } } },
	{ "tasks", read_tasks },
	{ "agents", NULL, "steps: 1000", { { "steps", read_steps } } },
	{ "remote", read_remotes },
	{ "metrics",
	  NULL,
	  "otlp: http://127.0.0.1:4318",
	  { { "otlp", read_otlp }, { "otlp_headers", read_headers } } },
};

static int read_key(struct reading *rd, const struct section *s, struct yaml key, struct yaml value)
{
	for (size_t i = 0; s->keys[i].name; i++)
		if (strcmp(yaml_text(key), s->keys[i].name) == 0)
			return s->keys[i].read(rd, key, value);
	return yaml_error(key, rd->name, rd->err, "unknown key '%s.%.60s'", s->name,
			  yaml_text(key));
}

static int read_section(struct reading *rd, struct yaml key, struct yaml map)
{
	const struct section *s =
	    VEC_FIND(it, sections, ARRAY_LEN(sections), strcmp(yaml_text(key), it->name) == 0);
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (!s)
		return yaml_error(key, rd->name, rd->err, "unknown key '%.60s'", yaml_text(key));
	if (s->read)
		return s->read(rd, key, map);
	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(key, rd->name, rd->err, "'%s' expects keys and values, as '%s'",
				  s->name, s->example);
	while (r >= 0 && yaml_next_pair(map, &iter, &name, &value))
		r = read_key(rd, s, name, value);
	return r;
}

static int read_all(struct reading *rd, struct yaml top)
{
	struct yaml key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(top) != YAML_MAP)
		return yaml_error(top, rd->name, rd->err,
				  "expected keys and values, as 'store: {limit: 20G}'");
	while (r >= 0 && yaml_next_pair(top, &iter, &key, &value))
		r = read_section(rd, key, value);
	return r;
}

void config_done(struct config *c)
{
	strlist_done(&c->checks);
	strlist_done(&c->task_names);
	strlist_done(&c->task_lines);
	strlist_done(&c->remotes);
	strlist_done(&c->remote_signers);
	strlist_done(&c->remote_revoked);
	strlist_done(&c->remote_recipients);
	strlist_done(&c->remote_identity);
	strlist_done(&c->otlp_headers);
	free(c->otlp);
}

int config_expand(const char *home, const char *path, char **ret, struct err *err)
{
	if (path[0] != '/' && (strncmp(path, "~/", 2) != 0 || !home))
		return err_set(err, -EINVAL, "'%.100s' is no absolute path", path);
	*ret = path[0] == '/' ? strdup(path) : path_join(home, path + 2);
	return *ret ? 0 : err_nomem(err);
}

int config_read(const char *path, struct config *ret, struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct reading rd = { .name = path, .err = err, .config.eager = CONFIG_EAGER };
	struct yaml top;
	int r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &text, err);

	if (r == -ENOENT || r == -ENOTDIR) {
		*ret = rd.config;
		return 0;
	}
	if (r < 0)
		return r;
	r = yaml_parse(&doc, path, (const char *)text.data, text.len, &top, err);
	if (r < 0)
		return r;
	if (yaml_kind(top) != YAML_NOTHING)
		r = read_all(&rd, top);
	if (r < 0) {
		config_done(&rd.config);
		return r;
	}
	*ret = rd.config;
	return 0;
}

/* The user's own file. */
static int read_own(const struct engine *e, struct config *ret, struct err *err)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);

	return path ? config_read(path, ret, err) : 0;
}

int engine_agent_checks(const struct engine *e, struct strlist *ret, struct err *err)
{
	CLEANUP(config_done) struct config config = { 0 };
	int r = read_own(e, &config, err);

	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(config.checks);
	return 0;
}

int engine_agent_steps(const struct engine *e, uint64_t *ret, struct err *err)
{
	CLEANUP(config_done) struct config config = { 0 };
	int r = read_own(e, &config, err);

	if (r < 0)
		return r;
	*ret = config.steps > 0 ? config.steps : ENGINE_STEPS_KEPT;
	return 0;
}

int engine_tasks(const struct engine *e, struct strlist *ret_names, struct strlist *ret_lines,
		 struct err *err)
{
	CLEANUP(config_done) struct config config = { 0 };
	int r = read_own(e, &config, err);

	if (r < 0)
		return r;
	*ret_names = TAKE_STRUCT(config.task_names);
	*ret_lines = TAKE_STRUCT(config.task_lines);
	return 0;
}

char *config_file(const char *home, const char *name)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const bool set = config && *config == '/';

	if (!set && (!home || *home != '/'))
		return NULL;
	return text_format("%s/%ssnapcow/%s", set ? config : home, set ? "" : ".config/", name);
}

/* Each name of `path` below the directory, and no symlink; takes `at`. */
static int open_below(int at, const char *path)
{
	AUTO_CLOSE int dir = at;

	for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		AUTO_FREE char *name = strndup(path, (size_t)(slash - path));
		const int next =
		    name ? fdio_open_read(dir, name, O_DIRECTORY | O_NOFOLLOW) : -ENOMEM;

		cleanup_close(&dir);
		dir = next;
	}
	return dir < 0 ? dir : fdio_open_read(dir, path, O_NOFOLLOW);
}

int config_read_project(const char *project, const char *name, struct buf *ret, struct err *err)
{
	AUTO_CLOSE int top = fdio_open_read(AT_FDCWD, project, O_DIRECTORY);
	AUTO_CLOSE int fd =
	    top < 0 ? top
		    : open_below(fdio_open_read(top, ".snap", O_DIRECTORY | O_NOFOLLOW), name);
	struct stat st;
	ssize_t n;

	/* A .snap that is no directory has no files; a link in the place of the file is no answer. */
	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ENOENT;
	if (fd < 0)
		return err_set(err, fd == -ELOOP ? -EINVAL : fd, "opening '%s/.snap/%s' failed: %s",
			       project, name, strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "'%s/.snap/%s' is no regular file", project, name);
	if (st.st_size > YAML_MAX)
		return err_set(err, -EFBIG, "'%s/.snap/%s' is too large", project, name);
	if (buf_reserve(ret, YAML_MAX + 1) < 0)
		return err_nomem(err);
	n = fdio_read(fd, ret->data, YAML_MAX + 1);
	if (n < 0)
		return err_set(err, (int)n, "reading '%s/.snap/%s' failed: %s", project, name,
			       strerror((int)-n));
	ret->len = (size_t)n;
	return 0;
}
