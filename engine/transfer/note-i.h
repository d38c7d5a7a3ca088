/*
 * note-i.h - what this store remembers of remotes: files in its directory that may be removed at any
 * time.
 */
#pragma once

#include "base/json.h"
#include "engine/find/engine-i.h"

/* 1 if the file is a JSON object, else 0. */
int note_read(int dir, const char *path, struct json_doc *doc, struct json *ret);

/* The one of that key in a directory of the store.  1 if there is one, else 0. */
NODISCARD int note_load(struct engine *e, const char *dir, const char *key, struct json_doc *doc,
			struct json *ret, struct err *err);
/* One that cannot be written is a warning. */
void note_save(struct engine *e, const char *dir, const char *key, const struct json_doc *doc);
