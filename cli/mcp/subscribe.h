/*
 * subscribe.h - clients that subscribe to changes at an address.
 *
 * The older era asks for single addresses (resources/subscribe), the newer one listens on a stream
 * of its own (subscriptions/listen). Events of the store (watch.h) say which addresses are
 * concerned.
 */
#pragma once

#include "cli/mcp/session.h"

#define SUBSCRIBED_MAX 256

/* resources/subscribe and resources/unsubscribe. */
NODISCARD int subscribe_take(struct session *s, const struct rpc_message *m, bool add,
			     struct err *err);

/* subscriptions/listen: acknowledged with what is honoured of it, and kept. */
NODISCARD int subscribe_listen(struct session *s, struct rpc_message *m, struct err *err);

/* Tell every subscriber what the watch has seen. */
NODISCARD int subscribe_step(struct session *s, struct err *err);
