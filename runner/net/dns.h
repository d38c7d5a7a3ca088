/*
 * dns.h - one question of DNS (RFC 1035), and our answer to it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "runner/net/addr.h"

#define DNS_MAX      512
#define DNS_NAME_MAX 253

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_code { DNS_NO_ERROR = 0, DNS_NO_SUCH_NAME = 3, DNS_REFUSED = 5 };

struct dns_question {
	unsigned char packet[DNS_MAX]; /* what is sent back: header and question */
	size_t packet_len;
	char name[DNS_NAME_MAX + 1]; /* with dots; a byte no name has is '?' */
	uint16_t type;
};

/* -EBADMSG for anything but one plain question; it gets no answer. */
NODISCARD int dns_parse(const void *data, size_t len, struct dns_question *ret);

/* The answer, with the address if there is one; returns its length. */
size_t dns_answer(const struct dns_question *q, enum dns_code code, const struct addr *addr,
		  unsigned char out[DNS_MAX]);
