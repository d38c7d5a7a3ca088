/*
 * versions.h - how the versions of a file are printed, and what made them.
 */
#pragma once

#include "cli/cmd.h"
#include "cli/out.h"
#include "engine/api/blame.h"

/* The members of one. */
void versions_set_one(struct json j, const struct engine_version *v);

/* "run 0123456789ab", "claude", "promotion of try", "ann": who or what made it. */
void versions_print_writer(FILE *out, const struct engine_version *v);

/* A row for each. */
void versions_print(const struct invocation *inv, const struct engine_versions *v);

/* `A,B:PATH`, `A,+N:PATH` or `A:PATH`: *path becomes what follows the colon.  -EINVAL with a sentence. */
NODISCARD int versions_parse_range(const char *text, uint64_t *from, uint64_t *to,
				   const char **path, struct err *err);
