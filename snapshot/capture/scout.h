/*
 * scout.h - is there much to read? A thread beside a first capture finds out.
 *
 * A walk that only looks at sizes ends long before one that reads. It is an estimate: it counts no
 * files that a .snapignore might leave out, and none on other devices.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/cleanup.h"

struct scout;

struct scout_options {
	uint64_t enough; /* the question is whether there are more bytes than these */
	bool (*excludes)(const void *ctx,
			 const struct stat *st); /* directories not to be entered */
	const void *ctx;
};

/* What of a regular file would have to be read: no holes, and of several names each has its share. */
uint64_t scout_bytes(const struct stat *st);

/* Begin with the directory that is open as `top`, which is borrowed.  NULL: nobody will know. */
struct scout *scout_begin(int top, const struct scout_options *options);

/* 1: there are more.  0: there are not, or it cannot be said.  -EAGAIN: not known within these milliseconds. */
NODISCARD int scout_ask(struct scout *s, unsigned wait_ms);

void scout_stop(struct scout *s); /* soon: the answer is 0 then; NULL is fine */
void scout_end(struct scout *s);  /* stops it if need be; NULL is fine */
