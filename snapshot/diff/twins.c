#include "snapshot/diff/twins.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"

#define PAIRS ((size_t)1 << 16) /* 2 MiB */

/* The smaller id first; all zero: none. */
struct twin_pair {
	struct object_id a, b;
};

void twins_init(struct twins *t)
{
	*t = (struct twins){ 0 };
	pthread_mutex_init(&t->lock, NULL);
}

void twins_done(struct twins *t)
{
	free(t->list);
	pthread_mutex_destroy(&t->lock);
}

static struct twin_pair pair_of(const struct object_id *a, const struct object_id *b)
{
	return memcmp(a->b, b->b, OBJECT_ID_SIZE) < 0 ? (struct twin_pair){ *a, *b }
						      : (struct twin_pair){ *b, *a };
}

/* The one place where a pair can stand.  Ids are as good as random. */
static struct twin_pair *place_of(const struct twins *t, const struct twin_pair *p)
{
	return &t->list[(le64_load(p->a.b) + le64_load(p->b.b)) % PAIRS];
}

void twins_add(struct twins *t, const struct object_id *a, const struct object_id *b)
{
	const struct twin_pair pair = pair_of(a, b);

	LOCKED(&t->lock);
	if (!t->list)
		t->list = calloc(PAIRS, sizeof(*t->list));
	if (t->list)
		*place_of(t, &pair) = pair;
}

bool twins_has(struct twins *t, const struct object_id *a, const struct object_id *b)
{
	const struct twin_pair pair = pair_of(a, b);

	LOCKED(&t->lock);
	return t->list && memcmp(place_of(t, &pair), &pair, sizeof(pair)) == 0;
}
