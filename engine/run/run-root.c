#include "engine/run/run-root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

#define APT_FILE     "/run/snap/apt.conf"
#define APT_VARIABLE "APT_CONFIG=/run/snap/apt.conf"

/* apt drops to its own user before it fetches, and there is none to drop to. */
static const char apt_settings[] = "APT::Sandbox::User \"root\";\n";

/* As many ids as such a run can have. */
static bool read_as(const char *as, unsigned int *uid, unsigned int *gid)
{
	char end;

	return strlen(as) < ENGINE_AS_SIZE && strspn(as, "0123456789:") == strlen(as) &&
	       sscanf(as, "%5u:%5u%c", uid, gid, &end) == 2 && *uid > 0 && *uid < 65536 &&
	       *gid < 65536;
}

void run_root_user(const struct engine_run_options *o, struct sandbox_spec *spec)
{
	unsigned int uid = 0, gid = 0;

	if (o->as)
		IGNORE_RESULT(read_as(o->as, &uid, &gid), "it was checked");
	spec->uid = uid;
	spec->gid = gid;
}

int run_root_check(const struct engine_run_options *o, const struct run_terms *terms,
		   struct err *err)
{
	unsigned int uid, gid;

	if (!o->root && terms->profile.root)
		return err_set(err, -EINVAL,
			       "profile '%s' is for runs in a whole root file system: add '--root'",
			       terms->profile.name);
	if (!o->root)
		return o->as ? err_set(err, -EINVAL, "option '--as' needs '--root'") : 0;
	if (o->as && !read_as(o->as, &uid, &gid))
		return err_set(
		    err, -EINVAL,
		    "option '--as': '%s' is no user from 1 and group from 0 to 65535, such "
		    "as 101:105; without the option the command is root",
		    o->as);
	/* Set-id bits are allowed in its own root, and must not reach the host's files. */
	if (o->rw.n > 0)
		return err_set(err, -EINVAL,
			       "options '--root' and '--rw' exclude each other: such a run writes "
			       "no folder of the host");
	if (terms->filter.len > 0)
		return err_set(err, -EINVAL,
			       "profile '%s': a filter of your own does not go with '--root'",
			       terms->profile.name);
	if (o->tls_inspect.n > 0 || terms->profile.tls_inspect.n > 0)
		return err_set(err, -EINVAL,
			       "options '--root' and '--tls-inspect' exclude each other");
	for (size_t i = 0; i < terms->profile.n_mounts; i++)
		if (terms->profile.mounts[i].writable)
			return err_set(err, -EINVAL,
				       "profile '%s' makes '%s' writable, and a run with '--root' "
				       "writes no folder of the host",
				       terms->profile.name, terms->profile.mounts[i].host);
	return 0;
}

int run_root_find(struct engine *e, const struct engine_run_options *o, char **ret, struct err *err)
{
	return o->root && o->root_dir ? project_named(e, o->root_dir, ret, err) : 0;
}

int run_root_system(struct layout *l, struct err *err)
{
	static const char *const fresh[] = { "/run", "/run/lock", "/tmp" };
	const struct sandbox_mount apt = { .kind = SANDBOX_TEXT,
					   .host = apt_settings,
					   .guest = APT_FILE };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(fresh); i++) {
		const struct sandbox_mount m = { .kind = SANDBOX_FRESH, .guest = fresh[i] };

		r = layout_add(l, &m, err);
	}
	return r < 0 || sandbox_root_ids(NULL) != SANDBOX_IDS_ONE ? r : layout_add(l, &apt, err);
}

/* The store is no folder that can be shown. */
static int add_read_only(struct layout *l, struct engine *e, const char *given, struct err *err)
{
	AUTO_FREE char *path = path_clean(e->dir, given), *host = NULL;
	AUTO_FREE char *store = realpath(e->store_path, NULL);
	struct sandbox_mount m = { .kind = SANDBOX_BIND, .host_fd = -1, .owned = true };

	if (!path)
		return err_nomem(err);
	host = realpath(path, NULL);
	if (!host)
		return err_sys(err, "option '--ro': '%s'", path);
	if (store && path_is_below(host, store))
		return err_set(err, -ECANCELED, "option '--ro': '%s' is in the store", path);
	m.host = host;
	m.guest = path;
	return layout_add(l, &m, err);
}

static int add_hidden(struct layout *l, const char *given, struct err *err)
{
	AUTO_FREE char *path = path_clean("/", given);
	const struct sandbox_mount m = { .kind = SANDBOX_HIDE, .guest = path };

	return path ? layout_add(l, &m, err) : err_nomem(err);
}

int run_root_grant(struct layout *l, struct engine *e, const struct engine_run_options *o,
		   struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->ro.n; i++)
		r = add_read_only(l, e, o->ro.items[i], err);
	return r;
}

int run_root_hide(struct layout *l, struct engine *e, const struct engine_run_options *o,
		  const struct strlist *hide, struct err *err)
{
	AUTO_FREE char *store = realpath(e->store_path, NULL);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < hide->n; i++)
		if (strcmp(hide->list[i], ENGINE_HIDE_SECRETS) != 0)
			r = add_hidden(l, hide->list[i], err);
	for (size_t i = 0; r >= 0 && i < o->hide.n; i++)
		r = add_hidden(l, o->hide.items[i], err);
	return r < 0 || !store ? r : add_hidden(l, store, err);
}

const char *run_root_home(const struct engine_run_options *o)
{
	return o->as ? NULL : RUN_ROOT_HOME;
}

struct engine_list run_root_variables(const struct engine_run_options *o)
{
	static const char *const variables[] = { "USER=root", "LOGNAME=root", APT_VARIABLE };
	const bool one = o->root && sandbox_root_ids(NULL) == SANDBOX_IDS_ONE;

	if (o->as)
		return (struct engine_list){ 0 };
	return (struct engine_list){ variables, !o->root ? 0 : one ? 3 : 2 };
}

const char *run_root_ids(const struct engine_run_options *o, enum sandbox_ids ids)
{
	static const char *const names[] = {
		[SANDBOX_IDS_ONE] = "one",
		[SANDBOX_IDS_RANGE] = "range",
		[SANDBOX_IDS_ALL] = "all",
	};

	return o->root ? names[ids] : "";
}
