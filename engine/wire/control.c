#include "engine/wire/control-i.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fields.h"
#include "base/size.h"
#include "base/sys.h"

#define READ_SIZE ((size_t)16 << 10)

void control_done(struct control *c)
{
	cleanup_close(&c->fd);
	cleanup_close(&c->given);
	buf_done(&c->in);
	*c = CONTROL_INIT;
}

/* --- lines ------------------------------------------------------------------------------ */

/* Until the other end says more, or we are asked to end. */
static int await(const struct control *c, struct err *err)
{
	struct pollfd both[] = { { .fd = c->fd, .events = POLLIN },
				 { .fd = c->stop_fd, .events = POLLIN } };

	while (c->stop_fd > 0 && poll(both, 2, -1) < 0)
		if (errno != EINTR)
			return err_sys(err, "waiting at the control socket");
	return both[1].revents != 0 ? err_set(err, -EINTR, "interrupted") : 0;
}

/* More of what the other end says; 0 at the end. */
static int fill(struct control *c, struct err *err)
{
	int r = await(c, err);
	void *to;
	ssize_t n;

	if (r < 0)
		return r;
	to = buf_extend(&c->in, READ_SIZE);
	if (!to)
		return err_nomem(err);
	n = sys_receive_with(c->fd, to, READ_SIZE, &c->given);
	c->in.len -= READ_SIZE - (n > 0 ? (size_t)n : 0);
	/* One that closed without reading all of what we said is gone just the same. */
	if (n < 0 && n != -ECONNRESET)
		return err_wrap(err, (int)n, "reading from the control socket");
	return n > 0;
}

static int parse(const char *line, size_t len, struct json_doc *doc, struct json *ret,
		 struct err *err)
{
	struct err why = { 0 };
	int r = json_parse(doc, line, len, ret, &why);

	if (r == -EINVAL)
		return err_set(err, -EPROTO, "a line on the control socket: %s", why.msg);
	return r < 0 ? err_set(err, r, "%s", why.msg) : 1;
}

int control_read(struct control *c, size_t max, struct json_doc *doc, struct json *ret,
		 struct err *err)
{
	size_t seen = 0;
	int r;

	for (;;) {
		const char *line = (const char *)c->in.data + c->at;
		const size_t have = c->in.len - c->at;
		const char *end = have > seen ? memchr(line + seen, '\n', have - seen) : NULL;

		if ((end ? (size_t)(end - line) : have) > max)
			return err_set(err, -EMSGSIZE, "a line on the control socket is too long");
		if (end) {
			c->at += (size_t)(end - line) + 1;
			return parse(line, (size_t)(end - line), doc, ret, err);
		}
		seen = have;
		if (c->at > 0) {
			memmove(c->in.data, line, have);
			c->in.len = have;
			c->at = 0;
		}
		r = fill(c, err);
		if (r <= 0)
			return r;
	}
}

/* A short line goes into the socket's buffer whole or not at all. */
#define SHORT_LINE 4096

static int write_line(int fd, const struct json_doc *doc, bool may_wait, int give, struct err *err)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	size_t at = 0;
	ssize_t n;
	int r = json_append(doc, &line, err);

	if (r < 0)
		return r;
	while (at < line.len) {
		const int flags = may_wait || line.len > SHORT_LINE ? 0 : MSG_DONTWAIT;

		n = sys_send_with(fd, line.data + at, line.len - at, flags, at == 0 ? give : -1);
		if (n < 0)
			return err_wrap(err, (int)n, "writing to the control socket");
		at += (size_t)n;
	}
	return 0;
}

int control_write(int fd, const struct json_doc *doc, bool may_wait, struct err *err)
{
	return write_line(fd, doc, may_wait, -1, err);
}

int control_give(int fd, const struct json_doc *doc, int give, struct err *err)
{
	return write_line(fd, doc, true, give, err);
}

/* --- greeting --------------------------------------------------------------------------- */

#define H(kind, member) FIELD(FIELD_##kind, struct control_hello, member)
#define H_LATER(kind, key, member) \
	FIELD_AS(FIELD_##kind | FIELD_LATER, struct control_hello, key, member)
static const struct field hello_list[] = {
	H(UINT, protocol),
	H(CHARS, version),
	H(INT, pid),
	H(BOOL, busy),
	H(UINT, mounted),
	H_LATER(INT, "began", began),
	H_LATER(CHARS, "spare", warm_clone),
	H_LATER(UINT, "spares", warm_ready),
	H_LATER(UINT, "spares_taken", warm_taken),
};
static const struct fields hello_fields = FIELDS(struct control_hello, hello_list);

void control_set_hello(struct json j, const struct control_hello *hello)
{
	fields_set(json_set_object(j, "cowfsd"), &hello_fields, hello);
}

int control_get_hello(struct json j, struct control_hello *ret, struct err *err)
{
	struct control_hello hello = { .warm_clone = "none" };

	if (fields_read(json_get_object(j, "cowfsd"), &hello_fields, &hello, err) < 0)
		return err_wrap(err, -EPROTO, "the greeting on the control socket");
	*ret = hello;
	return 0;
}

/* --- progress --------------------------------------------------------------------------- */

void control_set_progress(struct json j, const struct engine_progress *p)
{
	struct json o = json_set_object(j, "progress");

	json_set_text(o, "doing", p->doing);
	json_set_uint(o, "files", p->files);
	json_set_uint(o, "bytes", p->bytes);
	json_set_uint(o, "done", p->done);
	json_set_uint(o, "total", p->total);
}

struct engine_progress control_get_progress(struct json j)
{
	const struct json o = json_get_object(j, "progress");
	const char *doing = json_get_text(o, "doing");

	return (struct engine_progress){
		.doing = doing ? doing : "",
		.files = json_get_uint(o, "files"),
		.bytes = json_get_uint(o, "bytes"),
		.done = json_get_uint(o, "done"),
		.total = json_get_uint(o, "total"),
	};
}

/* --- failures --------------------------------------------------------------------------- */

/* By name, because the numbers differ between systems.  Any other code travels as "E123". */
static const struct {
	int code;
	const char *name;
} names[] = {
	{ EPERM, "EPERM" },
	{ ENOENT, "ENOENT" },
	{ ESRCH, "ESRCH" },
	{ EIO, "EIO" },
	{ ENXIO, "ENXIO" },
	{ EAGAIN, "EAGAIN" },
	{ ENOMEM, "ENOMEM" },
	{ EACCES, "EACCES" },
	{ EBUSY, "EBUSY" },
	{ EEXIST, "EEXIST" },
	{ ENOTDIR, "ENOTDIR" },
	{ EINVAL, "EINVAL" },
	{ EFBIG, "EFBIG" },
	{ ENOSPC, "ENOSPC" },
	{ EROFS, "EROFS" },
	{ ELOOP, "ELOOP" },
	{ EPROTO, "EPROTO" },
	{ EBADMSG, "EBADMSG" },
	{ ENOTSUP, "ENOTSUP" },
	{ ESHUTDOWN, "ESHUTDOWN" },
	{ ESTALE, "ESTALE" },
	{ EDQUOT, "EDQUOT" },
	{ ECANCELED, "ECANCELED" },
	{ EMSGSIZE, "EMSGSIZE" },
	{ EPROTONOSUPPORT, "EPROTONOSUPPORT" },
};

static int code_of(const char *name)
{
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return -names[i].code;
	return name[0] == 'E' && size_parse_u64(name + 1, &n) == 0 && n > 0 && n < 4096 ? -(int)n
											: -EIO;
}

void control_set_error(struct json j, int code, const struct err *err)
{
	struct json e = json_set_object(j, "error");
	char number[16];
	const char *name = number;

	snprintf(number, sizeof(number), "E%d", -code);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].code == -code)
			name = names[i].name;
	json_set_text(e, "code", name);
	json_set_name(e, "message", err->code == code ? err->msg : "");
}

int control_get_error(struct json j, struct err *err)
{
	const struct json e = json_get_object(j, "error");
	const char *code = json_get_text(e, "code");
	AUTO_FREE char *message = json_get_name(e, "message");
	int r = json_end(j.doc, err);

	if (r < 0)
		return err_wrap(err, -EPROTO, "an error on the control socket");
	r = code_of(code);
	return *message != '\0' ? err_set(err, r, "%s", message) : r;
}
