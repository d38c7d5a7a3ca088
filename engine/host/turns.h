/*
 * turns.h - one at a time for each name.
 *
 * Work on the same project or the same clone waits for its turn; other work does not. Nobody takes
 * a second turn while holding one, so there is no deadlock.
 */
#pragma once

#include <pthread.h>

#include "base/err.h"
#include "base/map.h"

struct turns {
	pthread_mutex_t lock; /* guards `held`; nothing is taken while it is held */
	pthread_cond_t given;
	struct map held; /* struct turn by name */
};

void turns_init(struct turns *t);
void turns_done(struct turns *t); /* nobody may hold one */

/* Wait for the turn of `name`, which is copied. */
struct turn;
NODISCARD int turns_take(struct turns *t, const char *name, struct turn **ret, struct err *err);
void turn_give(struct turn *turn); /* NULL is fine */

static inline void turn_give_p(struct turn **turn)
{
	turn_give(*turn);
}
