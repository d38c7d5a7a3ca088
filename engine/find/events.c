#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/await.h"
#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "engine/find/engine-i.h"
#include "engine/find/event-i.h"
#include "engine/find/moved-i.h"

struct reading {
	const struct engine_events_options *options;
	char *dir; /* owned */
	int dir_fd;
	struct project project; /* without a path: every one */
	engine_event_fn fn;
	void *ctx;
	uint64_t seen; /* the number of the last event that was read */
	uint64_t file; /* that is read, by the number of its first event; 0: none yet */
	off_t at;      /* how far it was read */
	uint64_t *
	    tail; /* numbers of the wanted events, while they are only counted; NULL: they are not */
	size_t n_tail;
};

static void reading_done(struct reading *r)
{
	free(r->dir);
	project_done(&r->project);
	free(r->tail);
	cleanup_close(&r->dir_fd);
}

/* --- a line ----------------------------------------------------------------------------- */

static bool is_wanted(const struct reading *r, const struct engine_event *e, const char *project_id)
{
	return !r->project.path || moved_is_of(&r->project, project_id, e->project, e->time);
}

/* Of those that are only counted, the last ones are remembered in a ring. */
static int pass_on(struct reading *r, const struct engine_event *e, struct err *err)
{
	if (!r->tail)
		return r->fn(e, r->ctx, err);
	r->tail[r->n_tail++ % r->options->last] = e->n;
	return 0;
}

/* A damaged line hides none of the others. */
static int take_line(struct reading *r, const char *line, size_t len, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *project = NULL, *clone = NULL;
	struct err why = { 0 };
	const char *project_id = NULL;
	struct engine_event e;
	struct json j;

	if (json_parse(&doc, line, len, &j, &why) < 0) {
		log_warn("an event is damaged: %s, continuing", why.msg);
		return 0;
	}
	project = json_get_name_or_null(j, "project");
	clone = json_get_name_or_null(j, "clone");
	if (json_has(j, "project_id"))
		project_id = json_get_text(j, "project_id");
	e = (struct engine_event){
		.n = json_get_uint(j, "n"),
		.time = json_get_int(j, "time"),
		.kind = json_get_text(j, "kind"),
		.project = project,
		.clone = clone,
		.run = json_get_text_or_null(j, "run"),
	};
	e.data = json_text_of(json_get_object(j, "data"));
	if (json_end(&doc, &why) < 0) {
		log_warn("an event is damaged: %s, continuing", why.msg);
		return 0;
	}
	if (e.n <= r->seen)
		return 0;
	r->seen = e.n;
	return is_wanted(r, &e, project_id) ? pass_on(r, &e, err) : 0;
}

/* --- the files -------------------------------------------------------------------------- */

static int take_lines(struct reading *r, const struct buf *bytes, struct err *err)
{
	const char *at = (const char *)bytes->data, *const end = at + bytes->len, *line;

	/* Behind the last newline somebody is writing. */
	while (at < end && (line = memchr(at, '\n', (size_t)(end - at)))) {
		int x = take_line(r, at, (size_t)(line - at), err);

		if (x < 0)
			return x;
		r->at += line + 1 - at;
		at = line + 1;
	}
	return 0;
}

static int read_file(struct reading *r, uint64_t first, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = { 0 };
	AUTO_CLOSE int fd = event_open_file(r->dir_fd, first, O_RDONLY);
	off_t size;
	ssize_t n;

	/* It was the oldest, and is gone by now. */
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, fd, "opening the log of events: %s", strerror(-fd));
	if (first != r->file) {
		r->file = first;
		r->at = 0;
	}
	size = lseek(fd, 0, SEEK_END);
	if (size < 0)
		return err_sys(err, "reading the log of events");
	if (size <= r->at)
		return 0;
	if (buf_reserve(&bytes, (size_t)(size - r->at)) < 0)
		return err_nomem(err);
	n = fdio_pread(fd, bytes.data, (size_t)(size - r->at), r->at);
	if (n < 0)
		return err_set(err, (int)n, "reading the log of events");
	bytes.len = (size_t)n;
	return take_lines(r, &bytes, err);
}

/* All that is there by now. */
static int read_on(struct reading *r, struct err *err)
{
	uint64_t files[EVENTS_FILES_MAX + 1];
	int n = event_files(r->dir_fd, files);

	if (n < 0)
		return err_set(err, n, "the log of events: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		int x;

		if (files[i] < r->file || (i + 1 < n && files[i + 1] <= r->seen + 1))
			continue;
		x = read_file(r, files[i], err);
		if (x < 0)
			return x;
	}
	return 0;
}

static void rewind_to(struct reading *r, uint64_t seen)
{
	r->seen = seen;
	r->file = 0;
	r->at = 0;
}

/* Where to begin, so that no more than the last ones come. */
static int find_start(struct reading *r, struct err *err)
{
	const uint64_t since = r->seen, last = r->options->last;
	int x;

	if (last == 0)
		return 0;
	r->tail = calloc(last, sizeof(*r->tail));
	if (!r->tail)
		return err_nomem(err);
	x = read_on(r, err);
	if (x < 0)
		return x;
	rewind_to(r, r->n_tail > last ? r->tail[r->n_tail % last] - 1 : since);
	free(r->tail);
	r->tail = NULL;
	return 0;
}

static int count_lost(struct reading *r, uint64_t *ret, struct err *err)
{
	uint64_t files[EVENTS_FILES_MAX + 1];
	int n = event_files(r->dir_fd, files);

	if (n < 0)
		return err_set(err, n, "the log of events: %s", strerror(-n));
	*ret = n > 0 && files[0] > r->seen + 1 ? files[0] - r->seen - 1 : 0;
	return 0;
}

/* --- following -------------------------------------------------------------------------- */

static int follow(struct reading *r, struct err *err)
{
	AUTO_CLOSE int at = await_open();
	uint64_t watched = 0;
	int x = at < 0 ? at : await_names(at, r->dir);

	if (x < 0)
		return err_set(err, x, "following the events: %s", strerror(-x));
	for (;;) {
		x = read_on(r, err);
		if (x < 0)
			return x;
		if (r->file != watched) {
			AUTO_FREE char *path = path_join(r->dir, event_file_name(r->file).text);

			if (!path)
				return err_nomem(err);
			watched = r->file;
			/* What came before the watch is read at once. */
			if (await_file(at, path) >= 0)
				continue;
		}
		x = await_next(at, r->options->stop_fd, -1, NULL, NULL);
		if (x < 0)
			return err_set(err, x, "the events are not followed any more");
	}
}

/* --- the whole -------------------------------------------------------------------------- */

/* A store in which nothing happened yet has no log; followers wait for the first event. */
static int open_dir(struct reading *r, const struct engine *e, struct err *err)
{
	r->dir = path_join(e->store_path, r->options->calls ? CALLS_DIR : EVENTS_DIR);
	if (!r->dir)
		return err_nomem(err);
	if (r->options->follow && mkdir(r->dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", r->dir);
	r->dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->dir_fd < 0 && errno != ENOENT)
		return err_sys(err, "opening '%s'", r->dir);
	return r->dir_fd < 0 ? 0 : 1;
}

static int choose_project(struct reading *r, struct engine *e, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int x = engine_store(e, STORE_READ, &s, err);

	if (r->options->all || (x < 0 && x != -ENOENT))
		return x;
	x = engine_project(e, &s, &project, err);
	if (x < 0)
		return x;
	r->project = TAKE_STRUCT(project);
	return 0;
}

int engine_events(struct engine *e, const struct engine_events_options *options, uint64_t *ret_lost,
		  engine_event_fn fn, void *ctx, struct err *err)
{
	CLEANUP(reading_done) struct reading r = {
		.options = options, .dir_fd = -1, .fn = fn, .ctx = ctx, .seen = options->since
	};
	uint64_t lost = 0;
	int x = choose_project(&r, e, err);

	if (x == -ENOENT && options->all && !options->follow)
		x = 0;
	if (x < 0)
		return x;
	x = open_dir(&r, e, err);
	if (x > 0)
		x = count_lost(&r, &lost, err);
	if (ret_lost)
		*ret_lost = lost;
	if (x < 0 || r.dir_fd < 0)
		return x;
	x = find_start(&r, err);
	if (x < 0)
		return x;
	return options->follow ? follow(&r, err) : read_on(&r, err);
}

char *engine_project_here(struct engine *e, char id[ENGINE_ID_SIZE])
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;

	if (engine_project(e, &s, &project, NULL) < 0)
		return NULL;
	if (id)
		catalog_id_hex(&project.id, id);
	return TAKE_PTR(project.path);
}

struct newest {
	uint64_t n;
};

static int note_newest(const struct engine_event *e, void *ctx, struct err *err)
{
	((struct newest *)ctx)->n = e->n;
	return 0;
}

uint64_t engine_events_newest(const struct engine *e)
{
	const struct engine_events_options options = { .all = true, .stop_fd = -1 };
	struct newest newest = { 0 };
	CLEANUP(reading_done) struct reading r = {
		.options = &options, .dir_fd = -1, .fn = note_newest, .ctx = &newest
	};
	uint64_t files[EVENTS_FILES_MAX + 1];
	struct err why = { 0 };
	int n = open_dir(&r, e, &why);

	n = n > 0 ? event_files(r.dir_fd, files) : 0;
	if (n <= 0)
		return 0;
	/* A new file may have nothing in it yet. */
	newest.n = files[n - 1] - 1;
	IGNORE_RESULT(read_file(&r, files[n - 1], &why), "then the caller gets more than is new");
	return newest.n;
}
