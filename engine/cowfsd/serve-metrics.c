#include "engine/act/metrics-i.h"
#include "engine/api/metrics.h"
#include "engine/cowfsd/verbs-i.h"

int serve_metrics(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	struct engine_daemon_metrics m = { 0 };
	int r;

	r = metrics_collect(task->host, &m, err);
	r = serve_fields(r, answer, &wire_metrics, &m);
	fields_done(&wire_metrics, &m);
	return r;
}
