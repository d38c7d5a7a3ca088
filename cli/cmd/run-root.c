#include "cli/cmd/run-root.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "engine/api/profile.h"

int run_root_read_profile(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	struct run_args *args = (struct run_args *)(uintptr_t)inv->args; /* main's, and writable */
	int r;

	if (args->root || !args->profile)
		return 0;
	r = engine_profile(inv->engine, args->profile, &p, err);
	if (r == -ENOENT)
		cmd_hint(inv, "profile list");
	/* What a file of the project says does not decide that: the run refuses it without --root. */
	args->root = r >= 0 && p.root && p.origin != PROFILE_PROJECT;
	return r;
}

void run_root_choose(const struct invocation *inv, struct engine_run_options *o)
{
	const char *word = inv->n_before > 0 ? inv->words[0] : NULL;

	o->root = true;
	if (!word)
		o->root_dir = "/";
	else if (strchr(word, '/'))
		o->root_dir = word;
	else if (!o->clone)
		o->from = word;
}
