/*
 * profile-i.h - the parts of a profile's making: text, what it extends, what it may not.
 */
#pragma once

#include "base/yaml.h"
#include "engine/api/profile.h"

#define PROFILE_NAME_MAX 64

/* Everything that a file can say, in the order of the table in profile-read.c. */
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
	KEY_SECCOMP,
	KEY_CAPS,
	KEY_MOUNTS,
	KEY_HIDE,
	KEY_ENV,
	KEY_PASS_ENV,
	KEY_ENTRYPOINT,
	PROFILE_N_KEYS,
};

struct profile_place {
	int line, column; /* 0: it does not say it */
};

/* What one file says, before it is joined with what it extends. */
struct profile_source {
	const char *shown;   /* the file as the person knows it, for sentences */
	const char *project; /* its directory, for paths without a beginning; NULL: there is none */
	const char *home;    /* for "~/"; NULL: there is none */
	struct profile_place said[PROFILE_N_KEYS];
};

/* The number a key fills, or NULL. */
uint64_t *profile_number(struct engine_profile *p, enum profile_key key);
const char *profile_key_name(enum profile_key key);

/* Fill `ret` (empty, but for name, origin and file) from the text. */
NODISCARD int profile_read(struct profile_source *src, const char *text, size_t len,
			   struct engine_profile *ret, struct err *err);

/* Is there more in `p`, which is the project's, than in `base`?  -ECANCELED with the place. */
NODISCARD int profile_narrows(const struct profile_source *src, const struct engine_profile *p,
			      const struct engine_profile *base, struct err *err);

/* Take from `base`, which is left without it, what the source of `p` does not say itself. */
NODISCARD int profile_inherit(const struct profile_source *src, struct engine_profile *p,
			      struct engine_profile *base, struct err *err);

/* The text of a built-in one, or NULL; the i-th name, or NULL. */
const char *profile_built_in(const char *name);
const char *profile_built_in_name(size_t i);
