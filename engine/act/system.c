#include "engine/act/system-i.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"

bool system_is(const char *path)
{
	return strcmp(path, "/") == 0;
}

struct finding {
	const char *store;
	const struct engine_list *include;
	struct strlist included; /* mounts that were asked for, and are there */
	struct strlist *ret;
};

static void finding_done(struct finding *f)
{
	strlist_done(&f->included);
}

/* With a mount, what is mounted below it. */
static bool is_included(const struct finding *f, const char *path)
{
	return f->include &&
	       VEC_HAS(one, f->include->items, f->include->n, path_is_below(path, *one));
}

static bool is_in(const struct strlist *list, const char *path)
{
	return VEC_HAS(one, list->list, list->n, path_is_below(path, *one));
}

/*
 * A mount point is left out if it is a directory.  A mounted file is captured with the rest.  So is a
 * mount point that stat(2) cannot reach; the capture then reports it as unreadable.
 */
static int add_mount(const char *path, dev_t dev, void *ctx)
{
	struct finding *f = ctx;
	struct stat st;

	if (system_is(path) || path_is_below(path, f->store) || is_in(f->ret, path))
		return 0;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (is_included(f, path))
		return strlist_add(&f->included, path);
	return strlist_add(f->ret, path);
}

static int check_included(const struct finding *f, struct err *err)
{
	for (size_t i = 0; f->include && i < f->include->n; i++)
		if (!strlist_has(&f->included, f->include->items[i]))
			return err_set(err, -EINVAL,
				       "'%s' is no mount that a clone of '/' can include",
				       f->include->items[i]);
	return 0;
}

int system_left_out(const char *path, const char *store, const struct engine_list *include,
		    struct strlist *ret, struct err *err)
{
	/* Homes are people's, not the machine's. */
	static const char *const volatiles[] = { "/proc", "/sys",  "/dev", "/run",
						 "/tmp",  "/home", "/root" };
	CLEANUP(finding_done) struct finding f = { .store = store, .include = include, .ret = ret };
	int r = 0;

	if (!system_is(path))
		return 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(volatiles); i++)
		r = strlist_add(ret, volatiles[i]);
	if (r < 0)
		return err_nomem(err);
	r = sys_each_mount(add_mount, &f);
	return r < 0 ? err_wrap(err, r, "looking for what is mounted below '/'")
		     : check_included(&f, err);
}

void system_tell(struct task *task, const struct strlist *left_out)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < left_out->n; i++)
		if (buf_printf(&text, "%s'%s'", i > 0 ? ", " : "", left_out->list[i]) < 0)
			return;
	if (left_out->n > 0 && buf_str(&text))
		engine_warn(&task->engine, "left out of '/': %s", buf_str(&text));
}
