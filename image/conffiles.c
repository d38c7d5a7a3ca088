#include "image/conffiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define CONFFILES_MAX 200000
#define PATH_LEN_MAX  4096
#define STATUS        "var/lib/dpkg/status"

static void conffile_done(struct conffile *c)
{
	free(c->path);
	free(c->package);
	free(c->sum);
}

DEFINE_LIST_DONE(conffiles_done, struct conffiles, conffile_done)

/* Where a paragraph is: which package it is about, and whether its lines list files. */
struct place {
	const char *package;
	size_t package_len;
	bool lists;
};

/* " /etc/nginx/nginx.conf 0123456789abcdef0123456789abcdef obsolete" */
static int add(struct conffiles *c, const struct place *at, const char *line, size_t len,
	       struct err *err)
{
	const char *slash = memchr(line, '/', len);
	const char *end = line + len, *space;
	struct conffile one = { 0 };
	size_t n;

	if (!slash || at->package_len == 0)
		return 0;
	space = memchr(slash, ' ', (size_t)(end - slash));
	if (!space || space == slash + 1 || (size_t)(space - slash) > PATH_LEN_MAX)
		return 0;
	if (c->n >= CONFFILES_MAX)
		return err_set(err, -EDQUOT,
			       "its dpkg database has more than %d configuration files",
			       CONFFILES_MAX);
	for (n = 0; space + 1 + n < end && space[1 + n] != ' '; n++)
		;
	one.path = strndup(slash + 1, (size_t)(space - slash) - 1);
	one.sum = strndup(space + 1, n);
	one.package = strndup(at->package, at->package_len);
	if (!one.path || !one.sum || !one.package || !VEC_ROOM(c->list, c->n, c->cap)) {
		conffile_done(&one);
		return err_nomem(err);
	}
	c->list[c->n++] = one;
	return 0;
}

static void enter_field(struct place *at, const char *line, size_t len)
{
	static const char package[] = "Package: ", conffiles[] = "Conffiles:";

	at->lists = len >= strlen(conffiles) && memcmp(line, conffiles, strlen(conffiles)) == 0;
	if (len < strlen(package) || memcmp(line, package, strlen(package)) != 0)
		return;
	at->package = line + strlen(package);
	at->package_len = len - strlen(package);
}

int conffiles_parse(struct conffiles *c, const char *text, size_t len, struct err *err)
{
	const char *at = text, *end = text + len;
	struct place place = { 0 };
	int r = 0;

	while (at < end && r >= 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((newline ? newline : end) - at);

		if (n == 0)
			place = (struct place){ 0 };
		else if (*at != ' ')
			enter_field(&place, at, n);
		else if (place.lists)
			r = add(c, &place, at, n, err);
		at += n + (newline != NULL);
	}
	return r;
}

static int by_path(const void *a, const void *b)
{
	const struct conffile *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	return order != 0 ? order : strcmp(x->package, y->package);
}

void conffiles_sort(struct conffiles *c)
{
	VEC_SORT(c->list, c->n, by_path);
}

static int path_of(const void *key, const void *item)
{
	return strcmp(key, ((const struct conffile *)item)->path);
}

const struct conffile *conffiles_find(const struct conffiles *c, const char *path)
{
	return c->n == 0 ? NULL : bsearch(path, c->list, c->n, sizeof(*c->list), path_of);
}

int conffiles_load(struct rootfile *l, struct conffiles *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = rootfile_text(l, STATUS, &text, err);

	if (r > 0 && text.len > 0)
		r = conffiles_parse(ret, (const char *)text.data, text.len, err);
	conffiles_sort(ret);
	return r < 0 ? r : 0;
}
