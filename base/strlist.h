/*
 * strlist.h - a list of strings that owns them.
 *
 * It begins as { 0 }. After the first addition the list ends with NULL, as execve() wants it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct strlist {
	char **list; /* owned, with its strings */
	size_t n, cap;
};

void strlist_done(struct strlist *l); /* and it is empty */

/* Add a copy.  -ENOMEM, and nothing changed. */
NODISCARD int strlist_add(struct strlist *l, const char *text);

/* The same as a callback: `list` is a struct strlist. */
NODISCARD int strlist_add_to(const char *text, void *list);

/* The same with a string that becomes the list's, in any case; NULL: -ENOMEM. */
NODISCARD int strlist_take(struct strlist *l, char *text);

/* Into the order of strcmp(). */
void strlist_sort(struct strlist *l);

bool strlist_has(const struct strlist *l, const char *text);
