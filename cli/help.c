#include "cli/help.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/typo.h"
#include "cli/globals.h"
#include "cli/out.h"
#include "cli/topics.h"

#define NAME_WIDTH 12
#define INDENT     "    " /* of lines in details that are not filled */

const struct command *command_find(const struct command *const *commands, const char *name,
				   struct err *err)
{
	struct typo typo = TYPO_INIT(name, strlen(name));

	for (size_t i = 0; commands[i]; i++) {
		if (strcmp(commands[i]->name, name) == 0 ||
		    (commands[i]->alias && strcmp(commands[i]->alias, name) == 0))
			return commands[i];
		typo_offer(&typo, commands[i]->name);
	}
	if (typo.best)
		err_set(err, -EINVAL, "unknown command '%s', did you mean '%s'?", name, typo.best);
	else
		err_set(err, -EINVAL, "unknown command '%s'", name);
	return NULL;
}

#define WIDTH 80 /* of a terminal that nobody made wider */

static int width_of(const struct invocation *inv)
{
	const size_t columns = out_columns(fileno(inv->out), WIDTH);

	return columns < WIDTH ? (int)columns : WIDTH;
}

/* Words of text[0..len) from column `indent` on, whatever lines they were written in. */
static void fill(const struct invocation *inv, const char *text, size_t len, int indent)
{
	const int width = width_of(inv);
	const char *const end = text + len;
	int at = indent;

	for (text += strspn(text, " \n"); text < end; text += strspn(text, " \n")) {
		const int n = (int)strcspn(text, " \n");

		if (at > indent && at + 1 + n > width) {
			fprintf(inv->out, "\n%*s", indent, "");
			at = indent;
		}
		at += fprintf(inv->out, "%s%.*s", at > indent ? " " : "", n, text);
		text += n;
	}
	fputc('\n', inv->out);
}

/* Paragraphs, with a blank line between; one that is indented stays as it was written. */
static void print_paragraphs(const struct invocation *inv, const char *text)
{
	const char *between = "";
	size_t n;

	for (text += strspn(text, "\n"); *text != '\0'; text += n, text += strspn(text, "\n")) {
		const char *end = strstr(text, "\n\n");

		n = end ? (size_t)(end - text) : strlen(text);
		fputs(between, inv->out);
		between = "\n";
		if (strncmp(text, INDENT, strlen(INDENT)) == 0)
			fprintf(inv->out, "%.*s%s", (int)n, text, text[n - 1] == '\n' ? "" : "\n");
		else
			fill(inv, text, n, 0);
	}
}

/* Behind `indent` columns; what does not fit goes on below, indented as much.  The column it ends in. */
static int print_usage_options(const struct invocation *inv, const struct opt *table, int indent)
{
	const int width = width_of(inv);
	FILE *out = inv->out;
	int at = indent;

	OPT_FOREACH(o, table)
	{
		char word[64];
		int len = o->short_name != '\0'
			      ? snprintf(word, sizeof(word), " [-%c", o->short_name)
			      : snprintf(word, sizeof(word), " [--%s", o->long_name);

		if (opt_takes_value(o))
			len += snprintf(word + len, sizeof(word) - (size_t)len, " %s", o->metavar);
		assert(len < (int)sizeof(word));
		if (at + len + 1 > width) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		}
		fprintf(out, "%s]", word);
		at += len + 1;
	}
	return at;
}

/* The names of rare commands from `first` up to `end`. */
static void print_rare(const struct invocation *inv, size_t first, size_t end, const char *before)
{
	const int width = width_of(inv);
	int at = 0;

	for (size_t i = first; i < end; i++) {
		const struct command *c = inv->commands[i];
		const int len = (int)strlen(c->name);

		if (!c->rare)
			continue;
		if (at > 0 && at + len + 3 > width) {
			before = ",\n              ";
			at = NAME_WIDTH;
		}
		at += fprintf(inv->out, "%s%s", before, c->name);
		before = ", ";
	}
	if (at > 0)
		fputc('\n', inv->out);
}

/* The commands of a group from `first` on; the first of the next group, or of none. */
static size_t print_group(const struct invocation *inv, size_t first, bool all)
{
	const struct command *const *commands = inv->commands;
	const char *group = commands[first]->group;
	bool any = all;
	FILE *out = inv->out;
	size_t end;

	fprintf(out, "%s%s%s\n", out_style(inv, OUT_BOLD), group, out_style(inv, OUT_PLAIN));
	for (end = first; commands[end] && strcmp(commands[end]->group, group) == 0; end++)
		if (all || !commands[end]->rare) {
			const char *summary = commands[end]->summary;

			fprintf(out, "  %-*s", NAME_WIDTH, commands[end]->name);
			fill(inv, summary, strlen(summary), NAME_WIDTH + 2);
			any = true;
		}
	if (!all)
		print_rare(inv, first, end, any ? "  and also    " : "  ");
	return end;
}

/* On about one screen; with `all`, every command and option with what it does. */
static void print_overview(const struct invocation *inv, bool all)
{
	FILE *out = inv->out;

	fprintf(out, "usage: %s [OPTION]... COMMAND ...\n\n", inv->program);
	print_paragraphs(inv,
			 "Snapshots and writable clones of whole project trees, ignored files too. "
			 "A command works on the project around the current directory, without "
			 "set-up.");
	for (size_t i = 0; inv->commands[i];) {
		fputc('\n', out);
		i = print_group(inv, i, all);
	}
	fprintf(out, "\n%sOptions%s, before or after the command\n", out_style(inv, OUT_BOLD),
		out_style(inv, OUT_PLAIN));
	if (all)
		opt_describe(global_opts, width_of(inv), out);
	else
		fputs("  -C DIR, --store DIR, --json, -q, -v, --color WHEN, -h, --version\n", out);
	fprintf(out, "More: %s help --all, or %s help COMMAND\nTopics:", inv->program,
		inv->program);
	for (const struct topic *t = topics; t->name; t++)
		fprintf(out, "%s %s", t == topics ? "" : ",", t->name);
	fprintf(out, " (%s help TOPIC)\n", inv->program);
}

static void print_examples(const struct invocation *inv, const char *examples)
{
	FILE *out = inv->out;
	size_t n;

	fprintf(out, "\n%sExamples%s\n", out_style(inv, OUT_BOLD), out_style(inv, OUT_PLAIN));
	for (; *examples != '\0'; examples += n + (examples[n] == '\n')) {
		n = strcspn(examples, "\n");
		fprintf(out, "  %s %.*s\n", inv->program, (int)n, examples);
	}
}

/* On the line that has come to `at`, or on one of their own, further left if they are long. */
static void print_usage_words(const struct invocation *inv, const char *words, int indent, int at)
{
	const int len = (int)strlen(words), room = width_of(inv) - len - 1;

	if (at > room)
		fprintf(inv->out, "\n%*s", indent < room || room < 0 ? indent : room, "");
	fprintf(inv->out, " %s", words);
}

static void print_command(const struct invocation *inv, const struct command *c)
{
	FILE *out = inv->out;
	char summary[128];
	int indent, at;

	at = indent = fprintf(out, "usage: %s %s", inv->program, c->name);
	if (c->opts)
		at = print_usage_options(inv, c->opts, indent);
	if (c->words)
		print_usage_words(inv, c->words, indent, at);
	fputs("\n\n", out);
	snprintf(summary, sizeof(summary), "%c%s.", toupper((unsigned char)c->summary[0]),
		 c->summary + 1);
	fill(inv, summary, strlen(summary), 0);
	if (c->details) {
		fputc('\n', out);
		print_paragraphs(inv, c->details);
	}
	if (c->opts) {
		fprintf(out, "\n%sOptions%s\n", out_style(inv, OUT_BOLD),
			out_style(inv, OUT_PLAIN));
		opt_describe(c->opts, width_of(inv), out);
	}
	if (c->examples)
		print_examples(inv, c->examples);
	fprintf(out, "\nOptions of every command: %s help --all\n", inv->program);
}

static void print_topic(const struct invocation *inv, const struct topic *t)
{
	fprintf(inv->out, "%s%c%s.%s\n\n%s", out_style(inv, OUT_BOLD),
		toupper((unsigned char)t->summary[0]), t->summary + 1, out_style(inv, OUT_PLAIN),
		t->text);
}

/* --- JSON ------------------------------------------------------------------------------- */

static void describe_opts(struct json j, const struct opt *table)
{
	struct json list = json_set_array(j, "options");

	if (!table)
		return;
	OPT_FOREACH(o, table)
	{
		const char letter[] = { o->short_name, '\0' };
		struct json one = json_add_object(list);

		json_set_text(one, "long", o->long_name);
		json_set_text(one, "short", o->short_name != '\0' ? letter : NULL);
		json_set_text(one, "value", o->metavar);
		json_set_text(one, "help", o->help);
	}
}

static void describe_command(struct json j, const struct command *c)
{
	json_set_text(j, "name", c->name);
	json_set_text(j, "alias", c->alias);
	json_set_text(j, "group", c->group);
	json_set_text(j, "summary", c->summary);
	json_set_text(j, "words", c->words);
	json_set_text(j, "details", c->details);
	json_set_text(j, "examples", c->examples);
	describe_opts(j, c->opts);
}

static int print_json(const struct invocation *inv, const struct command *only,
		      const struct topic *only_topic, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), list;

	json_set_text(j, "schema", "snap.help/1");
	describe_opts(j, global_opts);
	list = json_set_array(j, "commands");
	for (const struct command *const *c = inv->commands; *c; c++)
		if (!only_topic && (!only || only == *c))
			describe_command(json_add_object(list), *c);
	list = json_set_array(j, "topics");
	for (const struct topic *t = topics; t->name; t++) {
		struct json one;

		if (only || (only_topic && only_topic != t))
			continue;
		one = json_add_object(list);
		json_set_text(one, "name", t->name);
		json_set_text(one, "summary", t->summary);
		json_set_text(one, "text", t->text);
	}
	return json_print(&doc, inv->out, err);
}

static int print_help(const struct invocation *inv, const struct command *c, bool all,
		      struct err *err)
{
	if (inv->json)
		return print_json(inv, c, NULL, err);
	if (c)
		print_command(inv, c);
	else
		print_overview(inv, all);
	return CMD_OK;
}

int help_print(const struct invocation *inv, const struct command *c, struct err *err)
{
	return print_help(inv, c, false, err);
}

struct help_args {
	bool all;
};

static const struct opt help_opts[] = {
	OPT_FLAG('a', "all", struct help_args, all,
		 "every command and global option, each with what it does"),
	OPT_END,
};
_Static_assert(sizeof(struct help_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int help_run(struct invocation *inv, struct err *err)
{
	const struct topic *t = inv->n_words > 0 ? topic_find(inv->words[0]) : NULL;
	const struct help_args *args = inv->args;
	const struct command *c = NULL;

	if (t && inv->json)
		return print_json(inv, NULL, t, err);
	if (t) {
		print_topic(inv, t);
		return CMD_OK;
	}
	if (inv->n_words > 0) {
		c = command_find(inv->commands, inv->words[0], err);
		if (!c) {
			cmd_hint(inv, "help");
			return -EINVAL;
		}
	}
	return print_help(inv, c, args->all, err);
}

const struct command cmd_help = {
	.name = "help",
	.group = "Other",
	.rare = true,
	.summary = "say what there is, or what a command does",
	.words = "[COMMAND]",
	.details = "Instead of COMMAND you can name a topic: exit-codes, guard, json or states.",
	.examples = "help promote\nhelp exit-codes\nhelp --all\n",
	.opts = help_opts,
	.max_words = 1,
	.no_engine = true,
	.run = help_run,
};
