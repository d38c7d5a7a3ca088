#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/ask/ask-i.h"
#include "runner/scope.h"

#define SCOPE_NAME "snapcow-cowfsd-%d.scope"
#define MEM_PART   2 /* of the machine's memory, as MemoryMax=50% of the packaged unit */

struct leaving {
	struct scope *scope;
};

void leaving_free(struct leaving *l)
{
	if (l)
		scope_close(l->scope);
	free(l);
}

struct leaving *leaving_begin(pid_t child)
{
	char name[64];
	const struct scope_request request = {
		.name = name,
		.description = "snapcow: the process that serves a store",
		.pid = getpid(),
		.also = child,
		.mem_unit = sys_memory() / MEM_PART,
	};
	struct leaving *l = calloc(1, sizeof(*l));
	struct err why = { 0 };

	/* Named after the child, so that a second request does not clash with the first. */
	snprintf(name, sizeof(name), SCOPE_NAME, (int)child);
	if (l && scope_open(NULL, &l->scope, &why) >= 0 && scope_ask(l->scope, &request, &why) >= 0)
		return l;
	log_debug("cowfsd stays in the group of its starter: %s", why.msg);
	leaving_free(l);
	return NULL;
}

struct pollfd leaving_awaits(const struct leaving *l, int *ret_ms)
{
	return scope_awaits(l->scope, ret_ms);
}

int leaving_check(struct leaving *l, struct err *why)
{
	return scope_check(l->scope, why);
}
