#include "cli/topics.h"

#include <stddef.h>
#include <string.h>

const struct topic topics[] = {
	{ "exit-codes", "what the exit status says",
	  "  0    it went well\n"
	  "  1    it failed\n"
	  "  2    the command line is wrong\n"
	  "  3    what was compared differs (diff --exit-code, replay)\n"
	  "  4    there is no such clone, snapshot, run or project\n"
	  "  5    a conflict; nothing was changed\n"
	  "  6    the project has moved on (status --fail-if-stale), or a remote's name (push)\n"
	  "  7    refused by the guard or another rule; nothing was changed\n"
	  "  8    a check failed; nothing was changed\n"
	  "  9    a limit was reached\n"
	  "  11   it is in use\n"
	  "  12   the store is damaged\n"
	  "  13   this machine lacks something; `doctor` says what\n"
	  "  14   a change waits for the approval of a person\n"
	  "  15   no arm of an experiment passed\n"
	  "  16   a tie of arms; nothing was promoted\n"
	  "  141  the program that read the output ended first; 130: ^C ended it\n"
	  "\n"
	  "`run` and `try` end with the command's own code, or with\n"
	  "  124    the time limit was reached\n"
	  "  125    snap itself failed: no sandbox, no such clone or profile\n"
	  "  126    the command cannot be executed; 127: there is no such command\n"
	  "  128+N  it was killed by signal N\n" },
	{ "guard", "what a promotion holds or warns of, and how to let it pass",
	  "Other programs run or obey some files later: git, a shell, an editor, a package\n"
	  "manager, a build server, an assistant. `promote`, and `rollback` of the project\n"
	  "to a state that a clone made, change nothing (exit code 7) if a rule holds a\n"
	  "path. Some rules only warn: then the path lands, and the warning says why.\n"
	  "\n"
	  "  promote --rules             all rules: level, name, why, patterns\n"
	  "  promote --dry-run CLONE     what is held and warned of\n"
	  "  promote --allow PATH CLONE  let that path and all below it pass\n"
	  "\n"
	  "You can add rules in ~/.config/snapcow/guard.yaml and in the project's own\n"
	  ".snap/guard.yaml. They come before the built-in rules, and the first that matches\n"
	  "a name counts:\n"
	  "\n"
	  "  - name: keys\n"
	  "    paths: [\"secrets/\", \"*.pem\"]    # as in .gitignore\n"
	  "    why: they open our servers\n"
	  "    level: hold                      # or warn, or pass\n" },
	{ "json", "what programs can rely on",
	  "With --json a command prints one object, in one line, with \"schema\":\"snap.NAME/1\";\n"
	  "a failure is \"snap.error/1\" with error.code, .message, .hints and .data. Fields\n"
	  "may be added, and none goes or changes its meaning.\n"
	  "\n"
	  "  sizes      in bytes\n"
	  "  durations  in milliseconds, in fields that end in _ms\n"
	  "  times      RFC 3339, UTC\n"
	  "  ids        strings\n"
	  "  names      printable UTF-8 as it is; backslash, control characters and bytes\n"
	  "             that are no UTF-8 as \\xNN, so every backslash begins such a group\n"
	  "\n"
	  "Where a name is shown to people, characters that cannot be seen are escaped in\n"
	  "the same way.\n" },
	{ "states", "how to name a snapshot, a clone or the project",
	  "  .           the project as it is now\n"
	  "  NAME        a clone as it is now\n"
	  "  @           the newest snapshot of the project; @-1 the one before\n"
	  "  NAME@       the newest snapshot of a clone; NAME@-1 the one before\n"
	  "  3f9a0c1d    a snapshot by its id, or by the beginning of it\n"
	  "  TAG         a snapshot by a tag (`tag`)\n"
	  "  STATE:PATH  a file or directory of it (`show`); STATE: is its top\n"
	  "\n"
	  "`log` lists snapshots, `list` clones. In a clone's directory, a command that names\n"
	  "no clone means that one.\n" },
	{ NULL, NULL, NULL },
};

const struct topic *topic_find(const char *name)
{
	for (const struct topic *t = topics; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}
