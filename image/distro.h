/*
 * distro.h - how two roots of a distribution differ, in the words of its administrator.
 *
 * A changed path belongs to a package that was added, removed or changed its version; or it is
 * configuration; or a program derives it from other files; or it is state of a service; or somebody
 * put it there. The tables of derived files, state and services are data, in distro-table.c.
 */
#pragma once

#include "base/map.h"
#include "image/accounts.h"
#include "image/conffiles.h"
#include "image/packages.h"
#include "snapshot/diff/delta.h"

struct distro_side {
	struct rootfile files;
	struct packages packages;
	struct accounts users, groups;
	struct conffiles conffiles;
	struct map owned; /* paths of packages that differ; keys and values are one string, owned */
};

struct distro {
	struct distro_side before, after;
};

enum distro_part {
	DISTRO_PACKAGE,
	DISTRO_CONFIG,
	DISTRO_DERIVED,
	DISTRO_STATE,
	DISTRO_OTHER,
};

/* Is it a root of a distribution?  It has usr/ and etc/passwd. */
NODISCARD int distro_is(struct store *s, const struct object_id *root, struct err *err);

NODISCARD int distro_load(struct store *s, const struct object_id *before,
			  const struct object_id *after, struct distro *ret, struct err *err);
void distro_done(struct distro *s);

enum distro_part distro_part(const struct distro *s, const char *path);

/* NULL: dpkg does not know it as configuration, on either side. */
const struct conffile *distro_conffile(const struct distro *s, const char *path);

/* Is the newer side of the file just what its package brings? */
NODISCARD int distro_is_shipped(struct distro *s, const struct delta_file *f,
				const struct conffile *conffile, struct err *err);

/* --- tables ----------------------------------------------------------------------------- */

bool distro_is_derived(const char *path);
bool distro_is_state(const char *path);

/* The unit or init script that a path is, or NULL; borrowed from `path`. */
const char *distro_service(const char *path);
