/*
 * door.h - which requests a server on HTTP lets in.
 *
 * It judges the headers of a request before anything of its body is read. A web page in the user's
 * browser can reach a server on this machine, under any name that its author's DNS gives the
 * address; such a request bears the page's name in `Host` or `Origin`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct door {
	const char *token; /* that a request must bring; NULL: none */
	bool remote;       /* other machines may connect, by any name of this one */
};

/* The headers of a request; NULL: it has none of that name. */
struct door_request {
	const char *host, *origin, *authorization;
};

/* 0 if it may come in; else the HTTP status to refuse it with, and why in `ret_why`. */
unsigned door_check(const struct door *d, const struct door_request *r, const char **ret_why);

/* Is this the name or address of this machine, as only this machine reaches it; with a port or not? */
bool door_is_loopback(const char *host, size_t len);
