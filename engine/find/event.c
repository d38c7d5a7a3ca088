#include "engine/find/event-i.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/find/engine-i.h"

#define NAME_LEN 16

/* --- the files -------------------------------------------------------------------------- */

struct event_file_name event_file_name(uint64_t first)
{
	struct event_file_name n;

	snprintf(n.text, sizeof(n.text), "%016" PRIx64, first);
	return n;
}

struct listing {
	uint64_t *list;
	int n;
};

/* Keeps the list sorted; of too many files the lowest are left out. */
static int list_one(const char *name, unsigned char type, void *ctx)
{
	struct listing *l = ctx;
	char *end;
	const uint64_t first = strtoull(name, &end, 16);
	int at = 0;

	if (end != name + NAME_LEN || *end != '\0' || first == 0)
		return 0;
	if (l->n == EVENTS_FILES_MAX + 1) {
		if (first < l->list[0])
			return 0;
		memmove(l->list, l->list + 1, (size_t)--l->n * sizeof(*l->list));
	}
	while (at < l->n && l->list[at] < first)
		at++;
	memmove(l->list + at + 1, l->list + at, (size_t)(l->n++ - at) * sizeof(*l->list));
	l->list[at] = first;
	return 0;
}

int event_files(int dir_fd, uint64_t ret[EVENTS_FILES_MAX + 1])
{
	struct listing l = { .list = ret };
	/* Reading a directory moves its position, so every listing has a descriptor of its own. */
	AUTO_CLOSE int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : sys_each_name(fd, list_one, &l);

	return r < 0 ? r : l.n;
}

int event_open_file(int dir_fd, uint64_t first, int flags)
{
	int fd = openat(dir_fd, event_file_name(first).text, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

/* --- writing ---------------------------------------------------------------------------- */

struct writing {
	int dir_fd, fd;
	uint64_t n;                 /* the number that is next */
	struct event_head head;     /* as the last writer left it */
	uint64_t first;             /* the lowest that is kept */
	off_t size;                 /* of the newest file */
	char prev[SHA256_HEX_SIZE]; /* digest of the last line; "": none is known */
};

static void writing_done(struct writing *w)
{
	cleanup_close(&w->fd);
	cleanup_close(&w->dir_fd);
}

static int lock_log(struct writing *w, const char *store, const char *log, struct err *err)
{
	AUTO_FREE char *dir = path_join(store, log);

	if (!dir)
		return err_nomem(err);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", dir);
	w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->dir_fd < 0)
		return err_sys(err, "opening '%s'", dir);
	while (flock(w->dir_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, "locking '%s'", dir);
	return 0;
}

void event_digest(const void *line, size_t len, char hex[SHA256_HEX_SIZE])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, line, len);
	sha256_end_hex(&s, hex);
}

#define HEAD_FORM "%016" PRIx64 " %016" PRIx64 " %s\n"
#define HEAD_SIZE (16 + 1 + 16 + 1 + SHA256_HEX_SIZE)

void event_head_read(int dir_fd, struct event_head *ret)
{
	AUTO_CLOSE int fd = openat(dir_fd, EVENTS_HEAD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[HEAD_SIZE + 1];
	ssize_t n = fd < 0 ? 0 : fdio_read(fd, text, HEAD_SIZE);

	*ret = (struct event_head){ 0 };
	text[n > 0 ? n : 0] = '\0';
	if (n != HEAD_SIZE || sscanf(text, "%16" SCNx64 " %16" SCNx64 " %64[0-9a-f]", &ret->n,
				     &ret->first, ret->digest) != 3)
		*ret = (struct event_head){ 0 };
}

/* The head always has the same length, so it is written in its place.  `sync`: the disk has it first. */
static int write_head(const struct writing *w, const struct event_head *head, bool sync,
		      struct err *err)
{
	AUTO_CLOSE int fd =
	    openat(w->dir_fd, EVENTS_HEAD, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	char text[HEAD_SIZE + 1];
	int r;

	if (fd < 0)
		return err_sys(err, "opening the head of the log");
	snprintf(text, sizeof(text), HEAD_FORM, head->n, head->first, head->digest);
	r = fdio_pwrite(fd, text, HEAD_SIZE, 0);
	if (r >= 0 && sync)
		r = sys_sync_data(fd);
	return r < 0 ? err_set(err, r, "writing the head of the log: %s", strerror(-r)) : 0;
}

/* The last newline in s[0..len); NULL: there is none. */
static const char *last_newline(const char *s, size_t len)
{
	while (len > 0 && s[len - 1] != '\n')
		len--;
	return len > 0 ? s + len - 1 : NULL;
}

/* The number of the last whole line; what a dying writer left behind it is cut off. */
static int read_tail(struct writing *w, uint64_t first, struct err *err)
{
	char tail[EVENTS_LINE_MAX + 2];
	const off_t max = sizeof(tail) - 1, from = w->size > max ? w->size - max : 0;
	const ssize_t len = fdio_pread(w->fd, tail, (size_t)max, from);
	const char *end, *line;
	uint64_t n;

	if (len < 0)
		return err_set(err, (int)len, "reading the last event");
	tail[len] = '\0';
	end = last_newline(tail, (size_t)len);
	if (!end && from == 0) {
		w->n = first;
		w->size = 0;
		return ftruncate(w->fd, 0) < 0 ? err_sys(err, "cutting the log of events") : 0;
	}
	line = end ? last_newline(tail, (size_t)(end - tail)) : NULL;
	line = line ? line + 1 : tail;
	if (!end || sscanf(line, "{\"n\":%" SCNu64, &n) != 1 || n < first)
		return err_set(err, -EBADMSG, "the last event in '%s' is damaged",
			       event_file_name(first).text);
	w->n = n + 1;
	event_digest(line, (size_t)(end + 1 - line), w->prev);
	if (from + (end + 1 - tail) == w->size)
		return 0;
	w->size = from + (end + 1 - tail);
	return ftruncate(w->fd, w->size) < 0 ? err_sys(err, "cutting the log of events") : 0;
}

static int open_newest(struct writing *w, uint64_t first, struct err *err)
{
	struct stat st;

	w->fd = event_open_file(w->dir_fd, first, O_RDWR | O_CREAT | O_APPEND);
	if (w->fd < 0)
		return err_set(err, w->fd, "opening the log of events: %s", strerror(-w->fd));
	if (fstat(w->fd, &st) < 0)
		return err_sys(err, "the log of events");
	w->size = st.st_size;
	return 0;
}

/*
 * The head announces the removal first.  If a file is gone without that, an audit reports that somebody
 * removed it.
 */
static int remove_oldest(struct writing *w, const uint64_t files[2], struct err *err)
{
	int r;

	w->first = w->head.first = files[1];
	r = w->head.n > 0 ? write_head(w, &w->head, true, err) : 0;
	if (r < 0)
		return r;
	return unlinkat(w->dir_fd, event_file_name(files[0]).text, 0) < 0
		   ? err_sys(err, "removing the oldest events")
		   : 0;
}

/*
 * A new file begins with the next number.  Behind a file with a damaged end that number is not known:
 * as no file holds more events than it may hold bytes, one beyond all of them is taken.
 */
static int open_log(struct writing *w, struct err *err)
{
	uint64_t files[EVENTS_FILES_MAX + 1] = { 0 };
	int n = event_files(w->dir_fd, files), r;

	if (n < 0)
		return err_set(err, n, "the log of events: %s", strerror(-n));
	event_head_read(w->dir_fd, &w->head);
	w->first = w->head.n > 0 ? w->head.first : n > 0 ? files[0] : 1;
	r = open_newest(w, n > 0 ? files[n - 1] : 1, err);
	if (r < 0)
		return r;
	r = read_tail(w, n > 0 ? files[n - 1] : 1, err);
	if (r == -EBADMSG) {
		log_warn("%s, continuing in a new file", err->msg);
		w->n = files[n - 1] + EVENTS_FILE_MAX;
	} else if (r < 0 || w->size < (off_t)EVENTS_FILE_MAX) {
		return r;
	}
	r = n >= EVENTS_FILES_MAX ? remove_oldest(w, files, err) : 0;
	if (r < 0)
		return r;
	cleanup_close(&w->fd);
	return open_newest(w, w->n, err);
}

static int write_line(struct event *ev, const char *store, const char *log, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { .dir_fd = -1, .fd = -1 };
	CLEANUP(buf_done) struct buf line = { 0 };
	struct event_head head = { 0 };
	int r = lock_log(&w, store, log, err);

	if (r < 0)
		return r;
	r = open_log(&w, err);
	if (r < 0)
		return r;
	/*
	 * The head counts, so that lines that were changed or cut off stay visible; but the one of the
	 * line before the last is what a writer left that died behind its line.
	 */
	if (w.head.n + 1 >= w.n && w.head.n > 0)
		memcpy(w.prev, w.head.digest, sizeof(w.prev));
	json_set_uint((struct json){ &ev->doc, ev->doc.root }, "n", w.n);
	json_set_text((struct json){ &ev->doc, ev->doc.root }, "prev", w.prev);
	r = json_append(&ev->doc, &line, err);
	if (r < 0)
		return r;
	if (line.len > EVENTS_LINE_MAX)
		return err_set(err, -E2BIG, "it has %zu bytes", line.len);
	r = fdio_write(w.fd, line.data, line.len);
	if (r < 0) {
		IGNORE_RESULT(ftruncate(w.fd, w.size), "the next writer cuts it off");
		return err_set(err, r, "writing it: %s", strerror(-r));
	}
	head = (struct event_head){ .n = w.n, .first = w.first };
	event_digest(line.data, line.len, head.digest);
	return write_head(&w, &head, false, err);
}

void event_begin(struct event *ev, const char *kind, struct event_subject of)
{
	char id[CATALOG_HEX_SIZE];
	struct json j;

	if (!of.project_id && of.store && of.project && project_id_at(of.store, of.project, id) > 0)
		of.project_id = id;

	*ev = (struct event){ 0 };
	j = json_begin(&ev->doc);
	json_set_uint(j, "n", 0);
	json_set_int(j, "time", engine_now());
	json_set_text(j, "kind", kind);
	json_set_name(j, "project", of.project);
	if (of.project_id)
		json_set_text(j, "project_id", of.project_id);
	json_set_name(j, "clone", of.clone);
	json_set_text(j, "run", of.run);
	ev->data = json_set_object(j, "data");
}

void event_end(struct event *ev, const char *store)
{
	event_end_in(ev, store, EVENTS_DIR);
}

void event_end_in(struct event *ev, const char *store, const char *log)
{
	struct err err = { 0 };

	if (write_line(ev, store, log, &err) < 0)
		log_warn("an event is missing from the log: %s, continuing", err.msg);
	json_done(&ev->doc);
}

/* Opens no store: who serves agents forks, and SQLite's locks do not survive that. */
void engine_record_call(const struct engine *e, const struct engine_call *call)
{
	const struct event_subject of = { .project = call->project,
					  .project_id = call->project_id,
					  .clone = call->clone,
					  .run = call->run };
	struct event ev;

	/* Without a store the call found nothing and did nothing. */
	if (access(e->store_path, F_OK) < 0)
		return;
	event_begin(&ev, "call", of);
	if (json_set_parsed((struct json){ &ev.doc, ev.doc.root }, "data", call->data,
			    strlen(call->data)))
		event_end_in(&ev, e->store_path, CALLS_DIR);
	else
		json_done(&ev.doc);
}
