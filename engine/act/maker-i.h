/*
 * maker-i.h - who makes a clone.
 */
#pragma once

#include "engine/api/clone.h"

/* The user whom this cowfsd serves, and through what (may be NULL).  -ENOMEM. */
NODISCARD int maker_note(struct engine_clone *c, const char *via);
