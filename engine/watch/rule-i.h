/*
 * rule-i.h - read rules: values, triggers, and the place of an error in a file.
 */
#pragma once

#include "base/yaml.h"
#include "engine/watch/watch-i.h"

struct reading {
	const char *name; /* of the file */
	bool narrows;     /* it is a project's own */
	struct yaml key;  /* that is being read */
	struct engine_rules_of_watch *rules;
	struct err *err;
};

typedef int (*read_fn)(struct reading *rd, struct yaml value, struct engine_rule *rule);

struct key {
	const char *key;
	read_fn read;
	bool trigger; /* one of these */
};

/* -EINVAL with "FILE:LINE:COLUMN: why", at the key that is being read. */
NODISCARD int read_complain(const struct reading *rd, const char *why);

const char *read_text(struct yaml value); /* "": it is no text */
NODISCARD int read_take_text(const struct reading *rd, struct yaml value, char **ret);
NODISCARD int read_take_path(const struct reading *rd, struct yaml value, char **ret);
NODISCARD int read_take_texts(const struct reading *rd, struct yaml value, char ***list, size_t *n);
NODISCARD int read_take_duration(const struct reading *rd, struct yaml value, uint64_t *ret);
NODISCARD int read_take_size(const struct reading *rd, struct yaml value, uint64_t *ret);
NODISCARD int read_take_count(const struct reading *rd, struct yaml value, uint64_t *ret);

/* The one of that name, or NULL. */
const struct key *read_key_of(const struct key *keys, size_t n, struct yaml key);

/* The trigger of a rule. */
NODISCARD int read_on(struct reading *rd, struct yaml value, struct engine_rule *rule);
