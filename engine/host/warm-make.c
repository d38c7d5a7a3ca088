#include "engine/host/warm-make-i.h"

#include <errno.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/host/host-i.h"

#define FILES_MAX  200000
#define FILE_COST  4096 /* bytes of memory, here and in the kernel; about 3,300 were measured */
#define MEMORY_MIN ((uint64_t)512 << 20) /* that must be left */

uint64_t warm_clone_cost(uint64_t files)
{
	return files * FILE_COST;
}

void warm_clone_drop(struct layer *layer, struct mount *mount)
{
	struct err err = { 0 };

	if (mount && mount_close(mount, true, &err) < 0) {
		/* The layer is still in use, so both must stay. */
		log_warn("closing a warm clone: %s, continuing", err.msg);
		return;
	}
	layer_discard(layer);
}

static int mount_warm_clone(struct host *h, struct layer *layer, struct mount **ret,
			    struct err *err)
{
	const struct mount_options options = { .source = "snapcow", .others = host_for_others() };

	return mount_open(h->mounts, layer, &options, ret, err);
}

/* Opening the layer pins the root; that counts only if the snapshot was still there then. */
static int open_layer(struct host *h, const struct warm_clone_wish *w, struct layer **ret,
		      struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot named = { 0 };
	CLEANUP(layer_discard_p) struct layer *layer = NULL;
	int r;

	r = host_serve(h, err);
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
		warm_clone_drop(layer, mount);
		return r;
	}
	*ret_layer = layer;
	*ret_mount = mount;
	return 0;
}
