/*
 * recall-i.h - the signatures that the last survey used, so that the next need not read and verify
 * them again.
 *
 * They are found by their file, and count until it was replaced or written. A user takes them
 * alone, and gives them back. They are bounded and belong to one project; without them the file is
 * read.
 */
#pragma once

#include <sys/stat.h>

#include "base/lock.h"
#include "snapshot/capture/signatures.h"

#define RECALL_MAX ((size_t)4 << 20) /* bytes; some 30,000 names */

struct recall {
	pthread_mutex_t lock;     /* guards what follows; a leaf */
	struct signatures *known; /* owned; NULL: none, or taken */
	struct stat file;         /* that they came from */
};

void recall_init(struct recall *r);
void recall_done(struct recall *r);

/* The signatures of this file, owned by the caller; NULL: read the file. */
NODISCARD struct signatures *recall_take(struct recall *r, const struct stat *file);

/* Takes them; NULL is fine. */
void recall_give(struct recall *r, struct signatures *known, const struct stat *file);
