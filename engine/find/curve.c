#include "engine/find/curve-i.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"

#define FILE_MAX ((size_t)1 << 20) /* bytes; a year's samples are fewer */

int curve_append(struct buf *out, const struct engine_sample *s)
{
	char line[128];
	const int n = snprintf(line, sizeof(line),
			       "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			       s->at_ms, s->cpu_ms, s->memory, s->written, s->processes);

	return buf_append(out, line, (size_t)n);
}

/* Whatever stands there, time and counters must not go back: who draws them divides by the difference. */
static bool follows(const struct engine_curve *c, const struct engine_sample *s)
{
	const struct engine_sample *last = c->n > 0 ? &c->list[c->n - 1] : NULL;

	return !last ||
	       (s->at_ms > last->at_ms && s->cpu_ms >= last->cpu_ms && s->written >= last->written);
}

void curve_read(const char *text, struct engine_curve *ret)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		struct engine_sample s;

		if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "\n",
			   &s.at_ms, &s.cpu_ms, &s.memory, &s.written, &s.processes) == 5 &&
		    follows(ret, &s))
			engine_curve_add(ret, &s);
	}
}

static int read_file(const char *store, const char *id, struct engine_curve *ret, struct err *err)
{
	AUTO_FREE char *path = run_record_path(store, id, RUN_RECORD_USE);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = path ? fdio_read_file(AT_FDCWD, path, FILE_MAX, &text, err) : err_nomem(err);

	if (r < 0)
		return r;
	if (!buf_str(&text))
		return err_nomem(err);
	curve_read(buf_str(&text), ret);
	return 0;
}

int engine_run_curve(struct engine *e, const struct engine_run *run, struct engine_curve *ret,
		     struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run now = { 0 };
	int r = 0;

	*ret = (struct engine_curve){ 0 };
	if (run->curve)
		curve_read(run->curve, ret);
	else
		r = read_file(e->store_path, run->id, ret, err);
	if (r != -ENOENT)
		return r;
	/* It was too short to be looked at, or it has ended since `run` was read. */
	if (run->state == ENGINE_RUN_RUNNING &&
	    run_record_read(e->store_path, run->id, &now, NULL) >= 0 && now.curve)
		curve_read(now.curve, ret);
	return 0;
}
