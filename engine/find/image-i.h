/*
 * image-i.h - images in the catalog: a hidden project for each name, whose newest snapshot is the
 * image.
 *
 * The project's path is STORE/images/NAME, where nothing ever is, so code that reads or writes a
 * project finds no directory. Only the last part counts, so a store may be moved.
 */
#pragma once

#include "engine/api/image.h"
#include "engine/find/engine-i.h"

#define IMAGES_DIR "images"

/* May an image have this name?  -EINVAL with a sentence if not. */
NODISCARD int image_check_name(const char *name, struct err *err);

/* The project of that name; -ENOENT without a sentence if there is none. */
NODISCARD int image_project(struct store *s, const char *name, struct project *ret,
			    struct err *err);

/* The snapshot that the name means now; -ENOENT without a sentence. */
NODISCARD int image_snapshot(struct store *s, const char *name, struct snapshot *ret,
			     struct err *err);

/* -ECANCELED with a sentence if it is of an image: no directory can be "promoted to", or whatever. */
NODISCARD int image_refuse(const struct clone *c, const struct project *p, const char *done,
			   struct err *err);

/* The path that the project of such an image has; owned, NULL: no memory. */
char *image_path(const struct engine *e, const char *name);
