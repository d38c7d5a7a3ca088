/*
 * on-trust.h - whose signature on a result the caller accepts.
 *
 * The queue, the tray or the far end of ssh only carry a result. With a list of signers, a result
 * that says how a command ended, or that it left something, counts only if one of them signed it
 * for this very ticket. Results that change nothing (cancelled, refused, lost) need no signature:
 * anyone who carries tickets could drop them just as well.
 */
#pragma once

#include "engine/transfer/transfer-i.h"
#include "engine/worker/ticket.h"

/* Is there a list of signers, if one is needed?  Before anything is sent. */
NODISCARD int on_trust_find(struct engine *e, const struct target *t,
			    const struct engine_trust *trust, struct err *err);

/*
 * 0 and who signed it (owned; NULL: nobody was asked for).  -ECANCELED with a sentence if it is another ticket's, or
 * if no allowed signer signed it.
 */
NODISCARD int on_trust_check(struct engine *e, const struct target *t,
			     const struct engine_trust *trust, const char *ticket,
			     const struct result *res, char **ret_signer, struct err *err);
