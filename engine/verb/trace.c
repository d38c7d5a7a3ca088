#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/verb/trace-i.h"

#define DISK_MAX ((size_t)64 << 20)

void node_done(struct node *n)
{
	free(n->path);
	free(n->spans.list);
	*n = (struct node){ 0 };
}

void trace_done(struct trace *w)
{
	VEC_FREE(it, w->nodes, w->n, node_done(it));
	for (size_t i = 0; i < ARRAY_LEN(w->kept); i++)
		buf_done(&w->kept[i].text);
	buf_done(&w->disk);
	hunks_done(&w->hunks);
	engine_runs_done(&w->runs);
	hold_done(&w->hold);
	trail_done(&w->trail);
	free(w->path);
}

/* --- where it begins -------------------------------------------------------------------- */

/* The top that paths count from: of the clone or of the project; NULL: the current directory is in neither. */
static int find_top(struct trace *w, char **ret, struct err *err)
{
	struct engine *e = w->engine;
	AUTO_FREE char *here = clone_here(e);
	AUTO_FREE char *real = here ? realpath(e->store_path, NULL) : NULL;
	AUTO_FREE char *clones = real ? path_join(real, CLONES_DIR) : NULL;

	*ret = NULL;
	if (here)
		*ret = clones ? path_join(clones, here) : NULL;
	else if (path_is_below(e->dir, w->trail.project.path))
		*ret = strdup(w->trail.project.path);
	else
		return 0;
	return *ret ? 0 : err_nomem(err);
}

static int find_path(struct trace *w, const char *path, struct err *err)
{
	AUTO_FREE char *top = NULL, *clean = NULL;
	const char *rest;
	int r = find_top(w, &top, err);

	if (r < 0)
		return r;
	clean = path_clean(top ? w->engine->dir : "/", path);
	if (!clean)
		return err_nomem(err);
	if (top && !path_is_below(clean, top))
		return err_set(err, -EINVAL, "'%s' is outside of '%s'", path, top);
	rest = clean + (top ? strlen(top) : 0);
	w->path = strdup(rest + strspn(rest, "/"));
	if (!w->path)
		return err_nomem(err);
	if (*w->path == '\0')
		return err_set(err, -EINVAL, "'%s' is a directory: name a file in it", path);
	return 0;
}

/* Symlinks on the way are not followed, as a capture does not follow them. */
static int open_above(const struct trace *w, const char **ret_name)
{
	int dir = open(w->trail.project.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;
	const char *p = w->path, *slash;
	char name[PATH_NAME_MAX + 1];

	while (dir >= 0 && (slash = strchr(p, '/'))) {
		const size_t n = (size_t)(slash - p);

		next = -1;
		if (n <= PATH_NAME_MAX) {
			memcpy(name, p, n);
			name[n] = '\0';
			next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		close(dir);
		dir = next;
		p = slash + 1;
	}
	*ret_name = p;
	return dir;
}

/* The file in the project as it is now. */
static int read_disk(struct trace *w, struct err *err)
{
	const char *name;
	AUTO_CLOSE int dir = open_above(w, &name);
	struct stat st;

	w->on_disk = true;
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		w->disk_lacks = true;
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return err_set(err, -EINVAL, "'%s' is a directory: name a file in it", w->path);
	/* Of anything but a file the snapshots know more than its bytes. */
	if (!S_ISREG(st.st_mode)) {
		w->on_disk = false;
		return 0;
	}
	return fdio_read_file(dir, name, DISK_MAX, &w->disk, err);
}

static int choose_state(struct trace *w, struct state *state, struct err *err)
{
	struct trail *t = &w->trail;
	int r;

	if (!catalog_id_same(&state->project.id, &t->project.id))
		return err_set(err, -ENOENT, "'%s' is a state of another project", state->text);
	if (state->kind == STATE_PROJECT) {
		w->start = trail_newest(t, NULL, INT64_MAX);
		return read_disk(w, err);
	}
	if (state->kind == STATE_SNAPSHOT) {
		w->start = trail_index(t, &state->snapshot.id);
		return w->start != TRAIL_NONE
			   ? 0
			   : err_set(err, -ENOENT, "there is no snapshot '%s'", state->text);
	}
	w->hold.n = 1;
	r = hold_open(w->engine, &w->hold, NULL, err);
	if (r < 0)
		return r;
	w->start = 0;
	return trail_add_now(t, &state->clone, &w->hold.held[0].root, err);
}

int trace_open(struct trace *w, const struct engine_blame_options *o, struct err *err)
{
	AUTO_FREE char *here = o->state ? NULL : clone_here(w->engine);
	const char *text = o->state ? o->state : here ? here : ".";
	int r = trail_open(w->engine, &w->trail, err);

	if (r < 0)
		return r;
	r = find_path(w, o->path, err);
	if (r < 0)
		return r;
	r = state_find(w->engine, w->trail.store, text, &w->hold.states[0], err);
	if (r < 0)
		return r;
	r = choose_state(w, &w->hold.states[0], err);
	/* It is freed with the others, whether it is held or not. */
	w->hold.n = 1;
	return r;
}

/* --- versions to look at ---------------------------------------------------------------- */

int spans_add(struct spans *s, struct span one, struct err *err)
{
	struct span *last = s->n > 0 ? &s->list[s->n - 1] : NULL;

	if (one.n == 0)
		return 0;
	if (last && last->final + last->n == one.final && last->here + last->n == one.here) {
		last->n += one.n;
		return 0;
	}
	if (!VEC_ROOM(s->list, s->n, s->cap))
		return err_nomem(err);
	s->list[s->n++] = one;
	return 0;
}

static int merge_spans(struct spans *to, const struct spans *from, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->n && r >= 0; i++)
		r = spans_add(to, from->list[i], err);
	return r;
}

int trace_add(struct trace *w, size_t at, const char *path, const struct trail_file *file,
	      struct spans *spans, bool mode, struct err *err)
{
	struct node *one;
	int r = trail_origin(&w->trail, &at, path, file, mode, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < w->n; i++)
		if (w->nodes[i].at == at && strcmp(w->nodes[i].path, path) == 0)
			return merge_spans(&w->nodes[i].spans, spans, err);
	if (!VEC_ROOM(w->nodes, w->n, w->cap))
		return err_nomem(err);
	one = &w->nodes[w->n];
	*one = (struct node){ .at = at, .path = strdup(path), .file = *file };
	if (!one->path)
		return err_nomem(err);
	one->spans = *spans;
	*spans = (struct spans){ 0 };
	w->n++;
	return 0;
}

bool trace_take(struct trace *w, struct node *ret)
{
	size_t best = 0;

	if (w->n == 0)
		return false;
	for (size_t i = 1; i < w->n; i++)
		if (w->nodes[i].at < w->nodes[best].at)
			best = i;
	*ret = w->nodes[best];
	w->nodes[best] = w->nodes[--w->n];
	return true;
}

/* --- one version ------------------------------------------------------------------------ */

static int load_text(struct trace *w, const struct content *c, const struct buf **ret,
		     struct err *err)
{
	struct text_kept *to;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(w->kept); i++) {
		if (w->kept[i].full && content_equal(&w->kept[i].of, c)) {
			w->last_kept = i;
			*ret = &w->kept[i].text;
			return 0;
		}
	}
	/* The one that was wanted last stays. */
	w->last_kept = !w->last_kept;
	to = &w->kept[w->last_kept];
	to->full = false;
	r = hunks_load(w->trail.store, c, &to->text, err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", w->path);
	to->of = *c;
	to->full = true;
	*ret = &to->text;
	return 0;
}

int trace_text(struct trace *w, const struct node *n, const struct buf **ret, struct err *err)
{
	if (n->at == TRAIL_NONE) {
		*ret = &w->disk;
		return 0;
	}
	return load_text(w, &n->file.content, ret, err);
}

void earliers_done(struct earliers *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->list[i].path);
	e->n = 0;
}

static int add_earlier(struct trace *w, const struct node *n, size_t before, bool renames,
		       struct earliers *ret, struct err *err)
{
	struct earlier *one = &ret->list[ret->n];
	int r =
	    trail_earlier(&w->trail, n->at, before, n->path, renames, &one->file, &one->path, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	one->at = before;
	ret->n++;
	return 0;
}

int trace_earlier(struct trace *w, const struct node *n, struct earliers *ret, struct err *err)
{
	size_t before[TRAIL_BEFORE_MAX] = { w->start }, n_before = w->start != TRAIL_NONE;
	int r = 0;

	ret->n = 0;
	if (n->at != TRAIL_NONE)
		n_before = trail_before(&w->trail, n->at, before);
	for (size_t i = 0; i < n_before && r >= 0; i++)
		r = add_earlier(w, n, before[i], false, ret, err);
	/* What is on disk was not compared with the rest of the tree. */
	if (ret->n > 0 || n->at == TRAIL_NONE)
		return r;
	for (size_t i = 0; i < n_before && r >= 0; i++)
		r = add_earlier(w, n, before[i], true, ret, err);
	return r;
}

int trace_compare(struct trace *w, const struct node *n, const struct earlier *before,
		  struct err *err)
{
	const struct buf *old = NULL, *new = NULL;
	int r = trace_text(w, n, &new, err);

	if (r < 0)
		return r;
	r = load_text(w, &before->file.content, &old, err);
	return r < 0 ? r : hunks_find(old, new, &w->hunks, err);
}
