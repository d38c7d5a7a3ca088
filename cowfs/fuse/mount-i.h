/*
 * mount-i.h - private to fuse/: the parts of a mount.
 *
 * Lock order: the watchdog's, then mount.lock; mounts.mates_lock, then mates.lock or mount.lock. No
 * other lock is taken under any of them, and none is held while a request is handled.
 */
#pragma once

#include <limits.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/strlist.h"
#include "cowfs/fuse/mount.h"
#include "cowfs/fuse/pace.h"
#include "cowfs/fuse/platform.h"
#include "cowfs/fuse/pool.h"
#include "cowfs/fuse/watchdog.h"
#include "cowfs/fuse/wire.h"

struct echo;
struct fuse_session;
struct flight;

/* Room for the largest request: a write of LAYER_IO_MAX bytes and what comes before them. */
#define MOUNT_ROOM (LAYER_IO_MAX + 4096)

/* Changes that other mounts of the layer made, for a thread that tells the kernel (mates.c). */
struct mates {
	struct mount *next; /* of those in mounts.mates; guarded by mates_lock */
	bool joined;        /* guarded by mates_lock; what follows is there only then */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;          /* of what follows, which `lock` guards */
	struct mate_news *first, *last; /* owned; oldest first */
	size_t n;
	bool telling, ending;
};

struct mounts {
	struct pool *pool;
	struct pool_member *rest; /* for what no mount waits for */
	struct watchdog *dog;
	unsigned cpus;
	atomic_uint spinning;       /* readers that poll their connection just now */
	int load_fd;                /* owned: for sys_runnable() */
	atomic_bool crowded;        /* as of the last look at it, */
	_Atomic uint64_t load_next; /* and when the next is due */
	struct paces paces;

	pthread_rwlock_t mates_lock;
	struct mount *mates; /* mounts that share their layer; guarded by mates_lock */
	atomic_uint n_mates;
};

struct mount {
	struct mounts *all; /* borrowed */
	struct layer *layer;
	struct pool_member *share;  /* owned: of the pool's threads */
	_Atomic(const char *) path; /* `at`, or words for nowhere */
	char *at;                   /* in `places`; NULL: attached nowhere */
	struct strlist places;      /* where it was and is: somebody may still read an old `path` */
	int tree; /* owned: the mount, as long as it is so, and while it is closed; else -1 */
	bool unchecked, no_xattrs; /* as mount_options has it */
	struct mount_shift shift;  /* likewise */
	bool one_id;               /* likewise, */
	uint32_t one_uid, one_gid; /* as both of these */
	bool adopted;              /* by mount_adopt() */
	atomic_bool keeps_dirs;    /* see mount_keep_dirs() */
	uint64_t *hidden;          /* owned; rising */
	size_t n_hidden;
	bool counts;      /* `known` counts: the layer outlives this mount */
	struct map known; /* struct known_node by number; guarded by lock */
	struct mates mates;
	struct platform_id id;
	struct fuse_session *se; /* owned; `fd` with it */
	int fd;                  /* the connection */
	int wake;                /* owned: readable when the reader must look at `stop` */
	struct wire wire;
	uint8_t *room; /* owned: MOUNT_ROOM bytes, for the request that is being read */

	pthread_t reader;
	bool unmounted;    /* by mount_close() */
	atomic_bool stop;  /* the reader shall end, */
	atomic_bool ended; /* the connection has */
	_Atomic uint64_t
	    begun;             /* thread_now() when the reader began its present request; 0: none */
	_Atomic uint64_t turn; /* of the reader: odd while it reads and handles a request */
	_Atomic uint64_t requests, deferred;
	struct pace pace;

	pthread_mutex_t lock;
	pthread_cond_t quiet;        /* reader_gone, or no flights */
	bool reader_gone;            /* guarded by lock */
	struct flight *first, *last; /* requests that the pool has, oldest first; guarded by lock */
	uint64_t landed;             /* when one of them was last answered; guarded by lock */
	uint64_t landings;           /* how many were; guarded by lock */
	struct watched watched;

	/* The next whiteout of this name in this directory is a device; "": none.  Guarded by lock. */
	uint64_t node_dir;
	uint32_t node_dev;
	char node_name[NAME_MAX + 1];

	struct echo *echoes; /* owned (echo.c); guarded by lock */
	atomic_uint n_echoes;
	_Atomic uint64_t phantoms; /* made so far */
};

/* current.c: what mount_options.hidden says of a node. */
bool mount_hides(const struct mount *m, uint64_t ino);

/* reader.c: answer the connection until it ends or `stop` is set. */
NODISCARD int reader_start(struct mount *m, struct err *err);
void reader_stop(struct mount *m);

/* The first request of a connection says what both sides can do; it is answered right here. */
NODISCARD int reader_greet(struct mount *m, struct err *err);

/* current.c: the references to nodes that the kernel holds through this mount. */
NODISCARD int mount_know(struct mount *m, uint64_t node); /* one more */
void mount_forget(struct mount *m, uint64_t node, uint64_t n);
void mount_forget_all(struct mount *m); /* nobody works for it any more */

/* How long a mount of mounts made from now on may hang; for tests. */
extern unsigned mounts_watchdog_ms;

/* End the connection: every program that waits for an answer, or asks, gets an error. */
void mount_abort(struct mount *m);
