/*
 * branch-i.h - an open branch.
 */
#pragma once

#include "snapshot/text/branch.h"
#include "snapshot/text/git-i.h"

struct branch {
	const struct git *git;
	git_repository *repo; /* owned */
	char *name;           /* owned; for people */
	char *ref;            /* owned; refs/heads/NAME */
	bool checked_out;
	git_oid tip;
	char tip_hex[BRANCH_COMMIT_SIZE];
	git_commit *commit; /* owned; the tip */
	git_tree *tree;     /* owned; of the tip */
};
