/*
 * host-i.h - what cowfsd owns: a store, and its mounted clones.
 *
 * A clone is mounted from `clone` or `mount` until `umount` or `rm`. Its directory in CLONES_DIR
 * marks that: a daemon that stops or dies leaves it there, and the next one mounts the clone again.
 */
#pragma once

#include <stdbool.h>

#include "base/lock.h"
#include "base/map.h"
#include "cowfs/core/layers.h"
#include "cowfs/fuse/mount.h"
#include "engine/find/engine-i.h"
#include "engine/host/moments-i.h"
#include "engine/host/questions-i.h"
#include "engine/host/recall-i.h"
#include "engine/host/task-i.h"
#include "engine/host/turns.h"
#include "engine/host/warm-clone-i.h"
#include "engine/host/warm-make-i.h"
#include "snapshot/diff/twins.h"

struct promises;
struct staged;
struct awaited;

/* A mounted clone.  Only the holder of its turn may use the members. */
struct live {
	struct host *host;
	char *name; /* owned */
	char *path; /* owned; where it is mounted */
	struct layer *layer;
	struct mount *mount;        /* NULL: it could be neither persisted nor mounted again */
	struct live_view *views;    /* owned (live-view.c) */
	struct catalog_id mounting; /* no other mounting of a clone has it (moments-i.h) */
};

struct host {
	char *dir;    /* owned; of the store, absolute and without symlinks */
	char *clones; /* owned; where clones are mounted */
	struct store *store;
	struct turns turns; /* of clones by name, and of projects by path */
	struct recall recall;
	struct twins twins; /* that rollbacks of projects found */
	struct moments moments;
	struct warm_clone *warm_clone;
	struct promises *promises;  /* of lazy captures */
	struct questions questions; /* of runs */
	pthread_rwlock_t snapshots; /* keeps their records from being removed (forget-i.h) */
	_Atomic bool unswept;       /* apply_sweep() may find something */
	_Atomic uint64_t eager;     /* as in struct config */

	pthread_mutex_t lock;  /* guards what follows; no other lock is taken while it is held */
	struct map live;       /* struct live by name */
	struct layers *layers; /* both NULL until the first clone is mounted */
	struct mounts *mounts;
	struct warm_unclosed *unclosed; /* owned; warm clones that could not be unmounted */
	size_t unclosed_n;
	struct staged *staged;      /* clones that runs use (stage.c) */
	struct awaited *awaited;    /* captures that clients are about to clone (unneeded.c) */
	struct object_id no_strays; /* the tree that was last walked and has none (strays-i.h) */
	int64_t next_expiry;        /* when the first clone expires; INT64_MAX: none does */
};

/* Takes the store when it succeeds. */
NODISCARD int host_new(const char *dir, struct store *s, struct host **ret, struct err *err);
void host_free(struct host *h); /* nothing may be mounted or running; NULL is fine */
DEFINE_CLEANUP(struct host *, host_free)

/* Create `layers` and `mounts` if they do not exist yet. */
NODISCARD int host_serve(struct host *h, struct err *err);

/* Root's clones are open to other users, as far as permissions allow. */
bool host_for_others(void);

/* Are we root in all ids, so that only root can enter our private mounts? */
bool host_is_root(void);

/* Remove files that landings replaced and left behind, until `stop` says so. */
void host_sweep(struct host *h, bool (*stop)(void *ctx), void *ctx);

/*
 * May cowfsd read the files below `path`?  -ECANCELED if they are, or some of them are,
 * its own: it would ask itself.  Nothing there is touched to find out.
 */
NODISCARD int host_may_read(struct host *h, const char *path, struct err *err);

/* --- live clones; the caller has the turn of the name ------------------------------------- */

struct live *live_find(struct host *h, const char *name);    /* NULL: not mounted */
NODISCARD char *live_path(struct host *h, const char *name); /* where it is or would be; owned */
size_t live_count(struct host *h);

/* 0 also if it is mounted already.  -ENOENT if there is no such clone. */
NODISCARD int live_mount(struct host *h, const char *name, struct err *err);

/* The same for a clone just made from `root`: uses the warm clone, if there is one of it. */
NODISCARD int live_mount_first(struct host *h, const char *name, const struct object_id *root,
			       struct err *err);

enum live_end {
	LIVE_KEEP,    /* the next daemon mounts it again */
	LIVE_UNMOUNT, /* persisted */
	LIVE_DISCARD, /* lost: the clone is being removed */
};

/* Change its layer.  A clone that is not mounted is opened for that only, and `mount` is NULL. */
typedef int (*live_change_fn)(struct layer *layer, struct mount *mount, void *ctx, struct err *err);
NODISCARD int live_change(struct host *h, const char *name, live_change_fn change, void *ctx,
			  struct err *err);

/* 0 also if it is not mounted.  -EBUSY if somebody uses it and `force` is not set. */
NODISCARD int live_end(struct host *h, const char *name, enum live_end how, bool force,
		       struct err *err);

/*
 * A second mount for a run with shifted ids, if the kernel cannot map the ids of the clone's mount.
 * *ret_path is its place, NULL if the run can use the clone's mount.  It stays, and the clone is in
 * use, until it is closed or the clone is unmounted by force.
 */
NODISCARD int live_view_open(struct live *l, const char *run, const struct mount_shift *shift,
			     const char **ret_path, struct err *err);
/*
 * A mount of it that a run made inside its namespaces: `fd`, which it takes, is the connection, and ids
 * in its requests are the clone's.
 */
NODISCARD int live_view_serve(struct live *l, const char *run, int fd, const struct stage_root *how,
			      struct err *err);
/* On each one whose run is not alone in what `others` asks for no directory is moved from now on. */
void live_view_keep_dirs(struct live *l, bool (*others)(const char *run, const void *ctx),
			 const void *ctx);
void live_view_close(struct live *l, const char *run); /* NULL: all of them; none is fine */
void live_view_sweep(struct host *h);                  /* those that a dead daemon left */

/* What a dead daemon left mounted in this directory of the store's, one directory for each. */
void live_clear_mounts(struct host *h, const char *in);

/* --- all of them; the caller has no turn -------------------------------------------------- */

/* Mount again what was mounted, remove leftovers; returns the number of mounted clones. */
NODISCARD int live_recover(struct host *h, struct err *err);

/* End all, for the next daemon to mount again; or none, and -EBUSY names those in use. */
NODISCARD int live_end_all(struct host *h, bool force, struct err *err);

/* Clean up after mounts that somebody else unmounted. */
void live_sweep(struct host *h);

/* About so many bytes were removed from the store: wake those that wait for space. */
void live_removed(struct host *h, uint64_t bytes);

/* --- acts on clones (clone.c) ------------------------------------------------------------- */

/* Remove expired clones that nobody uses. */
void clone_reap(struct host *h);
