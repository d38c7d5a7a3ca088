#include "engine/find/moved-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/api/projects.h"

void moved_identify(struct project *p)
{
	struct sys_identity at;

	if (sys_identify(p->path, &at) < 0)
		at = (struct sys_identity){ 0 };
	p->ino = at.ino;
	p->born = at.born;
	p->fs = at.fs;
}

/* --- where it was ----------------------------------------------------------------------- */

#define FORMER_MAX ((size_t)32 << 10) /* bytes; beyond that the oldest ones are forgotten */

/* The next entry of the list, "TIME/PATH"; its length, 0 at the end. */
static size_t former_next(const char *list, int64_t *ret_until, const char **ret_path)
{
	const char *end = strstr(list, "//");
	const size_t len = end ? (size_t)(end - list) : strlen(list);

	*ret_until = strtoll(list, NULL, 10);
	*ret_path = memchr(list, '/', len);
	return *ret_path ? len : 0;
}

static bool moved_was_at(const struct project *p, const char *path, int64_t when)
{
	const char *at = p->former ? p->former : "", *was;
	int64_t since = p->created, until;
	size_t len;

	for (; (len = former_next(at, &until, &was)) > 0; since = until) {
		const size_t path_len = len - (size_t)(was - at);

		if (when >= since && when < until)
			return strlen(path) == path_len && strncmp(path, was, path_len) == 0;
		at += len + (at[len] == '/' ? 2 : 0);
	}
	return when >= since && strcmp(path, p->path) == 0;
}

bool moved_is_of(const struct project *p, const char *id, const char *path, int64_t when)
{
	char hex[CATALOG_HEX_SIZE];

	if (id && *id != '\0')
		return strcmp(catalog_id_hex(&p->id, hex), id) == 0;
	return path && moved_was_at(p, path, when);
}

int moved_add_former(const struct project *p, int64_t now, char **ret, struct err *err)
{
	const char *old = p->former ? p->former : "", *next;

	while (strlen(old) > FORMER_MAX && (next = strstr(old, "//")))
		old = next + 2;
	*ret = text_format("%s%s%" PRId64 "%s", old, *old ? "//" : "", now, p->path);
	if (!*ret)
		return err_nomem(err);
	return 0;
}

void moved_done(struct moved *m)
{
	free(m->from);
	free(m->to);
	*m = (struct moved){ 0 };
}

struct search {
	const char *dir, *to_be;
	struct moved *found;
};

static bool is_gone(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* `dir` or a directory above it, cut out of `up`, that is the directory of `p`. */
static bool find_above(const struct project *p, char *up, bool *ret_certain)
{
	struct sys_identity at;

	while (*up != '\0') {
		if (sys_identify(up, &at) >= 0 && at.ino == p->ino && at.born == p->born) {
			*ret_certain = p->fs != 0 && at.fs == p->fs;
			return true;
		}
		*strrchr(up, '/') = '\0';
	}
	return false;
}

/* A name alone says nothing: people follow hints, and so do programs. */
static bool is_likely(const struct project *p, const char *dir)
{
	struct sys_identity at;

	if (!dir || strcmp(last_name(p->path), last_name(dir)) != 0)
		return false;
	return sys_identify(dir, &at) >= 0 && (at.ino == p->ino || at.born == p->born);
}

static bool is_better(const struct moved *found, const char *to, bool certain)
{
	if (!found->to || certain != found->certain)
		return !found->to || certain;
	return strlen(to) > strlen(found->to);
}

static int note(struct moved *m, const struct project *p, const char *to, bool certain,
		struct err *err)
{
	moved_done(m);
	*m = (struct moved){ .id = p->id, .certain = certain };
	m->from = strdup(p->path);
	m->to = strdup(to);
	return m->from && m->to ? 0 : err_nomem(err);
}

/* The old path comes last: it may be on a file system that does not answer. */
static int on_project(const struct project *p, void *ctx, struct err *err)
{
	struct search *s = ctx;
	AUTO_FREE char *up = NULL;
	bool certain = false;
	const char *to;

	if (p->hidden != PROJECT_SHOWN || p->born == 0)
		return 0;
	up = strdup(s->dir);
	if (!up)
		return err_nomem(err);
	to = find_above(p, up, &certain) ? up : is_likely(p, s->to_be) ? s->to_be : NULL;
	if (!to || !is_better(s->found, to, certain) || !is_gone(p->path))
		return 0;
	return note(s->found, p, to, certain, err);
}

int moved_find(struct store *s, const char *dir, const char *to_be, struct moved *ret,
	       struct err *err)
{
	struct search search = { .dir = dir, .to_be = to_be, .found = ret };
	int r = project_each(s, on_project, &search, err);

	return r < 0 ? r : ret->from != NULL;
}

/* --- for the command line --------------------------------------------------------------- */

void engine_moved_done(struct engine_moved *m)
{
	free(m->from);
	free(m->to);
	*m = (struct engine_moved){ 0 };
}

int engine_project_moved(struct engine *e, struct engine_moved *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(moved_done) struct moved m = { 0 };
	AUTO_FREE char *to_be = NULL;
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = project_around(e, s, &project, err);
	if (r != -ENXIO)
		return r < 0 ? r : 0;
	IGNORE_RESULT(engine_project_to_be(e, &to_be, NULL), "then only what is certain counts");
	r = moved_find(s, e->dir, to_be, &m, err);
	if (r <= 0)
		return r;
	catalog_id_hex(&m.id, ret->id);
	ret->from = TAKE_PTR(m.from);
	ret->to = TAKE_PTR(m.to);
	ret->certain = m.certain;
	return 1;
}
