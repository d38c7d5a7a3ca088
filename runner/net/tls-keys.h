/*
 * tls-keys.h - certificates that make a run accept the proxy as the hosts that it inspects.
 *
 * A child makes an authority for this run alone and a certificate for each host, hands over the
 * certificates with their keys, and ends: the key of the authority is never outside of that child,
 * and can sign nothing afterwards. The authority's certificate is limited to these hosts. The keys
 * of the hosts are in memory that no fork inherits, and in no file.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "runner/net/inspect.h"

struct tls_bytes {
	unsigned char *at;
	size_t len;
};

struct tls_keys {
	void *memory; /* owned: all below lie in it */
	size_t size;
	struct tls_bytes authority; /* the certificate, as PEM */
	struct tls_bytes cert[INSPECT_MAX],
	    key[INSPECT_MAX]; /* of each host in the list's order, as DER */
	size_t n;
};

/* One for each rule of `hosts`, which inspect_parse() has read.  Forks, and waits for the child. */
NODISCARD int tls_keys_make(const struct allow *hosts, struct tls_keys *ret, struct err *err);
void tls_keys_done(struct tls_keys *k);
