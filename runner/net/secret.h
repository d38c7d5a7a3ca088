/*
 * secret.h - headers that the proxy puts into requests for one host, with what the run must not see.
 *
 * A secret has a rule as allow.h reads it, for requests of one host.  Every request that the rule
 * allows gets the header, in place of any of that name.  What the server says afterwards on that
 * connection has stars where the secret stood, so that one which repeats it tells nothing.
 */
#pragma once

#include "base/buf.h"
#include "runner/net/allow.h"

#define NET_SECRET_MAX 4096 /* bytes */

struct net_secret {
	struct allow rule;      /* one rule; owned */
	struct http_span name;  /* of the header; all three are borrowed */
	struct http_span line;  /* the header, without an end of line */
	struct http_span value; /* what is the secret in it */
};

struct net_secrets {
	struct net_secret *list; /* owned by whoever made it */
	size_t n;
};

/* Is there one for the target, whatever is asked for? */
bool net_secrets_concern(const struct net_secrets *s, const struct allow_target *target,
			 uint16_t port);

/* May this be asked of a server which gets a secret?  Not if it would only say what it heard. */
bool net_secrets_permit(const struct request *request);

/*
 * Append the head with the headers that belong to it; 1, or 0 if there are none and nothing was
 * appended.
 */
NODISCARD int net_secrets_add(const struct net_secrets *s, const struct allow_target *target,
			      uint16_t port, const char *data, const struct http_head *head,
			      const struct request *request, struct buf *out);

/*
 * Put stars over every secret in the buffer; how many bytes of it are clear.  Fewer than all only if
 * the rest may be the beginning of one.
 */
size_t net_secrets_mask(const struct net_secrets *s, struct buf *in, bool eof);
