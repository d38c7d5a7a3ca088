/*
 * config-i.h - the user's own settings: config.yaml.
 *
 * Both sides read it: cowfsd obeys it, the command line shows it. A missing file sets nothing;
 * docs/reference/configuration.md has its keys.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"

#define CONFIG_LIMIT_MIN \
	((uint64_t)32 << 20) /* below it not even a small project can be captured */

#define CONFIG_EAGER_ALL UINT64_MAX
#define CONFIG_EAGER     ((uint64_t)256 << 20) /* unless the file says otherwise */

struct config {
	uint64_t store_limit;  /* bytes that a store's files may take; 0: what the disk has */
	struct strlist checks; /* that every promotion of an agent must pass */
	struct strlist task_names, task_lines;
	/* For each remote that is set: its name and files, "" if there is none; as many in each list. */
	struct strlist remotes, remote_signers, remote_revoked, remote_recipients, remote_identity;
	char *otlp;                  /* owned; the collector that spans are sent to, or NULL */
	struct strlist otlp_headers; /* "Name: value", for that collector */
	uint64_t steps;              /* of agents, that a project keeps; 0: not said */
	uint64_t eager; /* bytes that a new clone may wait for; CONFIG_EAGER_ALL: for all of them */
};

void config_done(struct config *c);

/*
 * Where the user's file `name` is ("config.yaml", "guard.yaml", "profiles"), for a user with this home
 * directory (NULL: unknown); owned, NULL: nowhere.
 */
char *config_file(const char *home, const char *name);
#define CONFIG_FILE "config.yaml"

/*
 * The text of the file `name` ("guard.yaml", "experiments/a.yaml") in the folder .snap of a project, which a
 * clone may have written: opened name by name, no symlink is followed, and only a regular file is read.
 * -ENOENT without a sentence if it is not there.
 */
NODISCARD int config_read_project(const char *project, const char *name, struct buf *ret,
				  struct err *err);

/* "~/x" in the home directory, or an absolute path as it is; owned.  -EINVAL for any other. */
NODISCARD int config_expand(const char *home, const char *path, char **ret, struct err *err);

/* -EINVAL with "FILE:LINE:COLUMN: why" if it cannot be understood; `ret` is then untouched. */
NODISCARD int config_read(const char *path, struct config *ret, struct err *err);
