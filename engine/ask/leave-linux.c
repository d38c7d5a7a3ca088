#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/ask/ask-i.h"
#include "runner/scope.h"

#define SCOPE_NAME "snapcow-cowfsd-%d.scope"

void launch_leave_group(void)
{
	char name[64];
	const struct scope_request request = {
		.name = name,
		.description = "snapcow: the process that serves a store",
		.pid = getpid(),
	};
	struct scope *s = NULL;
	struct err why = { 0 };

	snprintf(name, sizeof(name), SCOPE_NAME, (int)getpid());
	if (scope_open(NULL, &s, &why) < 0 || scope_ask(s, &request, &why) < 0 ||
	    scope_wait(s, &why) < 0)
		log_debug("cowfsd stays in the group of its starter: %s", why.msg);
	scope_close(s);
}
