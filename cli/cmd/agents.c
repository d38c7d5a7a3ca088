#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "cli/agents/agents.h"
#include "cli/agents/guide.h"
#include "cli/agents/hook.h"
#include "cli/agents/hooks.h"
#include "cli/agents/skill.h"
#include "cli/out.h"

#define ARGS_MAX 6

struct agents_args {
	bool read_only, no_promote, allow_promote, dry_run, guide, hooks, skill;
};

static const struct opt agents_opts[] = {
	OPT_FLAG(0, "read-only", struct agents_args, read_only,
		 "the agent may look and change nothing"),
	OPT_FLAG(0, "no-promote", struct agents_args, no_promote,
		 "it may not change the project itself"),
	OPT_FLAG(0, "allow-promote", struct agents_args, allow_promote,
		 "it may do so without asking a person"),
	OPT_FLAG(0, "hooks", struct agents_args, hooks,
		 "take a snapshot before and after each of its commands and edits"),
	OPT_FLAG(0, "skill", struct agents_args, skill, "add a skill that says when to use snap"),
	OPT_FLAG('n', "dry-run", struct agents_args, dry_run, "write nothing"),
	OPT_FLAG(0, "guide", struct agents_args, guide,
		 "print a section for AGENTS.md, for agents without MCP"),
	OPT_END,
};
_Static_assert(sizeof(struct agents_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* The line by which the agent starts the server. */
static void fill_args(const struct invocation *inv, const char *ret[ARGS_MAX])
{
	const struct agents_args *a = inv->args;
	int n = 0;

	if (inv->store) {
		ret[n++] = "--store";
		ret[n++] = inv->store;
	}
	ret[n++] = "mcp";
	if (a->read_only || a->no_promote || a->allow_promote)
		ret[n++] = a->read_only    ? "--read-only"
			   : a->no_promote ? "--no-promote"
					   : "--allow-promote";
	ret[n] = NULL;
}

static void set_json(struct json j, const struct agent *a, const struct agent_state *s)
{
	json_set_text(j, "agent", a->name);
	json_set_text(j, "title", a->title);
	json_set_bool(j, "found", s->found);
	json_set_bool(j, "set_up", s->set_up);
	json_set_bool(j, "current", s->same);
	if (hooks_known(a))
		json_set_bool(j, "hooks", hooks_there(a));
	else
		json_set_null(j, "hooks");
	if (a->skills)
		json_set_bool(j, "skill", skill_there(a));
	else
		json_set_null(j, "skill");
	json_set_name(j, "file", s->file);
	json_set_text(j, "text", s->text);
}

static const char *word_for(const struct agent_state *s)
{
	return s->same ? "yes" : s->set_up ? "other" : s->found ? "no" : "-";
}

static const char *part_word(bool known, bool there)
{
	return !known ? "-" : there ? "yes" : "no";
}

/* --- list ------------------------------------------------------------------------------- */

static void print_row(const struct invocation *inv, const struct agent *a,
		      const struct agent_state *s)
{
	if (inv->quiet) {
		if (s->found)
			fprintf(inv->out, "%s\n", a->name);
		return;
	}
	fprintf(inv->out, "%-12s  %-5s  %-6s  %-5s  %-5s  ", a->name, s->found ? "yes" : "no",
		word_for(s), part_word(hooks_known(a), hooks_there(a)),
		part_word(a->skills, skill_there(a)));
	out_name_line(inv->out, s->file);
}

static int list(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json j = out_json_begin(inv, &doc);
	const char *args[ARGS_MAX];
	const char *first = NULL;
	struct json all;

	fill_args(inv, args);
	json_set_text(j, "act", "list");
	all = json_set_array(j, "agents");
	if (!inv->json && !inv->quiet)
		fprintf(inv->out, "%s%-12s  %-5s  %-6s  %-5s  %-5s  %s%s\n",
			out_style(inv, OUT_DIM), "AGENT", "FOUND", "SET UP", "HOOKS", "SKILL",
			"ITS FILE", out_style(inv, OUT_PLAIN));
	for (const struct agent *a = agents; a->name; a++) {
		CLEANUP(agent_state_done) struct agent_state s = { 0 };
		int r = agent_look(a, args, &s, err);

		if (r < 0)
			return r;
		if (inv->json)
			set_json(json_add_object(all), a, &s);
		else
			print_row(inv, a, &s);
		if (!first && s.found && !s.same)
			first = a->name;
	}
	if (inv->json)
		return json_print(&doc, inv->out, err);
	if (first && !inv->quiet)
		fprintf(inv->out,
			"\nset one up: %s agents add %s\nwhat that writes: %s agents show %s\n",
			inv->program, first, inv->program, first);
	return CMD_OK;
}

/* --- one of them ------------------------------------------------------------------------ */

static int show(struct invocation *inv, const struct agent *a, struct err *err)
{
	CLEANUP(agent_state_done) struct agent_state s = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *args[ARGS_MAX];
	struct json j;
	int r;

	fill_args(inv, args);
	r = agent_look(a, args, &s, err);
	if (r < 0)
		return r;
	if (inv->json) {
		j = out_json_begin(inv, &doc);
		json_set_text(j, "act", "show");
		set_json(json_add_object(json_set_array(j, "agents")), a, &s);
		return json_print(&doc, inv->out, err);
	}
	fprintf(inv->out, "%s%s", s.text, s.text[strlen(s.text) - 1] == '\n' ? "" : "\n");
	if (!inv->quiet)
		log_info("for '%s'", s.file);
	return CMD_OK;
}

/* One file of the agent's: what was done to it. */
struct change {
	const char *part; /* mcp, hooks or skill */
	bool changed;     /* or would be */
	char *file, *backup;
};

#define CHANGES_MAX 3

struct changes {
	struct change list[CHANGES_MAX];
	size_t n;
};

static void changes_done(struct changes *c)
{
	for (size_t i = 0; i < CHANGES_MAX; i++) {
		free(c->list[i].file);
		free(c->list[i].backup);
	}
}

static void set_changes(struct json all, const struct agent *a, const struct changes *c,
			bool dry_run)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct change *one = &c->list[i];
		struct json j = json_add_object(all);

		json_set_text(j, "agent", a->name);
		json_set_text(j, "title", a->title);
		json_set_text(j, "part", one->part);
		json_set_name(j, "file", one->file);
		json_set_bool(j, "changed", one->changed && !dry_run);
		json_set_name(j, "backup", one->backup);
	}
}

static void print_one(const struct invocation *inv, const struct change *c, bool dry_run)
{
	fputs(!c->changed ? "nothing to change in "
	      : dry_run   ? "would change "
			  : "changed ",
	      inv->out);
	out_name(inv->out, c->file);
	if (c->backup) {
		fputs("; as it was: ", inv->out);
		out_name(inv->out, c->backup);
	}
	fputc('\n', inv->out);
}

static int print_changes(struct invocation *inv, const struct agent *a, const char *act,
			 const struct changes *c, struct err *err)
{
	const struct agents_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	bool any = false;
	struct json j;

	if (inv->json) {
		j = out_json_begin(inv, &doc);
		json_set_text(j, "act", act);
		set_changes(json_set_array(j, "agents"), a, c, args->dry_run);
		return json_print(&doc, inv->out, err);
	}
	if (inv->quiet)
		return CMD_OK;
	for (size_t i = 0; i < c->n; i++) {
		print_one(inv, &c->list[i], args->dry_run);
		any |= c->list[i].changed;
	}
	if (any && !args->dry_run)
		fprintf(inv->out, "%s reads it when it starts next\n", a->title);
	if (any && args->hooks && !args->dry_run && strcmp(act, "add") == 0 &&
	    strcmp(a->name, "codex") == 0)
		fputs("Codex runs new hooks only once you trust them: /hooks there\n", inv->out);
	return CMD_OK;
}

/* A step's answer: it was changed (0), nothing had to be (1), or it failed. */
static int note(struct changes *c, const char *part, int r)
{
	struct change *one = &c->list[c->n];

	one->part = part;
	one->changed = r == 0;
	/* Of a part that the agent does not have there is nothing to say. */
	c->n += r >= 0 && one->file;
	return r;
}

/* Both can be in one file, and then the first one has kept what was there. */
static bool is_kept(const struct changes *c, const struct agent *a)
{
	return c->n > 0 && c->list[0].backup && strcmp(a->name, "gemini") == 0;
}

static int change(struct invocation *inv, const struct agent *a, bool add, struct err *err)
{
	const struct agents_args *args = inv->args;
	CLEANUP(changes_done) struct changes c = { 0 };
	const char *line[ARGS_MAX];
	struct change *one;
	int r;

	fill_args(inv, line);
	one = &c.list[0];
	r = note(&c, "mcp",
		 agent_change(a, add ? line : NULL, args->dry_run, &one->file, &one->backup, err));
	if (r == -EINVAL)
		cmd_hint(inv, "agents show %s", a->name);
	if (r >= 0 && (!add || args->hooks)) {
		one = &c.list[c.n];
		r = note(&c, "hooks",
			 hooks_change(a, add, inv->store, args->dry_run, is_kept(&c, a), &one->file,
				      &one->backup, err));
	}
	if (r >= 0 && (!add || args->skill)) {
		one = &c.list[c.n];
		r = note(&c, "skill",
			 skill_change(a, add, args->dry_run, &one->file, &one->backup, err));
	}
	if (r < 0)
		return r;
	return print_changes(inv, a, add ? "add" : "remove", &c, err);
}

static int print_guide(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (!inv->json) {
		fputs(agents_guide, inv->out);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "guide");
	json_set_array(j, "agents");
	json_set_text(j, "guide", agents_guide);
	return json_print(&doc, inv->out, err);
}

/* The agent starts us anywhere: what it gets to know of the store must not depend on where we are. */
static int find_store(const struct invocation *inv, char **ret, struct err *err)
{
	AUTO_FREE char *cwd = NULL, *dir = NULL;

	if (!inv->store || *inv->store == '/' || *inv->store == '\0')
		return 0;
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return err_sys(err, "the current directory");
	dir = path_clean(cwd, inv->dir ? inv->dir : ".");
	*ret = dir ? path_clean(dir, inv->store) : NULL;
	return *ret ? 0 : err_nomem(err);
}

static int agents_act(struct invocation *inv, struct err *err)
{
	const struct agents_args *args = inv->args;
	const char *act = inv->n_words > 0 ? inv->words[0] : "list";
	const bool adds = strcmp(act, "add") == 0, removes = strcmp(act, "remove") == 0,
		   shows = strcmp(act, "show") == 0;
	const struct agent *a;
	int r;

	if (inv->n_words > 0 && !(inv->n_words == 2 && (adds || removes || shows))) {
		cmd_hint(inv, "help agents");
		return err_set(err, -EINVAL,
			       "'agents' takes nothing, or 'add', 'remove', 'show' or 'hook' and "
			       "an agent");
	}
	if (args->read_only + args->no_promote + args->allow_promote > 1)
		return err_set(err, -EINVAL,
			       "--read-only, --no-promote and --allow-promote exclude each other");
	if (args->guide)
		return print_guide(inv, err);
	if (inv->n_words == 0)
		return list(inv, err);
	r = agent_find(inv->words[1], &a, err);
	if (r < 0) {
		cmd_hint(inv, "agents");
		return r;
	}
	return shows ? show(inv, a, err) : change(inv, a, adds, err);
}

static int agents_run(struct invocation *inv, struct err *err)
{
	const char *given = inv->store;
	AUTO_FREE char *store = NULL;
	int r;

	if (inv->n_words == 2 && strcmp(inv->words[0], "hook") == 0)
		return hook_run(inv, inv->words[1], err);
	r = find_store(inv, &store, err);
	if (r < 0)
		return r;
	inv->store = store ? store : given;
	r = agents_act(inv, err);
	inv->store = given;
	return r;
}

const struct command cmd_agents = {
	.name = "agents",
	.group = "Other",
	.summary = "list the agents on this machine; let one use snap",
	.words = "[add AGENT | remove AGENT | show AGENT | hook AGENT]",
	.max_words = 2,
	.opts = agents_opts,
	.details =
	    "'add' writes `snapcow mcp` into the agent's own configuration file, with the options\n"
	    "given here, and 'remove' takes it out again. Everything else in the file stays,\n"
	    "comments too, and the file as it was stays beside it. 'show' prints what 'add' would\n"
	    "write into an empty file, to be added by hand. The agent then works on the project\n"
	    "that it is started in. With --hooks the agent's program runs 'hook' before and after\n"
	    "each command and edit: `log --agent` then lists its steps, and `rollback --turn N`\n"
	    "goes back to one.\n",
	.examples =
	    "agents\nagents add claude-code\nagents add codex --no-promote --hooks --skill\nagents remove codex\n",
	.no_engine = true,
	.run = agents_run,
};
