#include "engine/api/engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "engine/find/engine-i.h"

/* --- opening ---------------------------------------------------------------------------- */

static int find_dir(const char *dir, char **ret, struct err *err)
{
	AUTO_FREE char *real = realpath(dir ? dir : ".", NULL);
	struct stat st;

	if (!real)
		return err_sys(err, "directory '%s'", dir ? dir : ".");
	if (stat(real, &st) < 0)
		return err_sys(err, "directory '%s'", dir ? dir : ".");
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "'%s' is not a directory", dir);
	*ret = TAKE_PTR(real);
	return 0;
}

/* An empty variable counts as unset and, by the XDG rules, so does a relative path. */
static const char *env_path(const char *name, bool absolute)
{
	const char *v = getenv(name);

	return v && *v != '\0' && (!absolute || *v == '/') ? v : NULL;
}

static int find_store(const char *dir, const char *named, char **ret, struct err *err)
{
	AUTO_FREE char *path = NULL;
	const char *v;

	if (named && *named == '\0')
		return err_set(err, -EINVAL, "the name of the store is empty");
	if (named || (named = env_path("SNAPCOW_STORE", false)))
		path = strdup(named);
	else if ((v = env_path("XDG_DATA_HOME", true)))
		path = path_join(v, "snapcow");
	else if ((v = env_path("HOME", true)))
		path = path_join(v, ".local/share/snapcow");
	else
		return err_set(err, -EINVAL,
			       "no place for the store: none of --store, SNAPCOW_STORE, "
			       "XDG_DATA_HOME and HOME is set");
	*ret = path ? path_clean(dir, path) : NULL;
	return *ret ? 0 : err_nomem(err);
}

/* Resolved, because the home directory is no project under any path. */
static char *find_home(void)
{
	const char *home = env_path("HOME", true);

	return home ? realpath(home, NULL) : NULL;
}

const char *engine_version(void)
{
	return SNAP_VERSION;
}

int engine_open(const struct engine_options *options, struct engine **ret, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return err_nomem(err);
	r = find_dir(options->dir, &e->dir, err);
	if (r < 0)
		return r;
	r = find_store(e->dir, options->store, &e->store_path, err);
	if (r < 0)
		return r;
	e->home = find_home();
	*ret = TAKE_PTR(e);
	return 0;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	store_close(e->store);
	free(e->dir);
	free(e->home);
	free(e->store_path);
	free(e);
}

const char *engine_store_path(const struct engine *e)
{
	return e->store_path;
}

int engine_store(struct engine *e, enum store_mode mode, struct store **ret, struct err *err)
{
	int r;

	if (e->store && e->mode == STORE_READ && mode != STORE_READ) {
		store_close(e->store);
		e->store = NULL;
	}
	if (!e->store) {
		r = store_open(e->store_path, mode, &e->store, err);
		if (r < 0)
			return r;
		e->mode = mode;
	}
	*ret = e->store;
	return 0;
}

bool engine_has_store(const struct engine *e)
{
	AUTO_FREE char *meta = path_join(e->store_path, "meta.db");

	return !meta || access(meta, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int engine_may_read(struct engine *e, const char *dir, struct err *err)
{
	return e->may_read ? e->may_read(e->may_read_ctx, dir, err) : 0;
}

void engine_warn(struct engine *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	if (e->warn)
		e->warn(text, e->warn_ctx);
}

int engine_as_damage(struct err *err, int r)
{
	if (r != -ENOENT)
		return r;
	return err && err->code == -ENOENT ? err_set(err, -EBADMSG, "%s", err->msg) : -EBADMSG;
}

/* --- time ------------------------------------------------------------------------------- */

int64_t engine_now(void)
{
	return clock_wall_ns();
}

uint64_t engine_clock_ms(void)
{
	return clock_ms();
}
