/*
 * failures.h - arms that did not pass: the run that failed, and the end of its output.
 */
#pragma once

#include "cli/out.h"
#include "cli/show/page.h"
#include "engine/api/experiment.h"

struct failure {
	char arm[ENGINE_ARM_PATH_SIZE]; /* from the outermost one */
	const char *why;                /* of the arm; NULL: it does not say */
	const char *run;                /* of its command or of the check that failed */
	char *end; /* owned; the last lines; NULL: not asked for, or not known */
	bool cut;  /* there is more before them */
};

/* Borrows the experiment. */
struct failures {
	struct failure *list; /* owned */
	size_t n;
	size_t more; /* that are not in the list */
};

void failures_done(struct failures *f);

/* With `ends`, what their runs printed last, as far as there are records of them. */
NODISCARD int failures_find(const struct invocation *inv, const struct engine_experiment *x,
			    bool ends, struct failures *ret, struct err *err);

/* How to read all that each printed; and the end of it. */
void failures_print(const struct invocation *inv, FILE *out, const struct failures *f);

/* The same as a part of a page. */
void failures_put(struct page *p, const struct failures *f);
