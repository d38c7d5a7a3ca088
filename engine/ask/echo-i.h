/*
 * echo-i.h - have the kernel tell programs that watch files what cowfsd changed in a clone.
 *
 * The kernel tells them of what is done through it.  So each changed name is removed and made once
 * more through the mount; cowfsd, which knows this process by then, answers as if that were done and
 * does nothing.  What is in the clone, times included, stays as it is.
 */
#pragma once

#include "engine/ask/ask-i.h"

/* After an answer over that connection.  What fails is of no consequence for the change itself. */
void echo_perform(struct engine *e, struct control *c, struct json answer);
