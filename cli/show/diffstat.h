/*
 * diffstat.h - a line for each changed file, as `git diff --stat` has it.
 */
#pragma once

#include "cli/cmd.h"
#include "snapshot/diff/delta.h"
#include "snapshot/patch/patch.h"

struct diffstat_row {
	char *name; /* owned; quoted */
	struct patch_counts counts;
	char *folder; /* owned; of git's own, that all files of the row lie in; or NULL */
	size_t files; /* that the row stands for */
};

struct diffstat {
	struct diffstat_row *rows; /* owned */
	size_t n, cap;
};

void diffstat_done(struct diffstat *s);
/*
 * `shows`: on a terminal, so with invisible characters made visible.  `by_top`: one row for all that lies in
 * one folder of the top.
 */
NODISCARD int diffstat_add(struct diffstat *s, const struct delta_file *f,
			   const struct patch_counts *counts, bool shows, bool by_top,
			   struct err *err);
void diffstat_print(const struct diffstat *s, const struct invocation *inv);
