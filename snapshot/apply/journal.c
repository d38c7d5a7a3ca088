#include "snapshot/apply/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "base/path.h"
#include "base/sys.h"

#define MAGIC       "snapjnl1"
#define JOURNAL_MAX ((size_t)1 << 30)

/* Magic, state, hash of everything after it. */
#define STATE_AT  8
#define HASH_AT   16
#define HEAD_SIZE (HASH_AT + OBJECT_ID_SIZE)

void journal_done(struct journal *j)
{
	free(j->project);
	plan_done(&j->plan);
	*j = (struct journal){ 0 };
}

const char *journal_stage(const struct journal *j, char name[JOURNAL_STAGE_SIZE])
{
	snprintf(name, JOURNAL_STAGE_SIZE, STAGE_NAME_PREFIX "%s", j->id);
	return name;
}

int journal_name(struct journal *j, struct err *err)
{
	uint64_t n;
	int r = sys_random(&n, sizeof(n));

	if (r < 0)
		return err_wrap(err, r, "naming a journal");
	snprintf(j->id, sizeof(j->id), "%016llx", (unsigned long long)n);
	return 0;
}

/* --- the directory ---------------------------------------------------------------------- */

static int open_dir(struct store *s, bool make, struct err *err)
{
	AUTO_FREE char *path = path_join(store_path(s), JOURNAL_DIR);
	int fd, r;

	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make) {
		r = path_make_dirs(path, 0700, err);
		if (r < 0)
			return r;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(err, "opening '%s'", path);
	return fd;
}

/* --- writing ---------------------------------------------------------------------------- */

static int encode(struct store *s, const struct journal *j, struct buf *out, struct err *err)
{
	const size_t len = strlen(j->project);
	struct object_id hash;
	int r;

	if (buf_append_str(out, MAGIC) < 0 || buf_append_u64(out, j->state) < 0 ||
	    buf_append_zero(out, OBJECT_ID_SIZE) < 0 || buf_append_u64(out, j->ino) < 0 ||
	    buf_append_u32(out, (uint32_t)len) < 0 || buf_append(out, j->project, len) < 0)
		return err_nomem(err);
	r = plan_encode(&j->plan, out, err);
	if (r < 0)
		return r;
	hash = object_id_of(store_key(s), OBJECT_TREE, out->data + HEAD_SIZE, out->len - HEAD_SIZE);
	memcpy(out->data + HASH_AT, hash.b, OBJECT_ID_SIZE);
	return 0;
}

int journal_put(struct store *s, const struct journal *j, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	AUTO_CLOSE int dir = open_dir(s, true, err);
	int r;

	if (dir < 0)
		return dir;
	r = encode(s, j, &bytes, err);
	if (r < 0)
		return err_wrap(err, r, "journal");
	if (bytes.len > JOURNAL_MAX)
		return err_set(err, -EFBIG, "journal: too much changes at once");
	r = fdio_replace_file(dir, j->id, bytes.data, bytes.len, 0600, err);
	return r < 0 ? err_wrap(err, r, "journal") : 0;
}

/* Only one byte changes, so a power cut leaves the old state or the new one. */
int journal_set_state(struct store *s, struct journal *j, enum journal_state state, struct err *err)
{
	AUTO_CLOSE int dir = open_dir(s, false, err), fd = -1;
	const uint8_t byte = (uint8_t)state;
	int r;

	if (dir < 0)
		return err_wrap(err, dir, "journal '%s'", j->id);
	fd = openat(dir, j->id, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "journal '%s'", j->id);
	r = fdio_pwrite(fd, &byte, 1, STATE_AT);
	r = r < 0 ? r : sys_sync_data(fd);
	if (r < 0)
		return err_wrap(err, r, "writing journal '%s'", j->id);
	j->state = state;
	return 0;
}

int journal_remove(struct store *s, const struct journal *j, struct err *err)
{
	AUTO_CLOSE int dir = open_dir(s, false, err);

	if (dir < 0)
		return err_wrap(err, dir, "journal '%s'", j->id);
	if (unlinkat(dir, j->id, 0) < 0 && errno != ENOENT)
		return err_sys(err, "removing journal '%s'", j->id);
	return fsync(dir) < 0 ? err_sys(err, "removing journal '%s'", j->id) : 0;
}

static int sweep_name(const char *name, unsigned char type, void *dir)
{
	if (strncmp(name, FDIO_TEMP_PREFIX, strlen(FDIO_TEMP_PREFIX)) == 0)
		unlinkat(*(int *)dir, name, 0);
	return 0;
}

void journal_sweep(struct store *s)
{
	AUTO_CLOSE int dir = open_dir(s, false, NULL);

	if (dir >= 0)
		IGNORE_RESULT(sys_each_name(dir, sweep_name, &dir), "they are in nobody's way");
}

/* --- reading ---------------------------------------------------------------------------- */

static int decode(struct store *s, const uint8_t *data, size_t len, struct journal *j,
		  struct err *err)
{
	const size_t head = HEAD_SIZE + 12;
	struct object_id hash;
	size_t path_len;
	uint64_t state;

	if (len < head || memcmp(data, MAGIC, strlen(MAGIC)) != 0)
		return err_set(err, -EBADMSG, "it does not begin like one");
	hash = object_id_of(store_key(s), OBJECT_TREE, data + HEAD_SIZE, len - HEAD_SIZE);
	if (memcmp(hash.b, data + HASH_AT, OBJECT_ID_SIZE) != 0)
		return err_set(err, -EBADMSG, "its bytes are not those that were written");
	state = le64_load(data + STATE_AT);
	if (state < JOURNAL_STAGING || state > JOURNAL_DONE)
		return err_set(err, -EBADMSG, "it has no such state");
	j->state = (enum journal_state)state;
	j->ino = le64_load(data + HEAD_SIZE);
	path_len = le32_load(data + HEAD_SIZE + 8);
	if (path_len == 0 || path_len > len - head || data[head] != '/')
		return err_set(err, -EBADMSG, "it has no path");
	j->project = strndup((const char *)data + head, path_len);
	if (!j->project)
		return err_nomem(err);
	return plan_decode(data + head + path_len, len - head - path_len, &j->plan, err);
}

/* stage_is_id() accepted `name`; the precision tells the compiler how long it can be. */
static void set_id(struct journal *j, const char *name)
{
	snprintf(j->id, sizeof(j->id), "%.*s", JOURNAL_ID_SIZE - 1, name);
}

static int load_journal(struct store *s, int dir, const char *name, struct journal *j,
			struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r = fdio_read_file(dir, name, JOURNAL_MAX, &bytes, err);

	r = r < 0 ? r : decode(s, bytes.data, bytes.len, j, err);
	if (r < 0)
		return err_wrap(err, r, "journal '%s/" JOURNAL_DIR "/%s'", store_path(s), name);
	set_id(j, name);
	return 0;
}

/*
 * Does the journal belong to this directory?  An unreadable one can be judged, too: before there is
 * a stage nothing was changed, and the stage is removed last.
 */
static bool is_staged_in(const char *project, const char *name)
{
	struct journal j = { 0 };
	char stage[JOURNAL_STAGE_SIZE];
	AUTO_FREE char *path = NULL;
	struct stat st;

	set_id(&j, name);
	path = path_join(project, journal_stage(&j, stage));
	return !path || lstat(path, &st) == 0 || errno != ENOENT;
}

/* Notes an unreadable journal in `unread`. */
static int visit(struct store *s, int dir, const char *name, const char *project, journal_fn fn,
		 void *ctx, struct err *unread, struct err *err)
{
	CLEANUP(journal_done) struct journal j = { 0 };
	struct err why = { 0 };
	int r = load_journal(s, dir, name, &j, &why);

	/* Another process ended it after we listed it. */
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (unread->code == 0 && (!project || is_staged_in(project, name)))
			*unread = why;
		return 0;
	}
	if (project && strcmp(project, j.project) != 0)
		return 0;
	return fn(&j, ctx, err);
}

static void close_stream(DIR **stream)
{
	if (*stream)
		closedir(*stream);
}

int journal_each(struct store *s, const char *project, journal_fn fn, void *ctx, struct err *err)
{
	AUTO_CLOSE int dir = open_dir(s, false, err), copy = -1;
	CLEANUP(close_stream) DIR *stream = NULL;
	struct err unread = { 0 };
	struct dirent *e;
	int r = 0;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	stream = copy < 0 ? NULL : fdopendir(copy);
	if (!stream)
		return err_sys(err, "listing journals");
	copy = -1; /* the stream closes it */
	for (errno = 0; r == 0 && (e = readdir(stream)); errno = 0)
		if (stage_is_id(e->d_name))
			r = visit(s, dir, e->d_name, project, fn, ctx, &unread, err);
	if (r == 0 && errno != 0)
		return err_sys(err, "listing journals");
	if (r != 0 || unread.code == 0)
		return r;
	return err_set(err, unread.code, "%s", unread.msg);
}
