/*
 * secret.h - headers with secrets that the proxy puts into requests, and the run never sees.
 *
 * A secret has a rule as allow.h reads it, for requests of one host. Every request that the rule
 * allows gets the header, in place of any of that name. In the server's answers on that connection,
 * stars replace the secret, so that a server that repeats it reveals nothing.
 *
 * The last bytes received so far may begin a secret. So as many bytes as a secret can take always
 * wait for more: if only such a beginning waited, a run could find a secret byte by byte. For the
 * same reason a part of a secret is not covered: if a run can make the server repeat a guess, it
 * would see when the guess is right. Every request asks the server to close, so the last bytes do
 * not wait long.
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
