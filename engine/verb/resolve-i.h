/*
 * resolve-i.h - the options of a promotion that met conflicts, so that it can be repeated.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/promote.h"

NODISCARD int asked_write(const struct engine_promote_options *o, struct buf *out, struct err *err);

struct asked {
	struct engine_promote_options options; /* given now, joined with the remembered ones */
	bool any;                              /* some were remembered */
	/* What they borrow: */
	struct engine_run_limits limits;
	char *profile;
	char **owned;
	size_t n_owned;
	const char **lists[4];
};

void asked_done(struct asked *a);

/* *ret stays where it is. */
NODISCARD int asked_read(struct engine *e, const struct engine_promote_options *options,
			 struct asked *ret, struct err *err);
