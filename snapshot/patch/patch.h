/*
 * patch.h - a changed file as text that `git apply` takes.
 *
 * Headers, modes, renames, symlinks and hunks are as git writes them. A binary file (with a NUL, or
 * more than 64 MiB) is a literal of `GIT binary patch`, both ways, so the patch can be taken back
 * too. Such a file goes through constant memory, whatever its size; the two sides of a text are in
 * memory while they are compared.
 */
#pragma once

#include "snapshot/diff/delta.h"

enum patch_part {
	PATCH_HEADER, /* of a file */
	PATCH_HUNK,   /* where the lines that follow stand */
	PATCH_SAME,
	PATCH_ADDED,
	PATCH_REMOVED,
	PATCH_MARK,   /* that the line before has no end */
	PATCH_BINARY, /* of `GIT binary patch` */
};

/* Takes whole lines of one part, borrowed for the call.  A negative answer ends it and is returned. */
typedef int (*patch_fn)(enum patch_part part, const char *text, size_t len, void *ctx,
			struct err *err);

struct patch_counts {
	uint64_t added, removed; /* lines; 0 if it is no text */
	bool binary;
};

/*
 * `fn` NULL: only count.  A file that git would refuse is counted and not written.  -EBADMSG
 * names the path.
 */
NODISCARD int patch_file(struct store *s, const struct delta_file *f, unsigned context, patch_fn fn,
			 void *ctx, struct patch_counts *ret, struct err *err);
