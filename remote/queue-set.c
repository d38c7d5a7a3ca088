/*
 * What stands in the subject of a ticket: labels are small letters, digits and '-', so a capital
 * letter behind '_' begins a need.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/queue-i.h"

#define MIB (UINT64_C(1) << 20)

static void add_need(const struct queue_need *need, char to[QUEUE_SUBJECT_MAX])
{
	size_t len = strlen(to);

	if (need->mem > 0)
		len += (size_t)snprintf(to + len, QUEUE_SUBJECT_MAX - len, "_M%" PRIu64,
					need->mem / MIB + (need->mem % MIB > 0));
	if (need->cpus_milli > 0 && len < QUEUE_SUBJECT_MAX)
		snprintf(to + len, QUEUE_SUBJECT_MAX - len, "_C%" PRIu64, need->cpus_milli);
}

void queue_set(const struct strlist *labels, const struct queue_need *need,
	       char to[QUEUE_SUBJECT_MAX])
{
	size_t len = 0;

	snprintf(to, QUEUE_SUBJECT_MAX, "any");
	for (size_t i = 0; i < labels->n && len < QUEUE_SUBJECT_MAX; i++)
		len += (size_t)snprintf(to + len, QUEUE_SUBJECT_MAX - len, "%s%s", i > 0 ? "_" : "",
					labels->list[i]);
	add_need(need, to);
}

/* "_M512": the digits behind its letter; returns what follows, or `at` if there is none. */
static const char *read_part(const char *at, char letter, uint64_t *ret)
{
	char *end;

	if (at[0] != '_' || at[1] != letter || at[2] < '1' || at[2] > '9')
		return at;
	*ret = strtoull(at + 2, &end, 10);
	return end;
}

size_t queue_set_read(const char *set, struct queue_need *ret_need)
{
	struct queue_need need = { 0 };
	const size_t capital = strcspn(set, "MC");
	const size_t len = set[capital] == '\0' ? capital : capital > 0 ? capital - 1 : 0;
	const char *at = read_part(set + len, 'M', &need.mem);

	at = read_part(at, 'C', &need.cpus_milli);
	if (*at != '\0' || need.mem > UINT64_MAX / MIB)
		return 0;
	need.mem *= MIB;
	*ret_need = need;
	return len;
}
