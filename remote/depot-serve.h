/*
 * depot-serve.h - a depot in a directory of this machine, for a client at the other end of two
 * pipes.
 *
 * `snapcow serve` runs it at the far end of an ssh connection. The client may do to the directory
 * that it names whatever this process may; ssh has identified the client.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "remote/ticket-line.h"

struct depot_serve_options {
	/* The client's paths lie below that directory, and ".." is refused; NULL: anywhere. */
	const char *root;
	/*
	 * Answer a ticket (ticket-line.h), whose message is the one that `s` got last.  `depot` is the address of the depot
	 * here that it names; NULL: none.  1 if all is said; the client gets the sentence of a failure.  NULL: tickets are refused.
	 */
	int (*ticket)(struct stream *s, const struct ticket_question *q, const char *depot,
		      void *ctx, struct err *err);
	void *ctx;
};

/*
 * Answer until the input ends.  -EPROTO with a sentence if the client says something that the protocol has not.
 * Without a root, "/~/" begins a path in the home directory.
 */
NODISCARD int depot_serve(int in, int out, const struct depot_serve_options *options,
			  struct err *err);
