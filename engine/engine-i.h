/*
 * engine-i.h - what the files of engine/ share: the store behind the verbs, and how
 * projects, histories and states are found in it.
 */
#pragma once

#include "cowfs/store/catalog.h"
#include "cowfs/store/store.h"
#include "engine/engine.h"
#include "engine/history.h"

struct engine {
	char *dir;
	char *store_path;
	struct store *store;  /* NULL until a verb wants it */
	enum store_mode mode; /* of `store` */
};

/*
 * The store, open for at least `mode`; borrowed until the engine closes or another
 * call asks for more.  -ENOENT with a sentence if there is none yet.
 */
NODISCARD int engine_store(struct engine *e, enum store_mode mode, struct store **ret,
			   struct err *err);

/* A record that another one names is damage if it is missing, not an answer. */
int engine_as_damage(struct err *err, int r);

int64_t engine_now(void);       /* nanoseconds since 1970 */
uint64_t engine_clock_ms(void); /* for measuring */

/* --- project.c -------------------------------------------------------------------------- */

/* The nearest registered project that holds `dir` (clean, absolute); -ENXIO if none does. */
NODISCARD int project_holding(struct store *s, const char *dir, struct project *ret,
			      struct err *err);

/* The store, for reading, and the project that holds the engine's directory; -ENXIO if there is none. */
NODISCARD int engine_project(struct engine *e, struct store **ret_store, struct project *ret,
			     struct err *err);

/*
 * The project that a command works on, registered or not: an id of zero means that
 * it is new.  `s` may be NULL: nothing is registered yet.  `named` is the directory the user gave, or NULL: by the rule of where
 * the command was given, which never picks "/" or the home directory (-ECANCELED).
 */
NODISCARD int project_choose(struct engine *e, struct store *s, const char *named,
			     struct project *ret, struct err *err);

bool catalog_id_is_zero(const struct catalog_id *id);
bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b);

/* --- history.c -------------------------------------------------------------------------- */

/* The snapshots of a project (`clone` NULL) or a clone, newest first. */
NODISCARD int history_load(struct store *s, const struct catalog_id *project, const char *clone,
			   struct engine_history *ret, struct err *err);

/* Copy a record of the catalog, without tags. */
NODISCARD int history_entry(const struct snapshot *s, struct engine_snapshot *ret, struct err *err);

/* --- tag.c ------------------------------------------------------------------------------ */

#define TAG_NAME_MAX 128

/* May the user give a snapshot this name?  -EINVAL with a sentence if not. */
NODISCARD int tag_check_name(const char *name, struct err *err);

/* Names in the catalog are those of the whole store; a project's tags are its own. */
NODISCARD char *tag_full_name(const struct catalog_id *project, const char *name);

/* Add a tag to what is said of a snapshot. */
NODISCARD int tag_append(struct engine_snapshot *s, const char *name, struct err *err);

/* Give each snapshot of `list` its tags. */
NODISCARD int tag_fill(struct store *s, struct engine_snapshot *list, size_t n, struct err *err);

/* --- state.c ---------------------------------------------------------------------------- */

/*
 * The snapshot that a person's words mean: "@", "@-1", "NAME@", an id or its
 * beginning, a tag.  -ENOENT, -EINVAL or -ENXIO with a sentence.
 */
NODISCARD int state_resolve(struct engine *e, struct store *s, const char *text,
			    struct snapshot *ret, struct err *err);
