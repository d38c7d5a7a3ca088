/*
 * bridge.h - the network as a run sees it: a proxy and a name server on its loopback.
 *
 * It lives inside, in the run's network namespace, and decides nothing: it passes every request of
 * a client to the proxy outside (proxy.h). On one port it speaks HTTP, as a proxy and with CONNECT,
 * and SOCKS5. DNS answers listed names with an address of loopback on which the bridge itself
 * listens, so that programs which know of no proxy get their connection too; every other name does
 * not exist.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "runner/net/allow.h"

#define BRIDGE_PORT     3128
#define BRIDGE_DNS_PORT 53

/* 0 stands for the default, in brackets, where there is one. */
struct bridge_options {
	uint16_t port;     /* of the proxy, on 127.0.0.1 */
	uint16_t dns_port; /* on 127.0.0.1, UDP and TCP; 0: no name server */

	/* Whose ports are served under the names of the name server; borrowed.  NULL: none. */
	const struct allow *allow;

	unsigned connections; /* at once [256] */
	uint64_t head_ms;     /* for a client to say what it wants [30 s] */
};

/*
 * Serve until the other end of `fd` is closed.  `ready_fd` gets one byte when everything
 * listens and is closed in any case.  Both are taken.  0, or a negative errno with a sentence.
 *
 * Allocates only per connection and per name, both bounded; calls no code that other processes
 * could change; is not dumpable.  Ports below 1024 need CAP_NET_BIND_SERVICE or a lower
 * net.ipv4.ip_unprivileged_port_start in the namespace.
 */
NODISCARD int bridge_main(const struct bridge_options *options, int fd, int ready_fd,
			  struct err *err);
