#include <errno.h>
#include <string.h>

#include "cli/fail.h"
#include "cli/show/clones.h"
#include "engine/api/history.h"

struct rm_args {
	bool force;
};

static const struct opt rm_opts[] = {
	OPT_FLAG('f', "force", struct rm_args, force,
		 "even if somebody uses it, or an undo needs it"),
	OPT_END,
};
_Static_assert(sizeof(struct rm_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* What went by one word. */
struct gone {
	const char *word;
	char snapshot[ENGINE_ID_SIZE]; /* "": it was a clone, */
	struct engine_removed clone;   /* and that went with it */
};

/* A clone of that name is meant, else a snapshot. */
static int remove_one(struct invocation *inv, const char *word, struct gone *ret, struct err *err)
{
	const struct rm_args *args = inv->args;
	struct err why = { 0 };
	int r;

	*ret = (struct gone){ .word = word };
	r = engine_remove(inv->engine, word, args->force, &ret->clone, err);
	clones_hint(inv, r == -ENOENT ? 0 : r, "rm --force", word);
	if (r != -ENOENT)
		return r;
	r = engine_remove_snapshot(inv->engine, word, args->force, ret->snapshot, &why);
	if (r == -ENOENT && !strchr(word, '@')) {
		cmd_hint(inv, "list --all");
		return err_set(err, r, "there is no clone or snapshot '%s'", word);
	}
	if (r == -ECANCELED || r == -EBUSY)
		cmd_hint(inv, "log --all");
	return r < 0 ? err_set(err, r, "%s", why.msg) : r;
}

static void add_json(struct json list, const struct gone *g)
{
	const bool clone = g->snapshot[0] == '\0';
	struct json one = json_add_object(list);

	json_set_name(one, "clone", clone ? g->word : NULL);
	out_json_id(one, "snapshot", g->snapshot);
	json_set_uint(one, "snapshots", clone ? g->clone.snapshots : 1);
}

static void print_one(const struct invocation *inv, const struct gone *g)
{
	fputs("removed  ", inv->out);
	if (g->snapshot[0] != '\0')
		out_id(inv, "", g->snapshot);
	else
		out_name(inv->out, g->word);
	if (g->clone.snapshots > 0) {
		fputs(", with ", inv->out);
		out_plural(inv->out, g->clone.snapshots, "snapshot", "snapshots");
	}
	fputc('\n', inv->out);
}

static int rm_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json list = json_set_array(out_json_begin(inv, &doc), "removed");
	struct gone gone;
	int r;

	for (int i = 0; i < inv->n_words; i++) {
		r = remove_one(inv, inv->words[i], &gone, err);
		if (r < 0 && i > 0)
			return err_wrap(err, r, "the first %d of %d are removed", i, inv->n_words);
		if (r < 0)
			return r;
		add_json(list, &gone);
		if (!inv->json && !inv->quiet)
			print_one(inv, &gone);
	}
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

const struct command cmd_rm = {
	.name = "rm",
	.group = "Clones",
	.summary = "remove clones with what was written in them, or snapshots",
	.words = "CLONE|SNAPSHOT...",
	.min_words = 1,
	.max_words = 10000,
	.opts = rm_opts,
	.details =
	    "Removes a clone's snapshots too, except those that have a tag or that another clone\n"
	    "started from. A word that names no clone names a snapshot: a tag, which goes too,\n"
	    "'@-1', or at least eight digits of an id. Refuses a snapshot that a clone (exit code\n"
	    "11), another tag or an undo needs (7; --force gives up the undo). gc frees the\n"
	    "space.\n",
	.examples = "rm idea\nrm --force agent-1 agent-2\nrm @-3 1f0c9a52\n",
	.run = rm_run,
};
