/*
 * inspect.h - hosts whose TLS the proxy ends, to read requests as it reads plain HTTP: the value of
 * --tls-inspect.
 *
 *   example.org           on port 443
 *   example.org:8443      on another port
 *
 * Only names, each on one port, and no wildcards: a user inspects only hosts that they named.
 * Portable and pure.
 */
#pragma once

#include "runner/net/allow.h"

#define INSPECT_MAX 16 /* hosts */

/* A list with commas; -EINVAL with a sentence that names the host, and `ret` is then untouched. */
NODISCARD int inspect_parse(const char *text, struct allow *ret, struct err *err);

/* Does the proxy end TLS for that connection?  `inspect` may be NULL. */
bool inspect_has(const struct allow *inspect, const struct allow_target *target, uint16_t port);

/*
 * Do the two lists agree?  `net` must list every inspected host for what is read, and its rules for
 * requests within TLS must be for inspected hosts.  -EINVAL with a sentence that says what to add.
 */
NODISCARD int inspect_check(const struct allow *inspect, const struct allow *net, struct err *err);

/* The same for one rule, of --net or of a secret; `rule` is what the sentence calls it. */
NODISCARD int inspect_check_rule(const struct allow *inspect, const struct allow_rule *rule,
				 struct err *err);
