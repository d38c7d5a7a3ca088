#include "cli/mcp/prompt.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct argument {
	const char *name, *description;
};

static const struct prompt {
	const char *name, *title, *description;
	struct argument arguments[4]; /* all are needed; a NULL name ends */
	const char *text;             /* {name} is an argument */
} prompts[] = {
	{
	    "try_three_fixes",
	    "Try three fixes at once",
	    "Work on one problem in three clones beside each other, compare, and promote the best.",
	    { { "problem", "What is wrong, or the test that fails." },
	      { "check", "The command that must succeed, such as 'make test'." } },
	    "Fix this problem: {problem}\n\n"
	    "Think of three different fixes. Make one clone for each with snap_clone, and work in it "
	    "with snap_read, snap_edit and snap_run. In each clone run `{check}` with snap_run until "
	    "it succeeds or the idea has failed. Then compare the clones that succeeded with "
	    "snap_diff: prefer the smallest change that is easy to read and deletes no test. Show me "
	    "the three results in a table. Call snap_promote with dry_run for the best one, then "
	    "snap_promote with check `{check}`. Remove the other clones with snap_destroy.",
	},
	{
	    "bisect_with_clones",
	    "Bisect with clones",
	    "Find the snapshot that broke something, without touching the project.",
	    { { "good", "A snapshot or tag where it worked." },
	      { "check", "The command that succeeds when it works." } },
	    "Something broke since the state {good}. List the snapshots with snap_log. Bisect: make a "
	    "clone from the snapshot in the middle with snap_clone and its argument `from`, run "
	    "`{check}` in it with snap_run, and remove the clone with snap_destroy. Go on in the half "
	    "that holds the change, until two snapshots beside each other differ in the result. Show me "
	    "what changed between them with snap_diff, and explain the cause. Change nothing in the "
	    "project.",
	},
	{
	    "upgrade_safely",
	    "Upgrade a dependency safely",
	    "Upgrade a dependency in a clone, test it there, and promote only if everything works.",
	    { { "dependency", "What to upgrade, and to which version." },
	      { "check", "The command that must succeed, such as 'npm test'." } },
	    "Upgrade {dependency} in a clone. Make the clone with snap_clone and run `{check}` with "
	    "snap_run first: if it fails already, stop and tell me. Take snap_snapshot. Upgrade with "
	    "the project's own package manager through snap_run; name the registry it needs in `net` as "
	    "HOST:PORT. Run `{check}` again and mend what broke. If you cannot, use snap_rollback and "
	    "tell me why. Otherwise show me snap_diff without lock files, call snap_promote with "
	    "dry_run, then snap_promote with check `{check}`.",
	},
};

void prompt_list(struct json list)
{
	for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
		struct json arguments, j = json_add_object(list);

		json_set_text(j, "name", prompts[i].name);
		json_set_text(j, "title", prompts[i].title);
		json_set_text(j, "description", prompts[i].description);
		arguments = json_set_array(j, "arguments");
		for (const struct argument *a = prompts[i].arguments; a->name; a++) {
			struct json one = json_add_object(arguments);

			json_set_text(one, "name", a->name);
			json_set_text(one, "description", a->description);
			json_set_bool(one, "required", true);
		}
	}
}

static int check_arguments(const struct prompt *p, struct json args, struct err *err)
{
	for (const struct argument *a = p->arguments; a->name; a++)
		if (json_kind(args, a->name) != JSON_TEXT || !json_get_text(args, a->name))
			return err_set(err, -EINVAL, "the prompt '%s' needs '%s': %s", p->name,
				       a->name, a->description);
	return 0;
}

/* The argument whose name stands there before a brace; NULL: none. */
static const struct argument *argument_at(const struct prompt *p, const char *text)
{
	for (const struct argument *a = p->arguments; a->name; a++) {
		const size_t n = strlen(a->name);

		if (strncmp(text, a->name, n) == 0 && text[n] == '}')
			return a;
	}
	return NULL;
}

/* The text with its arguments in their places. */
static int fill(const struct prompt *p, struct json args, struct buf *ret)
{
	const char *at = p->text;
	int r = 0;

	while (r >= 0 && *at != '\0') {
		const struct argument *a = *at == '{' ? argument_at(p, at + 1) : NULL;

		r = a ? buf_append_str(ret, json_get_text(args, a->name)) : buf_append(ret, at, 1);
		at += a ? strlen(a->name) + 2 : 1;
	}
	return r;
}

int prompt_get(const char *name, struct json args, struct json result, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;
		struct json message, content;
		int r;

		if (strcmp(prompts[i].name, name) != 0)
			continue;
		r = check_arguments(&prompts[i], args, err);
		if (r < 0)
			return r;
		if (fill(&prompts[i], args, &text) < 0 || !buf_str(&text))
			return err_nomem(err);
		json_set_text(result, "description", prompts[i].description);
		message = json_add_object(json_set_array(result, "messages"));
		json_set_text(message, "role", "user");
		content = json_set_object(message, "content");
		json_set_text(content, "type", "text");
		json_set_text(content, "text", buf_str(&text));
		return 0;
	}
	return err_set(err, -EINVAL, "there is no prompt '%s'", name);
}
