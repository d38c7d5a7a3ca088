/*
 * profile-i.h - how a profile is made: its text, the profile it extends, and its bounds.
 */
#pragma once

#include "base/yaml.h"
#include "engine/api/profile.h"

#define PROFILE_NAME_MAX 64

/* All keys of a file, in the order of the table in profile-read.c. */
enum profile_key {
	KEY_NAME,
	KEY_EXTENDS,
	KEY_DESCRIPTION,
	KEY_CPU,
	KEY_MEM,
	KEY_DISK,
	KEY_INODES,
	KEY_FSIZE,
	KEY_PIDS,
	KEY_NOFILE,
	KEY_TIME,
	KEY_LIFETIME,
	KEY_NET,
	KEY_NET_OUT,
	KEY_ASK,
	KEY_SNAPSHOTS,
	KEY_SECCOMP,
	KEY_CAPS,
	KEY_MOUNTS,
	KEY_HIDE,
	KEY_ENV,
	KEY_PASS_ENV,
	KEY_SECRET_FOR,
	KEY_TLS_INSPECT,
	KEY_ENTRYPOINT,
	KEY_ROOT,
	PROFILE_N_KEYS,
};

struct profile_place {
	int line, column; /* 0: the file does not set it */
};

/* What one file sets, before it is joined with what it extends. */
struct profile_source {
	const char *shown;   /* the file's name for error messages */
	const char *project; /* its directory, for relative paths; NULL: there is none */
	const char *home;    /* for "~/"; NULL: there is none */
	struct profile_place said[PROFILE_N_KEYS];
};

/* The number a key fills, or NULL. */
uint64_t *profile_number(struct engine_profile *p, enum profile_key key);
const char *profile_key_name(enum profile_key key);

/* Fill `ret` (empty, but for name, origin and file) from the text. */
NODISCARD int profile_read(struct profile_source *src, const char *text, size_t len,
			   struct engine_profile *ret, struct err *err);

/* -ECANCELED, with the place, if the project's profile `p` allows more than `base`. */
NODISCARD int profile_narrows(const struct profile_source *src, const struct engine_profile *p,
			      const struct engine_profile *base, struct err *err);

/* Does the list of hosts allow nothing that the other (NULL: none) does not? */
bool profile_net_narrows(const char *inner, const char *outer);

/* Is it a list of hosts, or one of the words?  -EINVAL with a sentence. */
NODISCARD int profile_net_check(const char *text, struct err *err);

/* Can it be the name of a variable? */
bool profile_is_variable(const char *name);

/* Move from `base` to `p` what the source of `p` does not set. */
NODISCARD int profile_inherit(const struct profile_source *src, struct engine_profile *p,
			      struct engine_profile *base, struct err *err);

/* The text of a built-in profile, and the i-th name; NULL: none. */
const char *profile_built_in(const char *name);
const char *profile_built_in_name(size_t i);
