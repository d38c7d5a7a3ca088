/*
 * cmd.h - a command of the command line.
 *
 * Each cmd/NAME.c defines one `const struct command`; parsing, help and the list of commands read
 * nothing else. A command prints its result to inv->out, as JSON if inv->json says so, and then
 * returns 0 or an exit code above it; or prints nothing and returns a negative errno with a
 * sentence, which main() reports (fail.h).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/opt.h"
#include "engine/api/engine.h"

/* What the program's exit codes mean to its caller. */
enum cmd_status {
	CMD_OK = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_DIFFERENT = 3,
	CMD_NOT_FOUND = 4,
	CMD_CONFLICT = 5,
	CMD_STALE = 6,
	CMD_REFUSED = 7,
	CMD_CHECK_FAILED = 8,
	CMD_LIMIT = 9,
	CMD_BUSY = 11,
	CMD_DAMAGED = 12,
	CMD_LACKING = 13,     /* this machine, or this version, cannot */
	CMD_WAITS = 14,       /* for the approval of a person */
	CMD_NO_ARM = 15,      /* of an experiment: no arm passed */
	CMD_TIE = 16,         /* of an experiment: nothing was promoted */
	CMD_TIME_UP = 124,    /* of `run` and `wait` */
	CMD_NO_SANDBOX = 125, /* of `run`: we failed, not the command */
};

#define CMD_ARGS_MAX  640 /* bytes for the options of any command */
#define CMD_HINTS_MAX 8

struct command;
struct progress;

/* A line of a command that takes another one (takes_command) without "--" before that. */
struct bare {
	bool is;
	/* How it goes on behind the first word, should that be a clone's name: */
	int n_rest;       /* words behind the options that follow */
	bool json;        /* is among those */
	struct err wrong; /* with them; code 0: nothing */
};

struct invocation {
	const struct command *const *commands; /* all, in the order of help; NULL ends */
	/* line_run(), for a server that runs whole command lines */
	int (*run_line)(struct invocation *inv, int argc, char **argv, struct err *err);
	const struct command *command;
	struct engine *engine; /* NULL if the command needs none */
	const void *args;      /* the struct that the command's options fill */
	char **words;
	int n_words;
	int n_before; /* how many of them came before "--" */
	struct bare bare;
	bool adopted; /* a project that moved is known now: the command, a reader, runs again */
	bool ran;     /* what the command runs has ended: no failure is one to run it any more */

	FILE *out;
	bool json, quiet, color;
	const char *session;       /* of `snap mcp`, a label; NULL: not by_agent */
	bool by_agent;             /* a call of `snap mcp`, not somebody at a terminal */
	struct progress *progress; /* of a long act; ended before the result is printed */

	const char *program;     /* the name it was called by, for hints */
	const char *dir, *store; /* as given with -C and --store, or NULL */
	const char *
	    *typed; /* owned; what came behind the command's name, in its order, NULL at the end */
	char *hints[CMD_HINTS_MAX];            /* owned */
	const char *hint_notes[CMD_HINTS_MAX]; /* for people, behind a '#'; NULL: none */
	size_t n_hints;
	/* What a failure tells people between its sentence and the hints; NULL: nothing. */
	void (*print_more)(const struct invocation *inv, const void *ctx);
	const void *more;
};

struct command {
	const char *name;
	const char *alias; /* another word for it; may be NULL */
	const char *group; /* the heading it stands under in the overview */
	bool rare;         /* the overview only names it */
	const char *summary;
	const char *words; /* "STATE[:PATH]"; NULL: takes none */
	int min_words, max_words;
	bool takes_rest;            /* any number of words more behind "--" */
	bool takes_command;         /* they are a command to run, with or without "--" */
	bool leaves_clone;          /* what it did not promote is left in a clone, for `promote` */
	const struct opt *opts;     /* NULL: none but the global ones */
	void (*preset)(void *args); /* defaults that are not zero; may be NULL */
	const char
	    *details; /* what help says beyond the summary, in lines of any length; may be NULL */
	const char *examples; /* one a line, without the program's name; may be NULL */
	bool no_engine;       /* runs without a store and a directory */
	int (*run)(struct invocation *inv, struct err *err);
};

/* The one of that name, or NULL and a sentence that suggests another. */
const struct command *command_find(const struct command *const *commands, const char *name,
				   struct err *err);

/* The values of an option, as the engine takes them. */
static inline struct engine_list cmd_values(const struct opt_list *l)
{
	return (struct engine_list){ .items = l->items, .n = l->n };
}

/*
 * Should the command fail, say what to run next: arguments of this program, to which
 * its name and the -C and --store of this call are added.
 */
void cmd_hint(struct invocation *inv, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The same with words behind the text that somebody else chose, a NULL at the end: each quoted. */
void cmd_hint_words(struct invocation *inv, const char *text, const char *const *words);

/* Say what the newest hint does: a comment behind it, which no program gets. */
void cmd_hint_note(struct invocation *inv, const char *note);

/* What is different from the call that was typed; NULL in all of it: nothing. */
struct hint_again {
	const char *command; /* another one, that gets the options in `only` alone and no words */
	const char *const *only; /* their long names, a NULL at the end */
	const char *option,
	    *value;          /* is given too, as '--option value' or, without one, '--option' */
	const char *without; /* is not given */
	const char *word;    /* comes last */
};

/*
 * The same for a call that repeats what was typed, so that it does no less than was asked for: a
 * hint that dropped a check would land unchecked what it was to guard.
 */
void cmd_hint_again(struct invocation *inv, const struct hint_again *again);

/* Make a project of where the call is, as that is to be said there. */
void cmd_hint_init(struct invocation *inv);

/* For -EACCES: leave out what cannot be read, unless it is the store. */
void cmd_hint_unreadable(struct invocation *inv);
/* The same, if that is what failed. */
void cmd_hint_if_unreadable(struct invocation *inv, int r, const struct err *err);

/* Put "--" before the last n that were typed, so that hints know whose options those are. */
void cmd_put_dashes(struct invocation *inv, int n);

/* A hint that repeats what was typed with a "--" there; without memory there is none. */
void cmd_hint_dashes(struct invocation *inv, int n);

/* Such lines for other uses, owned; NULL if nobody could copy it, or for want of memory. */
char *cmd_line(const struct invocation *inv, const char *text, const char *const *words);
char *cmd_line_again(const struct invocation *inv, const struct hint_again *again);

/* clang-format off */
extern const struct command
    cmd_agents,
    cmd_allow,
    cmd_answer,
    cmd_approve,
    cmd_artifact,
    cmd_attach,
    cmd_audit,
    cmd_bisect,
    cmd_blame,
    cmd_cancel,
    cmd_check,
    cmd_clone,
    cmd_compare,
    cmd_completion,
    cmd_diff,
    cmd_doctor,
    cmd_edit,
    cmd_events,
    cmd_experiment,
    cmd_export,
    cmd_fetch,
    cmd_fsmonitor,
    cmd_gc,
    cmd_help,
    cmd_image,
    cmd_import,
    cmd_init,
    cmd_list,
    cmd_log,
    cmd_logs,
    cmd_mcp,
    cmd_metrics,
    cmd_mount,
    cmd_pipeline,
    cmd_policy,
    cmd_profile,
    cmd_projects,
    cmd_promote,
    cmd_ps,
    cmd_pull,
    cmd_push,
    cmd_rebase,
    cmd_reject,
    cmd_remote,
    cmd_replay,
    cmd_resolve,
    cmd_rm,
    cmd_rollback,
    cmd_run,
    cmd_runs,
    cmd_serve,
    cmd_ship,
    cmd_show,
    cmd_snapshot,
    cmd_start,
    cmd_stats,
    cmd_status,
    cmd_stop,
    cmd_tag,
    cmd_tasks,
    cmd_top,
    cmd_try,
    cmd_ui,
    cmd_umount,
    cmd_undo,
    cmd_version,
    cmd_wait,
    cmd_why,
    cmd_watch,
    cmd_worker,
    cmd_write;
/* clang-format on */
