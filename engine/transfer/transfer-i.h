/*
 * transfer-i.h - shared by push, fetch and the log of a remote.
 */
#pragma once

#include "base/crew.h"
#include "engine/api/remote.h"
#include "engine/find/engine-i.h"
#include "remote/depot.h"
#include "remote/manifest.h"

#include "base/lock.h"

#define TRANSFER_NAME "latest" /* where none is given */

/* REMOTE[:NAME] or REMOTE/NAME as it was meant. */
struct target {
	char *remote; /* owned; the name of the remote; NULL: none has this url */
	char *url;    /* owned */
	char *name;   /* owned; of the snapshot there; NULL: none was given */
};

void target_done(struct target *t);

/*
 * The url of a remote means that remote: what config.yaml says of it counts by any spelling.
 * -ENOENT with a sentence if there is no such remote, -EINVAL if it cannot be one.
 */
NODISCARD int target_find(struct engine *e, const char *text, struct target *ret, struct err *err);

/* What target_find() takes for the same remote; a registered url need not look like one. */
const char *target_remote(const struct target *t);

/*
 * What this store pushed to a name, or fetched from it, last: less needs to travel then.  It says nothing of
 * what a project has of it (known-i.h).
 */
struct seen {
	struct digest manifest;
	char snapshot[ENGINE_ID_SIZE];
	int64_t pushed; /* when the manifest was made; 0: not known */
};

/* 1 if there is a note, else 0. */
NODISCARD int seen_load(struct engine *e, const struct target *t, struct seen *ret,
			struct err *err);
/* Each note; a negative answer of `fn` ends it with that code. */
typedef int (*seen_fn)(const char *url, const char *name, const struct seen *seen, void *ctx);
NODISCARD int seen_each(struct engine *e, seen_fn fn, void *ctx, struct err *err);
/* A note that cannot be written is a warning. */
void seen_save(struct engine *e, const struct target *t, const struct seen *seen);

/* STORE/remote and directories in it, made if need be; owned. */
NODISCARD int transfer_dir(struct engine *e, const char *name, char **ret, struct err *err);

/* Blobs of remotes that were here before, in STORE/remote/cache; of no store, it has none. */
struct cache {
	struct depot_cache depot;
	int fd; /* owned; -1: none */
};

/* It must stay where it is. */
void cache_open(struct engine *e, struct cache *c);
void cache_close(struct cache *c);
/* What an encrypted blob holds, for those who encrypt and have no key to open it again. */
void cache_note(struct cache *c, const struct digest *sealed, const struct buf *plain);
/* 1 and the bytes, or 0. */
int cache_noted(struct cache *c, const struct digest *sealed, struct buf *out);
/* If it grew large, drop all but the indexes of a manifest. */
void cache_sweep(struct cache *c, const struct manifest *keep);

/*
 * Several connections to one depot, for several threads; the first is always open.
 */
struct connections {
	struct depot *list[CREW_MAX];
	const char *url;
	struct depot_config config;
	struct cache cache;
	unsigned n; /* how many may be used */
};

/* `jobs` 0: as many as may be.  The url is borrowed, and `l` must stay where it is. */
NODISCARD int connections_open(struct engine *e, struct connections *l, const char *url,
			       uint64_t rate, uint64_t jobs, struct err *err);
void connections_done(struct connections *l);
/* That of a member of a crew. */
NODISCARD int connections_get(struct connections *l, unsigned member, struct depot **ret,
			      struct err *err);

/* Bytes that moved, told to the caller's watch.  Several threads may move some. */
struct meter {
	pthread_mutex_t lock; /* guards what follows, and the watch */
	const struct engine_watch *watch;
	const char *doing;
	uint64_t files, bytes, total;
	bool by_files; /* `total` counts files, not bytes */
};

/* For struct depot_watch. */
int meter_moved(uint64_t bytes, void *meter);
