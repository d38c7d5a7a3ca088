/*
 * play.h - do a script to both sides and compare.
 *
 * The directory under test may have states: a hook command does `snapshot NAME`,
 * `rollback NAME`, `remount` and `kill` to it (the last: end its server without
 * warning, and bring it back).  The reference has copies instead.
 */
#pragma once

#include "tests/model/script.h"

struct play {
	const char *dir, *ref; /* borrowed; "model" is made and emptied in both */
	const char *hook;      /* a shell command that gets its words behind it, or NULL */
	size_t every;          /* compare everything after so many operations */
	bool quiet;            /* nothing but the result */
	bool rollback_closes;  /* a rollback is a new mount: nothing may be open meanwhile */
	/* Of the last script: operations that succeeded and that did not, kills, kills that lost some. */
	size_t done, failed, kills, lost;
	unsigned runs; /* private: names snapshots apart */
};

/*
 * 0 if the sides agreed to the end.  -EBADMSG with a sentence if they did not, and
 * *ret_at is how many operations it took; anything else means that it could not be tried.
 */
NODISCARD int play_script(struct play *p, const struct script *s, size_t *ret_at, struct err *err);

/*
 * Leave out of a script that fails whatever it fails without, in at most that many tries.
 * `s` becomes the shorter one.
 */
NODISCARD int play_shrink(struct play *p, struct script *s, unsigned tries, struct err *err);
