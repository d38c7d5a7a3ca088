/*
 * watchdog.h - private to fuse/: ends connections that nobody answers any more.
 *
 * A hung FUSE mount hangs every program that touches it, df(1) included; an ended one gives them an
 * error. A mount hangs if its reader has been busy with one request, or the pool has had requests
 * of it and answered none, for WATCHDOG_LIMIT_MS.
 */
#pragma once

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/err.h"

#define WATCHDOG_LIMIT_MS 120000

struct mount;
struct watchdog;

/* A place in its list, inside of struct mount. */
struct watched {
	struct mount *before, *after;
};

NODISCARD int watchdog_new(unsigned limit_ms, struct watchdog **ret, struct err *err);
void watchdog_free(struct watchdog *w); /* watches nothing any more; NULL is fine */
DEFINE_CLEANUP(struct watchdog *, watchdog_free)

void watchdog_add(struct watchdog *w, struct mount *m);
void watchdog_remove(struct watchdog *w, struct mount *m); /* it is not looked at after this */
