#include "cli/fail.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/globals.h"
#include "engine/api/projects.h"

#define NOTE_COLUMN 40 /* of a hint; a longer one has its note directly behind it */

struct kind {
	int code;
	enum cmd_status status;
	const char *name;
	const char *hint; /* arguments that help with it, or NULL */
};

/* The one place where codes (docs/dev/style.md "Errors", engine/api/engine.h) become exit codes. */
static const struct kind kinds[] = {
	{ -EINVAL, CMD_USAGE, "E_USAGE", NULL },
	{ -EDESTADDRREQ, CMD_USAGE, "E_USAGE", "list" },
	{ -ENOENT, CMD_NOT_FOUND, "E_NOT_FOUND", NULL },
	{ -ENOTDIR, CMD_NOT_FOUND, "E_NOT_FOUND", NULL },
	{ -ENXIO, CMD_NOT_FOUND, "E_NO_PROJECT", NULL },
	{ -ESTALE, CMD_STALE, "E_STALE", NULL },
	{ -ECANCELED, CMD_REFUSED, "E_REFUSED", NULL },
	{ -EDQUOT, CMD_LIMIT, "E_LIMIT", "gc" },
	{ -EBUSY, CMD_BUSY, "E_BUSY", NULL },
	{ -EBADMSG, CMD_DAMAGED, "E_DAMAGED", "check" },
	{ -ENOTSUP, CMD_LACKING, "E_MISSING", "doctor" },
	/* A store of a later version: what is lacking is a newer program. */
	{ -EPROTO, CMD_LACKING, "E_VERSION", "version" },
	/* A daemon of another version: what is lacking is its end. */
	{ -EPROTONOSUPPORT, CMD_BUSY, "E_VERSION", "stop" },
	{ -ECONNRESET, CMD_FAILED, "E_DAEMON", NULL },
	{ -EEXIST, CMD_FAILED, "E_EXISTS", NULL },
	{ -EACCES, CMD_FAILED, "E_PERMISSION", NULL },
	{ -EPERM, CMD_FAILED, "E_PERMISSION", NULL },
	{ -EROFS, CMD_FAILED, "E_PERMISSION", NULL },
	{ -ENOSPC, CMD_FAILED, "E_NO_SPACE", NULL },
	{ -ENOMEM, CMD_FAILED, "E_NO_MEMORY", NULL },
};

static const struct kind *kind_of(int code)
{
	static const struct kind other = { 0, CMD_FAILED, "E_FAILED", NULL };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].code == code)
			return &kinds[i];
	return &other;
}

/* --- hints ------------------------------------------------------------------------------ */

/* As a shell reads it back as one word. */
static int append_quoted(struct buf *b, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./:@=,+-";
	size_t n;

	if (*word != '\0' && strspn(word, plain) == strlen(word))
		return buf_append_str(b, word);
	if (buf_append_u8(b, '\'') < 0)
		return -ENOMEM;
	for (; *word != '\0'; word += n) {
		n = strcspn(word, "'");
		if (buf_append(b, word, n) < 0)
			return -ENOMEM;
		if (word[n] == '\'' && buf_append_str(b, "'\\''") < 0)
			return -ENOMEM;
		n += word[n] == '\'';
	}
	return buf_append_u8(b, '\'');
}

static int append_option(struct buf *b, const char *option, const char *value)
{
	if (!value)
		return 0;
	return buf_append_str(b, option) < 0 ? -ENOMEM : append_quoted(b, value);
}

static int append_plain(struct buf *b, const char *text)
{
	return buf_append_u8(b, ' ') < 0 ? -ENOMEM : buf_append_str(b, text);
}

static bool is_printable(const char *s)
{
	size_t n = 1;

	for (; *s != '\0' && n > 0; s += n)
		n = utf8_visible(s, strlen(s));
	return n > 0;
}

/* A hint that nobody could copy, or for which there is no memory, is not worth a word. */
char *cmd_line(const struct invocation *inv, const char *text, const char *const *words)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (buf_append_str(&b, inv->program) < 0 || append_option(&b, " -C ", inv->dir) < 0 ||
	    append_option(&b, " --store ", inv->store) < 0 || append_plain(&b, text) < 0)
		return NULL;
	for (; words && *words; words++)
		if (append_option(&b, " ", *words) < 0)
			return NULL;
	return buf_str(&b) && is_printable(buf_str(&b)) ? strdup(buf_str(&b)) : NULL;
}

/* A command and what it calls may both know the same way on.  Takes the line, which may be NULL. */
static void add_hint(struct invocation *inv, char *line)
{
	if (!line || inv->n_hints == CMD_HINTS_MAX ||
	    VEC_HAS(it, inv->hints, inv->n_hints, strcmp(*it, line) == 0)) {
		free(line);
		return;
	}
	inv->hint_notes[inv->n_hints] = NULL;
	inv->hints[inv->n_hints++] = line;
}

void cmd_hint_words(struct invocation *inv, const char *text, const char *const *words)
{
	add_hint(inv, cmd_line(inv, text, words));
}

/* If its hint was not worth a word, the one before it has a note already. */
void cmd_hint_note(struct invocation *inv, const char *note)
{
	if (inv->n_hints > 0 && !inv->hint_notes[inv->n_hints - 1])
		inv->hint_notes[inv->n_hints - 1] = note;
}

void cmd_hint(struct invocation *inv, const char *fmt, ...)
{
	AUTO_FREE char *args = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&args, fmt, ap);
	va_end(ap);
	if (n < 0)
		args = NULL;
	if (args)
		cmd_hint_words(inv, args, NULL);
}

/* The option that an argument names; NULL: none.  *ret_next if its value is the argument behind it. */
static const struct opt *option_of(const struct command *c, const char *arg, bool *ret_next)
{
	const size_t len = strcspn(arg, "=");

	*ret_next = false;
	for (int own = 1; own >= 0; own--) {
		const struct opt *table = own ? c->opts : global_opts;

		for (const struct opt *o = table; o && o->kind != OPT_KIND_END; o++) {
			const bool is_long = strncmp(arg, "--", 2) == 0 && o->long_name &&
					     strlen(o->long_name) + 2 == len &&
					     strncmp(arg + 2, o->long_name, len - 2) == 0;
			const bool is_short =
			    arg[0] == '-' && o->short_name != '\0' && arg[1] == o->short_name;

			if (!is_long && !is_short)
				continue;
			*ret_next =
			    opt_takes_value(o) && (is_long ? arg[len] == '\0' : arg[2] == '\0');
			return o;
		}
	}
	return NULL;
}

static bool is_named(const struct opt *o, const char *name)
{
	return o && name && o->long_name && strcmp(o->long_name, name) == 0;
}

static bool is_repeated(const struct opt *o, const struct hint_again *again)
{
	/* -C and --store stand before the command; an option keeps the last value. */
	if (o && (o->short_name == 'C' || is_named(o, "store") || is_named(o, again->without)))
		return false;
	if (is_named(o, again->option) && o->kind != OPT_KIND_LIST)
		return false;
	if (!again->only)
		return true;
	for (const char *const *name = again->only; *name; name++)
		if (is_named(o, *name))
			return true;
	return false;
}

static size_t repeat_typed(const struct invocation *inv, const struct hint_again *again,
			   const char **words)
{
	const char **typed = inv->typed;
	size_t n = 0;
	bool next;

	for (; *typed && strcmp(*typed, "--") != 0; typed++) {
		const struct opt *o = option_of(inv->command, *typed, &next);
		const bool repeated = is_repeated(o, again);

		next &= typed[1] != NULL;
		if (repeated)
			words[n++] = *typed;
		if (repeated && next)
			words[n++] = typed[1];
		typed += next;
	}
	while (!again->only && *typed)
		words[n++] = *typed++;
	return n;
}

static size_t count_typed(const struct invocation *inv)
{
	size_t n = 0;

	while (inv->typed && inv->typed[n])
		n++;
	return n;
}

char *cmd_line_again(const struct invocation *inv, const struct hint_again *again)
{
	AUTO_FREE char *option = NULL;
	AUTO_FREE const char **words = NULL;
	size_t n = 0;

	words = calloc(count_typed(inv) + 4, sizeof(*words));
	if (!words || !inv->typed ||
	    (again->option && asprintf(&option, "--%s", again->option) < 0))
		return NULL;
	if (again->only)
		n = repeat_typed(inv, again, words);
	if (option)
		words[n++] = option;
	if (option && again->value)
		words[n++] = again->value;
	if (!again->only)
		n += repeat_typed(inv, again, words + n);
	words[n] = again->word;
	return cmd_line(inv, again->command ? again->command : inv->command->name, words);
}

void cmd_hint_again(struct invocation *inv, const struct hint_again *again)
{
	add_hint(inv, cmd_line_again(inv, again));
}

void cmd_hint_init(struct invocation *inv)
{
	CLEANUP(engine_projects_done) struct engine_projects known = { 0 };
	AUTO_FREE char *path = NULL;

	if (engine_project_to_be(inv->engine, &path, NULL) != -ECANCELED) {
		cmd_hint(inv, "init");
		return;
	}
	/* First what is meant more often than all of a home directory. */
	if (engine_projects(inv->engine, &known, NULL) >= 0 && known.n > 0) {
		cmd_hint(inv, "projects");
		cmd_hint_note(inv, "go to one of these");
	}
	cmd_hint(inv, "init .");
	cmd_hint_note(inv, "makes all that is in it one project");
}

void cmd_hint_unreadable(struct invocation *inv)
{
	if (access(engine_store_path(inv->engine), W_OK) == 0)
		cmd_hint_again(inv, &(struct hint_again){ .option = "skip-unreadable" });
	else
		cmd_hint(inv, "doctor");
}

void cmd_hint_if_unreadable(struct invocation *inv, int r, const struct err *err)
{
	/* Only a capture says so; what cannot be changed has the same code. */
	if (r == -EACCES && strstr(err->msg, ".snapignore can leave"))
		cmd_hint_unreadable(inv);
}

void cmd_put_dashes(struct invocation *inv, int n)
{
	const size_t all = count_typed(inv), at = all - (size_t)n;

	if (!inv->typed)
		return;
	assert((size_t)n <= all);
	memmove(inv->typed + at + 1, inv->typed + at, ((size_t)n + 1) * sizeof(*inv->typed));
	inv->typed[at] = "--";
}

void cmd_hint_dashes(struct invocation *inv, int n)
{
	const size_t at = count_typed(inv) - (size_t)n;

	if (!inv->typed)
		return;
	cmd_put_dashes(inv, n);
	cmd_hint_again(inv, &(struct hint_again){ 0 });
	memmove(inv->typed + at, inv->typed + at + 1, ((size_t)n + 1) * sizeof(*inv->typed));
}

/* --- reporting -------------------------------------------------------------------------- */

static void print_json(struct invocation *inv, const struct kind *kind, const char *sentence,
		       fail_data_fn fill, const void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), error, hints, data;
	struct err err = { 0 };

	json_set_text(j, "schema", "snap.error/1");
	error = json_set_object(j, "error");
	json_set_text(error, "code", kind->name);
	json_set_text(error, "message", sentence);
	hints = json_set_array(error, "hints");
	for (size_t i = 0; i < inv->n_hints; i++)
		json_add_text(hints, inv->hints[i]);
	data = json_set_object(error, "data");
	if (fill)
		fill(data, ctx);
	if (json_print(&doc, inv->out, &err) < 0)
		log_error("%s", err.msg);
}

static void print_human(const struct invocation *inv, const char *sentence)
{
	log_error("%s", sentence);
	if (inv->print_more && !inv->quiet)
		inv->print_more(inv, inv->more);
	for (size_t i = 0; i < inv->n_hints && !inv->quiet; i++)
		if (inv->hint_notes[i])
			fprintf(stderr, "hint: %-*s  # %s\n", NOTE_COLUMN, inv->hints[i],
				inv->hint_notes[i]);
		else
			fprintf(stderr, "hint: %s\n", inv->hints[i]);
}

/* A command's own code must not be taken for ours, nor ours for that. */
static enum cmd_status status_of(const struct invocation *inv, const struct kind *kind)
{
	const bool runs = inv->command && inv->command->takes_command && !inv->ran;

	return runs && kind->status != CMD_USAGE ? CMD_NO_SANDBOX : kind->status;
}

enum cmd_status fail_status(const struct invocation *inv)
{
	return status_of(inv, kind_of(0));
}

int fail_report(struct invocation *inv, int r, const struct err *err)
{
	const struct kind *kind = kind_of(r);
	char text[128];
	const char *sentence = err->msg;

	assert(r < 0);
	if (err->code != r || *err->msg == '\0')
		sentence = sys_errno_text(-r, text, sizeof(text));
	if (kind->hint && !(inv->command && strcmp(inv->command->name, kind->hint) == 0))
		cmd_hint(inv, "%s", kind->hint);
	if (inv->json)
		print_json(inv, kind, sentence, NULL, NULL);
	else
		print_human(inv, sentence);
	return status_of(inv, kind);
}

int fail_interrupted(struct invocation *inv, int sig, const struct err *err)
{
	const int r = fail_report(inv, -EINTR, err);

	return r < 0 ? r : 128 + (sig > 0 ? sig : SIGINT);
}

int fail_with(struct invocation *inv, enum cmd_status status, const struct err *err,
	      fail_data_fn fill, const void *ctx)
{
	static const struct kind kinds_by_status[] = {
		{ 0, CMD_CONFLICT, "E_CONFLICT", NULL },
		{ 0, CMD_REFUSED, "E_REFUSED", NULL },
		{ 0, CMD_CHECK_FAILED, "E_CHECK_FAILED", NULL },
		{ 0, CMD_FAILED, "E_FAILED", NULL },
	};
	const struct kind *kind = kinds_by_status;

	while (kind->status != status && kind->status != CMD_FAILED)
		kind++;
	if (inv->json)
		print_json(inv, kind, err->msg, fill, ctx);
	else
		print_human(inv, err->msg);
	return kind->status;
}

int fail_sandbox(struct invocation *inv, const struct err *err)
{
	static const struct kind refused = { 0, CMD_NO_SANDBOX, "E_SANDBOX", NULL };

	cmd_hint(inv, "doctor");
	if (inv->json)
		print_json(inv, &refused, err->msg, NULL, NULL);
	else
		print_human(inv, err->msg);
	return refused.status;
}
