#include "cli/cmd/run-root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "engine/api/profile.h"
#include "engine/api/show.h"

int run_root_read_profile(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	struct run_args *args = (struct run_args *)(uintptr_t)inv->args; /* main's, and writable */
	int r;

	if (args->root || !args->profile)
		return 0;
	r = engine_profile(inv->engine, args->profile, &p, err);
	if (r == -ENOENT)
		cmd_hint(inv, "profile list");
	/* What a file of the project says does not decide that: the run refuses it without --root. */
	args->root = r >= 0 && p.root && p.origin != PROFILE_PROJECT;
	return r;
}

/* --- who the command is -------------------------------------------------------------------- */

#define PASSWD     "etc/passwd"
#define PASSWD_MAX ((size_t)1 << 20)

static int add_bytes(const void *data, size_t len, void *ctx, struct err *err)
{
	struct buf *text = ctx;

	if (text->len + len > PASSWD_MAX)
		return err_set(err, -EFBIG, "'" PASSWD "' is longer than any list of users");
	return buf_append(text, data, len) < 0 ? err_nomem(err) : 0;
}

static int no_snapshot(const struct engine_snapshot *s, const char *project, void *ctx,
		       struct err *err)
{
	return 0;
}

static int no_entry(const struct engine_entry *e, void *ctx, struct err *err)
{
	return 0;
}

/* The list of users of the system that the line names, as it is now. */
static int read_users(const struct invocation *inv, const struct engine_run_options *o,
		      struct buf *ret, struct err *err)
{
	const struct engine_show_sink sink = {
		.snapshot = no_snapshot,
		.found = no_entry,
		.entry = no_entry,
		.bytes = add_bytes,
		.ctx = ret,
	};
	AUTO_FREE char *top = NULL, *path = NULL;

	if (!o->root_dir)
		return engine_show(inv->engine, o->clone ? o->clone : o->from, PASSWD, &o->watch,
				   &sink, err);
	top = o->root_dir[0] == '/' ? strdup(o->root_dir)
				    : path_join(inv->dir ? inv->dir : ".", o->root_dir);
	path = top ? path_join(top, PASSWD) : NULL;
	return path ? fdio_read_file(AT_FDCWD, path, PASSWD_MAX, ret, err) : err_nomem(err);
}

/* Its numbers in a line of the list, "NAME:x:UID:GID:..." with anything for x; false: there is none. */
static bool find_user(const char *text, const char *name, unsigned int *uid, unsigned int *gid)
{
	const size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		line += len + 1 + strcspn(line + len + 1, ":\n");
		if (sscanf(line, ":%9u:%9u:", uid, gid) == 2)
			return true;
	}
	return false;
}

static int choose_user(const struct invocation *inv, struct engine_run_options *o, struct err *err)
{
	struct run_args *args = (struct run_args *)(uintptr_t)inv->args; /* main's, and writable */
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	unsigned int uid = 0, gid = 0;
	int r;

	o->as = args->as;
	if (!args->root || *args->as == '\0' || strspn(args->as, "0123456789:") == strlen(args->as))
		return 0;
	r = read_users(inv, o, &text, err);
	if (r < 0)
		return err_wrap(err, r, "option '--as': looking for user '%s'", args->as);
	if (!buf_str(&text) || strpbrk(args->as, ":\n") ||
	    !find_user(buf_str(&text), args->as, &uid, &gid))
		return err_set(err, -ENOENT, "option '--as': that system has no user '%s'",
			       args->as);
	snprintf(args->as_ids, sizeof(args->as_ids), "%u:%u", uid, gid);
	o->as = args->as_ids;
	return 0;
}

int run_root_choose(const struct invocation *inv, struct engine_run_options *o, struct err *err)
{
	const struct run_args *args = inv->args;
	const char *word = inv->n_before > 0 ? inv->words[0] : NULL;

	o->root = args->root;
	if (!args->root)
		;
	else if (!word)
		o->root_dir = "/";
	else if (strchr(word, '/'))
		o->root_dir = word;
	else if (!o->clone)
		o->from = word;
	return args->as ? choose_user(inv, o, err) : 0;
}
