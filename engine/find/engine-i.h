/*
 * engine-i.h - shared by the files of engine/: the store behind the verbs, and how to find
 * projects, histories and states in it.
 */
#pragma once

#include "cowfs/store/catalog.h"
#include "cowfs/store/store.h"
#include "engine/api/engine.h"
#include "engine/api/history.h"

/* In the store's directory: where clones are mounted, each in a directory of its name. */
#define CLONES_DIR "clones"

/* The command line has one; in cowfsd each task has one (engine/host/task-i.h). */
struct engine {
	char *dir;
	char *home; /* of the user, without symlinks; NULL: none */
	char *store_path;
	bool no_symlinks;     /* in `store_path` */
	struct store *store;  /* NULL until a verb wants it */
	enum store_mode mode; /* of `store` */
	int stop_fd; /* when it can be read, waiting for cowfsd ends with -EINTR; 0: none */

	/* May this directory be read, or is it cowfsd's own?  NULL: any may. */
	int (*may_read)(void *ctx, const char *dir, struct err *err);
	void *may_read_ctx;
	void (*warn)(const char *text, void *ctx); /* to the caller; NULL: to the log alone */
	void *warn_ctx;
};

/* cowfsd must not touch a directory before it knows that it is not on a mount of its own. */
NODISCARD int engine_may_read(struct engine *e, const char *dir, struct err *err);

/* Warn the user; the command goes on. */
void engine_warn(struct engine *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * The store, open for at least `mode`; borrowed until the engine closes or another
 * call asks for more.  -ENOENT with a sentence if there is none yet.
 */
NODISCARD int engine_store(struct engine *e, enum store_mode mode, struct store **ret,
			   struct err *err);

/* Without opening it.  If we cannot tell, it counts as there, and opening it reports the reason. */
bool engine_has_store(const struct engine *e);

/* A record that another one names is damage if it is missing, not an answer. */
int engine_as_damage(struct err *err, int r);

int64_t engine_now(void);       /* nanoseconds since 1970 */
uint64_t engine_clock_ms(void); /* for measuring */

/* --- project.c -------------------------------------------------------------------------- */

/* Its record was read before the turn was taken: -ENXIO if it is gone or changed since. */
NODISCARD int project_still(struct store *s, const struct project *p, struct err *err);

/* Does it hold `.git`: a repository, or a file that leads to one? */
bool project_is_work_tree(const char *dir);

/* Returns -ENXIO with the sentence that there is no project here. */
int engine_no_project(const struct engine *e, struct err *err);

/* The nearest registered project that holds `dir` (clean, absolute); -ENXIO if none does. */
NODISCARD int project_holding(struct store *s, const char *dir, struct project *ret,
			      struct err *err);

/* The same for the engine's directory; what is in a clone belongs to the clone's project. */
NODISCARD int project_around(struct engine *e, struct store *s, struct project *ret,
			     struct err *err);

/* The store, for reading, and the project that holds the engine's directory; -ENXIO if there is none. */
NODISCARD int engine_project(struct engine *e, struct store **ret_store, struct project *ret,
			     struct err *err);

/* The directory that the user named, as a path that stays the same from wherever it is named. */
NODISCARD int project_named(struct engine *e, const char *named, char **ret, struct err *err);

/*
 * The project that a command works on, registered or not: an id of zero means that
 * it is new.  `s` may be NULL: nothing is registered yet.  `named` is what project_named()
 * gave, or NULL: by the rule of where the command was given, which never picks "/", the
 * home directory or a folder of many users (-ECANCELED), nor what is in a clone.
 */
NODISCARD int project_choose(struct engine *e, struct store *s, const char *named,
			     struct project *ret, struct err *err);

/* 1 and the id of the project that is registered for exactly this path; 0: none is. */
NODISCARD int project_id_at(struct store *s, const char *path, char hex[CATALOG_HEX_SIZE]);

/*
 * A directory of git's (gitdir-i.h) or a target of promotions (deliver-i.h), registered or not: no
 * command picks it as its project.
 */
NODISCARD int project_hidden_at(struct engine *e, struct store *s, const char *dir,
				enum project_hidden kind, struct project *ret, struct err *err);

/* --- history.c -------------------------------------------------------------------------- */

/* The snapshots of a project (`clone` NULL) or a clone, newest first, without tags. */
NODISCARD int history_load(struct store *s, const struct catalog_id *project,
			   const struct clone *clone, struct engine_history *ret, struct err *err);

/*
 * Leave out the automatic ones, as "@" and a bare rollback count; unless there are no others.  A project's
 * that have only a part of it never count.
 */
void history_keep_users(struct engine_history *h);

/* Did nobody ask for it? */
bool history_is_automatic(const struct snapshot *s);

/* The newest of all of a project, automatic or not, by its record.  -ENOENT if there is none. */
NODISCARD int history_newest(struct store *s, const struct catalog_id *project,
			     struct snapshot *ret, struct err *err);

/*
 * The first of `h` that has all of what it was taken of, or of a project this very part (NULL: only the
 * former counts); if there is none, the snapshot that `clone` started from (NULL: `ret` stays as it
 * is).  That the snapshot is gone is damage.
 */
NODISCARD int history_last(struct store *s, const struct engine_history *h,
			   const struct clone *clone, const char *part, struct snapshot *ret,
			   struct err *err);

/* 1 if the clone that it was taken of is still there; a later one of the same name is another. */
NODISCARD int history_has_clone(struct store *store, const struct snapshot *s, struct err *err);

/* Has the snapshot this root and base (zero for a project's)?  One of id zero has nothing. */
bool history_holds(const struct snapshot *s, const struct object_id *root,
		   const struct catalog_id *base);

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

/* Add a tag to a list of them. */
struct engine_tags;
NODISCARD int tag_list_add(struct engine_tags *t, const char *name,
			   const struct catalog_id *snapshot, struct err *err);

/* --- words.c ---------------------------------------------------------------------------- */

#define CLONE_NAME_MAX 64

/* May the user give a clone this name?  -EINVAL with a sentence if not. */
NODISCARD int clone_check_name(const char *name, struct err *err);

/* Two friendly words; another clone may have them. */
NODISCARD int words_pick(char name[CLONE_NAME_MAX + 1], struct err *err);

/* --- clone-find.c ----------------------------------------------------------------------- */

/* -ENOENT with a sentence if there is none. */
NODISCARD int clone_find(struct store *s, const char *name, struct clone *ret, struct err *err);

/* The name of the clone that holds the engine's directory, owned; NULL: none does. */
char *clone_here(struct engine *e);
char *clone_inside(struct engine *e); /* the rest of the path, from its top; owned */

/*
 * The one of that name, or (NULL) the one that holds the engine's directory.  -EDESTADDRREQ
 * if none does.
 */
NODISCARD int clone_meant(struct engine *e, struct store *s, const char *name, struct clone *ret,
			  struct err *err);

/* The snapshot whose content it started with. */
static inline const struct catalog_id *clone_start(const struct clone *c)
{
	return catalog_id_is_zero(&c->start) ? &c->base : &c->start;
}

/* Its project and its base; that these are gone is damage. */
NODISCARD int clone_origin(struct store *s, const struct clone *c, struct project *ret,
			   struct snapshot *ret_base, struct err *err);

/* --- state.c ---------------------------------------------------------------------------- */

/*
 * The snapshot that a person's words mean: "@", "@-1", "NAME@", an id or its
 * beginning, a tag, an image.  -ENOENT, -EINVAL or -ENXIO with a sentence.
 */
NODISCARD int state_resolve(struct engine *e, struct store *s, const char *text,
			    struct snapshot *ret, struct err *err);

enum state_kind {
	STATE_PROJECT, /* now */
	STATE_CLONE,   /* now */
	STATE_SNAPSHOT,
};

/* Any state that a person can name. */
struct state {
	enum state_kind kind;
	char *text;               /* owned; names the same from anywhere in the project */
	struct project project;   /* whose it is */
	struct clone clone;       /* of STATE_CLONE, as its record has it */
	struct snapshot snapshot; /* of STATE_SNAPSHOT */
};

void state_done(struct state *s);

/*
 * The same for all that can be named: "." is the project now, and the name of a clone that clone
 * now, also where a tag has that name.
 */
NODISCARD int state_find(struct engine *e, struct store *s, const char *text, struct state *ret,
			 struct err *err);
