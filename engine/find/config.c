#include "engine/find/config-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "base/yaml.h"

struct reading {
	const char *name; /* of the file */
	struct config config;
	struct err *err;
};

PRINTF_LIKE(3, 4)
static int complain(const struct reading *rd, struct yaml at, const char *fmt, ...)
{
	char why[160];
	int line, column;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	yaml_place(at, &line, &column);
	return err_set(rd->err, -EINVAL, "%s:%d:%d: %s", rd->name, line, column, why);
}

static int read_limit(struct reading *rd, struct yaml key, struct yaml value)
{
	const char *text = yaml_kind(value) == YAML_TEXT ? yaml_text(value) : "";

	if (size_parse(text, &rd->config.store_limit) < 0)
		return complain(rd, key, "'limit' expects a size, as 512M or 20G");
	if (rd->config.store_limit > 0 && rd->config.store_limit < CONFIG_LIMIT_MIN)
		return complain(rd, key, "'limit' is at least 32M, or 0 for none");
	return 0;
}

static int read_store(struct reading *rd, struct yaml key, struct yaml map)
{
	struct yaml name, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(map) != YAML_MAP)
		return complain(rd, key, "'store' expects keys and values, as 'limit: 20G'");
	while (r >= 0 && yaml_next_pair(map, &iter, &name, &value)) {
		if (strcmp(yaml_text(name), "limit") != 0)
			return complain(rd, name, "unknown key 'store.%.60s'", yaml_text(name));
		r = read_limit(rd, name, value);
	}
	return r;
}

static int read_all(struct reading *rd, struct yaml top)
{
	struct yaml key, value;
	void *iter = NULL;
	int r = 0;

	if (yaml_kind(top) != YAML_MAP)
		return complain(rd, top, "expected keys and values, as 'store: {limit: 20G}'");
	while (r >= 0 && yaml_next_pair(top, &iter, &key, &value)) {
		if (strcmp(yaml_text(key), "store") != 0)
			return complain(rd, key, "unknown key '%.60s'", yaml_text(key));
		r = read_store(rd, key, value);
	}
	return r;
}

int config_read(const char *path, struct config *ret, struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct reading rd = { .name = path, .err = err };
	struct yaml top;
	int r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &text, err);

	if (r == -ENOENT || r == -ENOTDIR) {
		*ret = (struct config){ 0 };
		return 0;
	}
	if (r < 0)
		return r;
	r = yaml_parse(&doc, path, (const char *)text.data, text.len, &top, err);
	if (r < 0)
		return r;
	if (yaml_kind(top) != YAML_NOTHING)
		r = read_all(&rd, top);
	if (r < 0)
		return r;
	*ret = rd.config;
	return 0;
}

char *config_file(const char *home, const char *name)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const bool set = config && *config == '/';
	char *path = NULL;

	if (!set && (!home || *home != '/'))
		return NULL;
	return asprintf(&path, "%s/%ssnapcow/%s", set ? config : home, set ? "" : ".config/",
			name) < 0
		   ? NULL
		   : path;
}
