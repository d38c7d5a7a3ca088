/*
 * image-i.h - engine_import() and engine_image_remove(), done by cowfsd.
 */
#pragma once

#include "engine/api/image.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

/* `fd` gives a stream (image/stream.h) and is borrowed.  What is stored before a failure has no name. */
NODISCARD int image_import(struct task *task, const struct import_ask *ask, int fd,
			   const struct engine_watch *watch, struct engine_imported *ret,
			   struct err *err);

NODISCARD int image_remove(struct task *task, const char *name, bool force,
			   struct engine_image *ret, struct err *err);
