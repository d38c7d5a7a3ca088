#include "engine/run/run-after.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/ask/detach-i.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"
#include "engine/run/run-events.h"
#include "engine/wire/control-i.h"

#define SENDING_S \
	60 /* then the process that sends is ended; what it has not sent goes with the next run */

struct sending {
	const char *self, *log; /* the program, and where it complains */
	char *const *argv;
};

/* It keeps no descriptor of ours: the record's lock and the clone's connection end with the run. */
NORETURN static void become_sender(void *ctx)
{
	const struct sending *s = ctx;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log = open(s->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	sigset_t none;

	if (log < 0)
		log = null;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Nor the directory, which may be on something that is to be unmounted. */
	if (chdir("/") < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(1);
	sys_close_from(STDERR_FILENO + 1);
	alarm(SENDING_S);
	execv(s->self, s->argv);
	_exit(1);
}

static bool has_collector(const struct engine *e)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);
	CLEANUP(config_done) struct config config = { 0 };

	/* A file that cannot be understood was said to be so before the run. */
	return path && config_read(path, &config, NULL) >= 0 && config.otlp;
}

static void send_span(struct engine *e)
{
	char path[PATH_MAX], name[] = "snapcow", store[] = "--store", quiet[] = "--quiet",
			     command[] = "metrics", send[] = "--send", wait[] = "--wait";
	AUTO_FREE char *log = path_join(e->store_path, CONTROL_LOG);
	AUTO_FREE char *dir = strdup(e->store_path);
	char *argv[] = { name, store, dir, quiet, command, send, wait, NULL };
	const struct sending s = {
		.self = sys_self_path(path, sizeof(path)),
		.log = log,
		.argv = argv,
	};
	struct err err = { 0 };

	if (!log || !dir || !s.self || !has_collector(e))
		return;
	/* It becomes another program at once, so the store may stay open here. */
	if (detach_process(NULL, "the span of the run", become_sender, (void *)(uintptr_t)&s,
			   &err) < 0)
		log_warn("%s, continuing", err.msg);
}

void run_after_end(struct engine *e, struct run_record *record, struct engine_run *run)
{
	struct err err = { 0 };

	if (run_record_end(record, run, &err) < 0)
		log_warn("%s, continuing", err.msg);
	run_event_ended(e->store_path, run);
	runs_tidy(e, record->logged[0] + record->logged[1]);
	send_span(e);
}
