#include <errno.h>

#include "engine/ask/ask-i.h"

/* Here, no group of processes ends together. */
struct leaving *leaving_begin(pid_t child)
{
	return NULL;
}

struct pollfd leaving_awaits(const struct leaving *l, int *ret_ms)
{
	*ret_ms = 0;
	return (struct pollfd){ -1, 0, 0 };
}

int leaving_check(struct leaving *l, struct err *why)
{
	return err_set(why, -ENOTSUP, "there is no systemd here");
}

void leaving_free(struct leaving *l)
{
}
