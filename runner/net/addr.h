/*
 * addr.h - IP addresses and ranges of them, and those that a public name may not resolve to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attr.h"

#define ADDR_TEXT_MAX 64 /* an IPv6 range and room */

struct addr {
	uint8_t len; /* 4 or 16 */
	uint8_t b[16];
};

struct addr_range {
	struct addr first;
	uint8_t bits;
};

/* "192.0.2.1" or "2001:db8::1", nothing else: no short, octal or bracketed form; -EINVAL. */
NODISCARD int addr_parse(const char *text, struct addr *ret);

/* The same, with "/BITS" behind it if not all bits count; -EINVAL also for bits set beyond. */
NODISCARD int addr_parse_range(const char *text, struct addr_range *ret);

bool addr_in(const struct addr *a, const struct addr_range *range);
bool addr_equal(const struct addr *a, const struct addr *b);

/*
 * NULL for an address that stands for one place of the internet; else what it is: "loopback",
 * "private", "link-local", ...  An IPv4 address in an IPv6 one is never such a place, since the router
 * decides where it leads.
 */
const char *addr_special(const struct addr *a);

char *addr_format(const struct addr *a, char text[ADDR_TEXT_MAX]);

/* To and from what the kernel takes; 0 and false for a family that is no IP. */
socklen_t addr_to_socket(const struct addr *a, uint16_t port, struct sockaddr_storage *ret);
bool addr_from_socket(const struct sockaddr *sa, struct addr *ret);
