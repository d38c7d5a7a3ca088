#include <string.h>

#include "cli/complete/complete.h"
#include "cli/globals.h"
#include "cli/help.h"

/* In single quotes; `marked` is what _arguments or _describe would take for its own. */
static void print_text(FILE *out, const char *text, const char *marked)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs("'\\'", out);
		else if (strchr(marked, *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

/* ":DIR:_files -/" */
static void print_slot(FILE *out, const struct complete_slot *slot)
{
	static const char *const action[] = {
		/* " " would list an option that is typed there, and not complete it. */
		[COMPLETE_NOTHING] = "()",
		[COMPLETE_CLONES] = "_snapcow_clones",
		[COMPLETE_STATES] = "_snapcow_states",
		[COMPLETE_PROMOTIONS] = "_snapcow_promotions",
		[COMPLETE_RUNS] = "_snapcow_runs",
		[COMPLETE_PROFILES] = "_snapcow_profiles",
		[COMPLETE_EXPERIMENTS] = "_snapcow_experiments",
		[COMPLETE_DIRS] = "_files -/",
		[COMPLETE_FILES] = "_files",
		[COMPLETE_COMMANDS] = "_snapcow_commands",
	};
	const char *at = NULL, *word, *between = "(";
	size_t len;

	if (slot->acts)
		fputs(":ACT:", out);
	else
		fprintf(out, ":%.*s:", (int)slot->len, slot->text);
	if (slot->kind != COMPLETE_CHOICES) {
		fputs(action[slot->kind], out);
		return;
	}
	while (complete_choice(&at, slot, &word, &len)) {
		fprintf(out, "%s%.*s", between, (int)len, word);
		between = " ";
	}
	fputc(')', out);
}

static void print_options(FILE *out, const struct opt *table, const char *indent)
{
	OPT_FOREACH(o, table)
	{
		const bool value = opt_takes_value(o);

		fputs(indent, out);
		if (o->short_name != '\0' && o->long_name)
			fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->short_name, o->long_name,
				o->short_name, value ? "+" : "", o->long_name, value ? "=" : "");
		else if (o->long_name)
			fprintf(out, "'--%s%s[", o->long_name, value ? "=" : "");
		else
			fprintf(out, "'-%c%s[", o->short_name, value ? "+" : "");
		print_text(out, o->help, "[]\\");
		fputc(']', out);
		if (value) {
			const struct complete_slot slot = complete_value(o);

			print_slot(out, &slot);
		}
		fputs("'", out);
	}
}

static void print_commands(const struct command *const *commands, FILE *out)
{
	fputs("_snapcow_commands()\n{\n\tlocal -a commands=(", out);
	for (size_t i = 0; commands[i]; i++) {
		fprintf(out, "\n\t\t'%s:", commands[i]->name);
		print_text(out, commands[i]->summary, ":\\");
		fputc('\'', out);
	}
	fputs("\n\t)\n\n\t_describe -t commands command commands\n}\n\n", out);
}

static void print_command(FILE *out, const struct command *c)
{
	const char *words = c->words;
	struct complete_slot slot;

	fprintf(out, "\t%s%s%s)\n\t\t_arguments $all", c->name, c->alias ? " | " : "",
		c->alias ? c->alias : "");
	if (c->opts)
		print_options(out, c->opts, " \\\n\t\t\t");
	while (complete_next(&words, &slot)) {
		fprintf(out, " \\\n\t\t\t'%s", slot.more ? "*" : ":");
		print_slot(out, &slot);
		fputc('\'', out);
	}
	fputs(" && ret=0\n\t\t;;\n", out);
}

static const char head[] =
    "#compdef snapcow\n"
    "# Completion of snapcow for zsh, as `snapcow completion zsh` prints it.\n"
    "\n"
    "# Names that are asked for when they are wanted: $1 is what they are, the rest how to ask.\n"
    "_snapcow_names()\n"
    "{\n"
    "\tlocal name about\n"
    "\tlocal -a names where\n"
    "\n"
    "\t(( ${+opt_args[-C]} )) && where+=(-C ${(Q)opt_args[-C]})\n"
    "\t(( ${+opt_args[--store]} )) && where+=(--store ${(Q)opt_args[--store]})\n"
    "\twhile IFS=$'\\t' read -r name about; do\n"
    "\t\tnames+=(\"${name//:/\\\\:}:$about\")\n"
    "\tdone < <(\"$snapcow_program\" $where completion ${@:2} 2>/dev/null)\n"
    "\t_describe -t $1 $1 names\n"
    "}\n"
    "_snapcow_clones() { _snapcow_names clone clones }\n"
    "_snapcow_states() { _snapcow_names state states ${(Q)line[1]:#$words[CURRENT]} }\n"
    "_snapcow_promotions() { _snapcow_names promotion promotions }\n"
    "_snapcow_runs() { _snapcow_names run runs }\n"
    "_snapcow_profiles() { _snapcow_names profile profiles }\n"
    "_snapcow_experiments() { _snapcow_names experiment experiments }\n"
    "\n";

static const char tail[] =
    "\tesac\n"
    "\treturn ret\n"
    "}\n"
    "\n"
    "# The short name may be another program's.\n"
    "if [[ -n ${commands[snap]} && ${commands[snap]:A} == ${commands[snapcow]:A} ]]; then\n"
    "\tcompdef _snapcow snap\n"
    "fi\n"
    "[[ $funcstack[1] == _snapcow ]] && _snapcow \"$@\" || compdef _snapcow snapcow\n";

void complete_zsh(const struct command *const *commands, FILE *out)
{
	fputs(head, out);
	print_commands(commands, out);
	fputs("_snapcow()\n{\n"
	      "\tlocal curcontext=$curcontext state line snapcow_program=$words[1] ret=1\n"
	      "\tlocal -A opt_args\n\tlocal -a all=(",
	      out);
	print_options(out, global_opts, "\n\t\t");
	fputs("\n\t)\n\n"
	      "\t_arguments -C $all ': :_snapcow_commands' '*:: :->words' && ret=0\n"
	      "\t[[ $state == words ]] || return ret\n"
	      "\tcase $words[1] in\n",
	      out);
	for (size_t i = 0; commands[i]; i++)
		print_command(out, commands[i]);
	fputs(tail, out);
}
