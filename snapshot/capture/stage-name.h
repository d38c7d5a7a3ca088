/*
 * stage-name.h - the name of the directory, inside a project, in which apply works.
 *
 * A capture leaves that directory out, so the name is defined here, below both.
 */
#pragma once

#include <stdbool.h>

#define STAGE_NAME_PREFIX ".snapcow-stage-" /* and an id */
#define STAGE_ID_SIZE     17                /* 16 hex digits and a NUL */

/* Others, as what a crash left beside a journal, are none. */
bool stage_is_id(const char *name);

/* Is this the name of any act's stage? */
bool stage_is_name(const char *name);
