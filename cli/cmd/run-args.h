/*
 * run-args.h - the options of a run on the command line, for `run` and `try`.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/run.h"

struct run_args {
	const char *workdir, *profile, *cpus, *durability, *code, *lang, *on, *remote, *creds,
	    *ticket, *path, *signers, *sign;
	uint64_t mem, pids, time, disk, inodes, fsize, nofile, output, net_out, ttl, ask_time,
	    deadline;
	struct opt_list net, publish, ro, rw, hide, env, pass_env, secret, secret_for, tls_inspect,
	    allow_missing, artifact, label;
	const char *as;
	char as_ids[ENGINE_AS_SIZE]; /* the same, as numbers */
	bool tty, no_snapshot, keep, rm, detach, ask, root, lazy, wait, skip_unreadable, insecure,
	    signed_only;
};

/* Of a struct that is, or begins with, struct run_args. */
#define RUN_OPTS                                                                                   \
	OPT_SIZE(0, "mem", "SIZE", struct run_args, mem, "memory of all its processes (1G)"),      \
	    OPT_STR(0, "cpus", "N", struct run_args, cpus, "processors it may use: 1.5 (all)"),    \
	    OPT_U64(0, "pids", "N", struct run_args, pids, "processes and threads (512)"),         \
	    OPT_DURATION(0, "time", "TIME", struct run_args, time, "how long it may take (10m)"),  \
	    OPT_SIZE(0, "disk", "SIZE", struct run_args, disk,                                     \
		     "how much the clone may grow (4G)"),                                          \
	    OPT_U64(0, "inodes", "N", struct run_args, inodes,                                     \
		    "files and directories that it may make (1000000)"),                           \
	    OPT_SIZE(0, "fsize", "SIZE", struct run_args, fsize, "how large a file may be (any)"), \
	    OPT_U64(0, "nofile", "N", struct run_args, nofile, "open files of a process (4096)"),  \
	    OPT_SIZE(0, "output", "SIZE", struct run_args, output, "how much it may print (1G)"),  \
	    OPT_LIST(0, "net", "none|loopback|host", struct run_args, net,                         \
		     "its network: none, a loopback of its own, the host's, or HOST:PORT,... and " \
		     "nothing else"),                                                              \
	    OPT_SIZE(0, "net-out", "SIZE", struct run_args, net_out,                               \
		     "how much it may send to hosts (any)"),                                       \
	    OPT_FLAG(0, "ask", struct run_args, ask,                                               \
		     "ask about connections and some system calls instead of refusing them"),      \
	    OPT_DURATION(0, "ask-time", "TIME", struct run_args, ask_time,                         \
			 "the same, and how long an answer may take (1m)"),                        \
	    OPT_LIST('p', "publish", "PORT[:HOSTPORT],...", struct run_args, publish,              \
		     "make its server reachable on 127.0.0.1 of this machine; HOSTPORT 0 picks a " \
		     "free port"),                                                                 \
	    OPT_LIST(0, "ro", "PATH", struct run_args, ro, "show it PATH of the host, read-only"), \
	    OPT_LIST(0, "rw", "PATH", struct run_args, rw, "show it PATH of the host, writable"),  \
	    OPT_LIST(0, "hide", "PATH", struct run_args, hide, "show it nothing at PATH"),         \
	    OPT_LIST('e', "env", "NAME=VALUE", struct run_args, env, "set a variable"),            \
	    OPT_LIST(0, "pass-env", "NAME", struct run_args, pass_env,                             \
		     "pass on a variable of this environment"),                                    \
	    OPT_LIST(0, "secret", "NAME[=FILE]", struct run_args, secret,                          \
		     "pass on a variable or a file's content, and print *** in its place"),        \
	    OPT_LIST(0, "secret-for", "URL=NAME", struct run_args, secret_for,                     \
		     "send that host a secret that the run never sees"),                           \
	    OPT_LIST(0, "tls-inspect", "HOST,...", struct run_args, tls_inspect,                   \
		     "read TLS to HOST, for rules with https://"),                                 \
	    OPT_STR('w', "workdir", "DIR", struct run_args, workdir,                               \
		    "where it starts (default: here)"),                                            \
	    OPT_FLAG(0, "root", struct run_args, root,                                             \
		     "the clone is a whole root file system, and the command is root in it"),      \
	    OPT_STR(0, "as", "USER|UID:GID", struct run_args, as,                                  \
		    "with --root: run it as this user of that system"),                            \
	    OPT_FLAG('t', "tty", struct run_args, tty, "give it a terminal of its own"),           \
	    OPT_STR(0, "profile", "PROFILE", struct run_args, profile,                             \
		    "start from a profile; options come on top"),                                  \
	    OPT_LIST(0, "allow-missing", "WALL", struct run_args, allow_missing,                   \
		     "run without WALL if this machine lacks it: landlock, memory, pids, cpu"),    \
	    OPT_FLAG(0, "lazy", struct run_args, lazy,                                             \
		     "begin before the project's files are read"),                                 \
	    OPT_FLAG(0, "wait", struct run_args, wait,                                             \
		     "begin when all of them are read, however many"),                             \
	    OPT_FLAG(0, "skip-unreadable", struct run_args, skip_unreadable,                       \
		     "skip files that cannot be read, and list them"),                             \
	    OPT_STR(0, "path", "DIR", struct run_args, path,                                       \
		    "only this directory of the project"),                                         \
	    OPT_FLAG(0, "keep", struct run_args, keep, "keep the clone that is made for it"),      \
	    OPT_DURATION(0, "ttl", "TIME", struct run_args, ttl, "keep that clone for this long"), \
	    OPT_STR(0, "code", "TEXT", struct run_args, code,                                      \
		    "run this snippet, with the words as its arguments; -: from standard input"),  \
	    OPT_STR(0, "lang", "bash|node|perl|php|python|ruby|sh", struct run_args, lang,         \
		    "the language of the snippet"),                                                \
	    OPT_LIST(0, "artifact", "PATH", struct run_args, artifact,                             \
		     "save this file or directory of the clone afterwards; see artifact"),         \
	    OPT_STR(0, "durability", "full|fast", struct run_args, durability,                     \
		    "whether fsync in the new clone waits for the disk (fast; full with --keep)")

void run_preset(void *args);

/*
 * Of a line without "--": its first word begins the command, unless there is a clone of that name.
 * That is -EINVAL, and the hints are the lines that say which of the two is meant.
 */
NODISCARD int run_read_bare(struct invocation *inv, struct err *err);

/* What is wrong with what was said, if anything, before anything is done. */
NODISCARD int run_check(struct invocation *inv, struct err *err);

/*
 * Run the command as inv->args says, which is or begins with struct run_args.  What is
 * wrong with that is -EINVAL with a sentence, and hints are given.  `waits` as engine_run_options has it.
 */
NODISCARD int run_go(struct invocation *inv, struct engine_waiting **waits, struct engine_run *ret,
		     struct err *err);

/* What the command does not know itself, to people. */
void run_tell(const struct invocation *inv, const struct engine_run *r);

/* The clone that stays, and what to type next. */
void run_tell_kept(const struct invocation *inv, FILE *out, const struct engine_run *r);

/* The members of its answer. */
void run_set_json(struct json j, const struct engine_run *r);
