/*
 * count.h - how many names a directory holds, counted in a thread beside its first capture.
 *
 * A capture without signatures cannot know how much is left to do. A walk that only lists names
 * ends long before one that reads files; from then on the capture knows what share is done. It is
 * an estimate, for people: names may come and go meanwhile.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/cleanup.h"

struct count;

/* Counts from now on, without `exclude` and what is below it.  NULL: it cannot, and nothing depends on it. */
struct count *count_begin(const char *path, const char *exclude);

/* Directories, the first one too, and all other names; 0: not yet, or it cannot be known (.snapignore). */
uint64_t count_total(const struct count *c);

void count_end(struct count *c); /* stops it if need be; NULL is fine */
