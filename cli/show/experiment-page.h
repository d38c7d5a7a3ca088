/*
 * experiment-page.h - an experiment as one page of HTML: arms, scores, and what they changed side by side.
 */
#pragma once

#include "cli/show/failures.h"
#include "cli/show/standings.h"

/* Replaces the file in one step.  The standings have patches, the failures the ends of what runs printed. */
NODISCARD int experiment_page_write(const char *file, const struct standings *s,
				    const struct failures *failures, struct err *err);

/* Could it be written?  -EINVAL with a sentence, before anything is done that would be for nothing. */
NODISCARD int experiment_page_check(const char *file, struct err *err);
