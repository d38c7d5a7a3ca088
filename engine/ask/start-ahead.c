/*
 * A child connects to cowfsd as any other command would, and ends. The command continues, and waits
 * for the child at the lock that is taken to start cowfsd.
 */
#include "engine/ask/start-ahead-i.h"

#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/api/service.h"
#include "engine/ask/ask-i.h"
#include "engine/ask/detach-i.h"

NORETURN static void start(void *ctx)
{
	struct engine_service service;
	struct err err = { 0 };
	bool started;

	/* Locks of the command must not outlive it. */
	sys_close_from(STDERR_FILENO + 1);
	_exit(engine_start(ctx, &service, &started, &err) < 0);
}

void start_ahead(struct engine *e)
{
	struct err err = { 0 };

	if (ask_finds_none(e) && detach_process(e, "cowfsd", start, e, &err) < 0)
		log_debug("%s; it is started later", err.msg);
}
