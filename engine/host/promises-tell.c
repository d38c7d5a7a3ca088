/*
 * Events of a capture in the background (docs/reference/events.md): its begin, each tenth of the
 * way but at most once a second, and its end.
 */
#include "engine/find/event-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define STEP      10 /* percent */
#define PAUSE_MS  1000
#define PATHS_MAX 20 /* that an event names; all are counted */

struct engine_capturing promising_news(const struct promising *c)
{
	return (struct engine_capturing){
		.open = promising_is_open(c),
		.files = c->record.files,
		.bytes = c->record.bytes,
		.done = c->ended ? c->record.files : c->done,
		.done_bytes = c->ended ? c->record.bytes : c->done_bytes,
		.lost = c->lost,
		.remote = c->record.remote != 0,
	};
}

static void begin(struct event *ev, const struct promising *c, const char *kind, const char *dir)
{
	char project[CATALOG_HEX_SIZE], snapshot[CATALOG_HEX_SIZE];

	event_begin(ev, kind,
		    (struct event_subject){
			.project = dir,
			.project_id = catalog_id_hex(&c->record.project, project),
		    });
	json_set_text(ev->data, "snapshot", catalog_id_hex(&c->record.snapshot, snapshot));
	json_set_uint(ev->data, "files", c->record.files);
	json_set_uint(ev->data, "bytes", c->record.bytes);
}

/* lock held; -1: it is not time to say anything */
static int next_percent(struct promising *c)
{
	const struct engine_capturing n = promising_news(c);
	const unsigned percent = engine_captured_percent(&n);
	const uint64_t now = engine_clock_ms();

	if (c->told_ms != 0 && (percent < c->told + STEP || now < c->told_ms + PAUSE_MS))
		return -1;
	c->told = percent;
	c->told_ms = now;
	return (int)percent;
}

void promising_tell(struct promising *c)
{
	AUTO_FREE char *dir = NULL;
	struct event ev;
	int percent;

	pthread_mutex_lock(&c->all->lock);
	percent = next_percent(c);
	dir = percent >= 0 && c->dir ? strdup(c->dir) : NULL;
	pthread_mutex_unlock(&c->all->lock);
	if (!dir)
		return;
	begin(&ev, c, "capturing", dir);
	json_set_uint(ev.data, "captured", (uint64_t)percent);
	event_end(&ev, c->all->host->dir);
}

void promising_tell_dropped(struct promising *c)
{
	struct event ev;

	begin(&ev, c, "capture-dropped", c->dir ? c->dir : "");
	json_set_uint(ev.data, "captured", c->told);
	event_end(&ev, c->all->host->dir);
}

void promising_tell_end(struct promising *c)
{
	struct event ev;
	struct json paths;
	size_t n = 0;

	begin(&ev, c, "captured", c->dir);
	json_set_uint(ev.data, "lost", c->lost);
	paths = json_set_array(ev.data, "paths");
	for (size_t i = 0; i < c->n && n < PATHS_MAX; i++)
		if (c->list[i]->state == PROMISE_LOST && c->list[i]->path) {
			json_add_name(paths, c->list[i]->path);
			n++;
		}
	event_end(&ev, c->all->host->dir);
}
