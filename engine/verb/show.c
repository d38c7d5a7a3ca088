#include "engine/api/show.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/root.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/verb/entry-i.h"

#define READ_SIZE ((size_t)256 << 10)

/* What `show` reads: one state and a path in it. */
struct look {
	struct engine *engine;
	struct store *store;
	const struct engine_show_sink *sink;
	struct hold hold;
	const struct state *state; /* which is held */
	struct root root;
	char *path; /* owned; from the top of the project, "" for the top */
	struct buf found[2];
};

static void look_done(struct look *l)
{
	hold_done(&l->hold);
	buf_done(&l->found[0]);
	buf_done(&l->found[1]);
	free(l->path);
}

/* "snapshot 0123456789abcdef", "clone try", "the project ." */
static const char *kind_of(const struct look *l)
{
	static const char *const kinds[] = {
		[STATE_PROJECT] = "the project",
		[STATE_CLONE] = "clone",
		[STATE_SNAPSHOT] = "snapshot",
	};

	return kinds[l->state->kind];
}

static int failed(const struct look *l, int r, struct err *err)
{
	return err_wrap(err, r, "'%s' of %s %s", l->path, kind_of(l), l->state->text);
}

/* --- paths ------------------------------------------------------------------------------ */

static bool from_here(const char *path)
{
	return strcmp(path, ".") == 0 || strcmp(path, "..") == 0 || strncmp(path, "./", 2) == 0 ||
	       strncmp(path, "../", 3) == 0;
}

/* The path as names from the top of the project, without ".", ".." and doubled slashes. */
static int find_path(struct look *l, const char *path, struct err *err)
{
	AUTO_FREE char *clean = NULL;
	const char *top = l->state->project.path;

	if (!from_here(path) && path[0] != '/') {
		clean = path_clean("/", path);
		top = "/";
	} else if (path[0] == '/' || path_is_below(l->engine->dir, top)) {
		clean = path_clean(l->engine->dir, path);
	} else {
		return err_set(err, -EINVAL, "'%s' counts from '%s', which is not in '%s'", path,
			       l->engine->dir, top);
	}
	if (!clean)
		return err_nomem(err);
	if (!path_is_below(clean, top))
		return err_set(err, -ENOENT, "'%s' is outside of the project '%s'", clean, top);
	path = clean + strlen(top);
	l->path = strdup(path + strspn(path, "/"));
	return l->path ? 0 : err_nomem(err);
}

static int not_there(const struct look *l, size_t len, struct err *err)
{
	return err_set(err, -ENOENT, "there is no '%.*s' in %s %s", (int)len, l->path, kind_of(l),
		       l->state->text);
}

static int walk_to(struct look *l, struct tree_entry *ret, struct err *err)
{
	const char *p = l->path;
	struct object_id dir;
	size_t hold = 0, n;
	int r;

	*ret = l->root.top;
	for (; *p != '\0'; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		if (ret->form != TREE_DIR)
			return err_set(err, -ENOTDIR, "'%.*s' is not a directory there",
				       (int)(p - l->path - 1), l->path);
		/* A name too long for a file is in no tree either. */
		if (!path_name_valid(p, n))
			return not_there(l, (size_t)(p - l->path) + n, err);
		hold = !hold;
		dir = ret->id;
		r = tree_lookup(l->store, &dir, p, n, ret, &l->found[hold], err);
		if (r == -ENOENT)
			return not_there(l, (size_t)(p - l->path) + n, err);
		if (r < 0)
			return failed(l, r, err);
	}
	if (ret->form != TREE_LINK)
		return 0;
	r = root_link(l->store, &l->root, ret->ino, ret, &l->found[!hold], err);
	return r < 0 ? failed(l, r, err) : 0;
}

/* --- entries ---------------------------------------------------------------------------- */

static int list(struct look *l, const struct tree_entry *dir, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e, file;
	int r = tree_iter_new(l->store, &dir->id, &it, err);

	if (r < 0)
		return failed(l, r, err);
	while ((r = tree_iter_next(it, &e, err)) > 0) {
		file = e;
		if (e.form == TREE_LINK) {
			r = root_link(l->store, &l->root, e.ino, &file, &hold, err);
			if (r < 0)
				return failed(l, r, err);
		}
		r = entry_report(&file, e.name, e.name_len, l->sink->entry, l->sink->ctx, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? failed(l, r, err) : 0;
}

static int send_bytes(struct look *l, const struct tree_entry *e, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE char *piece = malloc(READ_SIZE);
	struct content c = tree_entry_content(e);
	uint64_t at = 0;
	ssize_t n;
	int r;

	if (!piece)
		return err_nomem(err);
	r = content_reader_new(l->store, &c, &rd, err);
	if (r < 0)
		return failed(l, r, err);
	while ((n = content_reader_read(rd, at, piece, READ_SIZE, err)) > 0) {
		r = l->sink->bytes(piece, (size_t)n, l->sink->ctx, err);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return n < 0 ? failed(l, (int)n, err) : 0;
}

/* --- the verb --------------------------------------------------------------------------- */

static int show_snapshot(struct look *l, struct err *err)
{
	CLEANUP(engine_snapshot_done) struct engine_snapshot s = { 0 };
	const struct snapshot *record = &l->state->snapshot;
	struct snapshot now = {
		.project = l->state->project.id,
		.clone = l->state->clone.name,
		.message = (char[]){ "" },
		.created = l->hold.held[0].time,
		.files = l->root.top.below.files,
		.bytes = l->root.top.below.bytes + l->root.in_links.bytes,
	};
	int r = history_entry(l->state->kind == STATE_SNAPSHOT ? record : &now, &s, err);

	if (r < 0)
		return r;
	if (l->state->kind == STATE_SNAPSHOT)
		r = tag_fill(l->store, &s, 1, err);
	return r < 0 ? r : l->sink->snapshot(&s, l->state->project.path, l->sink->ctx, err);
}

static int show_path(struct look *l, const char *path, struct err *err)
{
	struct tree_entry e;
	const char *name;
	int r = find_path(l, path, err);

	if (r < 0)
		return r;
	r = walk_to(l, &e, err);
	if (r < 0)
		return r;
	name = *l->path != '\0' ? path_base(l->path) : "";
	r = entry_report(&e, name, strlen(name), l->sink->found, l->sink->ctx, err);
	if (r < 0)
		return r;
	if (e.form == TREE_DIR)
		return list(l, &e, err);
	return S_ISREG(e.mode) ? send_bytes(l, &e, err) : 0;
}

/* Not needed for a snapshot without a path: its record says all. */
static int read_root(struct look *l, const char *path, struct err *err)
{
	int r;

	if (!path && l->state->kind == STATE_SNAPSHOT)
		return 0;
	r = root_get(l->store, &l->hold.held[0].root, &l->root, err);
	return r < 0 ? err_wrap(err, r, "the top of %s %s", kind_of(l), l->state->text) : 0;
}

int engine_show(struct engine *e, const char *state, const char *path,
		const struct engine_watch *watch, const struct engine_show_sink *sink,
		struct err *err)
{
	CLEANUP(look_done) struct look l = { .engine = e, .sink = sink, .hold = HOLD_INIT };
	int r = engine_store(e, STORE_READ, &l.store, err);

	if (r == -ENOENT) {
		CLEANUP(project_done) struct project none = { 0 };

		/* Without a store, "no project here" is the better message. */
		return engine_project(e, &l.store, &none, err);
	}
	if (r < 0)
		return r;
	r = state_find(e, l.store, state, &l.hold.states[0], err);
	if (r < 0)
		return r;
	l.hold.n = 1;
	l.state = &l.hold.states[0];
	r = hold_open(e, &l.hold, watch, err);
	if (r < 0)
		return r;
	r = read_root(&l, path, err);
	if (r < 0)
		return r;
	r = show_snapshot(&l, err);
	return r < 0 || !path ? r : show_path(&l, path, err);
}
