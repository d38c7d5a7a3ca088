/*
 * profile.h - a profile: what a run may use and see, under a name.
 *
 * A profile is YAML: in the project (.snap/profiles/NAME.yaml), of the user
 * ($XDG_CONFIG_HOME/snapcow/profiles/NAME.yaml) or built in; the first with the name counts. A run
 * without a named profile gets "default" of the user or built in, never the project's.
 *
 * A file in a project may come from the very program that the sandbox is to hold. So a profile of
 * the project may only narrow the one it extends, which is the user's or built in: -ECANCELED with
 * the place if it asks for more. The rules: docs/reference/profiles.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/strlist.h"
#include "engine/api/engine.h"

enum engine_profile_origin { PROFILE_PROJECT, PROFILE_USER, PROFILE_BUILT_IN };

struct engine_profile_mount {
	char *host;    /* absolute and clean */
	char *guest;   /* the same */
	bool writable; /* else read-only */
	bool optional; /* without `host` there is no mount, and no error */
};

#define ENGINE_SECCOMP_STRICT "strict" /* our own list with fewer calls */

/* In `hide`: files of the project that usually hold secrets. */
#define ENGINE_HIDE_SECRETS "@secrets"

/* All of it, with what it extends.  Of numbers 0 is no limit. */
struct engine_profile {
	char *name;
	enum engine_profile_origin origin;
	char *file;    /* NULL if it is built in */
	char *extends; /* NULL: nothing */
	char *description;
	uint64_t cpus_milli; /* thousandths of a processor */
	uint64_t mem, disk, fsize, net_out;
	uint64_t pids, nofile, inodes;
	uint64_t time_ms, lifetime_ms; /* of a run; of the clone it makes */
	uint64_t ask_ms;    /* that what is refused waits for an answer; 0: nobody is asked */
	uint64_t snapshots; /* that a run may take of its clone; 0: none */
	bool mem_said;      /* `mem` is not what a run gets of which nobody says anything */
	char *net;          /* as --net takes it */
	char *seccomp; /* a file with a filter of its own, or ENGINE_SECCOMP_STRICT; NULL: ours */
	struct engine_profile_mount *mounts;
	size_t n_mounts;
	struct strlist hide;        /* paths */
	struct strlist env;         /* NAME=VALUE, each name once */
	struct strlist pass_env;    /* names */
	struct strlist secret_for;  /* as --secret-for takes it */
	struct strlist tls_inspect; /* as --tls-inspect takes it */
	struct strlist entrypoint;  /* goes before the words of the command */
	bool root;                  /* for runs with --root, which it stands for */
};

void engine_profile_done(struct engine_profile *p);

/*
 * The profile of that name; NULL: what a run gets without one.  -ENOENT with a sentence if there
 * is none, -EINVAL with "FILE:LINE:COLUMN: ..." for one that cannot be read.
 */
NODISCARD int engine_profile(struct engine *e, const char *name, struct engine_profile *ret,
			     struct err *err);

/* One that could be named, also if it cannot be read. */
struct engine_profile_entry {
	char *name;
	char *file; /* NULL if it is built in */
	enum engine_profile_origin origin;
	char *description;  /* "" if there is none, or it cannot be read */
	struct err problem; /* code 0: none */
};

struct engine_profiles {
	struct engine_profile_entry *list;
	size_t n;
};

/* By name; each once, as a run would find it. */
NODISCARD int engine_profiles(struct engine *e, struct engine_profiles *ret, struct err *err);
void engine_profiles_done(struct engine_profiles *p);
