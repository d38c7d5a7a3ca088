/*
 * bash splits a line at characters that our words may have (COMP_WORDBREAKS has ":", "=" and "@"),
 * so the script splits it again at blanks alone, and gives back only what follows the
 * last of those characters.  No name is ever expanded: one may be called "$(reboot)".
 */

#include "cli/complete/complete.h"
#include "cli/globals.h"
#include "cli/help.h"

static void print_kind(FILE *out, const struct complete_slot *slot)
{
	static const char *const name[] = {
		[COMPLETE_NOTHING] = "nothing",       [COMPLETE_CLONES] = "clones",
		[COMPLETE_STATES] = "states",         [COMPLETE_DIRS] = "dirs",
		[COMPLETE_FILES] = "files",           [COMPLETE_COMMANDS] = "commands",
		[COMPLETE_PROMOTIONS] = "promotions", [COMPLETE_RUNS] = "runs",
		[COMPLETE_PROFILES] = "profiles",     [COMPLETE_EXPERIMENTS] = "experiments",
	};
	const char *at = NULL, *word, *between = "";
	size_t len;

	if (slot->kind != COMPLETE_CHOICES) {
		fprintf(out, "%s%s", name[slot->kind], slot->open ? ":" : "");
		return;
	}
	fputs("'one of:", out);
	while (complete_choice(&at, slot, &word, &len)) {
		fprintf(out, "%s%.*s", between, (int)len, word);
		between = " ";
	}
	fputc('\'', out);
}

/* Of a command, or (NULL) of all. */
static void print_values(FILE *out, const struct command *c, const struct opt *table)
{
	OPT_FOREACH(o, table)
	{
		const struct complete_slot slot =
		    opt_takes_value(o) ? complete_value(o) : (struct complete_slot){ 0 };
		const char *who = c ? c->name : "";

		if (!opt_takes_value(o))
			continue;
		fputc('\t', out);
		if (o->short_name != '\0')
			fprintf(out, "%s' %s -%c'", c ? "" : "*", who, o->short_name);
		if (o->short_name != '\0' && o->long_name)
			fputs(" | ", out);
		if (o->long_name)
			fprintf(out, "%s' %s --%s'", c ? "" : "*", who, o->long_name);
		fputs(") kind=", out);
		print_kind(out, &slot);
		fputs(" ;;\n", out);
	}
}

static void print_words(FILE *out, const struct command *c)
{
	const char *words = c->words;
	struct complete_slot slot;

	for (int i = 1; complete_next(&words, &slot); i++) {
		if (slot.more)
			fprintf(out, "\t'%s '*) kind=", c->name);
		else
			fprintf(out, "\t'%s %d') kind=", c->name, i);
		print_kind(out, &slot);
		fputs(" ;;\n", out);
	}
}

static void print_options(FILE *out, const struct opt *table)
{
	OPT_FOREACH(o, table)
	{
		if (o->short_name != '\0')
			fprintf(out, " -%c", o->short_name);
		if (o->long_name)
			fprintf(out, " --%s", o->long_name);
	}
}

static void print_tables(const struct command *const *commands, FILE *out)
{
	fputs("# What stands behind option $2 of command $1; nothing in $kind: it has no value.\n"
	      "_snapcow_value()\n{\n\tcase \" $1 $2\" in\n",
	      out);
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->opts)
			print_values(out, commands[i], commands[i]->opts);
	print_values(out, NULL, global_opts);
	fputs("\t*) kind= ;;\n\tesac\n}\n\n", out);

	fputs("# What stands as word number $2 of command $1.\n"
	      "_snapcow_word()\n{\n\tcase \"$1 $2\" in\n",
	      out);
	for (size_t i = 0; commands[i]; i++)
		print_words(out, commands[i]);
	fputs("\t*) kind= ;;\n\tesac\n}\n\n", out);

	fputs("_snapcow_options()\n{\n\tcase $1 in\n", out);
	for (size_t i = 0; commands[i]; i++) {
		if (!commands[i]->opts)
			continue;
		fprintf(out, "\t%s) options='", commands[i]->name);
		print_options(out, commands[i]->opts);
		fputs("' ;;\n", out);
	}
	fputs("\t*) options= ;;\n\tesac\n\toptions+='", out);
	print_options(out, global_opts);
	fputs("'\n}\n\n", out);
}

static void print_names(const struct command *const *commands, FILE *out)
{
	fputs("_snapcow_commands='", out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
	fputs("'\n\n# What an alias stands for.\n_snapcow_command()\n{\n\tcase $1 in\n", out);
	for (size_t i = 0; commands[i]; i++)
		if (commands[i]->alias)
			fprintf(out, "\t%s) command=%s ;;\n", commands[i]->alias,
				commands[i]->name);
	fputs("\t*) command=$1 ;;\n\tesac\n}\n\n", out);
}

static const char script[] =
    "# What has been typed: the command, how many words of it, and what is wanted now.\n"
    "_snapcow_read()\n"
    "{\n"
    "\tlocal i word last=$((${#words[@]} - 1))\n"
    "\n"
    "\tfor ((i = 1; i < last; i++)); do\n"
    "\t\tword=${words[i]}\n"
    "\t\tif [[ $word != -* || $word == - ]]; then\n"
    "\t\t\tif [[ $command ]]; then ((count++)); first=${first:-$word}; else _snapcow_command \"$word\"; fi\n"
    "\t\t\tcontinue\n"
    "\t\tfi\n"
    "\t\t[[ $word != -- ]] || { kind=files; return; }\n"
    "\t\t_snapcow_value \"$command\" \"$word\"\n"
    "\t\t[[ $kind ]] || continue\n"
    "\t\t((i + 1 < last)) || return\n"
    "\t\t[[ $word != -C && $word != --store ]] || where+=(\"$word\" \"${words[i + 1]}\")\n"
    "\t\tkind= i=$((i + 1))\n"
    "\tdone\n"
    "\tif [[ $cur == --*=* ]]; then\n"
    "\t\t_snapcow_value \"$command\" \"${cur%%=*}\"\n"
    "\t\tbefore=${cur%%=*}= cur=${cur#*=}\n"
    "\telif [[ $cur == -* ]]; then\n"
    "\t\t_snapcow_options \"$command\"\n"
    "\t\tkind=\"one of:$options\"\n"
    "\telif [[ $command ]]; then\n"
    "\t\t_snapcow_word \"$command\" $((count + 1))\n"
    "\telse\n"
    "\t\tkind=commands\n"
    "\tfi\n"
    "}\n"
    "\n"
    "_snapcow_offer()\n"
    "{\n"
    "\tcase $kind in\n"
    "\t'one of:'*) printf '%s\\n' ${kind#one of:} ;;\n"
    "\tcommands) printf '%s\\n' $_snapcow_commands ;;\n"
    "\tclones | experiments | profiles | promotions | runs) \"$program\" \"${where[@]}\" completion \"$kind\" 2>/dev/null ;;\n"
    "\tstates) \"$program\" \"${where[@]}\" completion states ${first:+\"$first\"} 2>/dev/null ;;\n"
    "\tdirs) compgen -d -- \"$cur\" ;;\n"
    "\tfiles) compgen -f -- \"$cur\" ;;\n"
    "\tesac\n"
    "}\n"
    "\n"
    "_snapcow()\n"
    "{\n"
    "\tlocal line=${COMP_LINE:0:COMP_POINT} program=$1 command= kind= options= before= cut= first= \\\n"
    "\t\tcount=0 word rest cur i\n"
    "\tlocal -a words=() where=()\n"
    "\n"
    "\tread -ra words <<<\"$line\"\n"
    "\t[[ $line != *[[:space:]] ]] || words+=('')\n"
    "\tcur=${words[${#words[@]} - 1]}\n"
    "\t_snapcow_read\n"
    "\tcase $kind in\n"
    "\tdirs | files) compopt -o filenames 2>/dev/null ;;\n"
    "\t*:) kind=${kind%:}; compopt -o nospace 2>/dev/null ;;\n"
    "\tesac\n"
    "\tfor i in : = @; do\n"
    "\t\t[[ $COMP_WORDBREAKS == *\"$i\"* && $before$cur == *\"$i\"* ]] || continue\n"
    "\t\tword=$before$cur word=${word%\"${word##*\"$i\"}\"}\n"
    "\t\t((${#word} <= ${#cut})) || cut=$word\n"
    "\tdone\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS=$'\\t' read -r word rest; do\n"
    "\t\t[[ $word == \"$cur\"* ]] || continue\n"
    "\t\t[[ $kind == dirs || $kind == files ]] || printf -v word %q \"$word\"\n"
    "\t\tword=$before$word\n"
    "\t\tCOMPREPLY+=(\"${word#\"$cut\"}\")\n"
    "\tdone < <(_snapcow_offer)\n"
    "}\n"
    "\n"
    "complete -F _snapcow snapcow\n"
    "# The short name may be another program's.\n"
    "if [[ $(type -P snap) -ef $(type -P snapcow) ]]; then\n"
    "\tcomplete -F _snapcow snap\n"
    "fi\n";

void complete_bash(const struct command *const *commands, FILE *out)
{
	fputs("# Completion of snapcow for bash, as `snapcow completion bash` prints it.\n\n", out);
	print_names(commands, out);
	print_tables(commands, out);
	fputs(script, out);
}
