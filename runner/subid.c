#include "runner/subid.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define NAME_MAX_LEN 256

static bool is_mine(const char *owner, const char *name, uid_t uid)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", (unsigned int)uid);
	return (name && strcmp(owner, name) == 0) || strcmp(owner, number) == 0;
}

static void add(struct subid *s, unsigned long long first, unsigned long long count, uint32_t most)
{
	const unsigned long long room = most - s->total;

	/* (uid_t)-1 is no id, and an id of 0 would be root's own. */
	if (first == 0 || first + count > UINT32_MAX || s->n == ARRAY_LEN(s->list))
		return;
	if (count > room)
		count = room;
	if (count == 0)
		return;
	s->list[s->n++] = (struct subid_range){ (uint32_t)first, (uint32_t)count };
	s->total += (uint32_t)count;
}

struct line {
	char owner[NAME_MAX_LEN];
	unsigned long long first, count;
};

/* Take the next line that gives somebody a range; false: there is none. */
static bool next_line(const char **text, struct line *ret)
{
	while (*text && **text) {
		char line[NAME_MAX_LEN + 32]; /* sscanf() measures all that it is given */
		const size_t len = strcspn(*text, "\n");
		const bool fits = len < sizeof(line);

		memcpy(line, *text, fits ? len : 0);
		line[fits ? len : 0] = '\0';
		*text += len + ((*text)[len] == '\n');
		if (sscanf(line, "%255[^:\n]:%10llu:%10llu", ret->owner, &ret->first,
			   &ret->count) == 3)
			return true;
	}
	return false;
}

void subid_read(const char *text, const char *name, uid_t uid, uint32_t most, struct subid *ret)
{
	struct line line;

	*ret = (struct subid){ 0 };
	while (next_line(&text, &line))
		if (is_mine(line.owner, name, uid))
			add(ret, line.first, line.count, most);
}

struct range {
	unsigned long long first, count;
};

struct ranges {
	struct range *list;
	size_t n, cap;
};

static void ranges_done(struct ranges *r)
{
	free(r->list);
}

static int by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

uint32_t subid_free(const char *text, uint32_t from, uint32_t count)
{
	CLEANUP(ranges_done) struct ranges all = { 0 };
	unsigned long long at = from;
	struct line line;

	while (next_line(&text, &line)) {
		if (!VEC_ROOM(all.list, all.n, all.cap))
			return 0;
		all.list[all.n++] = (struct range){ line.first, line.count };
	}
	VEC_SORT(all.list, all.n, by_first);
	/* A range in the way moves us behind it, and then later ones may be in the way. */
	for (size_t i = 0; i < all.n && all.list[i].first < at + count; i++) {
		const unsigned long long end = all.list[i].first + all.list[i].count;

		if (all.list[i].count > 0 && end > at)
			at = end;
	}
	return at + count <= UINT32_MAX ? (uint32_t)at : 0;
}
