/*
 * capture.h - capture a real directory: it becomes a root in the store.
 *
 * Everything is captured, also hidden files and those that git ignores: names, attributes,
 * contents, holes, hard links, symlinks, special files, extended attributes. Left out are only
 * names that the caller excludes or a file `.snapignore` lists (ignore.h). The walk goes by
 * descriptor, follows no symlink, not even the last of the path, and enters file systems mounted
 * below. A file that changes while it is read is read again, so each captured file existed at one
 * moment; a file that vanishes meanwhile was not there.
 *
 * With the signatures of an earlier capture (signatures.h) a capture reads only changed files, and
 * neither reads nor writes the store for the others. The same directory gives the same root, with
 * or without them.
 *
 * Nothing is skipped silently. A file that cannot be read, or never holds still, fails the capture,
 * after all else was looked at; or, if the caller wants that, it is left out and reported.
 *
 * Nothing is visible until the caller commits the batch.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/catalog-id.h"
#include "cowfs/store/object.h"
#include "cowfs/store/root.h"
#include "snapshot/capture/lease.h"
#include "snapshot/capture/ration.h"
#include "snapshot/capture/signatures.h"

#define CAPTURE_THREADS_MAX 8
#define CAPTURE_UNREAD_MAX  1000 /* paths told */

/*
 * A tree that is to be put into another one has inode numbers from a range that no file system
 * uses: from this on, and below twice of it, where the numbers of new files in clones begin.
 */
#define CAPTURE_APART ((uint64_t)1 << 61)

/*
 * A larger file is read at once: whoever needs a byte of a promised one waits for all of it, and a
 * mount that does not answer for long is ended.
 */
#define CAPTURE_LAZY_MAX ((uint64_t)4 << 30)

struct capture_stats {
	uint64_t files; /* names of everything that is no directory */
	uint64_t dirs;  /* the first one too */
	uint64_t bytes; /* of regular files; one with several names counts once */
};

/* Called a few times a second, and at the end, in the thread that called capture_directory(). */
typedef void (*capture_progress_fn)(const struct capture_stats *so_far, void *ctx);

struct capture_options {
	/* Absolute, clean paths of directories left out with all below them: the store. */
	const char *const *exclude;
	size_t n_exclude;
	/* Of the top directory, only these names; NULL: all.  Then `known` is NULL. */
	const char *const *only;
	size_t n_only;
	/*
	 * Only this directory, a clean path from the top, with the directories above it, which then
	 * have no other names; NULL: all.  The signatures that come of it are of no use.
	 */
	const char *part;
	/*
	 * The signatures of an earlier capture, whose root is reachable until the batch ends; NULL:
	 * none.
	 */
	const struct signatures *known;
	/* The directory is this one, and no symlink leads to it; NULL: whichever is there. */
	const struct sys_place *place;
	bool skip_unreadable;
	/*
	 * Promise files instead of reading them (docs/design/lazy.md), in the name of this capture;
	 * NULL: read all.  SIGIO must be ignored.
	 */
	const struct catalog_id *lazy;
	/*
	 * With `lazy`: nobody asked for it, so a file is promised only if `hold` takes it, and only if there is
	 * much to be read; NULL: promise what may be promised.
	 */
	const struct ration_options *unasked;
	/*
	 * Called by several threads for each file that may be promised, with a descriptor of it, on a
	 * file system that lease_possible() says yes to: leases_try(), for a set that is going to hold
	 * it.  -EAGAIN has the file read at once.  Then `hold` for each file with a lease that is
	 * promised: true, and the descriptor is taken.  NULL: nobody holds any.
	 */
	int (*lease)(void *ctx, int fd, struct lease_trial *ret);
	bool (*hold)(void *ctx, const struct object_id *promise, int fd, uint64_t size,
		     const struct lease_trial *t);
	void *hold_ctx;
	bool apart;                   /* inode numbers from the range below */
	unsigned threads;             /* 0: as many as there are processors */
	capture_progress_fn progress; /* or NULL */
	void *progress_ctx;
	/* Asked as often, in the same thread: true ends the capture with -ECONNABORTED.  Or NULL. */
	bool (*stop)(void *ctx);
	void *stop_ctx;
};

/* Unreadable files. */
struct capture_unread {
	char *path; /* owned; from the top of the captured directory; bytes of any value */
	char *why;  /* owned; without the path */
	int code;   /* negative errno */
};

struct capture_report {
	struct capture_unread *list; /* owned; in the order of paths */
	size_t n;
	uint64_t more; /* beyond those listed */
};

void capture_report_done(struct capture_report *r);

/* Is it one that the makers of a clone read themselves, going by its name?  It is never promised. */
bool capture_needs_bytes(const char *name, size_t len);

/* Files that were not read (capture_options.lazy). */
struct capture_promised {
	uint64_t files, bytes; /* one with several names counts once */
	bool refused;          /* none could be: the file system may change unseen */
};

struct captured {
	struct object_id root;
	struct capture_stats stats;
	struct capture_promised promised;
	/* For the next capture; owned.  NULL: those that were given are as good, or it has too many names. */
	struct signatures *signatures;
	/* Told on failure too, as far as it is known. */
	struct capture_report unread;
	/* Names `.git` that are no directories, except the top's; they have no reason. */
	struct capture_report gits;
};

void captured_done(struct captured *c);

/* Release *ret with captured_done() whether it succeeds or not. */
NODISCARD int capture_directory(struct batch *b, const char *path,
				const struct capture_options *options, struct captured *ret,
				struct err *err);
