#include "engine/run/run-trees.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct object_id));
}

int trees_add(struct trees *t, const struct object_id *id)
{
	if (!VEC_ROOM(t->list, t->n, t->cap))
		return -ENOMEM;
	t->list[t->n++] = *id;
	return 0;
}

void trees_sort(struct trees *t)
{
	VEC_SORT(t->list, t->n, by_id);
	t->sorted = t->n;
}

bool trees_have(const struct trees *t, const struct object_id *id)
{
	return t->sorted > 0 && bsearch(id, t->list, t->sorted, sizeof(*id), by_id);
}

void trees_forget(struct trees *t)
{
	t->n = t->sorted = 0;
}
