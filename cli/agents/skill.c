#include "cli/agents/skill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/agents/client-file.h"
#include "cli/agents/guide.h"

#define FOLDER "/snap" /* the folder's name is the skill's */
#define NAME   "/SKILL.md"

/* agentskills.io: the name and the description are all that an agent sees before it reads the rest. */
static const char head[] =
    "---\n"
    "name: snap\n"
    "description: Try changes in instant copy-on-write clones of a project, run commands in a "
    "sandbox, take snapshots, roll back and promote what works. Use it before risky edits, "
    "upgrades and commands, to try several fixes beside each other, and to undo.\n"
    "---\n"
    "\n"
    "If you have tools whose names begin with `snap_`, use those; they take and give the same as\n"
    "the commands here.\n"
    "\n";

static const char tail[] =
    "\n"
    "## Going back\n"
    "\n"
    "- `snap log --agent` lists what was kept before each of your steps, if hooks are set up.\n"
    "- `snap rollback --turn N` puts the project back to where it was before turn N. Ask first.\n"
    "- `snap undo` takes that back.\n";

static int write_skill(const struct buf *text, void *ctx, struct buf *ret, struct err *err)
{
	if (buf_append_str(ret, head) < 0 || buf_append_str(ret, agents_guide) < 0 ||
	    buf_append_str(ret, tail) < 0)
		return err_nomem(err);
	return 0;
}

static int find_path(const struct agent *a, char **ret, struct err *err)
{
	*ret = text_format("%s" FOLDER NAME, a->skills);
	if (!*ret)
		return err_nomem(err);
	return 0;
}

/* 1: there is none of ours. */
static int remove_skill(const struct agent *a, const char *path, bool dry_run, char **ret_file,
			struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, ours = BUF_INIT;
	AUTO_FREE char *folder = NULL;
	bool there;
	int r = client_find(a->title, path, ret_file, err);

	if (r < 0)
		return r;
	r = client_read(*ret_file, &text, &there, err);
	if (r < 0)
		return r;
	r = write_skill(&text, NULL, &ours, err);
	if (r < 0)
		return r;
	if (!there || !client_same_text(&text, &ours))
		return 1;
	if (dry_run)
		return 0;
	if (unlink(*ret_file) < 0)
		return err_sys(err, "removing '%s'", *ret_file);
	folder = strndup(*ret_file, strlen(*ret_file) - strlen(NAME));
	/* It stays if somebody else put something into it. */
	if (folder)
		IGNORE_RESULT(rmdir(folder), "an empty folder harms nobody");
	return 0;
}

int skill_change(const struct agent *a, bool add, bool dry_run, char **ret_file, char **ret_backup,
		 struct err *err)
{
	AUTO_FREE char *path = NULL;
	struct client_edit edit = { .title = a->title, .fn = write_skill, .dry_run = dry_run };
	int r;

	*ret_backup = NULL;
	if (!a->skills)
		return add ? err_set(err, -ENOTSUP, "%s reads no skills that snap knows of",
				     a->title)
			   : 1;
	r = find_path(a, &path, err);
	if (r < 0)
		return r;
	if (!add)
		return remove_skill(a, path, dry_run, ret_file, err);
	edit.path = path;
	return client_change(&edit, ret_file, ret_backup, err);
}

bool skill_there(const struct agent *a)
{
	AUTO_FREE char *path = NULL, *file = NULL;
	struct err why = { 0 };

	return a->skills && find_path(a, &path, &why) >= 0 &&
	       client_find(a->title, path, &file, &why) >= 0 && access(file, F_OK) == 0;
}
