#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/pipeline/desk-i.h"
#include "engine/pipeline/pipeline-i.h"

#define ANSWER_S 60 /* that the desk may take */

/* --- one question -------------------------------------------------------------------------- */

/* /tmp/snapcow-1000 is the place of user 1000: any other could make it after a boot. */
static bool is_usual_of(const char *address, uid_t uid)
{
	unsigned named;
	char rest;

	return sscanf(address, DESK_USUAL "%u%c", &named, &rest) != 2 || rest != '/' ||
	       named == uid;
}

/* A user who can write in the directory of the socket could put another one there. */
static int check_keeper(int dir, int fd, const char *address, struct err *err)
{
	struct stat st;
	uid_t uid;
	int r = sys_peer_uid(fd, &uid);

	if (r < 0 || fstat(dir, &st) < 0)
		return err_set(err, r < 0 ? r : -errno, "cannot tell who serves '%s'", address);
	if (st.st_uid != uid || (st.st_mode & 022) != 0 || !is_usual_of(address, uid))
		return err_set(err, -EACCES,
			       "'%s' is served by user %u, and its directory is not theirs alone",
			       address, (unsigned)uid);
	return 0;
}

static int call(const char *address, int *ret, struct err *err)
{
	const char *slash = strrchr(address, '/');
	AUTO_FREE char *dir = slash ? strndup(address, (size_t)(slash - address)) : NULL;
	const struct timeval most = { .tv_sec = ANSWER_S };
	AUTO_CLOSE int dir_fd = -1, fd = -1;
	int r;

	if (address[0] != '/' || !slash[1])
		return err_set(err, -EINVAL,
			       "'%s' is no address: it is the absolute path of a "
			       "socket, as 'snap pipeline' prints it",
			       address);
	if (!dir)
		return err_nomem(err);
	dir_fd = open(*dir != '\0' ? dir : "/", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = dir_fd < 0 ? -errno : sys_connect_at(dir_fd, slash + 1);
	if (fd == -ENOENT || fd == -ECONNREFUSED || fd == -ENOTDIR)
		return err_set(err, -ENOENT,
			       "nobody takes approvals at '%s': the owner of the store starts that "
			       "with 'snap pipeline serve'",
			       address);
	if (fd == -EAGAIN)
		return err_set(err, fd, "too many others wait at '%s': try again later", address);
	if (fd < 0)
		return err_set(err, fd, "connecting to '%s': %s", address, strerror(-fd));
	r = check_keeper(dir_fd, fd, address, err);
	if (r < 0)
		return r;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	*ret = TAKE_FD(fd);
	return 0;
}

/* Ask, and give the answer's object; it is of `doc`. */
static int ask(const char *address, const struct json_doc *question, struct json_doc *doc,
	       struct json *ret, struct err *err)
{
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	struct json line;
	int r = call(address, &c.fd, err);

	if (r >= 0)
		r = control_write(c.fd, question, true, err);
	/* It may have answered and left before it read all of that. */
	if (r < 0 && r != -EPIPE)
		return r;
	r = control_read(&c, CONTROL_ANSWER_MAX, doc, &line, err);
	if (r == 0)
		return err_set(err, -EPIPE, "'%s' gave no answer", address);
	if (r < 0)
		return r;
	if (json_has(line, "error"))
		return control_get_error(line, err);
	*ret = json_get_object(line, "answer");
	return 0;
}

/* --- the verbs ----------------------------------------------------------------------------- */

int engine_desk_list(const char *address, struct engine_changes *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc question = { 0 }, doc = { 0 };
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	struct json answer, list;
	int r;

	json_set_text(json_begin(&question), "ask", "list");
	r = ask(address, &question, &doc, &answer, err);
	if (r < 0)
		return r;
	list = json_get_array(answer, "changes");
	for (size_t i = 0; i < json_length(list) && i < DESK_LIST_MAX; i++) {
		if (!VEC_ONE_MORE(all.list, all.n))
			return err_nomem(err);
		all.list[all.n] = (struct engine_change){ 0 };
		r = fields_get(json_at_object(list, i), &change_fields, &all.list[all.n++]);
		if (r < 0)
			return err_nomem(err);
		if (!change_is_sound(&all.list[all.n - 1]))
			return err_set(err, -EPROTO, "the answer of '%s' makes no sense", address);
	}
	r = json_end(&doc, err);
	if (r < 0)
		return err_wrap(err, -EPROTO, "the answer of '%s'", address);
	*ret = TAKE_STRUCT(all);
	return 0;
}

static int take_change(const char *address, struct json answer, struct engine_change *ret,
		       struct err *err)
{
	struct engine_change c = { 0 };
	int r = fields_read(json_get_object(answer, "change"), &change_fields, &c, err);

	if (r >= 0 && !change_is_sound(&c))
		r = err_set(err, -EPROTO, "there is no such state");
	if (r >= 0) {
		*ret = c;
		return 0;
	}
	engine_change_done(&c);
	return r == -ENOMEM ? r : err_wrap(err, -EPROTO, "the answer of '%s'", address);
}

int engine_desk_look(const char *address, const char *id, struct engine_change *ret,
		     struct buf *patch, struct err *err)
{
	CLEANUP(json_done) struct json_doc question = { 0 }, doc = { 0 };
	struct json answer, j = json_begin(&question);
	AUTO_FREE char *text = NULL;
	bool cut = false;
	int r;

	json_set_text(j, "ask", "look");
	json_set_text(j, "change", id);
	json_set_bool(j, "patch", patch != NULL);
	r = ask(address, &question, &doc, &answer, err);
	if (r >= 0 && patch) {
		text = json_get_name(answer, "patch");
		cut = json_get_bool(answer, "cut");
	}
	if (r >= 0)
		r = take_change(address, answer, ret, err);
	if (r >= 0 && text && buf_append_str(patch, text) < 0)
		r = err_nomem(err);
	return r < 0 ? r : cut;
}

int engine_desk_decide(const char *address, const char *id, const struct engine_decision *d,
		       struct engine_change *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc question = { 0 }, doc = { 0 };
	CLEANUP(engine_change_done) struct engine_change seen = { 0 };
	struct json answer, j = json_begin(&question);
	int r = engine_desk_look(address, id, &seen, NULL, err);

	if (r < 0)
		return r;
	json_set_text(j, "ask", d->reject ? "reject" : "approve");
	json_set_text(j, "change", seen.id);
	json_set_text(j, "stage", d->stage ? d->stage : seen.stage ? seen.stage : "");
	json_set_text(j, "reason", d->reason);
	json_set_text(j, "digest", d->digest);
	r = ask(address, &question, &doc, &answer, err);
	return r < 0 ? r : take_change(address, answer, ret, err);
}
