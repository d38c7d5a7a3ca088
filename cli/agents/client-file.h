/*
 * client-file.h - a file of a client's own, below the home directory, changed with care.
 *
 * The earlier file is kept beside it, under its name and CLIENT_BACKUP. If the file is a link, its
 * target is changed, not the link.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

#define CLIENT_BACKUP ".before-snap"

/* Owned: below the home directory, or for what is in ".config" below $XDG_CONFIG_HOME; NULL: nobody knows. */
char *client_path(const char *path);

/* The same without symlinks if there is such a file.  `title`: whose file it is. */
NODISCARD int client_find(const char *title, const char *path, char **ret, struct err *err);

/* Its text; a file that is not there is empty. */
NODISCARD int client_read(const char *file, struct buf *ret, bool *ret_there, struct err *err);

bool client_same_text(const struct buf *a, const struct buf *b);

/* The text as it is to be, appended to `ret`; -ENOENT: there is nothing to change. */
typedef int (*client_edit_fn)(const struct buf *text, void *ctx, struct buf *ret, struct err *err);

struct client_edit {
	const char *title, *path; /* as client_find() takes them */
	client_edit_fn fn;
	void *ctx;
	bool dry_run;   /* write nothing */
	bool no_backup; /* somebody has just made one */
};

/*
 * 0 if the file was changed, or would be; 1 if nothing had to be.  *ret_file and *ret_backup (NULL: none
 * was made) are owned.
 */
NODISCARD int client_change(const struct client_edit *edit, char **ret_file, char **ret_backup,
			    struct err *err);
