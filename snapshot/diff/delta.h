/*
 * delta.h - the difference of two trees as git describes it, and what git cannot express.
 *
 * Files are what a patch can say: regular files and symlinks that were added, deleted, renamed, or
 * changed in content, in type or in the executable bit. Notes are the rest: owners, extended
 * attributes, other mode bits, empty directories, devices, FIFOs and sockets. A file that changed
 * in both ways is in both lists. Owner and mode of an added name are not noted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cowfs/store/content.h"
#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

/* As git's letters have it. */
enum delta_status {
	DELTA_ADDED = 'A',
	DELTA_DELETED = 'D',
	DELTA_MODIFIED = 'M',
	DELTA_RENAMED = 'R',
	DELTA_TYPE = 'T', /* a file became a symlink or the other way round */
};

/* A file on one side. */
struct delta_side {
	uint32_t mode;          /* as st_mode; 0 if it does not exist */
	struct content content; /* of a regular file */
	char *target;           /* of a symlink; owned */
};

struct delta_file {
	enum delta_status status;
	char *path;     /* owned; from the top */
	char *old_path; /* owned; the old path of a renamed file, else NULL */
	struct delta_side before, after;
	bool content;        /* the bytes differ */
	unsigned similarity; /* of a renamed file, in per cent */
	bool refused;        /* no patch may name it: git reserves the name */
	bool sparse;         /* no patch has it: almost all of it is holes (content_is_sparse()) */
};

/* The changes that a note lists. */
enum delta_what {
	DELTA_MODE = 1,
	DELTA_OWNER = 2,
	DELTA_XATTRS = 4,
	DELTA_DEVICE = 8,     /* its number */
	DELTA_DIRECTORY = 16, /* a directory without files came or went */
	DELTA_SPECIAL = 32,   /* a device, FIFO or socket came or went */
};

struct delta_note {
	enum delta_status status; /* added, deleted or modified */
	char *path;               /* owned; "" is the top */
	uint32_t mode;            /* of the newer side */
	unsigned what;            /* enum delta_what */
};

struct delta {
	struct delta_file *files; /* by path */
	size_t n_files;
	struct delta_note *notes; /* by path */
	size_t n_notes;
	size_t files_cap, notes_cap;
};

void delta_done(struct delta *d);

struct delta_options {
	const char *const *paths; /* clean, from the top: only these paths and what is below them */
	size_t n_paths;           /* 0: all */
	/* If set, paths for which it returns true are left out. */
	bool (*leaves_out)(const char *path, const void *ctx);
	const void *leaves_out_ctx;
	bool renames; /* look for what moved */
};

/* Both are roots (root.h) and stay reachable until this returns.  -EBADMSG names the path. */
NODISCARD int delta_find(struct store *s, const struct object_id *before,
			 const struct object_id *after, const struct delta_options *options,
			 struct delta *ret, struct err *err);

/* The mode that git has for a file: 0100644, 0100755, 0120000. */
uint32_t delta_git_mode(uint32_t mode);
