#include "base/strlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void strlist_done(struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i]);
	free(l->list);
	*l = (struct strlist){ 0 };
}

int strlist_take(struct strlist *l, char *text)
{
	/* One more than that, for the NULL. */
	if (!text || !VEC_ROOM(l->list, l->n + 1, l->cap)) {
		free(text);
		return -ENOMEM;
	}
	l->list[l->n++] = text;
	l->list[l->n] = NULL;
	return 0;
}

int strlist_add(struct strlist *l, const char *text)
{
	return strlist_take(l, strdup(text));
}

int strlist_add_to(const char *text, void *list)
{
	return strlist_add(list, text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *l)
{
	VEC_SORT(l->list, l->n, by_text);
}

bool strlist_has(const struct strlist *l, const char *text)
{
	return VEC_HAS(it, l->list, l->n, strcmp(*it, text) == 0);
}
