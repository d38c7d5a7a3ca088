/*
 * moved.h - a command that finds no project, in the directory of one that moved.
 */
#pragma once

#include "cli/cmd.h"

/*
 * True if a project moved here for certain: the store knows it now, and a person has been told.  If
 * that is only likely, there is a hint.
 */
bool moved_adopt(struct invocation *inv);
