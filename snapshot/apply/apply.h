/*
 * apply.h - make a real directory look like a tree, completely or not at all.
 *
 * The most dangerous thing this program does. Its promises (docs/design/apply.md says how):
 *
 *   - It overwrites or removes only files that the plan expects to be there. A file that somebody
 *     changed meanwhile is a conflict: apply takes everything back, and the error names its path.
 *   - Whatever fails, and whenever the process dies, the directory is then as before, or is so
 *     after apply_recover(); or else all of it is as wanted, and survives power loss.
 *   - It follows no symlink, touches nothing outside of the directory, and no other file system
 *     that is mounted below it.
 *
 * The store must hold the state that the plan starts from, durably and by a ref that stays, because
 * displaced files are removed in the end. The caller makes sure that there is one act at a time on
 * a directory.
 */
#pragma once

#include "base/sys.h"
#include "snapshot/apply/plan.h"

typedef void (*apply_progress_fn)(uint64_t done, uint64_t total, void *ctx);

/*
 * The directory `path` is now as planned, durably: the moment to record that.  If this fails or the
 * process dies, apply_recover() calls it again, with the plan from the journal.
 */
typedef int (*apply_landed_fn)(const char *path, const struct plan *plan, void *ctx,
			       struct err *err);

struct apply_options {
	apply_progress_fn progress; /* or NULL */
	void *progress_ctx;
	apply_landed_fn landed; /* or NULL */
	void *landed_ctx;
	/* The directory is this one, and no symlink leads to it; NULL: whichever is there. */
	const struct sys_place *place;
	bool sums; /* give the plan's steps the SHA-256 of each staged content */
};

/* Paths from the top, owned, each with what happened to it, as the end of a sentence. */
struct apply_note {
	char *path;
	const char *why; /* constant: "changed meanwhile", ... */
};

struct apply_report {
	struct apply_note *notes; /* owned */
	size_t n;
	bool unfinished; /* it failed, and apply_recover() has something to do */
	/*
	 * It failed, and a file of ours that somebody wrote to stays in place of the original.  The
	 * original is now only in the store, so the state that the plan started from must be kept.
	 */
	bool astray;
	bool unswept; /* apply_sweep() has something to do */
};

void apply_report_done(struct apply_report *r);

/*
 * Carry out `plan` in the directory `path`.  -ESTALE if something was not as expected: `ret` names
 * it, and nothing is changed.  After any other failure nothing is changed either, except what could
 * not be taken back: `ret` names that, and a later apply_recover() tries again.  On success `ret`
 * may name directories that stay because they hold files that were never captured.
 */
NODISCARD int apply_plan(struct store *s, const char *path, struct plan *plan,
			 const struct apply_options *options, struct apply_report *ret,
			 struct err *err);

/*
 * Remove the stages that acts left for later, until `stop` (or NULL) says so; the rest waits for
 * the next call.
 */
typedef bool (*apply_stop_fn)(void *ctx);
void apply_sweep(struct store *s, apply_stop_fn stop, void *ctx);

/*
 * Finish or take back what a dead process was doing to the directory `path`, or (NULL) to any.
 * Call it before anything else touches the directory; it is cheap if there is nothing to do.
 * Returns the number of acts found and ended; uses only `landed` of `options` (or NULL).  `ret`
 * names files that could not be restored because somebody changed them since: those edits stay, and
 * the previous content is in the store.
 */
NODISCARD int apply_recover(struct store *s, const char *path, const struct apply_options *options,
			    struct apply_report *ret, struct err *err);
