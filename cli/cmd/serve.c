#include <errno.h>
#include <unistd.h>

#include "cli/out.h"
#include "engine/api/remote.h"

static int print_json(const struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "protocol", engine_serve_protocol());
	return json_print(&doc, inv->out, err);
}

static int serve_run(struct invocation *inv, struct err *err)
{
	const char *root = inv->n_words > 0 ? inv->words[0] : NULL;
	int r;

	if (inv->json)
		return print_json(inv, err);
	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO))
		return err_set(err, -EINVAL,
			       "'serve' is for another snapcow at the far end of ssh, not for "
			       "a terminal");
	if (root && root[0] != '/')
		return err_set(err, -EINVAL, "'%s' is no absolute path", root);
	r = engine_serve_depot(root, err);
	return r < 0 ? r : CMD_OK;
}

const struct command cmd_serve = {
	.name = "serve",
	.group = "Snapshots",
	.rare = true,
	.summary = "be the far end of a remote with an ssh:// address",
	.words = "[DIR]",
	.max_words = 1,
	.details =
	    "A push to ssh://host/path starts this command on that host; you need not type it. It\n"
	    "speaks on standard input and output and keeps snapshots in directories, as dir: remotes\n"
	    "do. With DIR, clients reach only what is below DIR. --json prints the protocol.\n"
	    "This line in ~/.ssh/authorized_keys lets a key do this and nothing else:\n"
	    "\n"
	    "restrict,command=\"snapcow serve /srv/snapshots\" ssh-ed25519 AAAA... ann\n",
	.examples = "push ssh://host/srv/app:main\n",
	.no_engine = true,
	.run = serve_run,
};
