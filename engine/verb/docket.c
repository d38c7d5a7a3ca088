#include "engine/verb/docket-i.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "engine/api/promote.h"
#include "engine/find/event-i.h"

#define LOCK_FILE      "lock"
#define KIND_LOCK_FILE ".lock" /* no name of one begins so */
#define STATE_MAX      ((size_t)64 << 20)

/* Locks of the open file, not of the process: a second one in this process conflicts, too. */
#ifdef F_OFD_SETLK
#define SET_LOCK      F_OFD_SETLK
#define SET_LOCK_WAIT F_OFD_SETLKW
#define GET_LOCK      F_OFD_GETLK
#else
#define SET_LOCK      F_SETLK
#define SET_LOCK_WAIT F_SETLKW
#define GET_LOCK      F_GETLK
#endif

#define CHECKED(kind, member) FIELD(FIELD_##kind, struct engine_checked, member)
static const struct field checked_list[] = { CHECKED(NAME, command), CHECKED(UINT, exit_code),
					     CHECKED(ID, run), CHECKED(UINT, duration_ms) };
const struct fields docket_checked = FIELDS(struct engine_checked, checked_list);

void docket_lock_done(struct docket_lock *l)
{
	cleanup_close(&l->fd);
	cleanup_close(&l->dir);
	*l = DOCKET_LOCK_INIT;
}

/* --- places -------------------------------------------------------------------------------- */

char *docket_path(struct engine *e, const struct docket_kind *kind, const char *name)
{
	AUTO_FREE char *all = path_join(e->store_path, kind->dir);

	return all && name ? path_join(all, name) : TAKE_PTR(all);
}

static int no_such(const struct docket_kind *kind, const char *name, struct err *err)
{
	return err_set(err, -ENOENT, "there is no %s '%.100s'", kind->noun, name);
}

int docket_open(struct engine *e, const struct docket_kind *kind, const char *name, int *ret,
		struct err *err)
{
	AUTO_FREE char *path = docket_path(e, kind, name);

	if (!path)
		return err_nomem(err);
	if (name[0] == '.' || !path_name_valid(name, strlen(name)))
		return no_such(kind, name, err);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret < 0 && errno == ENOENT)
		return no_such(kind, name, err);
	return *ret < 0 ? err_sys(err, "opening '%s'", path) : 0;
}

int docket_take(struct engine *e, const struct docket_kind *kind, const char *name,
		struct docket_lock *ret, struct err *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CLEANUP(docket_lock_done) struct docket_lock l = DOCKET_LOCK_INIT;
	int r = docket_open(e, kind, name, &l.dir, err);

	if (r < 0)
		return r;
	l.fd = openat(l.dir, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (l.fd < 0)
		return err_sys(err, "locking %s '%s'", kind->noun, name);
	if (fcntl(l.fd, SET_LOCK, &whole) < 0)
		return errno == EAGAIN || errno == EACCES
			   ? err_set(err, -EBUSY, "another process works on %s '%s'", kind->noun,
				     name)
			   : err_sys(err, "locking %s '%s'", kind->noun, name);
	l.store = e->store_path;
	*ret = l;
	l = DOCKET_LOCK_INIT;
	return 0;
}

int docket_take_kind(struct engine *e, const struct docket_kind *kind, struct docket_lock *ret,
		     struct err *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CLEANUP(docket_lock_done) struct docket_lock l = DOCKET_LOCK_INIT;
	AUTO_FREE char *path = docket_path(e, kind, NULL);
	int r = path ? path_make_dirs(path, 0700, err) : err_nomem(err);

	if (r < 0)
		return r;
	l.dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l.dir < 0)
		return err_sys(err, "opening '%s'", path);
	l.fd = openat(l.dir, KIND_LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (l.fd >= 0 && fcntl(l.fd, SET_LOCK_WAIT, &whole) < 0)
		if (errno != EINTR)
			return err_sys(err, "locking '%s'", path);
	if (l.fd < 0)
		return err_sys(err, "locking '%s'", path);
	*ret = l;
	l = DOCKET_LOCK_INIT;
	return 0;
}

/* A directory that holds no state was begun by a process that died at once: its name is free. */
int docket_create(struct engine *e, const struct docket_kind *kind, const char *name,
		  struct docket_lock *ret, struct err *err)
{
	AUTO_FREE char *path = docket_path(e, kind, name);
	int r;

	if (!path)
		return err_nomem(err);
	r = path_make_dirs(path, 0700, err);
	if (r < 0)
		return r;
	r = docket_take(e, kind, name, ret, err);
	if (r < 0 && r != -EBUSY)
		return r;
	if (r == -EBUSY || faccessat(ret->dir, DOCKET_STATE, F_OK, 0) == 0)
		return err_set(err, -EEXIST, "there is %s %s '%s'",
			       strchr("aeiou", kind->noun[0]) ? "an" : "a", kind->noun, name);
	return 0;
}

/*
 * Before a state changes and after it: if we die in between, the audit takes either.  `text` NULL: the
 * state is removed.
 */
static void tell(const struct docket_lock *l, const struct docket_kind *kind, const char *name,
		 const struct buf *text, bool done)
{
	char digest[SHA256_HEX_SIZE];
	struct event ev;

	if (!kind->audited)
		return;
	event_begin(&ev, "record", (struct event_subject){ 0 });
	json_set_text(ev.data, "dir", kind->dir);
	json_set_text(ev.data, "of", kind->noun);
	json_set_text(ev.data, "name", name);
	if (text)
		event_digest(text->data, text->len, digest);
	json_set_text(ev.data, "sha256", text ? digest : NULL);
	json_set_bool(ev.data, "done", done);
	event_end_in(&ev, l->store, RECORDS_DIR);
}

static int remove_name(const char *name, unsigned char type, void *ctx)
{
	return unlinkat(*(const int *)ctx, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int docket_forget(struct engine *e, const struct docket_kind *kind, const char *name,
		  struct docket_lock *l, struct err *err)
{
	AUTO_FREE char *path = docket_path(e, kind, name);
	int r;

	if (!path)
		return err_nomem(err);
	tell(l, kind, name, NULL, false);
	r = sys_each_name(l->dir, remove_name, &l->dir);
	if (r < 0)
		return err_set(err, r, "removing %s '%s': %s", kind->noun, name, strerror(-r));
	tell(l, kind, name, NULL, true);
	return rmdir(path) < 0 ? err_sys(err, "removing %s '%s'", kind->noun, name) : 0;
}

/* --- reading and writing ------------------------------------------------------------------- */

int docket_save(const struct docket_lock *l, const struct docket_kind *kind, const char *name,
		const void *state, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j = json_begin(&doc);
	int r;

	json_set_uint(j, "version", kind->version);
	fields_set(j, kind->fields, state);
	r = json_append(&doc, &text, err);
	if (r < 0)
		return r;
	tell(l, kind, name, &text, false);
	r = fdio_replace_file(l->dir, DOCKET_STATE, text.data, text.len, 0600, err);
	if (r < 0)
		return err_wrap(err, r, "the state of %s '%s'", kind->noun, name);
	tell(l, kind, name, &text, true);
	return 0;
}

int docket_try_lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, SET_LOCK, &whole) < 0 ? -errno : 0;
}

bool docket_is_locked(int fd)
{
	struct flock whole = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return fcntl(fd, GET_LOCK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static bool is_locked(int dir)
{
	AUTO_CLOSE int fd = openat(dir, LOCK_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && docket_is_locked(fd);
}

static int as_damaged(const struct docket_kind *kind, const char *name, void *ret, int r,
		      struct err *err)
{
	fields_done(kind->fields, ret);
	if (r == -ENOMEM)
		return r;
	return err_set(err, -EBADMSG, "the state of %s '%s' is damaged", kind->noun, name);
}

static int decode(const struct docket_kind *kind, const char *name, const struct buf *text,
		  void *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = json_parse(&doc, (const char *)text->data, text->len, &j, err);

	if (r < 0)
		return as_damaged(kind, name, ret, r, err);
	if (json_get_uint(j, "version") > kind->version)
		return err_set(err, -EPROTO, "%s '%s' is of a later version of snap", kind->noun,
			       name);
	if (kind->upgrade && json_get_uint(j, "version") < kind->version)
		kind->upgrade(j);
	r = fields_read(j, kind->fields, ret, err);
	return r < 0 ? as_damaged(kind, name, ret, r, err) : r;
}

int docket_read(struct engine *e, const struct docket_kind *kind, const char *name,
		const struct docket_lock *l, void *ret, bool *ret_alive, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_CLOSE int opened = -1;
	int r = l ? 0 : docket_open(e, kind, name, &opened, err);
	const int dir = l ? l->dir : opened;

	if (r < 0)
		return r;
	/* First: a process that ends after that has written the state that is read. */
	if (ret_alive)
		*ret_alive = is_locked(dir);
	r = fdio_read_file(dir, DOCKET_STATE, STATE_MAX, &text, err);
	if (r == -ENOENT)
		return no_such(kind, name, err);
	return r < 0 ? r : decode(kind, name, &text, ret, err);
}

/* --- listing ------------------------------------------------------------------------------- */

static int add_name(const char *name, unsigned char type, void *ctx)
{
	return name[0] == '.' ? 0 : strlist_add(ctx, name);
}

int docket_each(struct engine *e, const struct docket_kind *kind,
		int (*fn)(const char *name, void *ctx, struct err *err), void *ctx, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 };
	AUTO_FREE char *path = docket_path(e, kind, NULL);
	AUTO_CLOSE int fd = -1;
	int r;

	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", path);
	r = sys_each_name(fd, add_name, &names);
	if (r < 0)
		return err_set(err, r, "listing '%s': %s", path, strerror(-r));
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = fn(names.list[i], ctx, err);
	return r;
}
