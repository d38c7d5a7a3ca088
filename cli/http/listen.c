#include "cli/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 64

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int wrong(const char *where, struct err *err)
{
	return err_set(
	    err, -EINVAL,
	    "'%s' is no address to listen at: give ADDRESS:PORT, such as 127.0.0.1:8848, "
	    "or 127.0.0.1:0 for any port",
	    where);
}

static bool parse_port(const char *text, in_port_t *ret)
{
	char *end;
	const unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || port > 65535)
		return false;
	*ret = htons((in_port_t)port);
	return true;
}

static bool parse_host(char *host, union address *ret)
{
	const size_t len = strlen(host);
	const bool is_local = len == 0 || strcmp(host, "localhost") == 0;

	if (is_local || *host != '[') {
		ret->v4.sin_family = AF_INET;
		return inet_pton(AF_INET, is_local ? "127.0.0.1" : host, &ret->v4.sin_addr) == 1;
	}
	if (host[len - 1] != ']')
		return false;
	host[len - 1] = '\0';
	ret->v6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1;
}

static int parse(const char *where, union address *ret, struct err *err)
{
	AUTO_FREE char *host = strdup(where);
	char *colon = host ? strrchr(host, ':') : NULL;
	in_port_t port = 0;

	if (!host)
		return err_nomem(err);
	if (!parse_port(colon ? colon + 1 : host, &port))
		return wrong(where, err);
	*(colon ? colon : host) = '\0';
	if (!parse_host(host, ret))
		return wrong(where, err);
	*(ret->any.sa_family == AF_INET ? &ret->v4.sin_port : &ret->v6.sin6_port) = port;
	return 0;
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
	return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

static void write_url(const union address *a, const char *path, char url[LISTEN_URL_MAX])
{
	char host[INET6_ADDRSTRLEN] = "";
	const bool v6 = a->any.sa_family == AF_INET6;

	inet_ntop(a->any.sa_family, v6 ? (const void *)&a->v6.sin6_addr : &a->v4.sin_addr, host,
		  sizeof(host));
	snprintf(url, LISTEN_URL_MAX, v6 ? "http://[%s]:%u/%s" : "http://%s:%u/%s", host,
		 ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port), path);
}

int listen_at(const char *where, bool remote, const char *flag, const char *path,
	      char url[LISTEN_URL_MAX], struct err *err)
{
	union address at = { 0 };
	socklen_t len = sizeof(at);
	AUTO_CLOSE int fd = -1;
	int r = parse(where, &at, err);

	if (r < 0)
		return r;
	if (!remote && !is_loopback(&at))
		return err_set(err, -EINVAL, "other machines could reach '%s': use 127.0.0.1%s%s",
			       where, flag ? ", or add --" : "", flag ? flag : "");
	fd = socket(at.any.sa_family, SOCK_STREAM, 0);
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0)
		return err_sys(err, "a socket");
	len = at.any.sa_family == AF_INET ? sizeof(at.v4) : sizeof(at.v6);
	if (bind(fd, &at.any, len) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(err, "cannot listen at '%s'", where);
	len = sizeof(at);
	if (getsockname(fd, &at.any, &len) < 0)
		return err_sys(err, "cannot listen at '%s'", where);
	write_url(&at, path, url);
	return TAKE_FD(fd);
}
