#include <string.h>

#include "remote/queue.h"

bool queue_word_valid(const char *word)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	const size_t len = strlen(word);

	return len > 0 && len <= QUEUE_NAME_MAX && strspn(word, fine) == len && word[0] != '-';
}

bool queue_need_fits(const struct queue_need *need, const struct queue_need *room)
{
	return need->mem <= room->mem && need->cpus_milli <= room->cpus_milli;
}
