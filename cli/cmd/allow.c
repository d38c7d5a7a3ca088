#include <errno.h>
#include <string.h>

#include "cli/out.h"
#include "engine/api/allow.h"
#include "engine/api/clone.h"

struct allow_args {
	bool remove, list;
};

static const struct opt allow_opts[] = {
	OPT_FLAG(0, "remove", struct allow_args, remove, "take it back"),
	OPT_FLAG(0, "list", struct allow_args, list, "only say what is allowed"),
	OPT_END,
};
_Static_assert(sizeof(struct allow_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print(const struct invocation *inv, const struct engine_allowed *a, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct allow_args *args = inv->args;
	struct json j = out_json_begin(inv, &doc);

	if (inv->json) {
		json_set_text(j, "act", args->remove ? "remove" : args->list ? "list" : "add");
		json_set_name(j, "clone", a->clone);
		json_set_names(j, "allow", a->rules.list, a->rules.n);
		return json_print(&doc, inv->out, err);
	}
	if (inv->quiet && !args->list)
		return CMD_OK;
	for (size_t i = 0; i < a->rules.n; i++)
		out_name_line(inv->out, a->rules.list[i]);
	if (a->rules.n == 0 && !inv->quiet) {
		fputs("runs on ", inv->out);
		out_name(inv->out, a->clone);
		fputs(" reach only what their own --net allows\n", inv->out);
	}
	return CMD_OK;
}

/* Words with a colon are rules, several with commas between them; the other one is the clone. */
static int read_words(const struct invocation *inv, struct strlist *rules, const char **clone,
		      struct err *err)
{
	for (int i = 0; i < inv->n_words; i++) {
		const char *at = inv->words[i];

		if (!strchr(at, ':')) {
			if (*clone)
				return err_set(err, -EINVAL, "'%s' is no HOST:PORT", at);
			*clone = at;
			continue;
		}
		for (size_t n; *at != '\0'; at += n + (at[n] == ',')) {
			n = strcspn(at, ",");
			if (strlist_take(rules, strndup(at, n)) < 0)
				return err_nomem(err);
		}
	}
	return 0;
}

static int allow_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed a = { 0 };
	CLEANUP(strlist_done) struct strlist rules = { 0 };
	const struct allow_args *args = inv->args;
	const char *clone = NULL;
	int r = read_words(inv, &rules, &clone, err);

	if (r >= 0 && args->list && (args->remove || rules.n > 0))
		r = err_set(err, -EINVAL, "'allow --list' takes a CLONE and nothing else");
	else if (r >= 0 && !args->list && rules.n == 0)
		r = err_set(err, -EINVAL, "'allow' needs HOST:PORT... [CLONE]");
	if (r < 0) {
		cmd_hint(inv, "help allow");
		return r;
	}
	r = args->list ? engine_allowed(inv->engine, clone, &a, err)
		       : engine_allow(inv->engine, clone, &rules, args->remove, &a, err);
	if (r == -ENOENT || (r == -EINVAL && !clone))
		cmd_hint(inv,
			 clone && args->remove && engine_has_clone(inv->engine, clone)
			     ? "allow --list %s"
			     : "list",
			 clone);
	return r < 0 ? r : print(inv, &a, err);
}

const struct command cmd_allow = {
	.name = "allow",
	.group = "Runs",
	.rare = true,
	.summary = "let the next runs on a clone reach a host",
	.words = "HOST:PORT... [CLONE]",
	.max_words = 100,
	.opts = allow_opts,
	.details =
	    "Takes the same rules as `run --net`. A rule stays with the clone until you take it\n"
	    "back or remove the clone, and adds to the rules of each run and its profile. A run\n"
	    "with `--net none` or `--net loopback`, or with a profile other than `default` that\n"
	    "says so, still reaches nothing. If a run lists single requests to a host, only those\n"
	    "count. Clones of the clone do not inherit the rule. No run can allow anything, nor can\n"
	    "an agent through `snap mcp`. Without CLONE: the clone that holds the current\n"
	    "directory.\n",
	.examples = "allow registry.npmjs.org:443 idea\nallow --list idea\n"
		    "allow --remove registry.npmjs.org:443 idea\n",
	.run = allow_run,
};
