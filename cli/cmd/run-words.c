#include "cli/cmd/run-words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/log.h"
#include "cli/show/tasks.h"

/* One word of a command is at most so long on Linux (MAX_ARG_STRLEN), its NUL included. */
#define CODE_MAX ((size_t)131072 - 1)

/* --- snippets --------------------------------------------------------------------------- */

static const struct language {
	const char *name, *program, *option;
	bool names_itself; /* the first word behind the code is $0 */
} languages[] = {
	{ "bash", "bash", "-c", true },       { "node", "node", "-e", false },
	{ "perl", "perl", "-e", false },      { "php", "php", "-r", false },
	{ "python", "python3", "-c", false }, { "ruby", "ruby", "-e", false },
	{ "sh", "sh", "-c", true },
};

static int find_language(const char *name, const struct language **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
		if (name && strcmp(languages[i].name, name) == 0) {
			*ret = &languages[i];
			return 0;
		}
		if (buf_append_str(&all, i > 0 ? ", " : "") < 0 ||
		    buf_append_str(&all, languages[i].name) < 0)
			return err_nomem(err);
	}
	if (!name)
		return err_set(err, -EINVAL, "option '--code' needs '--lang', one of %s",
			       buf_str(&all));
	return err_set(err, -EINVAL, "option '--lang': '%s' is not one of %s", name, buf_str(&all));
}

/* Standard input to its end. */
static int read_code(struct buf *ret, struct err *err)
{
	char *to = buf_extend(ret, CODE_MAX + 1);
	ssize_t n;

	if (!to)
		return err_nomem(err);
	n = fdio_read(STDIN_FILENO, to, CODE_MAX + 1);
	ret->len = n > 0 ? (size_t)n : 0;
	return n < 0 ? err_set(err, (int)n, "reading standard input: %s", strerror((int)-n)) : 0;
}

static int check_code(const struct buf *code, struct err *err)
{
	if (code->len > CODE_MAX)
		return err_set(err, -EINVAL, "a snippet has at most %zu bytes", CODE_MAX);
	if (code->len == 0)
		return err_set(err, -EINVAL, "the snippet is empty");
	if (memchr(code->data, '\0', code->len))
		return err_set(err, -EINVAL, "a snippet is text, without a NUL");
	return 0;
}

static int add_snippet(const struct run_args *args, struct strlist *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT;
	const struct language *l = NULL;
	int r = find_language(args->lang, &l, err);

	if (r < 0)
		return r;
	if (strcmp(args->code, "-") == 0)
		r = read_code(&code, err);
	else if (buf_append_str(&code, args->code) < 0)
		r = err_nomem(err);
	if (r < 0)
		return r;
	r = check_code(&code, err);
	if (r < 0)
		return r;
	if (buf_append(&code, "", 1) < 0 || strlist_add(ret, l->program) < 0 ||
	    strlist_add(ret, l->option) < 0 || strlist_add(ret, (const char *)code.data) < 0 ||
	    (l->names_itself && strlist_add(ret, l->program) < 0))
		return err_nomem(err);
	return 0;
}

/* --- tasks ------------------------------------------------------------------------------ */

/* A line for the shell; words that follow the task's name are its arguments. */
static int add_task(struct invocation *inv, const char *name, bool arguments, struct strlist *ret,
		    struct err *err)
{
	CLEANUP(tasks_done) struct tasks all = { 0 };
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	const struct task *t;
	int r = tasks_load(inv, &all, err);

	if (r < 0)
		return r;
	t = tasks_find(&all, name);
	if (!t) {
		cmd_hint(inv, "tasks");
		if (*name == '\0')
			return err_set(err, -EINVAL, "'@' is the beginning of a task's name");
		return err_set(err, -ENOENT, "there is no task '%s'", name);
	}
	if (buf_append_str(&line, t->line) < 0 ||
	    (arguments && buf_append_str(&line, " \"$@\"") < 0) || buf_append(&line, "", 1) < 0 ||
	    strlist_add(ret, "sh") < 0 || strlist_add(ret, "-c") < 0 ||
	    strlist_add(ret, (const char *)line.data) < 0 ||
	    (arguments && strlist_add(ret, "sh") < 0))
		return err_nomem(err);
	return 0;
}

/* --- variables -------------------------------------------------------------------------- */

void run_warn_unset(const struct opt_list *pass_env)
{
	for (size_t i = 0; i < pass_env->n; i++) {
		const char *name = pass_env->items[i];

		/* What cannot be a name is refused later. */
		if (*name != '\0' && !strchr(name, '=') && !getenv(name))
			log_warn("variable '%s' is not set here and is not passed on (--pass-env)",
				 name);
	}
}

/* --- the whole -------------------------------------------------------------------------- */

int run_words(struct invocation *inv, struct strlist *ret, struct err *err)
{
	const struct run_args *args = inv->args;
	int at = inv->n_before, r = 0;

	if (args->lang && !args->code)
		return err_set(err, -EINVAL, "option '--lang' needs '--code'");
	if (args->code) {
		r = add_snippet(args, ret, err);
	} else if (at < inv->n_words && inv->words[at][0] == '@') {
		r = add_task(inv, inv->words[at] + 1, at + 1 < inv->n_words, ret, err);
		at++;
	}
	if (r < 0)
		return r;
	for (; at < inv->n_words; at++)
		if (strlist_add(ret, inv->words[at]) < 0)
			return err_nomem(err);
	return 0;
}
