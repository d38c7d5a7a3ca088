/*
 * run-net.h - the network of a run: none, the host's, or connections to a list of hosts.
 *
 * For a list there is a bridge in the run and a proxy in this process (docs/design/network.md); what the
 * proxy refuses is gathered.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/scrub.h"
#include "runner/layout.h"
#include "runner/net/bridge.h"
#include "runner/net/proxy.h"

struct run_net {
	struct allow allow;
	struct bridge_options bridge;
	struct proxy *proxy;              /* owned, as is the next */
	int inside;                       /* the bridge's end of what they speak through */
	const struct scrub *secrets;      /* borrowed, as is the next */
	struct engine_refusals *refusals; /* where they go */
};

#define RUN_NET_INIT ((struct run_net){ .inside = -1 })

void run_net_done(struct run_net *n);

/* -EINVAL with a sentence if `text` is no value of --net. */
NODISCARD int run_net_choose(struct run_net *n, const char *text, struct sandbox_spec *spec,
			     struct err *err);

/* NAME=VALUE that tell programs of the proxy; none without one. */
struct engine_list run_net_variables(const struct run_net *n);

/* Files that say where names are looked up. */
NODISCARD int run_net_show(const struct run_net *n, struct layout *l, struct err *err);

/* Make both ends ready for sandbox_run(); `n` stays where it is until that has returned. */
NODISCARD int run_net_open(struct run_net *n, const struct scrub *secrets,
			   struct engine_refusals *refusals, struct sandbox_spec *spec,
			   struct err *err);
