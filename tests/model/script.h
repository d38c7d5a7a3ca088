/*
 * script.h - a sequence of operations on a directory, as data and as text.
 *
 * One operation a line: its name, its paths, its numbers, in the order that the table in
 * script.c says.  Paths are relative; bytes that would disturb a line are %XX.  A script
 * is made from a seed or read from a file, and means the same whatever came before, so that
 * lines can be left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define OP_PATHS   2
#define OP_NUMBERS 5
#define OP_SLOTS   6 /* files that can be open */

enum op_kind {
	OP_CREATE,     /* path: mode */
	OP_MKDIR,      /* path: mode */
	OP_MKFIFO,     /* path: mode */
	OP_SYMLINK,    /* path, target */
	OP_LINK,       /* path, new path */
	OP_UNLINK,     /* path */
	OP_RMDIR,      /* path */
	OP_RENAME,     /* path, new path: flags of renameat2(2) */
	OP_TRUNCATE,   /* path: size */
	OP_WRITE,      /* path: offset, length, seed */
	OP_APPEND,     /* path: length, seed */
	OP_READ,       /* path */
	OP_STAT,       /* path */
	OP_READLINK,   /* path */
	OP_READDIR,    /* path */
	OP_CHMOD,      /* path: mode */
	OP_CHOWN,      /* path: uid, gid */
	OP_UTIMENS,    /* path: atime s, ns, mtime s, ns */
	OP_SETXATTR,   /* path, name: length, seed, flags */
	OP_GETXATTR,   /* path, name */
	OP_RMXATTR,    /* path, name */
	OP_OPEN,       /* path: slot, flags */
	OP_TMPFILE,    /* path of a directory: slot */
	OP_NAME,       /* path: slot; link a file that is open */
	OP_CLOSE,      /* slot */
	OP_PWRITE,     /* slot, offset, length, seed */
	OP_PREAD,      /* slot, offset, length */
	OP_FTRUNCATE,  /* slot, size */
	OP_FALLOCATE,  /* slot, mode, offset, length */
	OP_MMAP_WRITE, /* slot, offset, length, seed */
	OP_COPY,       /* slot, slot, offset, offset, length */
	OP_SEEK,       /* slot, offset: data and holes agree with the bytes */
	OP_FSTAT,      /* slot */
	OP_FSYNC,      /* slot */
	OP_PAUSE,      /* milliseconds, in which the directory may save on its own */
	OP_SYNC,       /* what was done so far survives a kill; closes every slot */
	OP_SNAPSHOT,   /* path: the name of the snapshot */
	OP_ROLLBACK,   /* path: the name of the snapshot; closes every slot */
	OP_REMOUNT,    /* closes every slot */
	OP_KILL, /* some of what was done since the last sync may be gone; closes every slot */
	OP_KINDS
};

struct op_shape {
	const char *name;
	unsigned paths, numbers;
	unsigned weight; /* how often, in a made script */
};
extern const struct op_shape op_shapes[OP_KINDS];

struct op {
	enum op_kind kind;
	char path[OP_PATHS][600];
	int64_t n[OP_NUMBERS];
};

struct script {
	struct op *ops; /* owned */
	size_t n, cap;
};

void script_done(struct script *s);
NODISCARD int script_add(struct script *s, const struct op *op);

struct script_plan {
	uint64_t seed;
	size_t ops;
	bool snapshots; /* snapshot and rollback too */
	bool restarts;  /* remount and kill too */
	bool owners;    /* chown too */
};
NODISCARD int script_make(const struct script_plan *plan, struct script *ret);

NODISCARD int script_read(FILE *f, struct script *ret, struct err *err);
void script_write(const struct script *s, FILE *f);
void op_print(const struct op *op, FILE *f); /* one line */

/* Done by one request to a file system, so that a crash leaves all or nothing of it. */
bool op_is_atomic(const struct op *op);

/* Is there a kill from operation `from` on before the next sync? */
bool script_kills_before_sync(const struct script *s, size_t from);
