/*
 * Commits are listed by git itself, in a run on a throw-away clone: the repository is the
 * project's, but its configuration is obeyed only there. A merge is one step of the line
 * (--first-parent).
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "engine/experiment/bisect-i.h"

static int add_state(struct bisecting *b, const char *id, size_t id_len, const char *title,
		     size_t title_len, struct err *err)
{
	struct engine_bisect *res = &b->result;
	struct engine_bisect_state *s;

	if (!VEC_ONE_MORE(res->list, res->n))
		return err_nomem(err);
	s = &res->list[res->n++];
	*s = (struct engine_bisect_state){
		.id = strndup(id, id_len),
		.title = strndup(title, title_len),
	};
	return s->id && s->title ? 0 : err_nomem(err);
}

/* --- snapshots -------------------------------------------------------------------------- */

struct ends {
	struct snapshot good, bad;
};

static void ends_done(struct ends *e)
{
	snapshot_done(&e->good);
	snapshot_done(&e->bad);
}

static bool same_origin(const struct ends *e)
{
	const char *a = e->good.clone, *b = e->bad.clone;

	return catalog_id_same(&e->good.project, &e->bad.project) &&
	       (a == b || (a && b && strcmp(a, b) == 0));
}

/* Where in the history, newest first; its length if it is not there. */
static size_t place_of(const struct engine_history *h, const struct snapshot *s)
{
	char hex[CATALOG_HEX_SIZE];
	size_t i = 0;

	catalog_id_hex(&s->id, hex);
	while (i < h->n && strcmp(h->list[i].id, hex) != 0)
		i++;
	return i;
}

/* A person knows it by its message, else by its tag. */
static int add_snapshot(struct bisecting *b, const struct engine_snapshot *s, struct err *err)
{
	const char *title = *s->message == '\0' && s->n_tags > 0 ? s->tags[0] : s->message;

	return add_state(b, s->id, strlen(s->id), title, strcspn(title, "\n"), err);
}

static int list_snapshots(struct bisecting *b, const struct ends *ends, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const struct engine_bisect_options *o = b->options;
	size_t good, bad;
	int r;

	if (!same_origin(ends))
		return err_set(err, -EINVAL,
			       "'%s' and '%s' are not snapshots of one project or one clone",
			       o->good, o->bad);
	r = engine_log(b->engine, ends->good.clone, &h, err);
	if (r < 0)
		return r;
	good = place_of(&h, &ends->good);
	bad = place_of(&h, &ends->bad);
	if (good == h.n || bad == h.n)
		return err_set(err, -EINVAL, "'%s' is not a snapshot of the project here",
			       good == h.n ? o->good : o->bad);
	if (good <= bad)
		return err_set(err, -EINVAL, "'%s', the good one, must be older than '%s'", o->good,
			       o->bad);
	for (size_t i = good + 1; i-- > bad && r >= 0;) {
		const struct engine_snapshot *s = &h.list[i];

		if (i != good && i != bad &&
		    ((s->automatic && !o->automatic) || (!s->clone && s->part)))
			continue;
		r = add_snapshot(b, s, err);
	}
	return r;
}

static int find_ends(struct bisecting *b, struct ends *ret, struct err *err)
{
	struct store *s;
	int r = engine_store(b->engine, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = state_resolve(b->engine, s, b->options->good, &ret->good, err);
	return r < 0 ? r : state_resolve(b->engine, s, b->options->bad, &ret->bad, err);
}

/* --- commits ---------------------------------------------------------------------------- */

#define NOT_ANCESTOR 30
#define NO_COMMIT    31
#define HEX_MAX      64

/* Ends are words of the user's: behind --end-of-options they are no options of git's. */
#define LIST                                                                              \
	"export GIT_OPTIONAL_LOCKS=0\n"                                                   \
	"good=$(git rev-parse -q --verify --end-of-options \"$0^{commit}\") || exit 31\n" \
	"bad=$(git rev-parse -q --verify --end-of-options \"$1^{commit}\") || exit 31\n"  \
	"git merge-base --is-ancestor \"$good\" \"$bad\" || exit 30\n"                    \
	"git log -1 --format='%H %<(60,trunc)%s' \"$good\" || exit 1\n"                   \
	"git log --first-parent --reverse --format='%H %<(60,trunc)%s' \"$good..$bad\" || exit 1\n"

/* The run left a snapshot of the project as it is; the commits are checked out in clones of that. */
static int find_from(struct bisecting *b, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	int r = engine_log(b->engine, NULL, &h, err);

	if (r < 0)
		return r;
	if (h.n == 0)
		return err_set(err, -ENOENT, "the project has no snapshot");
	memcpy(b->from, h.list[0].id, sizeof(b->from));
	return 0;
}

static int read_commits(struct bisecting *b, const struct buf *text, struct err *err)
{
	const char *at = (const char *)text->data, *end = at + text->len;
	int r = 0;

	while (at < end && r >= 0) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		const size_t id = strspn(at, "0123456789abcdef");
		size_t len;

		if (!line_end || id > HEX_MAX || at[id] != ' ')
			return err_set(err, -EPROTO, "git listed something that is no commit");
		len = (size_t)(line_end - at) - id - 1;
		while (len > 0 && at[id + len] == ' ')
			len--;
		r = add_state(b, at, id, at + id + 1, len, err);
		at = line_end + 1;
	}
	return r;
}

static int told_by_git(struct bisecting *b, const struct engine_run *run, struct err *err)
{
	const struct engine_bisect_options *o = b->options;

	if (run->exit_code == NO_COMMIT)
		return err_set(err, -ENOENT, "'%s' or '%s' is no commit of the project", o->good,
			       o->bad);
	if (run->exit_code == NOT_ANCESTOR)
		return err_set(err, -EINVAL, "'%s', the good one, must be an ancestor of '%s'",
			       o->good, o->bad);
	if (run->exit_code != 0)
		return err_set(
		    err, -EIO, "git could not list the commits: %.*s",
		    (int)strcspn(run->err.len > 0 ? (const char *)run->err.data : "", "\n"),
		    run->err.len > 0 ? (const char *)run->err.data : "");
	return run->truncated ? err_set(err, -E2BIG, "there are too many commits between the two")
			      : 0;
}

static int list_commits(struct bisecting *b, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const struct engine_bisect_options *o = b->options;
	const char *const argv[] = { "sh", "-c", LIST, o->good, o->bad, NULL };
	struct engine_run_options options = {
		.argv = argv,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.out_is_data = true,
	};
	int r;

	engine_run_limits_init(&options.limits);
	options.ttl_ms = ENGINE_UNSAID;
	r = engine_run(b->engine, &options, &run, err);
	if (r < 0)
		return r;
	/* So that both end with a NUL. */
	if (!buf_str(&run.out) || !buf_str(&run.err))
		return err_nomem(err);
	r = told_by_git(b, &run, err);
	if (r < 0)
		return r;
	r = read_commits(b, &run.out, err);
	return r < 0 ? r : find_from(b, err);
}

/* --- either ----------------------------------------------------------------------------- */

static int find_line(struct bisecting *b, struct err *err)
{
	CLEANUP(ends_done) struct ends ends = { 0 };
	struct err unused = { 0 };
	int r = b->options->git ? -ENOENT : find_ends(b, &ends, err);

	if (r >= 0)
		return list_snapshots(b, &ends, err);
	if (!b->options->git && r != -ENOENT && r != -EINVAL)
		return r;
	b->result.git = true;
	if (b->options->git)
		return list_commits(b, err);
	/* Names of neither are most likely meant as snapshots. */
	r = list_commits(b, &unused);
	return r == -ENOENT || unused.code == -EIO ? err->code
	       : r < 0                             ? err_set(err, r, "%s", unused.msg)
						   : 0;
}

int bisect_find_line(struct bisecting *b, struct err *err)
{
	int r = find_line(b, err);

	if (r < 0)
		return r;
	if (b->result.n < 2)
		return err_set(err, -EINVAL, "'%s' and '%s' are the same", b->options->good,
			       b->options->bad);
	b->result.list[0].verdict = ENGINE_GOOD;
	b->result.list[b->result.n - 1].verdict = ENGINE_BAD;
	return 0;
}
