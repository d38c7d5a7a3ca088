/*
 * A view is a second mount of a live clone, for one run. A view for a run by root shifts ids to
 * those of the run's user namespace, where the kernel has no id-mapped FUSE mounts. A view that a
 * run mounts inside, as its root, has the run's ids by itself, and no place here.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/host/host-i.h"
#include "engine/wire/control-i.h"

#define VIEWS CONTROL_DIR "/views" /* in the store's directory; one directory for each */

struct live_view {
	struct live_view *next;
	char *run;  /* owned; the id of the run */
	char *path; /* owned; NULL: it is mounted by the run */
	struct mount *mount;
};

static void view_free(struct live_view *v)
{
	if (!v)
		return;
	free(v->run);
	free(v->path);
	free(v);
}
DEFINE_CLEANUP(struct live_view *, view_free)

static int view_new(const struct live *l, const char *run, struct live_view **ret, struct err *err)
{
	CLEANUP(view_free_p) struct live_view *v = calloc(1, sizeof(*v));
	AUTO_FREE char *views = path_join(l->host->dir, VIEWS);

	if (!v || !views)
		return err_nomem(err);
	v->run = strdup(run);
	v->path = path_join(views, run);
	if (!v->run || !v->path)
		return err_nomem(err);
	if (mkdir(views, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "creating '%s'", views);
	if (mkdir(v->path, 0700) < 0)
		return err_sys(err, "creating '%s'", v->path);
	*ret = TAKE_PTR(v);
	return 0;
}

static int view_mount(const struct live *l, struct live_view *v, const struct mount_shift *shift,
		      struct err *err)
{
	AUTO_FREE char *source = text_format("snapcow:%s", l->name);
	struct mount_options options = {
		.source = source,
		.path = v->path,
		.others = true,
		.shift = *shift,
		.beside = l->mount,
	};
	int r;

	if (!source)
		return err_nomem(err);
	r = mount_open(l->host->mounts, l->layer, &options, &v->mount, err);
	if (r < 0)
		rmdir(v->path);
	return r;
}

int live_view_open(struct live *l, const char *run, const struct mount_shift *shift,
		   const char **ret_path, struct err *err)
{
	CLEANUP(view_free_p) struct live_view *v = NULL;
	int r;

	*ret_path = NULL;
	if (shift->n == 0 || !l->mount || mount_maps_ids(l->mount))
		return 0;
	r = view_new(l, run, &v, err);
	r = r < 0 ? r : view_mount(l, v, shift, err);
	if (r < 0)
		return err_wrap(err, r, "showing clone '%s' to a run", l->name);
	*ret_path = v->path;
	v->next = l->views;
	l->views = TAKE_PTR(v);
	return 0;
}

int live_view_serve(struct live *l, const char *run, int fd, const struct stage_root *how,
		    struct err *err)
{
	const uint32_t *one = how->one;
	CLEANUP(view_free_p) struct live_view *v = calloc(1, sizeof(*v));
	AUTO_CLOSE int own = fd;
	const struct mount_options options = {
		.one_id = one,
		.one_uid = one ? one[0] : 0,
		.one_gid = one ? one[1] : 0,
		.hidden = how->hidden,
		.n_hidden = how->n_hidden,
		.beside = l->mount,
	};
	int r;

	if (!v || !(v->run = strdup(run)))
		return err_nomem(err);
	if (!l->mount)
		return err_set(err, -EAGAIN, "clone '%s' was unmounted just now", l->name);
	r = mount_adopt(l->host->mounts, l->layer, TAKE_FD(own), &options, &v->mount, err);
	if (r < 0)
		return err_wrap(err, r, "showing clone '%s' to a run", l->name);
	v->next = l->views;
	l->views = TAKE_PTR(v);
	return 0;
}

void live_view_keep_dirs(struct live *l, bool (*others)(const char *run, const void *ctx),
			 const void *ctx)
{
	for (struct live_view *v = l->views; v; v = v->next)
		mount_keep_dirs(v->mount, others(v->run, ctx));
}

static void view_close(struct live_view *v)
{
	struct err err = { 0 };

	if (mount_close(v->mount, true, &err) < 0)
		log_warn("closing a run's view of a clone: %s, continuing", err.msg);
	else if (v->path && rmdir(v->path) < 0)
		log_warn("'%s' is not removed, continuing", v->path);
	view_free(v);
}

void live_view_close(struct live *l, const char *run)
{
	struct live_view **at = &l->views, *v;

	while (*at && run && strcmp((*at)->run, run) != 0)
		at = &(*at)->next;
	while ((v = *at)) {
		*at = v->next;
		view_close(v);
		if (run)
			return;
	}
}

void live_clear_mounts(struct host *h, const char *in)
{
	AUTO_FREE char *places = path_join(h->dir, in);
	DIR *dir = places ? opendir(places) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		AUTO_FREE char *path = NULL;
		struct err err = { 0 };

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		path = path_join(places, e->d_name);
		if (path && mount_clear(path, &err) < 0)
			log_warn("%s, continuing", err.msg);
		else if (path && rmdir(path) < 0)
			log_warn("'%s' is not removed, continuing", path);
	}
	if (dir)
		closedir(dir);
}

void live_view_sweep(struct host *h)
{
	live_clear_mounts(h, VIEWS);
}
