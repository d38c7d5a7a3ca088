/*
 * The door: inside, behind the walls of the command. It holds nothing: it passes a connection that
 * it has begun out at once, and the publisher outside waits for the server to accept it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/le.h"
#include "runner/net/addr.h"
#include "runner/net/publish-i.h"
#include "runner/net/publish.h"
#include "runner/net/send-fd.h"

/* --- words, for both halves ------------------------------------------------------------------- */

static void door_encode(const struct door_word *w, unsigned char out[DOOR_SIZE])
{
	out[0] = DOOR_VERSION;
	out[1] = (unsigned char)w->what;
	le16_store(out + 2, w->port);
	le32_store(out + 4, w->id);
}

static bool door_decode(const void *data, size_t len, struct door_word *ret)
{
	const unsigned char *b = data;

	if (len != DOOR_SIZE || b[0] != DOOR_VERSION ||
	    (b[1] != DOOR_FAILED && b[1] != DOOR_IPV4 && b[1] != DOOR_IPV6))
		return false;
	*ret = (struct door_word){ (enum door_what)b[1], le16_load(b + 2), le32_load(b + 4) };
	return true;
}

int door_send(int socket, const struct door_word *w, int fd, int flags)
{
	unsigned char bytes[DOOR_SIZE];

	door_encode(w, bytes);
	return send_fd(socket, bytes, sizeof(bytes), fd, flags);
}

int door_receive(int socket, struct door_word *ret, int *ret_fd, int flags)
{
	_Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))];
	unsigned char bytes[DOOR_SIZE];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	/* CMSG_SPACE() has room for a second descriptor, which the kernel would install. */
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };
	struct cmsghdr *c;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return n > 0 && !(msg.msg_flags & MSG_TRUNC) && door_decode(bytes, (size_t)n, ret);
}

/* --- inside ----------------------------------------------------------------------------------- */

static int connect_to(const struct door_word *w)
{
	static const struct addr loopback[] = { { 4, { 127, 0, 0, 1 } }, { 16, { [15] = 1 } } };
	struct sockaddr_storage to;
	const socklen_t len = addr_to_socket(&loopback[w->what == DOOR_IPV6], w->port, &to);
	AUTO_CLOSE int fd =
	    socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS))
		return -1;
	return TAKE_FD(fd);
}

static int answer(int line, const struct door_word *asked)
{
	AUTO_CLOSE int fd = asked->what == DOOR_FAILED ? -1 : connect_to(asked);
	struct door_word word = *asked;

	if (fd < 0)
		word.what = DOOR_FAILED;
	return door_send(line, &word, fd, 0);
}

int publish_door(int fd, int ready_fd, struct err *err)
{
	AUTO_CLOSE int line = fd, ready = ready_fd;
	struct door_word asked;
	int none, r = 0;

	/* A process that could trace it would have its socket, and could answer in its place. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_sys(err, "closing the door of the run to other processes");
	if (write(ready, "1", 1) != 1)
		return err_sys(err, "saying that the published ports are ready");
	close(TAKE_FD(ready));
	while (r == 0 && door_receive(line, &asked, &none, 0) > 0)
		r = answer(line, &asked);
	return 0;
}
