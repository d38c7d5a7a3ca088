#include "engine/api/service.h"

#include <string.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

#define GONE_MS 5000

static struct engine_service described(const struct control_hello *hello)
{
	struct engine_service s = {
		.pid = hello->pid,
		.began = hello->began,
		.busy = hello->busy,
		.mounted = hello->mounted,
		.warm_ready = hello->warm_ready,
		.warm_taken = hello->warm_taken,
	};

	memcpy(s.version, hello->version, sizeof(s.version));
	memcpy(s.warm_clone, hello->warm_clone, sizeof(s.warm_clone));
	return s;
}

int engine_service(struct engine *e, struct engine_service *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	struct control_hello hello;
	int r = ask_greet(e, &c, &hello, err);

	if (r < 0)
		return r;
	*ret = described(&hello);
	return r;
}

int engine_start(struct engine *e, struct engine_service *ret, bool *ret_started, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	struct control_hello hello;
	bool started;
	int r = ask_connect(e, ASK_CREATE, &c, &hello, &started, err);

	if (r < 0)
		return r;
	*ret = described(&hello);
	*ret_started = started;
	return 0;
}

void engine_revive(struct engine *e)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	struct control_hello hello;
	struct err err = { 0 };
	bool started;

	if (launch_is_lost(e->store_path) &&
	    ask_connect(e, ASK_STORE, &c, &hello, &started, &err) < 0)
		log_warn("the clones are not mounted again: %s, continuing", err.msg);
}

int engine_serve(struct engine *e, struct err *err)
{
	return ask_become(e, err);
}

/* All versions understand this question. */
int engine_stop(struct engine *e, bool force, struct engine_service *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	CLEANUP(ask_done) struct ask a;
	struct control_hello hello;
	struct json answer;
	int r;

	ask_begin(&a, e, "stop");
	json_set_bool(a.options, "force", force);
	r = ask_greet(e, &c, &hello, err);
	if (r < 0)
		return r;
	r = ask_over(&a, e, &c, NULL, &answer, err);
	if (r < 0)
		return r;
	*ret = described(&hello);
	r = ask_wait_gone(e, err);
	if (r < 0)
		return r;
	/* The store is free, but its file system stays busy until the process has closed all files. */
	sys_wait_process((pid_t)hello.pid, GONE_MS);
	return r;
}
