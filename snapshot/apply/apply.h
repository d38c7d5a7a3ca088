/*
 * apply.h - make a real directory look like a tree, all of it or nothing.
 *
 * The most dangerous thing this program does.  What it promises (docs/design/apply.md says how):
 *
 *   - Nothing is overwritten or removed but what the plan expects to be there.  A file that
 *     somebody changed meanwhile is a conflict: everything is taken back, and its path is told.
 *   - Whatever fails, or whoever dies, at any moment: the directory is then as it was, or is so
 *     after apply_recover(); or else all of it is as wanted, and survives power loss.
 *   - No symlink is followed, nothing outside of the directory is touched, and no other
 *     file system that is mounted below it.
 *
 * What the plan starts from must be in the store, durably and by a ref that stays: what is
 * displaced is removed in the end.  One act on a directory at a time; the caller sees to it.
 */
#pragma once

#include "snapshot/apply/plan.h"

typedef void (*apply_progress_fn)(uint64_t done, uint64_t total, void *ctx);

/*
 * The directory `path` is now as the plan wants it, for good: the moment to write that down.  If
 * that fails, or whoever does it dies, apply_recover() asks again, with the plan as it was kept.
 */
typedef int (*apply_landed_fn)(const char *path, const struct plan *plan, void *ctx,
			       struct err *err);

struct apply_options {
	apply_progress_fn progress; /* or NULL */
	void *progress_ctx;
	apply_landed_fn landed; /* or NULL */
	void *landed_ctx;
	bool sums; /* the plan's steps get the SHA-256 of each content that is staged */
};

/* Paths from the top, owned, each with a sentence's end: what is the matter with it. */
struct apply_note {
	char *path;
	const char *why; /* constant: "changed meanwhile", ... */
};

struct apply_report {
	struct apply_note *notes; /* owned */
	size_t n;
	bool unfinished; /* it failed, and there is something for apply_recover() to do */
	/*
	 * It failed, and a file of ours that somebody wrote to stays in place of the one that was
	 * there.  That is now in the store alone, so what the plan started from must stay.
	 */
	bool astray;
	bool unswept; /* there is something for apply_sweep() to do */
};

void apply_report_done(struct apply_report *r);

/*
 * Do what `plan` says to the directory `path`.  -ESTALE if something was not as expected: `ret`
 * then tells what, and nothing is changed.  After any other failure nothing is changed either,
 * save for what cannot be taken back, which `ret` tells and a later apply_recover() tries again.
 * With 0, `ret` may tell of directories that stay because they hold what was never captured.
 */
NODISCARD int apply_plan(struct store *s, const char *path, struct plan *plan,
			 const struct apply_options *options, struct apply_report *ret,
			 struct err *err);

/*
 * Remove what acts displaced and left for a time when nobody waits for them, until `stop` (or NULL)
 * says so.  What is not removed is left for the next time.
 */
typedef bool (*apply_stop_fn)(void *ctx);
void apply_sweep(struct store *s, apply_stop_fn stop, void *ctx);

/*
 * Finish or take back what a dead process was doing to the directory `path` or (NULL) to any.
 * Before anything else touches it; costs next to nothing if there is no such thing.  The number of
 * acts that were found and ended; of `options` (or NULL) only `landed` counts.  `ret` tells what could not be brought back, because somebody
 * has changed it since.  Edits are left in place; what was there before the act is in the store.
 */
NODISCARD int apply_recover(struct store *s, const char *path, const struct apply_options *options,
			    struct apply_report *ret, struct err *err);
