#include "engine/host/turns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct turn {
	struct turns *of;
	char name[];
};

void turns_init(struct turns *t)
{
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->given, NULL);
	t->held = MAP_INIT(map_hash_str, map_equal_str);
}

void turns_done(struct turns *t)
{
	assert(t->held.n == 0);
	map_done(&t->held);
	pthread_cond_destroy(&t->given);
	pthread_mutex_destroy(&t->lock);
}

int turns_take(struct turns *t, const char *name, struct turn **ret, struct err *err)
{
	const size_t size = strlen(name) + 1;
	struct turn *turn = malloc(sizeof(*turn) + size);
	void *other;
	int r;

	if (!turn)
		return err_nomem(err);
	turn->of = t;
	memcpy(turn->name, name, size);
	pthread_mutex_lock(&t->lock);
	while ((r = map_add(&t->held, turn->name, turn, &other)) > 0)
		pthread_cond_wait(&t->given, &t->lock);
	pthread_mutex_unlock(&t->lock);
	if (r < 0) {
		free(turn);
		return err_nomem(err);
	}
	*ret = turn;
	return 0;
}

void turn_give(struct turn *turn)
{
	struct turns *t;

	if (!turn)
		return;
	t = turn->of;
	pthread_mutex_lock(&t->lock);
	map_remove(&t->held, turn->name);
	pthread_cond_broadcast(&t->given);
	pthread_mutex_unlock(&t->lock);
	free(turn);
}
