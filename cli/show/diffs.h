/*
 * diffs.h - the difference of two states, as `diff` and `try` show it.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"

struct diffs_options {
	const char *a, *b;        /* as engine_diff() takes them */
	const char *const *paths; /* and these */
	size_t n_paths;
	bool stat, name_status, no_renames;
	bool patch;  /* with JSON: the text of the patch too */
	bool script; /* how to do the same on a machine: to people nothing else */
	unsigned context;
};

#define DIFFS_CONTEXT 3

/* To people, through a pager where there is one. */
NODISCARD int diffs_print(struct invocation *inv, const struct diffs_options *options,
			  bool *ret_different, struct err *err);

/* To programs: the members of an object.  inv->json is set. */
NODISCARD int diffs_set_json(struct invocation *inv, const struct diffs_options *options,
			     struct json j, bool *ret_different, struct err *err);
