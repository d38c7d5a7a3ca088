/*
 * A log is read piece by piece, in the order in which the run wrote.  If the writer died in the middle
 * of a piece, the log is read up to there.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/await.h"
#include "base/fdio.h"
#include "base/le.h"
#include "base/path.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"

struct reading {
	const struct engine_log_options *options;
	engine_log_fn fn; /* NULL: count only */
	void *ctx;
	int fd; /* -1: no log yet */
	unsigned char head[RUN_RECORD_HEAD];
	size_t have; /* bytes of the head */
	size_t left; /* bytes of the piece */
	uint64_t since;
	uint64_t at; /* bytes so far of the wanted streams */
};

static void reading_done(struct reading *r)
{
	cleanup_close(&r->fd);
}

static bool is_wanted(const struct reading *r)
{
	const bool of_stderr = r->head[0] != 0;

	return r->options->streams == ENGINE_LOG_BOTH ||
	       of_stderr == (r->options->streams == ENGINE_LOG_ERR);
}

/* Pass on part of a piece, if it is wanted. */
static int pass(struct reading *r, const unsigned char *data, size_t len, struct err *err)
{
	const uint64_t from = r->at;
	size_t skip;

	if (!is_wanted(r))
		return 0;
	r->at += len;
	if (!r->fn || r->at <= r->since)
		return 0;
	skip = r->since > from ? (size_t)(r->since - from) : 0;
	return r->fn(r->head[0] != 0, data + skip, len - skip, r->ctx, err);
}

static int take_bytes(struct reading *r, const unsigned char *data, size_t len, struct err *err)
{
	int x = 0;

	while (len > 0 && x >= 0) {
		size_t n;

		if (r->left == 0) {
			r->head[r->have++] = *data;
			n = 1;
			if (r->have == RUN_RECORD_HEAD)
				r->left = le32_load(r->head + 1);
			r->have %= RUN_RECORD_HEAD;
		} else {
			n = len < r->left ? len : r->left;
			x = pass(r, data, n, err);
			r->left -= n;
		}
		data += n;
		len -= n;
	}
	return x;
}

/* Read everything that is there by now. */
static int read_on(struct reading *r, const char *path, struct err *err)
{
	unsigned char data[65536];
	ssize_t n = 0;
	int x = 0;

	if (r->fd < 0)
		r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* A run without output has no log. */
	if (r->fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", path);
	while (x >= 0 && (n = fdio_read(r->fd, data, sizeof(data))) > 0)
		x = take_bytes(r, data, (size_t)n, err);
	return n < 0 ? err_set(err, (int)n, "reading the output of a run failed") : x;
}

/* --- following ---------------------------------------------------------------------------- */

struct follower {
	int at;
	int record; /* the watch on the run's record */
	bool known; /* the log itself is watched */
	bool closed;
};

static void follower_done(struct follower *f)
{
	cleanup_close(&f->at);
}

static void hear(int number, bool closed, void *ctx)
{
	struct follower *f = ctx;

	f->closed |= closed && number == f->record;
}

/* The first output creates the log; until then its directory is watched. */
static int follow_begin(struct follower *f, struct engine *e, const char *id, const char *log,
			struct err *err)
{
	AUTO_FREE char *record = run_record_path(e->store_path, id, ".json");
	AUTO_FREE char *dir = path_join(e->store_path, RUN_RECORD_DIR);
	int r;

	if (!record || !dir)
		return err_nomem(err);
	f->at = await_open();
	f->record = f->at < 0 ? f->at : await_file(f->at, record);
	r = f->record < 0 ? f->record : await_file(f->at, log);
	if (r == -ENOENT)
		r = await_names(f->at, dir);
	return r < 0 ? err_set(err, r, "following the output of run %s", id) : 0;
}

/* While the user decides on the clone the record is locked, but the run is over. */
static bool is_running(struct engine *e, const char *id)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };

	return run_record_read(e->store_path, id, &run, NULL) >= 0 &&
	       run.state == ENGINE_RUN_RUNNING;
}

/* Read what is new, then wait for more while the run is live. */
static int follow_step(struct reading *r, struct follower *f, bool live, const char *log,
		       struct err *err)
{
	int x = read_on(r, log, err);

	if (x < 0)
		return x;
	if (r->fd >= 0 && !f->known) {
		f->known = true;
		IGNORE_RESULT(await_file(f->at, log), "the directory is watched too");
		x = read_on(r, log, err);
		if (x < 0)
			return x;
	}
	return live ? await_next(f->at, r->options->stop_fd, -1, hear, f) : x;
}

static int follow(struct reading *r, struct engine *e, const char *id, const char *log,
		  struct err *err)
{
	CLEANUP(follower_done) struct follower f = { .at = -1 };
	bool live = true;
	int x = follow_begin(&f, e, id, log, err);

	while (x >= 0 && live) {
		/* Output written before the run was seen to end is still read after it. */
		if (f.closed)
			run_record_settle(e->store_path, id);
		live = is_running(e, id);
		x = follow_step(r, &f, live, log, err);
		if (x == -EINTR)
			return err_set(err, x, "it is not followed any more");
	}
	return x < 0 ? x : 0;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Count the bytes that are there by now. */
static int count(const char *log, const struct engine_log_options *o, uint64_t *ret,
		 struct err *err)
{
	CLEANUP(reading_done) struct reading r = { .options = o, .fd = -1 };
	int x = read_on(&r, log, err);

	*ret = r.at;
	return x;
}

static int read_run(struct reading *r, struct engine *e, const struct engine_run *run,
		    const char *log, struct err *err)
{
	const struct engine_log_options *o = r->options;
	uint64_t all = 0;
	int x = o->last > 0 ? count(log, o, &all, err) : 0;

	if (x < 0)
		return x;
	if (all > o->last && r->since < all - o->last)
		r->since = all - o->last;
	return o->follow && run->state == ENGINE_RUN_RUNNING ? follow(r, e, run->id, log, err)
							     : read_on(r, log, err);
}

int engine_run_log(struct engine *e, const struct engine_run *run,
		   const struct engine_log_options *o, engine_log_fn fn, void *ctx,
		   uint64_t *ret_next, struct err *err)
{
	CLEANUP(reading_done) struct reading r = {
		.options = o, .fn = fn, .ctx = ctx, .fd = -1, .since = o->since
	};
	AUTO_FREE char *log = run_record_path(e->store_path, run->id, ".log");
	int x;

	if (!log)
		return err_nomem(err);
	x = read_run(&r, e, run, log, err);
	if (ret_next)
		*ret_next = r.at > o->since ? r.at : o->since;
	return x < 0 ? x : 0;
}
