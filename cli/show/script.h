/*
 * script.h - a shell script that repeats on a machine what was done in a root clone, to read and
 * then to run.
 *
 * Names come from files that any program may have written. A name that is no package, version or
 * account by the rules of Debian is left out, and the script says so; everything else that a shell
 * would interpret is quoted.
 */
#pragma once

#include "base/buf.h"
#include "base/strlist.h"
#include "engine/api/diff.h"

struct script_missing {
	struct buf text; /* comments */
	size_t n;        /* of them; the text has the first ones */
};

struct script {
	struct strlist install, automatic, purge; /* words for apt-get and apt-mark */
	struct buf groups, users, members, units; /* lines */
	struct strlist patched;                   /* paths whose patch belongs in it */
	struct buf file, patch;                   /* of the file at hand; of all */
	struct buf modes;                         /* lines, after the patch */
	struct script_missing missing, notes;     /* what it does not do */
	size_t n_patches;
};

void script_done(struct script *s);

NODISCARD int script_add_package(struct script *s, const struct engine_package *p, struct err *err);
NODISCARD int script_add_database(struct script *s, bool came, struct err *err);
NODISCARD int script_add_change(struct script *s, const struct engine_distro_change *c,
				struct err *err);

NODISCARD int script_add_note(struct script *s, const struct delta_note *n, struct err *err);

/* Is the patch of that file part of it?  After all changes. */
bool script_wants(const struct script *s, const struct delta_file *f);
NODISCARD int script_add_text(struct script *s, const char *text, size_t len, struct err *err);
NODISCARD int script_end_file(struct script *s, const struct delta_file *f,
			      const struct patch_counts *counts, struct err *err);

/* The whole; `from` and `to` name the states. */
NODISCARD int script_write(const struct script *s, const char *from, const char *to,
			   struct buf *ret, struct err *err);
