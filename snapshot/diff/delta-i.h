/*
 * delta-i.h - shared by the files behind delta.h.
 */
#pragma once

#include "snapshot/diff/delta.h"

/*
 * Make one renamed file of each that went and came again: with the same content, whatever
 * their number; with similar content, if there are few enough to compare each with each.
 */
NODISCARD int delta_find_renames(struct store *s, struct delta *d, struct err *err);
