/*
 * echo-i.h - have the kernel tell programs that watch files what cowfsd changed in a clone.
 *
 * The kernel only reports changes that are made through it.  So each changed name is removed and made
 * again through the mount.  cowfsd knows this process by then and only pretends to do it, so the
 * clone, times included, stays as it is.
 */
#pragma once

#include "engine/ask/ask-i.h"

/* After an answer over that connection.  What fails is of no consequence for the change itself. */
void echo_perform(struct engine *e, struct control *c, struct json answer);
