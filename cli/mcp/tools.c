#include "cli/mcp/app.h"
#include "cli/mcp/mcp.h"
#include "cli/mcp/tool.h"

#define CLONE_HELP "Name of the clone."

#define CLONE(help)                                          \
	{                                                    \
		"clone", PARAM_CLONE, NULL, true, NULL, help \
	}
#define CLONE_OPTIONAL(help)                                  \
	{                                                     \
		"clone", PARAM_CLONE, NULL, false, NULL, help \
	}
#define DRY_RUN                                                       \
	{                                                             \
		"dry_run", PARAM_FLAG, "dry-run", false, NULL,        \
		    "Only say what would change; nothing is changed." \
	}
#define CONFLICT                                                                       \
	{                                                                              \
		"conflict", PARAM_TEXT, "conflict", false, "stop|ours|theirs|markers", \
		    "What to do where both sides changed the same lines: "             \
		    "stop (default), take the project's (ours) or the clone's "        \
		    "(theirs), or leave markers."                                      \
	}

const struct tool tools[] = {
	{
	    .name = "snap_status",
	    .title = "Status",
	    .description =
		"Show what changed in a clone since it was made, or in the project since its last "
		"snapshot, and how far a clone is behind the project.",
	    .command = "status",
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		CLONE_OPTIONAL("Name of the clone. Without it: the project."),
		{ "others", PARAM_FLAG, "others", false, NULL,
		  "Also say which other clones touch the same paths." },
	    },
	},
	{
	    .name = "snap_list",
	    .title = "List clones",
	    .description = "List the clones of this project with their paths, sizes and ages.",
	    .command = "list",
	    .read_only = true,
	    .idempotent = true,
	},
	{
	    .name = "snap_clone",
	    .title = "Make a clone",
	    .description =
		"Make an instant writable copy of the whole project, untracked and ignored files "
		"included, to work in without touching the real files. Answers with its name and "
		"the path where it is mounted.",
	    .command = "clone",
	    .params = {
		{ "name", PARAM_TEXT, "name", false, NULL,
		  "Name of the clone (default: two words that are free)." },
		{ "from", PARAM_STATE, "from", false, NULL,
		  "A snapshot or clone to start from (default: the project as it is now)." },
		{ "ttl", PARAM_TEXT, "ttl", false, NULL,
		  "Remove it after that time once nobody uses it, such as 30m or 2h." },
		{ "quota", PARAM_TEXT, "quota", false, NULL,
		  "How much it may grow, such as 2G." },
	    },
	},
	{
	    .name = "snap_snapshot",
	    .title = "Take a snapshot",
	    .description = "Save the clone or the project as it is now, to come back to it later "
			   "with snap_rollback. Costs milliseconds; take one before a risky step.",
	    .command = "snapshot",
	    .params = {
		CLONE_OPTIONAL("Name of the clone. Without it: the project."),
		{ "message", PARAM_TEXT, "message", false, NULL, "What it is for." },
		{ "meta", PARAM_LIST, "meta", false, NULL,
		  "Labels as KEY=VALUE, to find it by with snap_log." },
		{ "tag", PARAM_TEXT, "tag", false, NULL, "A name to find it by." },
	    },
	},
	{
	    .name = "snap_log",
	    .title = "List snapshots",
	    .description = "List the snapshots of a clone or of the project, newest first.",
	    .command = "log",
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		CLONE_OPTIONAL("Name of the clone. Without it: the project."),
		{ "count", PARAM_NUMBER, "count", false, NULL, "Only the newest so many." },
		{ "meta", PARAM_LIST, "meta", false, NULL,
		  "Only those with these labels, KEY or KEY=VALUE." },
		{ "all", PARAM_FLAG, "all", false, NULL,
		  "Also those taken by themselves before a run, rollback or promotion." },
	    },
	},
	{
	    .name = "snap_rollback",
	    .title = "Roll back",
	    .description =
		"Put a clone (or, with a person's consent, the project) back to a snapshot. What "
		"was there is kept as a snapshot first.",
	    .command = "rollback",
	    .gate = GATE_NO_CLONE,
	    .destructive = true,
	    .params = {
		CLONE_OPTIONAL("Name of the clone. Without it: the project itself."),
		{ "snapshot", PARAM_STATE, NULL, false, NULL,
		  "Which snapshot: an id, a tag, or NAME@-1 for the one before the last "
		  "(default: the last)." },
		DRY_RUN,
	    },
	},
	{
	    .name = "snap_diff",
	    .title = "Show differences",
	    .description = "Show what differs between two states as a patch with statistics: by "
			   "default a clone against what it was made from.",
	    .command = "diff",
	    .fixed = { "--patch" },
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "from", PARAM_STATE, NULL, false, NULL,
		  "A clone, a snapshot, or '.' for the project now. Alone: from its base." },
		{ "to", PARAM_STATE, NULL, false, NULL, "The other state." },
	    },
	},
	{
	    .name = "snap_compare",
	    .title = "Compare clones",
	    .description =
		"Show several clones, snapshots or the project side by side: what each changed in which "
		"file since the state they share, which of them would merge, and where they conflict. "
		"Use it to choose between attempts.",
	    .command = "compare",
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "states", PARAM_STATES, NULL, true, NULL,
		  "Two or more: clones, snapshots, or '.' for the project now." },
		{ "base", PARAM_STATE, "base", false, NULL,
		  "Compare with this instead of the state they share." },
		{ "hunks", PARAM_FLAG, "hunks", false, NULL,
		  "With the changed lines of files that several of them changed." },
	    },
	},
	{
	    .name = "snap_read",
	    .title = "Read a file",
	    .description = "Read a file, or list a directory, in a clone, a snapshot or the "
			   "project ('.').",
	    .command = "show",
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "clone", PARAM_STATE, NULL, true, NULL,
		  "A clone, a snapshot, or '.' for the project now." },
		{ "path", PARAM_PATH, NULL, true, NULL,
		  "From the top of the project; empty for the top itself." },
	    },
	},
	{
	    .name = "snap_write",
	    .title = "Write a file",
	    .description = "Write a whole file in a clone, making directories as needed. The "
			   "project is not touched.",
	    .command = "write",
	    .idempotent = true,
	    .params = {
		CLONE(CLONE_HELP),
		{ "path", PARAM_PATH, NULL, true, NULL, "From the top of the project." },
		{ "content", PARAM_TEXT, "content", true, NULL, "All of the file." },
		{ "executable", PARAM_FLAG, "executable", false, NULL,
		  "Make it a program that can be run." },
	    },
	},
	{
	    .name = "snap_edit",
	    .title = "Edit a file",
	    .description = "Replace one piece of text in a file of a clone by another. The old "
			   "text must occur exactly once, unless all is true.",
	    .command = "edit",
	    .params = {
		CLONE(CLONE_HELP),
		{ "path", PARAM_PATH, NULL, true, NULL, "From the top of the project." },
		{ "old", PARAM_TEXT, "old", true, NULL, "The text as it stands, whole lines best." },
		{ "new", PARAM_TEXT, "new", true, NULL, "What replaces it." },
		{ "all", PARAM_FLAG, "all", false, NULL, "Replace every occurrence." },
	    },
	},
	{
	    .name = "snap_run",
	    .title = "Run a command",
	    .description =
		"Run a command (a build, a test, a script) in a sandbox on a clone, at the project's "
		"own path and without network unless asked for. Answers with its exit code and the end "
		"of its output; if it takes longer than wait_s, with status running and its id for "
		"snap_wait.",
	    .command = "run",
	    .fixed = { "--detach" },
	    .schema = "job",
	    .job = true,
	    .open_world = true,
	    .params = {
		CLONE_OPTIONAL("Name of the clone. Without it: a throw-away clone of the project."),
		{ "root", PARAM_FLAG, "root", false, NULL,
		  "The clone is a whole root file system: the command sees it as / and is root in it, "
		  "so package managers work. Without a clone: a throw-away clone of this machine's /. The "
		  "project is seen at its own path, as a throw-away clone." },
		{ "as", PARAM_TEXT, "as", false, NULL,
		  "With root: run the command as this user of that system, a name or UID:GID, for "
		  "programs that refuse to be root (default: root)." },
		{ "net", PARAM_NET, "net", false, NULL,
		  "The network it has: none (default), loopback, or HOST:PORT,... for connections "
		  "to these alone. With a profile that has secrets: no more than its own." },
		{ "net_out", PARAM_TEXT, "net-out", false, NULL,
		  "How much it may send to those hosts, such as 10M (default: any)." },
		{ "ask", PARAM_FLAG, "ask", false, NULL,
		  "Let a person decide about connections and system calls that would be refused: "
		  "each waits for up to a minute. The answer comes from the user, with `snap answer`; "
		  "no tool here gives it." },
		{ "publish", PARAM_LIST, "publish", false, NULL,
		  "Ports of servers in the run to be reached on 127.0.0.1 of this machine while it "
		  "runs: PORT, PORT:HOSTPORT, or PORT:0 for any that is free." },
		{ "mem", PARAM_TEXT, "mem", false, NULL, "Memory, such as 2G (default: 1G)." },
		{ "cpus", PARAM_TEXT, "cpus", false, NULL, "Processors, such as 1.5 (default: all)." },
		{ "pids", PARAM_NUMBER, "pids", false, NULL,
		  "Processes and threads (default: 512)." },
		{ "disk", PARAM_TEXT, "disk", false, NULL,
		  "How much the clone may grow (default: 4G)." },
		{ "time", PARAM_TEXT, "time", false, NULL, "How long it may take (default: 10m)." },
		{ "profile", PARAM_TEXT, "profile", false, NULL, "A profile of the user's." },
		{ "env", PARAM_LIST, "env", false, NULL, "Variables to set, as NAME=VALUE." },
		{ "hide", PARAM_LIST, "hide", false, NULL, "Paths that it cannot open." },
		{ "artifact", PARAM_LIST, "artifact", false, NULL,
		  "Paths to keep after it, though the clone goes; see snap_artifact." },
		{ "workdir", PARAM_TEXT, "workdir", false, NULL,
		  "Where it starts, from the top of the project." },
		{ "durability", PARAM_TEXT, "durability", false, "full|fast",
		  "Whether fsync in a throw-away clone waits for the disk (default: fast)." },
		{ "wait_s", PARAM_SECONDS, NULL, false, NULL,
		  "How many seconds to wait for its end (default: 45)." },
		{ "command", PARAM_COMMAND, NULL, true, NULL,
		  "A line for the shell, or a list of words. [\"@NAME\"] is a task of snap_tasks." },
	    },
	},
	{
	    .name = "snap_tasks",
	    .title = "List tasks",
	    .description =
		"List the commands that have a name in this project (test, build, lint, ...), from the "
		"user's configuration, package.json, Makefile, pyproject.toml, Cargo.toml and "
		"meson.build. snap_run runs one as the list [\"@NAME\"].",
	    .command = "tasks",
	    .read_only = true,
	    .idempotent = true,
	},
	{
	    .name = "snap_wait",
	    .title = "Wait for a run",
	    .description = "Wait until a run that snap_run started has ended, and answer with its exit "
			   "code and the end of its output.",
	    .command = "wait",
	    .schema = "job",
	    .job = true,
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "run", PARAM_RUN, NULL, true, NULL, "The id that snap_run answered with." },
		{ "since", PARAM_SINCE, NULL, false, NULL,
		  "Only output from there on: `next` of the answer before." },
		{ "wait_s", PARAM_SECONDS, NULL, false, NULL,
		  "How many seconds to wait (default: 45; 0: only look)." },
	    },
	},
	{
	    .name = "snap_logs",
	    .title = "Read the output of a run",
	    .description = "Read what a run has written so far, without waiting.",
	    .command = "logs",
	    .schema = "job",
	    .job = true,
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "run", PARAM_RUN, NULL, true, NULL, "The id that snap_run answered with." },
		{ "since", PARAM_SINCE, NULL, false, NULL,
		  "Only output from there on: `next` of the answer before." },
	    },
	},
	{
	    .name = "snap_cancel",
	    .title = "Cancel a run",
	    .description = "End a run that goes on, with everything that it started.",
	    .command = "cancel",
	    .schema = "job",
	    .job = true,
	    .idempotent = true,
	    .params = {
		{ "run", PARAM_RUN, NULL, true, NULL, "The id that snap_run answered with." },
	    },
	},
	{
	    .name = "snap_artifact",
	    .title = "Keep results",
	    .description =
		"Save files of a clone as an artifact that outlives the clone, list the artifacts of this "
		"project, or read one. Use it for build results, reports and logs that are worth keeping.",
	    .command = "artifact",
	    .acts = {
		{ "save", "clone|paths", "meta" },
		{ "list", "", "meta" },
		{ "show", "artifact", "paths" },
	    },
	    .params = {
		{ "act", PARAM_TEXT, NULL, true, "save|list|show",
		  "save: needs clone and paths. list: all of them. show: needs artifact; with one path, "
		  "the file or directory there." },
		CLONE_OPTIONAL("Name of the clone that has the files, to save them."),
		{ "artifact", PARAM_TEXT, NULL, false, NULL, "The id that saving answered with." },
		{ "paths", PARAM_WORDS, NULL, false, NULL,
		  "Files or directories, from the top of the project." },
		{ "meta", PARAM_LIST, "meta", false, NULL,
		  "Labels as KEY=VALUE to save it with; to list: only those that have them." },
	    },
	},
	{
	    .name = "snap_experiment",
	    .title = "Try several changes at once",
	    .description =
		"Try several changes at once: each arm is a command on a clone of its own, all are judged "
		"by the same checks and score, and the best one is named. Answers with the result; if it "
		"takes longer than wait_s, with the state so far, for snap_experiment_wait. Nothing is "
		"promoted: call snap_promote with the clone of the arm that you choose.",
	    .page = APP_EXPERIMENT,
	    .command = "experiment",
	    .fixed = { "--detach" },
	    .job = true,
	    .open_world = true,
	    .params = {
		{ "name", PARAM_TEXT, "name", false, NULL, "Name of the experiment (default: two words)." },
		{ "arms", PARAM_LIST, "arm", true, NULL,
		  "What to try, as NAME=COMMAND, each a line for the shell." },
		{ "after", PARAM_LIST, "arm-after", false, NULL,
		  "As ARM:OTHER: let ARM go on from what OTHER left, once that has passed." },
		{ "check", PARAM_LIST, "check", false, NULL,
		  "Commands that must end with 0 on what an arm left." },
		{ "score", PARAM_TEXT, "score", false, NULL,
		  "A command that prints a number; or time, cpu or mem, of the checks or as "
		  "time:COMMAND; or lines, or size:FILE." },
		{ "max", PARAM_FLAG, "max", false, NULL, "The highest score is best, not the lowest." },
		{ "rounds", PARAM_NUMBER, "rounds", false, NULL, "How often each score is taken." },
		{ "repeat", PARAM_NUMBER, "repeat", false, NULL,
		  "Try each arm so often, to see how steady it is." },
		{ "jobs", PARAM_NUMBER, "jobs", false, NULL, "Arms at once (default: processors)." },
		{ "first_pass", PARAM_FLAG, "first-pass", false, NULL,
		  "The first arm that passes wins; the others are stopped." },
		{ "stop_after", PARAM_NUMBER, "stop-after", false, NULL,
		  "Stop when so many arms have passed." },
		{ "stop_losers", PARAM_FLAG, "stop-losers", false, NULL,
		  "Check and measure no further what another arm has beaten." },
		{ "keep", PARAM_TEXT, "keep", false, "best|passed|all|none",
		  "Which clones stay (default: best)." },
		{ "from", PARAM_STATE, "from", false, NULL,
		  "A snapshot or clone that all start from (default: the project as it is now)." },
		{ "within", PARAM_LIST, "within", false, NULL,
		  "Warn of changes that these patterns do not name, as in .gitignore." },
		{ "net", PARAM_NET, "net", false, NULL,
		  "The network of all: none (default), loopback, or HOST:PORT,..." },
		{ "mem", PARAM_TEXT, "mem", false, NULL, "Memory of an arm, such as 2G." },
		{ "time", PARAM_TEXT, "time", false, NULL, "Time of each command (default: 10m)." },
		{ "disk", PARAM_TEXT, "disk", false, NULL, "How much the clone of an arm may grow." },
		{ "all_time", PARAM_TEXT, "all-time", false, NULL, "Time of the whole experiment." },
		{ "all_mem", PARAM_TEXT, "all-mem", false, NULL, "Memory of all arms at once." },
		{ "all_disk", PARAM_TEXT, "all-disk", false, NULL, "Growth of all clones together." },
		{ "profile", PARAM_TEXT, "profile", false, NULL, "A profile of the user's." },
		{ "env", PARAM_LIST, "env", false, NULL, "Variables to set, as NAME=VALUE." },
		{ "wait_s", PARAM_SECONDS, NULL, false, NULL,
		  "How many seconds to wait for its end (default: 45)." },
	    },
	},
	{
	    .name = "snap_experiment_wait",
	    .title = "Wait for an experiment",
	    .description = "Wait until an experiment that snap_experiment started has ended, and answer "
			   "with its arms and which of them won.",
	    .page = APP_EXPERIMENT,
	    .command = "experiment",
	    .fixed = { "wait" },
	    .job = true,
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "experiment", PARAM_RUN, NULL, true, NULL, "Its name." },
		{ "wait_s", PARAM_SECONDS, NULL, false, NULL,
		  "How many seconds to wait (default: 45; 0: only look)." },
	    },
	},
	{
	    .name = "snap_experiment_show",
	    .title = "Show experiments",
	    .description = "Show an experiment with its arms as it is now, or list the "
			   "experiments of this project.",
	    .page = APP_EXPERIMENT,
	    .command = "experiment",
	    .fixed = { "list" },
	    .job = true,
	    .read_only = true,
	    .idempotent = true,
	    .params = {
		{ "experiment", PARAM_RUN, NULL, false, NULL, "Its name. Without it: list them." },
	    },
	},
	{
	    .name = "snap_experiment_cancel",
	    .title = "Cancel an experiment",
	    .description = "Interrupt an experiment that goes on, with everything that it started. Arms "
			   "that had ended keep their results.",
	    .command = "experiment",
	    .fixed = { "cancel" },
	    .job = true,
	    .idempotent = true,
	    .params = {
		{ "experiment", PARAM_RUN, NULL, true, NULL, "Its name." },
	    },
	},
	{
	    .name = "snap_promote",
	    .title = "Promote",
	    .description =
		"Bring a clone's changes into the real project: merged with what changed there, "
		"checked, all or nothing, and undoable. Use dry_run first to see the plan. A "
		"person is asked for consent.",
	    .command = "promote",
	    .gate = GATE_PROJECT,
	    .destructive = true,
	    .params = {
		CLONE(CLONE_HELP),
		DRY_RUN,
		{ "check", PARAM_LIST, "check", false, NULL,
		  "Commands that must succeed on the merged tree first." },
		{ "path", PARAM_LIST, "path", false, NULL,
		  "Only what these patterns name, as in .gitignore." },
		{ "exclude", PARAM_LIST, "exclude", false, NULL, "Not what these patterns name." },
		{ "to", PARAM_TEXT, "to", false, NULL,
		  "A directory outside of the project that gets what path names (paths of the clone, no "
		  "patterns). A person must agree, also with --allow-promote." },
		CONFLICT,
		{ "git", PARAM_FLAG, "git", false, NULL,
		  "Also bring commits made in the clone, as branches snap/CLONE/..." },
		{ "plan", PARAM_TEXT, "plan", false, NULL,
		  "The `plan` of a dry run's answer: refused if something else would change now." },
	    },
	},
	{
	    .name = "snap_resolve",
	    .title = "Settle conflicts",
	    .description =
		"List the conflicts between a clone and the project, or settle one: take the project's "
		"lines (ours) or the clone's (theirs). For another text write the file in the clone and "
		"take theirs. snap_promote and snap_rebase then use what was decided.",
	    .command = "resolve",
	    .params = {
		CLONE(CLONE_HELP),
		{ "path", PARAM_TEXT, NULL, false, NULL,
		  "Which file, from the top of the project. Without it: list them." },
		{ "take", PARAM_TEXT, "take", false, "ours|theirs", "Whose lines." },
		{ "all", PARAM_FLAG, "all", false, NULL, "Every conflict that is open." },
		{ "undo", PARAM_FLAG, "undo", false, NULL, "Take back what was decided for path." },
		{ "with_hunks", PARAM_FLAG, "with-hunks", false, NULL,
		  "With the texts of both sides." },
	    },
	},
	{
	    .name = "snap_undo",
	    .title = "Undo",
	    .description = "Take the last promotion or rollback of the project back, exactly. A "
			   "person is asked for consent.",
	    .command = "undo",
	    .gate = GATE_PROJECT,
	    .destructive = true,
	    .params = {
		{ "promotion", PARAM_TEXT, NULL, false, NULL, "Which one (default: the last)." },
		DRY_RUN,
		CONFLICT,
	    },
	},
	{
	    .name = "snap_pipeline",
	    .title = "Changes on their way",
	    .description = "List the changes of this project on their way through its stages: where each "
			   "stands, what it waits for, its risk, and its receipts.",
	    .command = "pipeline",
	    .fixed = { "status" },
	    .read_only = true,
	    .idempotent = true,
	},
	{
	    .name = "snap_watch",
	    .title = "What the watch did",
	    .description = "The rules that the user's watch follows, what fired them, what was tried, what "
			   "landed, what waits for a person or turned sick, and what it cost.",
	    .command = "watch",
	    .fixed = { "status" },
	    .read_only = true,
	    .idempotent = true,
	},
	{
	    .name = "snap_ship",
	    .title = "Ship",
	    .description =
		"Take a clone's changes through the stages of the project's pipeline, as far as its "
		"policy lets an agent: checks, landing, a soak with health checks. What needs a person "
		"waits; snap_approve asks one. Call it again to take the same change further.",
	    .command = "ship",
	    .fixed = { "--as=agent" },
	    .gate = GATE_POLICY,
	    .destructive = true,
	    .params = {
		CLONE(CLONE_HELP),
		{ "to", PARAM_TEXT, "to", false, NULL, "Stop once it has passed this stage." },
		{ "subject", PARAM_LIST, "subject", false, NULL,
		  "Patterns for what the change was to be about: other paths raise its risk." },
	    },
	},
	{
	    .name = "snap_approve",
	    .title = "Ask for an approval",
	    .description =
		"Ask a person to let the change of a clone that waits enter its next stage. After a yes "
		"call snap_ship to take it further.",
	    .command = "approve",
	    .gate = GATE_PERSON,
	    .destructive = true,
	    .params = {
		CLONE("The clone that was shipped."),
		{ "message", PARAM_TEXT, "message", false, NULL, "Is kept with the receipt." },
	    },
	},
	{
	    .name = "snap_rebase",
	    .title = "Rebase",
	    .description = "Bring what changed in the project since into a clone, keeping the "
			   "clone's own changes.",
	    .command = "rebase",
	    .params = {
		CLONE(CLONE_HELP),
		DRY_RUN,
		CONFLICT,
	    },
	},
	{
	    .name = "snap_destroy",
	    .title = "Remove a clone",
	    .description = "Remove a clone with everything that was written in it.",
	    .command = "rm",
	    .destructive = true,
	    .params = {
		CLONE(CLONE_HELP),
		{ "force", PARAM_FLAG, "force", false, NULL, "Also if somebody uses it." },
	    },
	},
	{ .name = NULL },
};

bool tool_is_offered(const struct mcp_options *o, const struct tool *t)
{
	if (o->read_only)
		return t->read_only;
	return !o->no_promote || t->gate == GATE_NONE || t->gate == GATE_NO_CLONE;
}
