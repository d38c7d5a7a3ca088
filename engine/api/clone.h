/*
 * clone.h - writable views of a project: making, finding, mounting and removing them.
 *
 * A clone starts with the content of a snapshot; writing in it changes neither the project nor any
 * other clone. It is mounted in the store's directory, under its name; names are unique in the
 * whole store.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/history.h"

/* A name that changed. */
struct engine_path {
	char *path;  /* owned; from the top, which is "" */
	char status; /* 'A', 'M', 'D' */
	bool both;   /* of a clone and its project: in both since the clone was made */
};

#define ENGINE_PATHS_MAX 50000 /* that are listed by name */

struct engine_paths {
	struct engine_path *list; /* owned; by path */
	size_t n;
	bool truncated; /* there are more */
};

void engine_paths_done(struct engine_paths *p);

/*
 * How far a clone's base is behind the project: in a list, behind its newest snapshot; in a status,
 * behind the project as it is now.
 */
struct engine_stale {
	bool known;         /* there is something to compare with, and both can be read */
	uint64_t behind_ms; /* from the base to that; 0: nothing changed */
	uint64_t paths;     /* that changed between the two */
	int64_t as_of;      /* later changes are not known */
	/* Of a status alone. */
	uint64_t both; /* of the paths, those that changed in the clone too */
	struct engine_paths in_project;
};

struct engine_clone {
	char *name;                /* owned, as are the others */
	char *path;                /* where it is mounted, or would be */
	char *project;             /* its path */
	char *part;                /* the directory that it has of it; NULL: all */
	char base[ENGINE_ID_SIZE]; /* the snapshot it started from */
	char *who;                 /* the user who made it; NULL: not known */
	char *via;                 /* what did it for them ("experiment:fast"); NULL: a command */
	int64_t created;           /* nanoseconds since 1970 */
	int64_t expires;           /* 0: never */
	uint64_t quota;            /* bytes it may grow by; 0: no limit */
	bool strict;               /* an fsync in it survives power loss */
	bool private;              /* nobody but root may enter it, */
	bool no_xattrs;            /* and extended attributes can be neither seen nor set */
	uint64_t used;             /* bytes it has grown by, which its quota is a limit of */
	uint64_t own; /* packed bytes stored for it and not for its base; if compared */
	char *allow;  /* rules (allow.h) with commas between them; NULL: none */
	bool mounted;
	bool compared;                     /* what follows is known */
	uint64_t added, modified, deleted; /* since the base; counted as of a snapshot */
	struct engine_stale stale;
	struct engine_capturing capturing;
	struct engine_paths changed; /* since the base; of a status alone */
	struct engine_paths lost;    /* of the base; of a status alone */
	struct engine_paths
	    unread;  /* of the base: needed, and a remote did not give them; the same */
	char *stuck; /* why no more of it comes; NULL: it does; the same */
};

void engine_clone_done(struct engine_clone *c);

struct engine_clones {
	struct engine_clone *list; /* owned */
	size_t n;
	char *project; /* owned; whose they are, or NULL: of all */
	char *
	    git_dir; /* owned; of new ones: the real repository that they have a copy of; NULL: none */
	struct engine_stray *strays; /* owned; of new ones: in them git works elsewhere */
	size_t n_strays;
	struct engine_stray *links; /* owned; of new ones: files `.git` that lead into the clone */
	size_t n_links;
	uint64_t elapsed_ms;
};

void engine_clones_done(struct engine_clones *c);

/* --- making ----------------------------------------------------------------------------- */

struct engine_clone_options {
	const char *name; /* NULL: two words that no other clone has */
	const char *from; /* a snapshot or a clone; NULL or ".": the project, captured first */
	uint64_t count;   /* how many; above 1 a name gets "-1", "-2", ... */
	uint64_t ttl_ms;  /* removed after that, once nobody uses it; 0: never */
	uint64_t quota;   /* 0: no limit */
	bool strict;      /* an fsync in it is to survive power loss, not only the daemon's death */
	bool private;     /* root alone may have it and enter it, and no permissions are checked */
	bool no_xattrs;   /* of a private one: extended attributes can be neither seen nor set */
	uint64_t run;     /* that it was made for and ends with; 0: none; in cowfsd alone */
	uint64_t expect;  /* so many more of the same state are about to be asked for */
	bool last;        /* nobody is going to ask for another of it */
	const char *via;  /* what makes it, for people; NULL: as base/via.h has it */
	uint64_t owner;   /* by which the caller can tell it from one of somebody else; 0: none */
	/*
	 * `from` may be a snapshot of any project: the one that holds the engine's directory, which must be
	 * registered, gets a clone that shows it and that differs from its base as the snapshot does.
	 */
	bool carry;
	bool skip_unreadable; /* of the project: leave out what cannot be read */
	bool lazy;            /* of the project: files may be read later */
	bool eager;           /* they may not, however many there are to be read */
	const char *part;     /* of the project: this directory alone; NULL: all of it */
	struct engine_watch watch;
};

#define ENGINE_CLONES_MAX 1000 /* that can be made at once */

/*
 * Make clones and mount them: all of them or none.  -EEXIST if there is one of that name.
 * A clone survives the death of the daemon; power loss may take it while nothing in it was synced.
 */
NODISCARD int engine_clone(struct engine *e, const struct engine_clone_options *options,
			   struct engine_clones *ret, struct err *err);

struct engine_announced {
	char snapshot[ENGINE_ID_SIZE];
};

/*
 * Several clones of a state (NULL or ".": the project, captured now) are about to be asked for: cowfsd makes them ready
 * as far as memory allows.  *ret is the snapshot that they will start from.
 */
NODISCARD int engine_announce(struct engine *e, const char *from, uint64_t count,
			      const struct engine_watch *watch, struct engine_announced *ret,
			      struct err *err);

/* The name of the clone that holds the engine's directory, owned by the caller; NULL: none does. */
char *engine_clone_here(struct engine *e);

/* Is there one of that name in the store? */
bool engine_has_clone(struct engine *e, const char *name);

/* 1 if there is, and it was made for this owner; 0 if not. */
NODISCARD int engine_owns_clone(struct engine *e, const char *name, uint64_t owner,
				struct err *err);

/* --- looking ---------------------------------------------------------------------------- */

/* By name; `all`: of every project.  What was written before counts. */
NODISCARD int engine_clone_list(struct engine *e, bool all, struct engine_clones *ret,
				struct err *err);

/* All of them, without starting a daemon: -ESRCH, without a sentence, if none runs. */
NODISCARD int engine_clone_list_running(struct engine *e, struct engine_clones *ret,
					struct err *err);

/* Of a project. */
struct engine_overview {
	char *path;                  /* owned */
	char newest[ENGINE_ID_SIZE]; /* snapshot; "" if there is none */
	int64_t newest_time;
	uint64_t snapshots, clones, mounted;
	struct engine_capturing capturing; /* by the capture that is under way, if one is */
	bool compared;                     /* what follows is known */
	uint64_t added, modified, deleted; /* from the newest snapshot to now */
	struct engine_paths changed;
};

void engine_overview_done(struct engine_overview *o);

/*
 * Of a clone, or (NULL) of the clone that holds the engine's directory, else of the
 * project: then *ret_clone stays empty, its name NULL.  The project is looked at as it is now, at the
 * cost of a snapshot, and none is taken; if that fails, a warning says why, and the rest is reported.
 */
NODISCARD int engine_status(struct engine *e, const char *clone, const struct engine_watch *watch,
			    struct engine_clone *ret_clone, struct engine_overview *ret_project,
			    struct err *err);

/* --- acting ----------------------------------------------------------------------------- */

struct engine_removed {
	uint64_t snapshots; /* that went with it */
};

/*
 * Take a clone away with what was written in it.  Its snapshots go too, but for those that
 * have a tag or that another clone started from.  -EBUSY, and nothing changed, if somebody uses it
 * and `force` is not set.
 */
NODISCARD int engine_remove(struct engine *e, const char *clone, bool force,
			    struct engine_removed *ret, struct err *err);

/* *ret_path is owned by the caller. */
NODISCARD int engine_mount(struct engine *e, const char *clone, char **ret_path, struct err *err);

/* What was written is kept.  -EBUSY if somebody uses it and `force` is not set. */
NODISCARD int engine_umount(struct engine *e, const char *clone, bool force, struct err *err);
