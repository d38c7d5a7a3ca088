/*
 * capture.h - a real directory -> a root in the store.
 *
 * Everything is captured, ignored and hidden files too: names, attributes,
 * contents, holes, hard links, symlinks, special files, extended attributes.  The
 * walk goes by descriptor, follows no symlink, not even the last of the path, and goes
 * on into file systems mounted below.  A file that changes while it is read is read
 * again, so what is captured of it existed at one moment; one that never holds
 * still is a failure, -EBUSY.  Nothing is skipped silently: what cannot be read fails
 * the capture with its path.
 *
 * Nothing is visible until the caller commits the batch.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/root.h"

struct capture_stats {
	uint64_t files; /* names of everything that is no directory */
	uint64_t dirs;  /* the first one too */
	uint64_t bytes; /* of regular files; one with several names counts once */
};

/* Called now and then; not from a signal or another thread. */
typedef void (*capture_progress_fn)(const struct capture_stats *so_far, void *ctx);

struct capture_options {
	/* Absolute, clean paths of directories left out with all below them: the store. */
	const char *const *exclude;
	size_t n_exclude;
	capture_progress_fn progress; /* or NULL */
	void *progress_ctx;
};

NODISCARD int capture_directory(struct batch *b, const char *path,
				const struct capture_options *options, struct object_id *ret_root,
				struct capture_stats *ret_stats, struct err *err);
