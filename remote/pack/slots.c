#include "remote/pack/slots.h"

#include <errno.h>
#include <stdlib.h>

#define CAP_MIN 64
#define CAP_MAX ((size_t)1 << 32) /* beyond that a hash leads to too few of them */

void slots_done(struct slots *s)
{
	free(s->list);
	*s = (struct slots){ 0 };
}

static void enter(struct slots *s, struct slot new)
{
	size_t at = new.hash &(s->cap - 1);

	while (s->list[at].number != 0)
		at = (at + 1) & (s->cap - 1);
	s->list[at] = new;
}

static int resize(struct slots *s, size_t cap)
{
	struct slots more = { .n = s->n, .cap = cap };

	if (cap > CAP_MAX)
		return -ENOMEM;
	more.list = calloc(cap, sizeof(*more.list));
	if (!more.list)
		return -ENOMEM;
	for (size_t i = 0; i < s->cap; i++)
		if (s->list[i].number != 0)
			enter(&more, s->list[i]);
	free(s->list);
	*s = more;
	return 0;
}

int slots_reserve(struct slots *s, size_t n)
{
	size_t cap = s->cap ? s->cap : CAP_MIN;

	while (cap / 2 < n)
		cap *= 2;
	return cap > s->cap ? resize(s, cap) : 0;
}

int slots_add(struct slots *s, uint32_t hash, size_t number)
{
	int r = slots_reserve(s, s->n + 1);

	if (r < 0 || number >= UINT32_MAX)
		return -ENOMEM;
	enter(s, (struct slot){ hash, (uint32_t)number + 1 });
	s->n++;
	return 0;
}
