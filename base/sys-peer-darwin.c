#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/ucred.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sys.h"

int sys_peer_uid(int fd, uid_t *ret)
{
	gid_t unused;

	return getpeereid(fd, ret, &unused) < 0 ? -errno : 0;
}

int sys_peer_groups(int fd, gid_t *ret, size_t max)
{
	struct xucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_LOCAL, LOCAL_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.cr_ngroups < 0 || (size_t)peer.cr_ngroups > max)
		return -ERANGE;
	memcpy(ret, peer.cr_groups, (size_t)peer.cr_ngroups * sizeof(*ret));
	return peer.cr_ngroups;
}

int sys_peer_shares_ids(int fd)
{
	return 1;
}

/* There is but one place. */
int sys_peer_place(int fd)
{
	return SYS_PEER_HERE;
}

int sys_peer_sees(int fd, const char *path)
{
	return 1;
}

/* Nothing here has a descriptor to give away. */
ssize_t sys_send_with(int fd, const void *data, size_t len, int flags, int give)
{
	ssize_t n;

	if (give >= 0)
		return -ENOTSUP;
	do
		n = send(fd, data, len, flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t sys_receive_with(int fd, void *to, size_t room, int *ret_given)
{
	ssize_t n;

	do
		n = recv(fd, to, room, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
