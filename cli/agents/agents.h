/*
 * agents.h - the programs that can use `snap mcp`, and where each keeps its list of servers.
 *
 * Nothing of a client's file is lost: only our entry changes (jsonc.h, toml.h), the earlier file is
 * kept beside it, and a file that cannot be parsed is not touched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

enum agent_form {
	AGENT_JSON,       /* {"command": ..., "args": [...]} */
	AGENT_JSON_STDIO, /* the same with a type */
	AGENT_JSON_LOCAL, /* {"type": "local", "command": [...]} */
	AGENT_TOML,
};

struct agent {
	const char *name, *title;
	const char *program; /* that it is started by; NULL: none that could be on PATH */
	const char *mark;    /* below the home directory: what it leaves there when it is used */
	const char *file;    /* the list of servers, likewise */
	enum agent_form form;
	const char *list;   /* the member or section of the file that is the list */
	const char *skills; /* the folder of its skills, likewise; NULL: it reads none */
};

/* NULL ends. */
extern const struct agent agents[];

/* The one of that name; -ENOENT with a sentence that lists them. */
NODISCARD int agent_find(const char *name, const struct agent **ret, struct err *err);

char *agent_self(void); /* the path of this program; owned; NULL: nobody knows */

/* What is known of one on this machine. */
struct agent_state {
	bool found;  /* its program, or what it leaves behind */
	bool set_up; /* our entry is in its file */
	bool same;   /* and is what we would write */
	bool starts; /* and names a program that can be started */
	char *file;  /* owned */
	char *text;  /* owned; what belongs into the file */
};

void agent_state_done(struct agent_state *s);

/* `args` are the arguments of `snapcow`, NULL at the end. */
NODISCARD int agent_look(const struct agent *a, const char *const *args, struct agent_state *ret,
			 struct err *err);

/*
 * Add our entry, or take it out (`args` NULL).  1 if nothing had to be changed.  *ret_backup (owned) is
 * where the file that was there is kept; NULL: there was none.  With `dry_run` nothing is written.
 */
NODISCARD int agent_change(const struct agent *a, const char *const *args, bool dry_run,
			   char **ret_file, char **ret_backup, struct err *err);
