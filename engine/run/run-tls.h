/*
 * run-tls.h - hosts whose TLS the proxy of a run ends: --tls-inspect.
 *
 * The programs of the run trust the proxy by a certificate that is made for this run. They find it
 * after this machine's roots of trust, in one file, which variables name too.
 */
#pragma once

#include "base/strlist.h"
#include "engine/api/profile.h"
#include "engine/api/run.h"
#include "runner/layout.h"
#include "runner/net/inspect.h"
#include "runner/net/tls.h"

struct run_tls {
	struct allow hosts; /* none: n is 0 */
	struct tls_keys keys;
	struct buf bundle; /* the roots, and the run's own behind them */
	char *guest;       /* owned; where the run sees it */
	struct strlist variables;
	struct tls_plan plan;
};

void run_tls_done(struct run_tls *t);

/*
 * Read what profile and options name, compare it with the network, and make what they need.
 * -EINVAL, -ENOENT or -ENOTSUP with a sentence that names the option.
 */
NODISCARD int run_tls_choose(struct run_tls *t, const struct engine_run_options *o,
			     const struct engine_profile *profile, const struct allow *net,
			     struct err *err);

/* NAME=VALUE that tell programs which roots to believe; none if nothing is inspected. */
struct engine_list run_tls_variables(const struct run_tls *t);

NODISCARD int run_tls_show(const struct run_tls *t, struct layout *l, struct err *err);

/* HOST:PORT of each, for the record; -ENOMEM. */
NODISCARD int run_tls_describe(const struct run_tls *t, struct strlist *ret);

/* For the proxy; NULL if nothing is inspected. */
const struct tls_plan *run_tls_plan(const struct run_tls *t);
