#include "runner/subid.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"

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

void subid_read(const char *text, const char *name, uid_t uid, uint32_t most, struct subid *ret)
{
	*ret = (struct subid){ 0 };
	while (text && *text) {
		const size_t len = strcspn(text, "\n");
		unsigned long long first, count;
		char owner[NAME_MAX_LEN];

		if (len < sizeof(owner) + 32 &&
		    sscanf(text, "%255[^:\n]:%10llu:%10llu", owner, &first, &count) == 3 &&
		    is_mine(owner, name, uid))
			add(ret, first, count, most);
		text += len + (text[len] == '\n');
	}
}
