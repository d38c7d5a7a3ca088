/*
 * run-net.h - the network of a run: none, the host's, or connections to a list of hosts.
 *
 * For a list there is a bridge in the run and a proxy in this process (docs/design/network.md);
 * run-net collects what the proxy refuses.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/run-terms.h"
#include "engine/run/run-tls.h"
#include "engine/run/scrub.h"
#include "runner/layout.h"
#include "runner/net/bridge.h"
#include "runner/net/proxy.h"

struct run_net {
	struct allow allow;
	uint64_t max_out; /* bytes; 0: any number */
	struct bridge_options bridge;
	struct proxy *proxy;              /* owned, as is the next */
	int inside;                       /* the bridge's end of what they speak through */
	struct run_tls tls;               /* hosts whose TLS the proxy ends */
	const struct net_secrets *hidden; /* that the proxy puts in; borrowed, as are the next */
	const struct scrub *secrets;
	struct engine_refusals *refusals; /* where they go */
	net_ask_fn ask;                   /* about what no rule allows; NULL: nobody */
	void *ask_ctx;
	uint64_t sent; /* bytes, once the proxy has gone */
	bool capped;   /* and more was refused */
};

#define RUN_NET_OUT "net-out" /* the limit, by its option */

#define RUN_NET_INIT ((struct run_net){ .inside = -1 })

void run_net_done(struct run_net *n);

/* -EINVAL with a sentence if the terms have no value of --net, or a limit that it cannot hold. */
NODISCARD int run_net_choose(struct run_net *n, const struct run_terms *terms,
			     struct sandbox_spec *spec, struct err *err);

/* NAME=VALUE that tell programs of the proxy; none without one. */
struct engine_list run_net_variables(const struct run_net *n);

/* Files that say where names are looked up. */
NODISCARD int run_net_show(const struct run_net *n, struct layout *l, struct err *err);

/* The same in a root of the run's own: over files that are there, and no others are made. */
NODISCARD int run_net_show_over(const struct run_net *n, struct layout *l, struct err *err);

/* Make both ends ready for sandbox_run(); `n` stays where it is until that has returned. */
NODISCARD int run_net_open(struct run_net *n, const struct scrub *secrets,
			   struct engine_refusals *refusals, struct sandbox_spec *spec,
			   struct err *err);

/* What was sent, and whether the limit cut it, into the result; before run_net_done(). */
void run_net_tell(const struct run_net *n, struct engine_run *run);
