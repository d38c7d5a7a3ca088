#include "snapshot/diff/delta-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "snapshot/diff/diff.h"

static void delta_side_done(struct delta_side *s)
{
	free(s->target);
}

void delta_done(struct delta *d)
{
	for (size_t i = 0; i < d->n_files; i++) {
		free(d->files[i].path);
		free(d->files[i].old_path);
		delta_side_done(&d->files[i].before);
		delta_side_done(&d->files[i].after);
	}
	VEC_FREE(it, d->notes, d->n_notes, free(it->path));
	free(d->files);
	*d = (struct delta){ 0 };
}

uint32_t delta_git_mode(uint32_t mode)
{
	if (S_ISLNK(mode))
		return 0120000;
	return mode & S_IXUSR ? 0100755 : 0100644;
}

/* --- names that git keeps to itself ----------------------------------------------------- */

/* A name that some file system of some system takes for `reserved`. */
static bool passes_for(const char *name, size_t len, const char *reserved)
{
	const size_t n = strlen(reserved);

	if (len < n || strncasecmp(name, reserved, n) != 0)
		return false;
	for (size_t i = n; i < len; i++) {
		if (name[i] == ':' || name[i] == '\\')
			return true;
		if (name[i] != ' ' && name[i] != '.')
			return false;
	}
	return true;
}

/* Would git apply refuse a patch that names this? */
static bool delta_refused(const char *path, uint32_t mode)
{
	for (size_t n; *path != '\0'; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (passes_for(path, n, ".git") || passes_for(path, n, "git~1"))
			return true;
		/* A link in the place of git's own file would let a repository point out of itself. */
		if (S_ISLNK(mode) &&
		    (passes_for(path, n, ".gitmodules") || strncasecmp(path, "gitmod~", 7) == 0))
			return true;
	}
	return false;
}

/* --- collecting ------------------------------------------------------------------------- */

struct finding {
	const struct delta_options *options;
	struct delta delta;
};

static void finding_done(struct finding *f)
{
	delta_done(&f->delta);
}

static bool is_wanted(const struct delta_options *o, const char *path)
{
	bool found = o->n_paths == 0;

	for (size_t i = 0; i < o->n_paths && !found; i++)
		found = path_is_within(path, o->paths[i]);
	return found && !(o->leaves_out && o->leaves_out(path, o->leaves_out_ctx));
}

static int take_side(const struct tree_entry *e, struct delta_side *ret)
{
	if (!e)
		return 0;
	ret->mode = e->mode;
	if (S_ISREG(e->mode))
		ret->content = tree_entry_content(e);
	else
		ret->target = strndup(e->target, e->target_len);
	return S_ISREG(e->mode) || ret->target ? 0 : -ENOMEM;
}

static int add_file(struct delta *d, enum delta_status status, const char *path,
		    const struct tree_entry *before, const struct tree_entry *after, bool content,
		    struct err *err)
{
	struct delta_file *f;

	if (!VEC_ROOM(d->files, d->n_files, d->files_cap))
		return err_nomem(err);
	f = &d->files[d->n_files++];
	*f = (struct delta_file){ .status = status, .path = strdup(path), .content = content };
	if (!f->path || take_side(before, &f->before) < 0 || take_side(after, &f->after) < 0)
		return err_nomem(err);
	f->refused = delta_refused(path, f->before.mode) || delta_refused(path, f->after.mode);
	f->sparse = content &&
		    (content_is_sparse(&f->before.content) || content_is_sparse(&f->after.content));
	return 0;
}

static int add_note(struct delta *d, enum delta_status status, const char *path, uint32_t mode,
		    unsigned what, struct err *err)
{
	struct delta_note *n;

	if (!VEC_ROOM(d->notes, d->n_notes, d->notes_cap))
		return err_nomem(err);
	n = &d->notes[d->n_notes++];
	*n = (struct delta_note){
		.status = status, .path = strdup(path), .mode = mode, .what = what
	};
	return n->path ? 0 : err_nomem(err);
}

static bool is_file(const struct tree_entry *e)
{
	return S_ISREG(e->mode) || S_ISLNK(e->mode);
}

/* One side of a name that the other lacks, or where it is something else. */
static int add_one_sided(struct delta *d, enum delta_status status, const char *path,
			 const struct tree_entry *e, struct err *err)
{
	if (is_file(e))
		return add_file(d, status, path, status == DELTA_DELETED ? e : NULL,
				status == DELTA_ADDED ? e : NULL, true, err);
	if (e->form != TREE_DIR)
		return add_note(d, status, path, e->mode, DELTA_SPECIAL, err);
	return e->below.files > 0 ? 0 : add_note(d, status, path, e->mode, DELTA_DIRECTORY, err);
}

/* Changed mode bits that git's two modes do not show. */
static bool mode_is_beyond_git(uint32_t before, uint32_t after, bool file)
{
	const uint32_t bits = (before ^ after) & 07777;

	if (bits == 0)
		return false;
	return !file || (bits & ~0111u) != 0 || delta_git_mode(before) == delta_git_mode(after);
}

static unsigned beyond_git(const struct diff_entry *e)
{
	unsigned what = 0;

	if ((e->what & DIFF_MODE) &&
	    mode_is_beyond_git(e->before->mode, e->after->mode, is_file(e->after)))
		what |= DELTA_MODE;
	if (e->what & DIFF_OWNER)
		what |= DELTA_OWNER;
	if (e->what & DIFF_XATTRS)
		what |= DELTA_XATTRS;
	if ((e->what & DIFF_CONTENT) && !is_file(e->after))
		what |= DELTA_DEVICE;
	return what;
}

static int add_changed(struct delta *d, const struct diff_entry *e, struct err *err)
{
	const bool content = (e->what & DIFF_CONTENT) != 0;
	const unsigned what = beyond_git(e);
	int r = 0;

	if (is_file(e->after) &&
	    (content || delta_git_mode(e->before->mode) != delta_git_mode(e->after->mode)))
		r = add_file(d, DELTA_MODIFIED, e->path, e->before, e->after, content, err);
	if (r < 0)
		return r;
	if (what != 0)
		r = add_note(d, DELTA_MODIFIED, e->path, e->after->mode, what, err);
	return r;
}

static int on_entry(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct finding *f = ctx;
	struct delta *d = &f->delta;
	int r;

	if (!is_wanted(f->options, e->path))
		return 0;
	if (!e->before)
		return add_one_sided(d, DELTA_ADDED, e->path, e->after, err);
	if (!e->after)
		return add_one_sided(d, DELTA_DELETED, e->path, e->before, err);
	if (!(e->what & DIFF_TYPE))
		return add_changed(d, e, err);
	if (is_file(e->before) && is_file(e->after))
		return add_file(d, DELTA_TYPE, e->path, e->before, e->after, true, err);
	r = add_one_sided(d, DELTA_DELETED, e->path, e->before, err);
	return r < 0 ? r : add_one_sided(d, DELTA_ADDED, e->path, e->after, err);
}

/* A walk visits "a" and its content before "a.c"; byte order is the other way round. */
static int by_path(const void *a, const void *b)
{
	const struct delta_file *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	return order != 0 ? order : (y->status == DELTA_DELETED) - (x->status == DELTA_DELETED);
}

static int notes_by_path(const void *a, const void *b)
{
	const struct delta_note *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	return order != 0 ? order : (y->status == DELTA_DELETED) - (x->status == DELTA_DELETED);
}

int delta_find(struct store *s, const struct object_id *before, const struct object_id *after,
	       const struct delta_options *options, struct delta *ret, struct err *err)
{
	CLEANUP(finding_done) struct finding f = { .options = options };
	int r =
	    diff_walk(s, before, after, &(struct diff_options){ .deep = true }, on_entry, &f, err);

	if (r < 0)
		return r;
	if (options->renames)
		r = delta_find_renames(s, &f.delta, err);
	if (r < 0)
		return r;
	VEC_SORT(f.delta.files, f.delta.n_files, by_path);
	if (f.delta.n_notes > 0)
		qsort(f.delta.notes, f.delta.n_notes, sizeof(*f.delta.notes), notes_by_path);
	*ret = TAKE_STRUCT(f.delta);
	return 0;
}
