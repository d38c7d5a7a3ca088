#include "cli/complete/complete.h"
#include "cli/globals.h"
#include "cli/help.h"

static void print_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* " -a '(...)'", or nothing where nobody can know. */
static void print_slot(FILE *out, const struct complete_slot *slot)
{
	static const char *const from[] = {
		[COMPLETE_CLONES] = "(__snapcow_names clones)",
		[COMPLETE_STATES] = "(__snapcow_names states)",
		[COMPLETE_PROMOTIONS] = "(__snapcow_names promotions)",
		[COMPLETE_RUNS] = "(__snapcow_names runs)",
		[COMPLETE_PROFILES] = "(__snapcow_names profiles)",
		[COMPLETE_EXPERIMENTS] = "(__snapcow_names experiments)",
		[COMPLETE_DIRS] = "(__fish_complete_directories)",
		[COMPLETE_FILES] = "(__fish_complete_path)",
		[COMPLETE_COMMANDS] = "$__snapcow_commands",
	};
	const char *at = NULL, *word, *between = "";
	size_t len;

	if (slot->kind == COMPLETE_NOTHING)
		return;
	fputs(" -a '", out);
	if (slot->kind != COMPLETE_CHOICES)
		fputs(from[slot->kind], out);
	while (slot->kind == COMPLETE_CHOICES && complete_choice(&at, slot, &word, &len)) {
		fprintf(out, "%s%.*s", between, (int)len, word);
		between = " ";
	}
	fputc('\'', out);
}

static void print_options(FILE *out, const char *when, const struct opt *table)
{
	OPT_FOREACH(o, table)
	{
		fprintf(out, "complete -c snapcow%s", when);
		if (o->short_name != '\0')
			fprintf(out, " -s %c", o->short_name);
		if (o->long_name)
			fprintf(out, " -l %s", o->long_name);
		if (opt_takes_value(o)) {
			const struct complete_slot slot = complete_value(o);

			fputs(" -x", out);
			print_slot(out, &slot);
		}
		fputs(" -d ", out);
		print_quoted(out, o->help);
		fputc('\n', out);
	}
}

static void print_command(FILE *out, const struct command *c)
{
	const char *words = c->words;
	struct complete_slot slot;
	char when[128];

	fprintf(out, "complete -c snapcow -n __snapcow_no_command -a %s -d ", c->name);
	print_quoted(out, c->summary);
	fputc('\n', out);
	snprintf(when, sizeof(when), " -n '__fish_seen_subcommand_from %s%s%s'", c->name,
		 c->alias ? " " : "", c->alias ? c->alias : "");
	while (complete_next(&words, &slot)) {
		if (slot.kind == COMPLETE_NOTHING)
			continue;
		fprintf(out, "complete -c snapcow%s", when);
		print_slot(out, &slot);
		fputc('\n', out);
	}
	if (c->opts)
		print_options(out, when, c->opts);
}

void complete_fish(const struct command *const *commands, FILE *out)
{
	fputs("# Completion of snapcow for fish, as `snapcow completion fish` prints it.\n\n"
	      "set -g __snapcow_commands",
	      out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, " %s", commands[i]->name);
	fputs("\n\nfunction __snapcow_no_command\n"
	      "    not __fish_seen_subcommand_from $__snapcow_commands",
	      out);
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->alias)
			fprintf(out, " %s", commands[i]->alias);
	fputs("\nend\n\n"
	      "function __snapcow_names\n"
	      "    set -l words (commandline -opc)\n"
	      "    set -l where\n"
	      "    set -l of\n"
	      "    for i in (seq 2 (math (count $words) - 1))\n"
	      "        if contains -- $words[$i] -C --store\n"
	      "            set -a where $words[$i] $words[(math $i + 1)]\n"
	      "        end\n"
	      "    end\n"
	      "    # States of the clone that the word before names come first.\n"
	      "    if test $argv[1] = states; and not string match -q -- '-*' $words[-1]\n"
	      "        and not contains -- $words[-1] $__snapcow_commands\n"
	      "        set of $words[-1]\n"
	      "    end\n"
	      "    command $words[1] $where completion $argv[1] $of 2>/dev/null\n"
	      "end\n\n"
	      "complete -c snapcow -f\n",
	      out);
	print_options(out, "", global_opts);
	for (size_t i = 0; commands[i]; i++)
		print_command(out, commands[i]);
	fputs("# The short name may be another program's.\n"
	      "if test (path resolve (command -s snap) 2>/dev/null) = "
	      "(path resolve (command -s snapcow) 2>/dev/null) 2>/dev/null\n"
	      "    complete -c snap -w snapcow\n"
	      "end\n",
	      out);
}
