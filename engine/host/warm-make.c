#include "engine/host/warm-make-i.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/mover-process-i.h"
#include "engine/wire/control-i.h"

#define ASIDE   CONTROL_DIR "/warm" /* in the store's directory; one directory for each */
#define MOVE_MS 10000               /* a move takes some milliseconds; somebody may wait for it */

#define FILES_MAX  200000
#define FILE_COST  4096 /* bytes of memory, here and in the kernel; about 3,300 were measured */
#define MEMORY_MIN ((uint64_t)512 << 20) /* that must be left */

uint64_t warm_clone_cost(uint64_t files)
{
	return files * FILE_COST;
}

/* --- closing -------------------------------------------------------------------------------- */

/* False: the layer is still in use, so both must stay. */
static bool close_parts(struct layer *layer, struct mount *mount)
{
	const char *place = mount ? mount_place(mount) : NULL;
	AUTO_FREE char *aside = place ? strdup(place) : NULL;
	struct err err = { 0 };

	if (mount && mount_close(mount, true, &err) < 0) {
		log_warn("closing a warm clone: %s, continuing", err.msg);
		return false;
	}
	/* One that somebody else unmounted and removed is fine. */
	if (aside && rmdir(aside) < 0 && errno != ENOENT)
		log_warn("'%s' is not removed, continuing", aside);
	layer_discard(layer);
	return true;
}

static void keep_unclosed(struct host *h, struct layer *layer, struct mount *mount)
{
	pthread_mutex_lock(&h->lock);
	if (VEC_ONE_MORE(h->unclosed, h->unclosed_n))
		h->unclosed[h->unclosed_n++] =
		    (struct warm_unclosed){ .layer = layer, .mount = mount };
	pthread_mutex_unlock(&h->lock);
}

void warm_clone_close_again(struct host *h)
{
	AUTO_FREE struct warm_unclosed *list = NULL;
	size_t n;

	pthread_mutex_lock(&h->lock);
	list = TAKE_PTR(h->unclosed);
	n = h->unclosed_n;
	h->unclosed_n = 0;
	pthread_mutex_unlock(&h->lock);
	for (size_t i = 0; i < n; i++)
		if (!close_parts(list[i].layer, list[i].mount))
			keep_unclosed(h, list[i].layer, list[i].mount);
}

void warm_clone_drop(struct host *h, struct layer *layer, struct mount *mount)
{
	warm_clone_close_again(h);
	if (!close_parts(layer, mount))
		keep_unclosed(h, layer, mount);
}

/* --- aside, for ordinary users -------------------------------------------------------------- */

/* Two paths that nobody uses: where it is mounted first, and where it waits. */
static int name_places(const struct host *h, char **ret_first, char **ret_then, struct err *err)
{
	AUTO_FREE char *aside = path_join(h->dir, ASIDE), *first = NULL, *then = NULL;
	char hex[CATALOG_HEX_SIZE], name[CATALOG_HEX_SIZE + 4];
	struct catalog_id id;
	int r = catalog_id_new(&id, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s.new", catalog_id_hex(&id, hex));
	first = aside ? path_join(aside, name) : NULL;
	then = aside ? path_join(aside, hex) : NULL;
	if (!first || !then)
		return err_nomem(err);
	if ((mkdir(aside, 0700) < 0 && errno != EEXIST) || mkdir(first, 0700) < 0)
		return err_sys(err, "creating '%s'", first);
	*ret_first = TAKE_PTR(first);
	*ret_then = TAKE_PTR(then);
	return 0;
}

/* Where the mount is decides, whatever became of the mover. */
static int move(struct mount *mount, const char *to, struct err *err)
{
	struct err why = { 0 };
	int r = mover_move(mount_place(mount), to, MOVE_MS, err);

	if (mount_moved(mount, to, r < 0 ? &why : err) >= 0)
		return 0;
	return r < 0 ? r : -ENOTSUP;
}

/* It is moved once at once: where that cannot be done, nothing is worth being walked. */
static int mount_aside(struct host *h, struct layer *layer, struct mount **ret, struct err *err)
{
	AUTO_FREE char *first = NULL, *then = NULL;
	struct mount_options options = { .source = "snapcow", .others = host_for_others() };
	int r = name_places(h, &first, &then, err);

	if (r < 0)
		return r;
	options.path = first;
	r = mount_open(h->mounts, layer, &options, ret, err);
	if (r < 0) {
		rmdir(first);
		return r;
	}
	return move(*ret, then, err);
}

int warm_clone_show(struct mount *mount, const struct mount_options *options, struct err *err)
{
	return mount_place(mount) ? move(mount, options->path, err)
				  : mount_attach(mount, options, err);
}

void warm_clone_sweep(struct host *h)
{
	live_clear_mounts(h, ASIDE);
}

/* --- one ----------------------------------------------------------------------------------- */

static int mount_warm_clone(struct host *h, struct layer *layer, struct mount **ret,
			    struct err *err)
{
	const struct mount_options options = { .source = "snapcow", .others = host_for_others() };
	int r = mount_open(h->mounts, layer, &options, ret, err);

	return r == -ENOTSUP && !host_is_root() ? mount_aside(h, layer, ret, err) : r;
}

/* Opening the layer pins the root; that counts only if the snapshot was still there then. */
static int open_layer(struct host *h, const struct warm_clone_wish *w, struct layer **ret,
		      struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot named = { 0 };
	CLEANUP(layer_discard_p) struct layer *layer = NULL;
	int r = host_serve(h, err);

	if (r < 0)
		return r;
	r = layer_open_warm(h->layers, &w->root, &layer, err);
	if (r < 0)
		return r;
	r = snapshot_get(h->store, &w->snapshot, &named, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(layer);
	return r;
}

static int make_parts(struct host *h, const struct warm_clone_wish *w, struct layer **ret_layer,
		      struct mount **ret_mount, struct err *err)
{
	int r;

	if (w->files > FILES_MAX)
		return err_set(err, -EFBIG, "it has too many files");
	if (sys_available_memory() < MEMORY_MIN + (1 + w->growing) * warm_clone_cost(w->files))
		return err_set(err, -ENOMEM, "memory is short");
	r = open_layer(h, w, ret_layer, err);
	return r < 0 ? r : mount_warm_clone(h, *ret_layer, ret_mount, err);
}

int warm_clone_make(struct host *h, const struct warm_clone_wish *w, struct layer **ret_layer,
		    struct mount **ret_mount, struct err *err)
{
	struct layer *layer = NULL;
	struct mount *mount = NULL;
	int r = make_parts(h, w, &layer, &mount, err);

	if (r < 0) {
		warm_clone_drop(h, layer, mount);
		return r;
	}
	*ret_layer = layer;
	*ret_mount = mount;
	return 0;
}
