/*
 * complete.h - scripts by which shells complete our command lines.
 *
 * They are generated from the tables that the parser reads: names of commands and options, choices,
 * and the kind of a word by the name that help gives it. A script asks for names of clones, states
 * and the like when it needs them: `completion clones`, `states [CLONE]`, `promotions`, `runs`,
 * `profiles` or `experiments`, one in a line, followed by a tab and a description.
 */
#pragma once

#include "cli/cmd.h"

enum complete_kind {
	COMPLETE_NOTHING, /* there is a word, and nobody can know it */
	COMPLETE_CHOICES, /* "a|b|c" */
	COMPLETE_CLONES,
	COMPLETE_STATES,
	COMPLETE_PROMOTIONS,
	COMPLETE_RUNS,
	COMPLETE_PROFILES,
	COMPLETE_EXPERIMENTS,
	COMPLETE_DIRS,
	COMPLETE_FILES,
	COMPLETE_COMMANDS,
};

/* What may stand in one place of a command line. */
struct complete_slot {
	enum complete_kind kind;
	const char *text; /* what help calls it, text[0..len); borrowed */
	size_t len;
	bool more; /* and any number of times */
	bool open; /* something may follow it in the same word */
	bool acts; /* COMPLETE_CHOICES: "[list | rm NAME]", where only the first words count */
};

/* The value of an option that takes one. */
struct complete_slot complete_value(const struct opt *o);

/* The next word of `*words`, which then points behind it; false at the end.  NULL is fine. */
bool complete_next(const char **words, struct complete_slot *ret);

/* Words of a slot of COMPLETE_CHOICES: the next of them, as above. */
bool complete_choice(const char **at, const struct complete_slot *slot, const char **ret,
		     size_t *ret_len);

/* The script, for all of `commands`, which a NULL ends. */
void complete_bash(const struct command *const *commands, FILE *out);
void complete_zsh(const struct command *const *commands, FILE *out);
void complete_fish(const struct command *const *commands, FILE *out);
