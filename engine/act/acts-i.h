/*
 * acts-i.h - the acts of cowfsd: a function for each verb.
 */
#pragma once

#include "engine/host/task-i.h"

/* --- take.c ----------------------------------------------------------------------------- */

/*
 * engine_take(), done here.  `reuse`: no user asked for the snapshot, so it is automatic, and the
 * parent is used instead if it has the same state.
 */
NODISCARD int take_snapshot(struct task *task, const struct engine_take_options *options,
			    bool reuse, struct engine_taken *ret, struct err *err);

/* --- gc.c ------------------------------------------------------------------------------- */

/* engine_gc(), done here. */
struct engine_gc;
struct engine_gc_options;
NODISCARD int upkeep_gc(struct task *task, const struct engine_gc_options *options,
			struct engine_gc *ret, struct err *err);

/* --- tag-edit.c ------------------------------------------------------------------------- */

/* engine_tag_add() and engine_tag_delete(), done here. */
struct engine_tags;
NODISCARD int tag_add(struct task *task, const char *name, const char *state,
		      struct engine_tags *ret, struct err *err);
NODISCARD int tag_delete(struct task *task, const char *name, struct engine_tags *ret,
			 struct err *err);

/* --- clone.c, clone-report.c, clone-remove.c -------------------------------------------- */

/* engine_clone() and the others of clone.h, done here. */
struct engine_clone_options;
struct engine_clones;
struct engine_clone;
struct engine_overview;
struct engine_removed;
struct engine_announced;
NODISCARD int clone_make(struct task *task, const struct engine_clone_options *options,
			 struct engine_clones *ret, struct err *err);
NODISCARD int clone_announce(struct task *task, const struct engine_clone_options *options,
			     struct engine_announced *ret, struct err *err);
NODISCARD int clone_list(struct task *task, bool all, struct engine_clones *ret, struct err *err);
NODISCARD int clone_status(struct task *task, const char *name, const struct engine_watch *watch,
			   struct engine_clone *ret_clone, struct engine_overview *ret_project,
			   struct err *err);
NODISCARD int clone_remove(struct task *task, const char *name, bool force,
			   struct engine_removed *ret, struct err *err);
NODISCARD int clone_mount(struct task *task, const char *name, char **ret_path, struct err *err);
NODISCARD int clone_umount(struct task *task, const char *name, bool force, struct err *err);

/* --- since.c ---------------------------------------------------------------------------- */

/* engine_since(), done here, of what lies below a directory of the clone ("": all of it). */
struct engine_since;
NODISCARD int clone_since(struct task *task, const char *name, const char *below, const char *token,
			  struct engine_since *ret, struct err *err);

/* --- project-edit.c --------------------------------------------------------------------- */

/* engine_project_forget() and engine_project_move(), done here; `path` is clean and absolute. */
NODISCARD int project_forget(struct task *task, const char *id, bool force, struct err *err);
NODISCARD int project_move(struct task *task, const char *id, char *path, bool force,
			   struct err *err);

/* --- snapshot-remove.c ------------------------------------------------------------------ */

/* engine_remove_snapshot(), done here. */
NODISCARD int snapshot_remove(struct task *task, const char *word, bool force,
			      char ret_id[ENGINE_ID_SIZE], struct err *err);

/* --- rollback.c ------------------------------------------------------------------------- */

/* engine_rollback(), done here. */
struct engine_rollback_options;
struct engine_rolled;
NODISCARD int rollback_do(struct task *task, const struct engine_rollback_options *options,
			  struct engine_rolled *ret, struct err *err);

/* --- overlaps.c ------------------------------------------------------------------------- */

/* engine_overlaps(), done here. */
struct engine_overlaps;
NODISCARD int overlaps_find(struct task *task, const char *name, struct engine_overlaps *ret,
			    struct err *err);

/* --- merge.c ---------------------------------------------------------------------------- */

/* Would they merge?  Writes nothing that stays. */
struct merge_ask;
struct merge_told;
NODISCARD int merge_find(struct task *task, const struct merge_ask *asked, struct merge_told *ret,
			 struct err *err);

/* --- rebase.c --------------------------------------------------------------------------- */

/* engine_rebase(), done here. */
struct engine_rebase_options;
struct engine_rebased;
NODISCARD int rebase_do(struct task *task, const struct engine_rebase_options *options,
			struct engine_rebased *ret, struct err *err);
