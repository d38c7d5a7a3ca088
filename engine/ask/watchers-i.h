/*
 * watchers-i.h - does any program watch files of a mount?
 */
#pragma once

#include <stdbool.h>

/*
 * False if certainly no program of this user, or as root of any, has a watch on the file system of
 * `top`.  Looks at every descriptor of every process: some ten milliseconds.
 */
bool watchers_possible(int top);
