#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/text.h"
#include "engine/host/host-i.h"

#define NAMES_SHOWN 5 /* of clones in use, in a sentence */

static void live_free(struct live *l)
{
	if (!l)
		return;
	assert(!l->mount && !l->layer && !l->views);
	free(l->name);
	free(l->path);
	free(l);
}

DEFINE_CLEANUP(struct live *, live_free)

/* --- the table -------------------------------------------------------------------------- */

struct live *live_find(struct host *h, const char *name)
{
	LOCKED(&h->lock);
	return map_get(&h->live, name);
}

size_t live_count(struct host *h)
{
	size_t n;

	LOCKED(&h->lock);
	n = h->live.n;
	return n;
}

char *live_path(struct host *h, const char *name)
{
	return path_join(h->clones, name);
}

/* Enter it in the table, without a layer. */
static int live_new(struct host *h, const char *name, struct live **ret, struct err *err)
{
	CLEANUP(live_free_p) struct live *l = calloc(1, sizeof(*l));
	void *other;
	int r;

	if (!l)
		return err_nomem(err);
	l->host = h;
	l->name = strdup(name);
	l->path = live_path(h, name);
	if (!l->name || !l->path)
		return err_nomem(err);
	r = host_serve(h, err);
	r = r < 0 ? r : catalog_id_new(&l->mounting, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&h->lock);
	r = map_add(&h->live, l->name, l, &other);
	pthread_mutex_unlock(&h->lock);
	if (r < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(l);
	return 0;
}

/* Call it once the layer is closed. */
static void live_drop(struct live *l)
{
	struct host *h = l->host;

	pthread_mutex_lock(&h->lock);
	map_remove(&h->live, l->name);
	pthread_mutex_unlock(&h->lock);
	moments_forget(&h->moments, &l->mounting);
	live_free(l);
}

/* Open the layer, without mounting it; -ENOENT if there is no such clone. */
static int live_open(struct host *h, const char *name, struct live **ret, struct err *err)
{
	struct live *l;
	int r = live_new(h, name, &l, err);

	if (r < 0)
		return r;
	r = layer_open(h->layers, name, &l->layer, err);
	if (r < 0)
		live_drop(l);
	else
		*ret = l;
	return r;
}

/* --- mounting --------------------------------------------------------------------------- */

static int make_mount_point(const struct live *l, struct err *err)
{
	const mode_t mode = host_for_others() ? 0755 : 0700;

	if (mkdir(l->path, mode) == 0)
		return 0;
	if (errno == ENOENT && (mkdir(l->host->clones, mode) == 0 || errno == EEXIST) &&
	    mkdir(l->path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return err_sys(err, "creating '%s'", l->path);
	return mount_clear(l->path, err);
}

static void remove_mount_point(const char *path)
{
	struct err err = { 0 };

	if (rmdir(path) == 0 || errno == ENOENT)
		return;
	/* A mount of a dead daemon would keep the directory. */
	if (mount_clear(path, &err) < 0)
		log_warn("%s, continuing", err.msg);
	else if (rmdir(path) < 0 && errno != ENOENT)
		log_warn("'%s' is not empty, continuing", path);
}

/* Mount it, or attach the mount it already has. */
static int live_show(struct live *l, struct err *err)
{
	AUTO_FREE char *source = text_format("snapcow:%s", l->name);
	const bool private = layer_is_private(l->layer) && host_is_root();
	struct mount_options options = {
		.source = source,
		.path = l->path,
		.others = host_for_others() && !private,
		.unchecked = private,
		.no_xattrs = private && layer_hides_xattrs(l->layer),
	};
	int r;

	if (!source)
		return err_nomem(err);
	r = make_mount_point(l, err);
	if (r < 0)
		return r;
	if (l->mount)
		r = warm_clone_show(l->mount, &options, err);
	else
		r = mount_open(l->host->mounts, l->layer, &options, &l->mount, err);
	if (r < 0)
		remove_mount_point(l->path);
	return r;
}

/* Close a mount that has ended. */
static void live_bury(struct live *l)
{
	struct err err = { 0 };

	live_view_close(l, NULL);
	if (mount_close(l->mount, true, &err) < 0)
		log_warn("clone '%s': %s, continuing", l->name, err.msg);
	l->mount = NULL;
}

int live_mount(struct host *h, const char *name, struct err *err)
{
	struct live *l = live_find(h, name);
	struct err ignored = { 0 };
	int r = 0;

	if (l && l->mount)
		r = mount_is_shown(l->mount, err);
	if (r != 0)
		return r > 0 ? 0 : err_wrap(err, r, "clone '%s'", name);
	if (l && l->mount)
		live_bury(l);
	if (!l)
		r = live_open(h, name, &l, err);
	if (r < 0)
		return r;
	r = live_show(l, err);
	if (r < 0 && layer_close(l->layer, &ignored) >= 0) {
		l->layer = NULL;
		live_drop(l);
	}
	return r < 0 ? err_wrap(err, r, "clone '%s'", name) : 0;
}

/* On failure *ret may hold what was made so far. */
static int adopt(struct host *h, const char *name, struct layer *layer, struct mount *mount,
		 struct live **ret, struct err *err)
{
	int r = live_new(h, name, ret, err);

	if (r < 0)
		return r;
	r = layer_adopt(layer, name, err);
	if (r < 0)
		return r;
	(*ret)->layer = layer;
	(*ret)->mount = mount;
	return live_show(*ret, err);
}

/*
 * Nobody was told of the clone yet, so a failure may drop its layer.  An ordinary user's warm clone waits at a
 * place where other processes of the same user can write to it once it is adopted.  Such a change is one of
 * the clone's: it is shown with it, or, if the layer is dropped, kept as far as it was synced.
 */
static int adopt_warm_clone(struct host *h, const char *name, struct layer *layer,
			    struct mount *mount, struct err *err)
{
	struct live *l = NULL;
	int r = adopt(h, name, layer, mount, &l, err);

	if (r >= 0)
		return 0;
	warm_clone_drop(h, layer, mount);
	if (l) {
		l->layer = NULL;
		l->mount = NULL;
		live_drop(l);
	}
	return r;
}

int live_mount_first(struct host *h, const char *name, const struct object_id *root,
		     struct err *err)
{
	struct layer *layer;
	struct mount *mount;
	struct err why = { 0 };

	if (!live_find(h, name) && warm_clone_take(h->warm_clone, root, &layer, &mount)) {
		if (adopt_warm_clone(h, name, layer, mount, &why) >= 0)
			return 0;
		log_warn("clone '%s' cannot use the warm clone: %s, continuing", name, why.msg);
	}
	return live_mount(h, name, err);
}

/* --- unmounting ------------------------------------------------------------------------- */

/* If the changes cannot reach the store, mount the clone again. */
static int live_close(struct live *l, struct err *err)
{
	struct err again = { 0 };
	int r = layer_close(l->layer, err);

	if (r < 0 && live_show(l, &again) < 0)
		log_error("clone '%s' can be neither persisted nor mounted again: %s", l->name,
			  again.msg);
	if (r < 0)
		return r;
	l->layer = NULL;
	return r;
}

int live_change(struct host *h, const char *name, live_change_fn change, void *ctx, struct err *err)
{
	const struct live *l = live_find(h, name);
	struct layer *layer;
	int r, end;

	if (l)
		return change(l->layer, l->mount, ctx, err);
	r = host_serve(h, err);
	r = r < 0 ? r : layer_open(h->layers, name, &layer, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", name);
	r = change(layer, NULL, ctx, err);
	end = layer_close(layer, r < 0 ? NULL : err);
	if (end < 0)
		layer_discard(layer); /* nothing was written to it */
	return r < 0 ? r : end;
}

int live_end(struct host *h, const char *name, enum live_end how, bool force, struct err *err)
{
	struct live *l = live_find(h, name);
	AUTO_FREE char *path = live_path(h, name);
	int r;

	if (!path)
		return err_nomem(err);
	if (l && l->views && !force)
		return err_set(err, -EBUSY, "clone '%s': '%s' is in use", name, l->path);
	if (l)
		live_view_close(l, NULL);
	if (l && l->mount) {
		r = mount_close(l->mount, force, err);
		if (r < 0)
			return err_wrap(err, r, "clone '%s'", name);
		l->mount = NULL;
	}
	if (l && how == LIVE_DISCARD) {
		layer_discard(l->layer);
		l->layer = NULL;
	} else if (l) {
		r = live_close(l, err);
		if (r < 0)
			return err_wrap(err, r, "clone '%s'", name);
	}
	if (l)
		live_drop(l);
	if (how != LIVE_KEEP)
		remove_mount_point(path);
	return 0;
}

/* --- all of them ------------------------------------------------------------------------ */

static int live_names(struct host *h, struct strlist *ret, struct err *err)
{
	struct live *l;
	size_t pos = 0;
	int r = 0;

	LOCKED(&h->lock);
	while (r >= 0 && (l = map_next(&h->live, &pos)))
		r = strlist_add(ret, l->name);
	return r < 0 ? err_nomem(err) : 0;
}

/* The directories in `clones`, without looking into any of them. */
static int marked_names(struct host *h, struct strlist *ret, struct err *err)
{
	DIR *dir = opendir(h->clones);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_sys(err, "reading '%s'", h->clones);
	while (r >= 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = strlist_add(ret, e->d_name);
	closedir(dir);
	return r < 0 ? err_nomem(err) : 0;
}

static bool clone_is_known(struct host *h, const char *name)
{
	CLEANUP(clone_done) struct clone c = { 0 };

	return clone_get(h->store, name, &c, NULL) != -ENOENT;
}

int live_recover(struct host *h, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 };
	int r, n = 0;

	r = marked_names(h, &names, err);
	for (size_t i = 0; i < names.n && r >= 0; i++) {
		AUTO_FREE char *path = live_path(h, names.list[i]);
		struct err why = { 0 };

		if (!path) {
			r = err_nomem(err);
		} else if (!clone_is_known(h, names.list[i])) {
			remove_mount_point(path);
		} else if (live_mount(h, names.list[i], &why) < 0) {
			log_warn("mounting again: %s, continuing", why.msg);
		} else {
			n++;
		}
	}
	return r < 0 ? r : n;
}

/* End a clone; add it to `busy` if it is in use. */
static int end_one(struct host *h, const char *name, bool force, struct strlist *ended,
		   struct strlist *busy, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	int r = turns_take(&h->turns, name, &turn, err);

	r = r < 0 ? r : live_end(h, name, LIVE_KEEP, force, err);
	if (r == -EBUSY)
		return strlist_add(busy, name) < 0 ? err_nomem(err) : 0;
	if (r < 0 && force) {
		/* Nothing more can be done, and --force accepts the loss. */
		log_error("%s: changes that were not persisted are lost", err->msg);
		r = live_end(h, name, LIVE_DISCARD, true, err);
	}
	return r < 0 ? r : strlist_add(ended, name);
}

static int refuse_busy(const struct strlist *busy, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < busy->n && i < NAMES_SHOWN; i++)
		if (buf_printf(&text, "%s'%s'", i > 0 ? ", " : "", busy->list[i]) < 0)
			return err_nomem(err);
	if (busy->n > NAMES_SHOWN && buf_printf(&text, " and %zu more", busy->n - NAMES_SHOWN) < 0)
		return err_nomem(err);
	if (!buf_str(&text))
		return err_nomem(err);
	return err_set(err, -EBUSY, "in use: %s %s", busy->n == 1 ? "clone" : "clones",
		       buf_str(&text));
}

static int end_each(struct host *h, bool force, struct strlist *ended, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 }, busy = { 0 };
	int r = live_names(h, &names, err);

	for (size_t i = 0; i < names.n && r >= 0; i++)
		r = end_one(h, names.list[i], force, ended, &busy, err);
	return r >= 0 && busy.n > 0 ? refuse_busy(&busy, err) : r;
}

int live_end_all(struct host *h, bool force, struct err *err)
{
	CLEANUP(strlist_done) struct strlist ended = { 0 };
	int r = end_each(h, force, &ended, err);

	for (size_t i = 0; i < ended.n && r < 0; i++) {
		CLEANUP(turn_give_p) struct turn *turn = NULL;
		struct err why = { 0 };

		if (turns_take(&h->turns, ended.list[i], &turn, &why) < 0 ||
		    live_mount(h, ended.list[i], &why) < 0)
			log_warn("mounting again: %s, continuing", why.msg);
	}
	return r < 0 ? r : 0;
}

void live_removed(struct host *h, uint64_t bytes)
{
	LOCKED(&h->lock);
	if (h->layers)
		layers_removed(h->layers, bytes);
}

void live_sweep(struct host *h)
{
	CLEANUP(strlist_done) struct strlist names = { 0 };
	struct err err = { 0 };
	int r = live_names(h, &names, &err);

	for (size_t i = 0; i < names.n && r >= 0; i++) {
		CLEANUP(turn_give_p) struct turn *turn = NULL;
		struct live *l;

		r = turns_take(&h->turns, names.list[i], &turn, &err);
		l = r < 0 ? NULL : live_find(h, names.list[i]);
		if (!l || !l->mount || !mount_ended(l->mount))
			continue;
		log_info("clone '%s' was unmounted by somebody else", l->name);
		if (live_end(h, names.list[i], LIVE_UNMOUNT, true, &err) < 0)
			log_warn("%s, continuing", err.msg);
	}
	if (r < 0)
		log_warn("%s, continuing", err.msg);
}
