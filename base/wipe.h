/*
 * wipe.h - free a secret, and leave nothing of it in memory.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"

void wipe_text(char *text); /* NULL is fine */
DEFINE_CLEANUP(char *, wipe_text)
void wipe_buf(struct buf *b); /* the buffer is then empty and usable */
