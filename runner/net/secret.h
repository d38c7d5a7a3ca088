/*
 * secret.h - headers with secrets that the proxy puts into requests, and the run never sees.
 *
 * A secret has a rule as allow.h reads it, for requests of one host.  Every request that the rule
 * allows gets the header, in place of any of that name.  What the server says afterwards on that
 * connection has stars where the secret stood, so that one which repeats it tells nothing.
 *
 * The last bytes of what came so far may begin a secret.  As many as a secret can take wait for what
 * follows, whatever they are: if only such a beginning waited, a run could find a secret byte by
 * byte.  For the same reason a part of a secret is not covered: whoever can have the server repeat
 * a guess would see when it is right.  So that the last of all need not wait for long, every request asks the server to close.
 */
#pragma once

#include "base/buf.h"
#include "runner/net/allow.h"

#define NET_SECRET_MAX  4096 /* bytes */
#define NET_SECRETS_MAX 8    /* in one run */

struct net_secret {
	struct allow rule;      /* one rule; owned */
	struct http_span name;  /* of the header; all three are borrowed */
	struct http_span line;  /* the header, without an end of line */
	struct http_span value; /* what is the secret in it */
};

struct net_secrets {
	struct net_secret *list; /* owned by its maker */
	size_t n;
};

/* Is there one for the target, whatever the request? */
bool net_secrets_concern(const struct net_secrets *s, const struct allow_target *target,
			 uint16_t port);

/* May this be asked of a server which gets a secret?  Not if it would only say what it heard. */
bool net_secrets_permit(const struct request *request);

/*
 * Append the head with the headers that belong to it, if any, without those that would let the
 * server answer in packed bytes or in pieces, and with the wish that it ends its answer by closing.
 */
NODISCARD int net_secrets_add(const struct net_secrets *s, const struct allow_target *target,
			      uint16_t port, const char *data, const struct http_head *head,
			      const struct request *request, struct buf *out);

/* Of one direction of a connection, all 0 at first: what the next bytes belong to. */
struct net_mask {
	size_t covered; /* so many are the rest of a secret, */
	size_t frame;   /* but the first so many of them are the rest of the end of a chunk */
};

/* Bytes that a secret may take in an answer: each may come in a chunk of its own. */
#define NET_SECRET_REACH(len) (6 * (len))

/*
 * Put stars over every secret for the target at the beginning of the buffer, and say how many bytes
 * of it are clear, which the caller takes away.  At the end all; before it all but a number that
 * depends on no content.  Secrets may overlap, and be divided into chunks, which stay as they are.
 */
size_t net_secrets_mask(const struct net_secrets *s, const struct allow_target *target,
			uint16_t port, struct net_mask *m, struct buf *in, bool eof);
