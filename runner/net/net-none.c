/*
 * net-none.c - no connections where runs do not exist.
 */
#include <errno.h>

#include "base/attr.h"
#include "runner/net/bridge.h"
#include "runner/net/proxy.h"
#include "runner/net/publish.h"
#include "runner/net/tls-keys.h"

static int refuse(struct err *err)
{
	return err_set(err, -ENOTSUP, "connections to listed hosts need Linux");
}

int proxy_socketpair(int *ret_outside, int *ret_inside, struct err *err)
{
	return refuse(err);
}

int proxy_open(const struct proxy_options *options, int fd, struct proxy **ret, struct err *err)
{
	return refuse(err);
}

void proxy_close(struct proxy *p)
{
}

int proxy_fd(const struct proxy *p)
{
	return -1;
}

void proxy_decide(struct proxy *p, unsigned number, bool allow)
{
}

uint64_t proxy_sent(const struct proxy *p, bool *ret_capped)
{
	*ret_capped = false;
	return 0;
}

int proxy_step(struct proxy *p, struct err *err)
{
	return refuse(err);
}

int bridge_main(const struct bridge_options *options, int fd, int ready_fd, struct err *err)
{
	return refuse(err);
}

int tls_keys_make(const struct allow *hosts, struct tls_keys *ret, struct err *err)
{
	return refuse(err);
}

void tls_keys_done(struct tls_keys *k)
{
	*k = (struct tls_keys){ 0 };
}

static int refuse_ports(struct err *err)
{
	return err_set(err, -ENOTSUP, "publishing the ports of a run needs Linux");
}

int publish_open(struct publish_port *ports, size_t n, struct publish **ret, int *ret_inside,
		 struct err *err)
{
	return refuse_ports(err);
}

void publish_close(struct publish *p)
{
}

int publish_fd(const struct publish *p)
{
	return -1;
}

int publish_step(struct publish *p, struct err *err)
{
	return refuse_ports(err);
}

void publish_drain(struct publish *p)
{
}

int publish_door(int fd, int ready_fd, struct err *err)
{
	return refuse_ports(err);
}
