#include <errno.h>
#include <unistd.h>

#include "cli/out.h"
#include "engine/api/worker.h"

struct serve_args {
	bool tickets;
	const char *sign, *identity;
	struct opt_list profile, pass_env, encrypt_to;
};
_Static_assert(sizeof(struct serve_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static const struct opt serve_opts[] = {
	OPT_FLAG(0, "tickets", struct serve_args, tickets,
		 "also run commands, for `run --on ssh:HOST`"),
	OPT_LIST(0, "profile", "PROFILE", struct serve_args, profile,
		 "tickets: profile that they may use; the first is the default"),
	OPT_LIST(0, "pass-env", "NAME", struct serve_args, pass_env,
		 "tickets: variable that they may use"),
	OPT_STR(0, "sign", "KEY", struct serve_args, sign, "tickets: SSH key that signs results"),
	OPT_STR(0, "identity", "FILE", struct serve_args, identity,
		"tickets: your private key, if states are encrypted"),
	OPT_LIST(0, "encrypt-to", "KEY", struct serve_args, encrypt_to,
		 "tickets: key that results are encrypted for"),
	OPT_END,
};

static int print_json(const struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "protocol", engine_serve_protocol());
	return json_print(&doc, inv->out, err);
}

/* An option that means nothing without --tickets, or NULL. */
static const char *only_tickets(const struct serve_args *a)
{
	return a->profile.n > 0      ? "profile"
	       : a->pass_env.n > 0   ? "pass-env"
	       : a->sign             ? "sign"
	       : a->identity         ? "identity"
	       : a->encrypt_to.n > 0 ? "encrypt-to"
				     : NULL;
}

static int serve_run(struct invocation *inv, struct err *err)
{
	const struct serve_args *args = inv->args;
	const struct engine_serve_ssh_options o = {
		.root = inv->n_words > 0 ? inv->words[0] : NULL,
		.store = inv->store,
		.tickets = args->tickets,
		.profiles = { .items = args->profile.items, .n = args->profile.n },
		.pass_env = { .items = args->pass_env.items, .n = args->pass_env.n },
		.keys = { .sign = args->sign,
			  .identity = args->identity,
			  .encrypt_to = { args->encrypt_to.items, args->encrypt_to.n } },
	};
	int r;

	if (inv->json)
		return print_json(inv, err);
	if (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO))
		return err_set(err, -EINVAL,
			       "'serve' is for another snapcow at the far end of ssh, not for "
			       "a terminal");
	if (o.root && o.root[0] != '/')
		return err_set(err, -EINVAL, "'%s' is no absolute path", o.root);
	if (!o.tickets && only_tickets(args))
		return err_set(err, -EINVAL, "option '--%s' needs '--tickets'", only_tickets(args));
	r = engine_serve_ssh(&o, err);
	return r < 0 ? r : CMD_OK;
}

const struct command cmd_serve = {
	.name = "serve",
	.group = "Snapshots",
	.rare = true,
	.summary = "serve a directory of snapshots to another machine over ssh",
	.words = "[DIR]",
	.max_words = 1,
	.opts = serve_opts,
	.details =
	    "A push to ssh://host/path starts this command on that host, and `run --on ssh:host`\n"
	    "starts it with --tickets; you need not type it. It speaks on standard input and output.\n"
	    "With DIR, clients reach only what is below DIR; with DIR, --profile or --pass-env,\n"
	    "tickets use no other profiles and variables. --json prints the protocol.\n"
	    "This line in ~/.ssh/authorized_keys lets a key do this and nothing else:\n"
	    "\n"
	    "    restrict,command=\"snapcow serve --tickets /srv/app\" ssh-ed25519 AAAA... ann\n",
	.examples = "push ssh://host/srv/app:main\n",
	.no_engine = true,
	.run = serve_run,
};
