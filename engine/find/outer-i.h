/*
 * outer-i.h - a folder that is about to be a project, inside one that looks more like it.
 *
 * Without git nothing says where a project ends. The command's working directory is taken; if one
 * above it has a file that projects have at their top, the user may have meant that.
 */
#pragma once

#include "engine/find/engine-i.h"

/* Has it such a file itself?  Then it is what was meant. */
bool outer_is_marked(const char *dir);

/* The nearest such folder above `dir`, owned, and the file's name; NULL if there is none. */
char *outer_find(const struct engine *e, const char *dir, const char **ret_mark);
