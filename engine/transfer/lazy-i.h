/*
 * lazy-i.h - the directory of a lazy fetch, shared by its two processes: the command that begins it
 * and the one that continues it (docs/design/remote.md).
 */
#pragma once

#include "engine/transfer/transfer-i.h"

#define LAZY_LOG "log"

struct lazy_dir {
	char id[ENGINE_ID_SIZE];
	char *path; /* owned */
	int fd;     /* owned */
	int lock;   /* owned; -1: not held */
};

#define LAZY_DIR_INIT ((struct lazy_dir){ .fd = -1, .lock = -1 })

void lazy_dir_done(struct lazy_dir *d);

/* Open that of an id, made if `create` is set.  -ENOENT without a sentence. */
NODISCARD int lazy_dir_open(struct engine *e, const char *id, bool create, struct lazy_dir *d,
			    struct err *err);
/* -EBUSY, without a sentence, if another process works there. */
NODISCARD int lazy_dir_lock(struct lazy_dir *d, struct err *err);
void lazy_dir_remove(struct lazy_dir *d);

/* Where the packs are. */
struct lazy_source {
	char *url, *name, *from; /* owned; from: what people call it */
	uint64_t rate, jobs;
	struct manifest_pack *packs; /* owned */
	size_t n;
};

void lazy_source_done(struct lazy_source *s);
NODISCARD int lazy_source_write(const struct lazy_dir *d, const struct lazy_source *s,
				struct err *err);
NODISCARD int lazy_source_read(const struct lazy_dir *d, struct lazy_source *ret, struct err *err);

/* The index of a pack, checked, and in `out` too. */
NODISCARD int lazy_bring_index(const struct lazy_dir *d, struct depot *depot,
			       const struct manifest_pack *p, const struct depot_watch *watch,
			       struct buf *out, struct err *err);
/* All of a pack, checked; `index` is its own. */
NODISCARD int lazy_bring_pack(const struct lazy_dir *d, struct depot *depot,
			      const struct manifest_pack *p, const struct buf *index,
			      const struct depot_watch *watch, struct err *err);
/* Some frames of it.  cowfsd checks what is in them. */
NODISCARD int lazy_bring_range(const struct lazy_dir *d, struct depot *depot,
			       const struct engine_range *range, const struct depot_watch *watch,
			       struct err *err);

/* Start the process that brings the rest. */
NODISCARD int fetcher_start(struct engine *e, const struct lazy_dir *d, struct err *err);
