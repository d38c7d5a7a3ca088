#include "remote/stream.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/le.h"

/* Numbers of errors differ between systems; these do not.  A place is never used for another. */
static const int codes[] = {
	0,       EIO,    ENOENT,       EACCES, EEXIST,  EINVAL, ENOSPC,    EDQUOT,
	EBADMSG, ESTALE, EAGAIN,       EFBIG,  ENOTSUP, ENOMEM, EPROTO,    EROFS,
	ENOTDIR, EISDIR, ENAMETOOLONG, ELOOP,  EMFILE,  EPERM,  ECANCELED,
};

void stream_done(struct stream *s)
{
	buf_done(&s->sends);
	buf_done(&s->got);
}

/* --- sending ------------------------------------------------------------------------------ */

static void add(struct stream *s, const void *data, size_t len)
{
	if (!s->bad && buf_append(&s->sends, data, len) < 0)
		s->bad = true;
}

void stream_begin(struct stream *s, enum stream_type type)
{
	const uint8_t head[5] = { 0, 0, 0, 0, (uint8_t)type };

	s->bad = false;
	buf_reset(&s->sends);
	add(s, head, sizeof(head));
}

void stream_add_u32(struct stream *s, uint32_t v)
{
	uint8_t b[4];

	le32_store(b, v);
	add(s, b, sizeof(b));
}

void stream_add_u64(struct stream *s, uint64_t v)
{
	stream_add_u32(s, (uint32_t)v);
	stream_add_u32(s, (uint32_t)(v >> 32));
}

void stream_add_digest(struct stream *s, const struct digest *d)
{
	add(s, d->b, sizeof(d->b));
}

void stream_add_raw(struct stream *s, const void *data, size_t len)
{
	add(s, data, len);
}

void stream_add_bytes(struct stream *s, const void *data, size_t len)
{
	stream_add_u32(s, (uint32_t)len);
	add(s, data, len);
}

void stream_add_text(struct stream *s, const char *text)
{
	stream_add_bytes(s, text ? text : "", text ? strlen(text) : 0);
}

/* A reader that is gone is -EPIPE, and no signal: the program's own output keeps its ways. */
static int write_quietly(int fd, const void *data, size_t len)
{
	sigset_t pipe, before, pending;
	int r, sig;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	r = fdio_write(fd, data, len);
	if (r == -EPIPE && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1)
		sigwait(&pipe, &sig);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int stream_send(struct stream *s)
{
	const size_t len = s->sends.len - 4;

	if (s->bad)
		return -ENOMEM;
	if (len > STREAM_MAX)
		return -EFBIG;
	le32_store(s->sends.data, (uint32_t)len);
	return write_quietly(s->out, s->sends.data, s->sends.len);
}

int stream_send_fail(struct stream *s, int code, const char *message)
{
	uint32_t number = 1;

	for (uint32_t i = 1; i < ARRAY_LEN(codes); i++)
		if (codes[i] == -code)
			number = i;
	stream_begin(s, STREAM_FAIL);
	stream_add_u32(s, number);
	stream_add_text(s, message);
	return stream_send(s);
}

/* --- receiving ---------------------------------------------------------------------------- */

/* 1 if there is something to read, or the end. */
static int wait_for_bytes(const struct stream *s)
{
	for (;;) {
		struct pollfd fds[2] = { { .fd = s->in, .events = POLLIN },
					 { .fd = s->stop_fd, .events = POLLIN } };
		const int n = poll(fds, 2, s->wait_ms);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ETIMEDOUT;
		return fds[1].revents != 0 ? -EINTR : 1;
	}
}

/* As fdio_read(); the other side may stop in the middle of a message, and whoever waits may be asked to end. */
static ssize_t read_all(const struct stream *s, void *to, size_t len)
{
	size_t got = 0;

	if (!s->guarded)
		return fdio_read(s->in, to, len);
	while (got < len) {
		const int r = wait_for_bytes(s);
		const ssize_t n = r < 0 ? r : read(s->in, (uint8_t *)to + got, len - got);

		if (r < 0)
			return r;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : (ssize_t)got;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int stream_receive(struct stream *s)
{
	uint8_t head[4];
	uint32_t len;
	void *to;
	ssize_t n = read_all(s, head, sizeof(head));

	s->at = 1;
	s->bad = false;
	buf_reset(&s->got);
	if (n <= 0)
		return (int)n;
	len = le32_load(head);
	if (n < 4 || len == 0 || len > STREAM_MAX)
		return -EPROTO;
	to = buf_extend(&s->got, len);
	if (!to)
		return -ENOMEM;
	n = read_all(s, to, len);
	if (n < 0)
		return (int)n;
	return (size_t)n < len || s->got.data[0] == 0 ? -EPROTO : s->got.data[0];
}

static const void *take_bytes(struct stream *s, size_t len)
{
	const void *at = s->got.data + s->at;

	if (s->bad || len > s->got.len - s->at) {
		s->bad = true;
		return NULL;
	}
	s->at += len;
	return at;
}

uint32_t stream_u32(struct stream *s)
{
	const void *at = take_bytes(s, 4);

	return at ? le32_load(at) : 0;
}

uint64_t stream_u64(struct stream *s)
{
	const void *at = take_bytes(s, 8);

	return at ? le64_load(at) : 0;
}

void stream_digest(struct stream *s, struct digest *ret)
{
	const void *at = take_bytes(s, sizeof(ret->b));

	*ret = (struct digest){ 0 };
	if (at)
		memcpy(ret->b, at, sizeof(ret->b));
}

const void *stream_bytes(struct stream *s, size_t *ret_len)
{
	const uint32_t len = stream_u32(s);
	const void *at = take_bytes(s, len);

	*ret_len = at ? len : 0;
	return at;
}

const void *stream_rest(struct stream *s, size_t *ret_len)
{
	*ret_len = s->bad ? 0 : s->got.len - s->at;
	return take_bytes(s, *ret_len);
}

char *stream_text(struct stream *s)
{
	size_t len;
	const void *at = stream_bytes(s, &len);

	if (at && memchr(at, '\0', len)) {
		s->bad = true;
		len = 0;
	}
	return strndup(at ? at : "", len);
}

bool stream_is_whole(const struct stream *s)
{
	return !s->bad && s->at == s->got.len;
}

int stream_take_fail(struct stream *s, struct err *err)
{
	const uint32_t number = stream_u32(s);
	char *text = stream_text(s);
	const int code = number > 0 && number < ARRAY_LEN(codes) ? -codes[number] : -EIO;

	if (text && text[0] != '\0')
		err_set(err, code, "%s", text);
	else if (code != -ENOENT)
		err_set(err, code, "%s", strerror(-code));
	free(text);
	return code;
}
