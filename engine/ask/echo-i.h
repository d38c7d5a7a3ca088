/*
 * echo-i.h - make the kernel notify programs that watch files of changes that cowfsd made in a
 * clone.
 *
 * The kernel only reports changes that are made through it. So each changed name is removed and
 * created again through the mount. cowfsd knows this process by then and only pretends to do it, so
 * the clone, times included, stays as it is.
 */
#pragma once

#include "engine/ask/ask-i.h"

/* After an answer over that connection.  What fails is of no consequence for the change itself. */
void echo_perform(struct engine *e, struct control *c, struct json answer);
