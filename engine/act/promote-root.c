/*
 * promote-root.c - which paths of a root file system may be promoted: those that root has named.
 *
 * A machine is changed by its package manager. Only a file of configuration here and there is worth
 * taking from a clone of it, so whole trees, patterns and everything that no clone has are refused.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "engine/act/promoting-i.h"
#include "engine/act/system-i.h"

/* As .gitignore would have it. */
static int add_pattern(struct strlist *to, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf pattern = BUF_INIT;
	int r = 0;

	for (; *path != '\0' && r >= 0; path++) {
		r = strchr("\\*?[ ", *path) ? buf_append_u8(&pattern, '\\') : 0;
		r = r < 0 ? r : buf_append_u8(&pattern, (uint8_t)*path);
	}
	return r < 0 || !buf_str(&pattern) || strlist_add(to, buf_str(&pattern)) < 0
		   ? err_nomem(err)
		   : 0;
}

static int add_named(struct promoting *p, const char *given, const struct strlist *left_out,
		     struct err *err)
{
	AUTO_FREE char *path = path_clean("/", given);

	if (!path)
		return err_nomem(err);
	if (strcmp(path, "/") == 0)
		return err_set(
		    err, -EINVAL,
		    "option '--path': '%s' is all of it: name a file or a directory, such "
		    "as '/etc/nginx'",
		    given);
	if (strchr(path, '\n'))
		return err_set(err, -EINVAL, "option '--path': a path with a line break");
	for (size_t i = 0; i < left_out->n; i++)
		if (path_is_below(path, left_out->list[i]))
			return err_set(err, -EINVAL,
				       "option '--path': '%s' is in no clone of this machine",
				       path);
	return add_pattern(&p->named, path, err);
}

/* Paths of a plan have no slash before them. */
static int add_allowed(struct promoting *p, struct err *err)
{
	const struct engine_list *given = &p->options->asked->allow;

	for (size_t i = 0; i < given->n; i++)
		if (strlist_add(&p->allowed, given->items[i] + strspn(given->items[i], "/")) < 0)
			return err_nomem(err);
	return 0;
}

int promoting_read_root(struct promoting *p, struct err *err)
{
	const struct engine_list *given = &p->options->asked->paths;
	struct strlist *left_out = &p->outside;
	int r;

	if (geteuid() != 0)
		return err_set(
		    err, -ECANCELED,
		    "only root promotes to a whole root file system: '%s' stays as it is",
		    p->project.path);
	if (p->options->undo)
		return 0;
	if (given->n == 0)
		return err_set(
		    err, -EINVAL,
		    "option '--root' needs '--path': only what is named is promoted to '%s'",
		    p->project.path);
	r = system_left_out(p->project.path, p->task->host->dir, NULL, left_out, err);
	if (r >= 0 && system_is(p->project.path) && strlist_add(left_out, p->task->host->dir) < 0)
		r = err_nomem(err);
	for (size_t i = 0; i < given->n && r >= 0; i++)
		r = add_named(p, given->items[i], left_out, err);
	return r < 0 ? r : add_allowed(p, err);
}
