#include "engine/find/run-record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/le.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/find/run-record-i.h"

#define DIGEST_MAX ((size_t)64 << 20)

#define RECORD_MAX ((size_t)16 << 20) /* bytes; our records are always smaller */

/* Old versions had a file per stream; those are removed with the rest. */
static const char *const endings[] = { ".out", ".err", RUN_RECORD_USE, ".log", ".json" };
enum { USE = 2, LOG, RECORD };

struct name {
	char text[ENGINE_RUN_ID_SIZE + 8];
};

static struct name name_of(const char *id, int ending)
{
	struct name n;

	snprintf(n.text, sizeof(n.text), "%.12s%s", id, endings[ending]);
	return n;
}

/* --- writing ---------------------------------------------------------------------------- */

void run_record_done(struct run_record *r)
{
	cleanup_close(&r->log_fd);
	cleanup_close(&r->use_fd);
	cleanup_close(&r->fd);
	cleanup_close(&r->dir_fd);
	*r = RUN_RECORD_INIT;
}

int run_record_pick(char id[ENGINE_RUN_ID_SIZE], struct err *err)
{
	unsigned char bytes[(ENGINE_RUN_ID_SIZE - 1) / 2];
	int r = sys_random(bytes, sizeof(bytes));

	if (r < 0)
		return err_set(err, r, "no random bytes for the id of a run");
	hex_encode(bytes, sizeof(bytes), id);
	return 0;
}

static int open_dir(const char *store, bool make, struct err *err)
{
	AUTO_FREE char *path = path_join(store, RUN_RECORD_DIR);
	int fd;

	if (!path)
		return err_nomem(err);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, "opening '%s'", path) : fd;
}

/* Append a line.  Only the last complete line counts, so a truncated one does no harm. */
static int put(const struct run_record *r, const struct engine_run *run, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int x;

	run_record_encode(json_begin(&doc), run);
	x = json_append(&doc, &text, err);
	x = x < 0 ? x : fdio_write(r->fd, text.data, text.len);
	return x < 0 ? err_wrap(err, x, "keeping the record of run %s", run->id) : 0;
}

static int make(int dir_fd, const char *id, int ending)
{
	return openat(dir_fd, name_of(id, ending).text,
		      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

int run_record_begin(const char *store, const struct engine_run *run, struct run_record *ret,
		     struct err *err)
{
	CLEANUP(run_record_done) struct run_record r = RUN_RECORD_INIT;
	int x;

	r.dir_fd = open_dir(store, true, err);
	if (r.dir_fd < 0)
		return r.dir_fd;
	memcpy(r.id, run->id, sizeof(r.id));
	r.fd = make(r.dir_fd, r.id, RECORD);
	if (r.fd < 0)
		return err_sys(err, "making the record of run %s", run->id);
	if (flock(r.fd, LOCK_EX) < 0)
		return err_sys(err, "locking the record of run %s", run->id);
	x = put(&r, run, err);
	if (x < 0)
		return x;
	*ret = r;
	r = RUN_RECORD_INIT;
	return 0;
}

static int put_piece(struct run_record *r, int stream, const void *data, size_t n)
{
	unsigned char head[RUN_RECORD_HEAD] = { (unsigned char)stream };
	int x;

	le32_store(head + 1, (uint32_t)n);
	if (r->log_fd < 0)
		r->log_fd = make(r->dir_fd, r->id, LOG);
	x = r->log_fd < 0 ? -errno : fdio_write(r->log_fd, head, sizeof(head));
	return x < 0 ? x : fdio_write(r->log_fd, data, n);
}

void run_record_log(struct run_record *r, int stream, const void *data, size_t len)
{
	const uint64_t room = r->full ? 0 : RUN_RECORD_LOG_MAX - r->logged[stream];
	const size_t n = len < room ? len : (size_t)room;

	if (n < len)
		r->truncated = true;
	if (n == 0)
		return;
	/* A full disk must end only the log, not the run. */
	if (put_piece(r, stream, data, n) < 0) {
		log_warn("the output of the run cannot be kept any more, continuing");
		r->truncated = true;
		r->full = true;
		return;
	}
	r->logged[stream] += n;
}

void run_record_use(struct run_record *r, const void *line, size_t len)
{
	if (r->full)
		return;
	if (r->use_fd < 0)
		r->use_fd = make(r->dir_fd, r->id, USE);
	/* Readers pass over half a line. */
	if (r->use_fd >= 0)
		IGNORE_RESULT(fdio_write(r->use_fd, line, len),
			      "a full disk costs the curve of a run that lives, and no more");
}

int run_record_note(struct run_record *r, const struct engine_run *run, struct err *err)
{
	return put(r, run, err);
}

int run_record_end(struct run_record *r, struct engine_run *run, struct err *err)
{
	int x;

	memcpy(run->logged, r->logged, sizeof(run->logged));
	run->log_truncated = r->truncated;
	x = put(r, run, err);
	if (x >= 0 && r->use_fd >= 0)
		unlinkat(r->dir_fd, name_of(r->id, USE).text, 0);
	return x;
}

int run_record_amend(const char *store, const struct engine_run *run, struct err *err)
{
	CLEANUP(run_record_done) struct run_record r = RUN_RECORD_INIT;

	r.dir_fd = open_dir(store, false, err);
	if (r.dir_fd < 0)
		return r.dir_fd;
	r.fd = openat(r.dir_fd, name_of(run->id, RECORD).text,
		      O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (r.fd < 0 || flock(r.fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, "the record of run %s", run->id);
	return put(&r, run, err);
}

/* --- reading ---------------------------------------------------------------------------- */

static bool is_locked(int dir_fd, const char *id)
{
	AUTO_CLOSE int fd =
	    openat(dir_fd, name_of(id, RECORD).text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

char *run_record_path(const char *store, const char *id, const char *ending)
{
	return text_format("%s/" RUN_RECORD_DIR "/%s%s", store, id, ending);
}

int run_record_digest(const char *store, const char *id, char hex[SHA256_HEX_SIZE])
{
	AUTO_FREE char *path = run_record_path(store, id, endings[RECORD]);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct sha256 s;
	int r = path ? fdio_read_file(AT_FDCWD, path, DIGEST_MAX, &bytes, NULL) : -ENOMEM;

	if (r < 0)
		return r;
	sha256_begin(&s);
	sha256_add(&s, bytes.data, bytes.len);
	sha256_end_hex(&s, hex);
	return 0;
}

void run_record_settle(const char *store, const char *id)
{
	AUTO_FREE char *path = run_record_path(store, id, endings[RECORD]);
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

	while (fd >= 0 && flock(fd, LOCK_SH) < 0 && errno == EINTR)
		continue;
}

uint64_t run_record_number(const char *id)
{
	return strtoull(id, NULL, 16);
}

void run_record_id(uint64_t number, char ret[ENGINE_RUN_ID_SIZE])
{
	snprintf(ret, ENGINE_RUN_ID_SIZE, "%0*llx", ENGINE_RUN_ID_SIZE - 1,
		 (unsigned long long)number);
}

bool run_record_is_live(const char *store, const char *id)
{
	struct err ignored = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &ignored);

	return dir_fd >= 0 && is_locked(dir_fd, id);
}

/* The last complete line; all of a file without a line feed. */
static const char *last_line(const struct buf *text, size_t *ret_len)
{
	const char *data = (const char *)text->data;
	size_t end = text->len, begin;

	while (end > 0 && data[end - 1] != '\n')
		end--;
	if (end == 0) {
		*ret_len = text->len;
		return data;
	}
	begin = end - 1;
	while (begin > 0 && data[begin - 1] != '\n')
		begin--;
	*ret_len = end - 1 - begin;
	return data + begin;
}

static int parse_record(const struct buf *text, struct engine_run *run)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err ignored = { 0 };
	const char *line;
	struct json j;
	size_t len;
	int r;

	line = last_line(text, &len);
	r = json_parse(&doc, line, len, &j, &ignored);
	if (r < 0)
		return r;
	r = run_record_decode(j, run);
	return r < 0 ? r : json_end(&doc, &ignored);
}

/* Replace the content of `run` with what the record says by now. */
static int read_record(int dir_fd, const char *id, struct engine_run *run, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = fdio_read_file(dir_fd, name_of(id, RECORD).text, RECORD_MAX, &text, err);

	if (r < 0)
		return r;
	if (text.len == 0)
		return -ENOENT; /* it is just beginning, or never began */
	engine_run_done(run);
	*run = (struct engine_run){ 0 };
	snprintf(run->id, sizeof(run->id), "%s", id);
	return parse_record(&text, run) < 0
		   ? err_set(err, -EBADMSG, "the record of run %s cannot be read", id)
		   : 0;
}

/* It was running when it was read, and nobody holds it: it has ended since, and says so now, or is lost. */
static int read_unheld(int dir_fd, const char *id, struct engine_run *run, struct err *err)
{
	int r = read_record(dir_fd, id, run, err);

	if (r < 0 || run->state != ENGINE_RUN_RUNNING)
		return r;
	run->state = ENGINE_RUN_LOST;
	free(run->problem);
	run->problem = strdup("the process that ran it was killed or the machine stopped, and the "
			      "run ended with it");
	return 0;
}

int run_record_read(const char *store, const char *id, struct engine_run *ret, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, err);
	bool live;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	/* Before reading: a run that ends in between has then ended, and is not lost. */
	live = is_locked(dir_fd, id);
	r = read_record(dir_fd, id, &run, err);
	/* One that got its lock in between has just begun. */
	if (r >= 0 && run.state == ENGINE_RUN_RUNNING && !live && !is_locked(dir_fd, id))
		r = read_unheld(dir_fd, id, &run, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(run);
	return 0;
}

struct walk {
	run_record_fn fn;
	void *ctx;
};

static int visit(const char *name, unsigned char type, void *ctx)
{
	const size_t len = ENGINE_RUN_ID_SIZE - 1;
	struct walk *w = ctx;
	char id[ENGINE_RUN_ID_SIZE];

	if (strlen(name) != len + strlen(endings[RECORD]) ||
	    strcmp(name + len, endings[RECORD]) != 0 || strspn(name, "0123456789abcdef") != len)
		return 0;
	memcpy(id, name, len);
	id[len] = '\0';
	return w->fn(id, w->ctx);
}

int run_record_each(const char *store, run_record_fn fn, void *ctx, struct err *err)
{
	struct err why = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &why);
	struct walk w = { fn, ctx };
	int r;

	if (dir_fd == -ENOENT)
		return 0;
	if (dir_fd < 0)
		return err_set(err, dir_fd, "%s", why.msg);
	r = sys_each_name(dir_fd, visit, &w);
	return r < 0 ? err_wrap(err, r, "reading '%s/" RUN_RECORD_DIR "'", store) : r;
}

void run_record_remove(const char *store, const char *id)
{
	struct err ignored = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &ignored);

	/* The record goes last, so that an interrupted removal can be repeated. */
	for (int i = 0; dir_fd >= 0 && i <= RECORD; i++)
		unlinkat(dir_fd, name_of(id, i).text, 0);
}
