/*
 * run-words.h - the command that a run executes: words as they were typed, a snippet, or a named task.
 */
#pragma once

#include "base/strlist.h"
#include "cli/cmd.h"
#include "cli/cmd/run-args.h"

/* The words, for inv->args, which is or begins with struct run_args.  -EINVAL, -ENOENT with a sentence and hints. */
NODISCARD int run_words(struct invocation *inv, struct strlist *ret, struct err *err);

/* Warns of each variable of --pass-env that is not set: most often its name was mistyped. */
void run_warn_unset(const struct opt_list *pass_env);
