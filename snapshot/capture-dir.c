/*
 * Directories are held by descriptor, at most DIR_FDS_MAX of them.  Deeper down the
 * upper ones but the top are closed, and opened again on the way back, step by step
 * from the top.  Each step must lead to the directory that was there before; ".." would
 * lead wherever somebody moved it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/path.h"
#include "snapshot/capture-i.h"

#define DIR_FDS_MAX 32
#define SHOWN_MAX   150 /* bytes of a path in a sentence */

int dir_open(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* What a symlink gives depends on the system. */
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	return fd;
}

void dir_free(struct dir *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_items; i++)
		node_done(&d->items[i].node);
	free(d->items);
	free(d->sorted);
	buf_done(&d->names);
	cleanup_close(&d->fd);
	free(d);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_stream(DIR **stream)
{
	if (*stream)
		closedir(*stream);
}

static int read_names(struct dir *d, struct err *err)
{
	AUTO_CLOSE int fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
	CLEANUP(close_stream) DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream)
		return err_sys(err, "cannot be listed");
	fd = -1; /* the stream closes it */
	for (errno = 0; (entry = readdir(stream)); errno = 0) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (buf_append(&d->names, name, strlen(name) + 1) < 0)
			return err_nomem(err);
		d->n_sorted++;
	}
	return errno != 0 ? err_sys(err, "cannot be listed") : 0;
}

/* In order, each once: a name that moved within the directory may have been listed twice. */
int dir_list_names(struct dir *d, struct err *err)
{
	const char *name;
	size_t n = 0;
	int r;

	r = read_names(d, err);
	if (r < 0 || d->n_sorted == 0)
		return r;
	d->sorted = malloc(d->n_sorted * sizeof(*d->sorted));
	d->items = calloc(d->n_sorted, sizeof(*d->items));
	if (!d->sorted || !d->items)
		return err_nomem(err);
	for (name = (const char *)d->names.data; n < d->n_sorted; name += strlen(name) + 1)
		d->sorted[n++] = name;
	qsort(d->sorted, n, sizeof(*d->sorted), compare_names);
	d->n_sorted = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(d->sorted[i], d->sorted[i - 1]) != 0)
			d->sorted[d->n_sorted++] = d->sorted[i];
	return 0;
}

/* --- the stack -------------------------------------------------------------------------- */

void dir_stack_done(struct dir_stack *s)
{
	while (s->at)
		dir_free(dir_stack_pop(s));
}

static void close_dir(struct dir_stack *s, struct dir *d)
{
	close(TAKE_FD(d->fd));
	s->n_open--;
}

/* Make room for one more descriptor: those held are the top's and the deepest ones'. */
static void spare_fd(struct dir_stack *s)
{
	struct dir *d = s->at;

	if (s->n_open < DIR_FDS_MAX)
		return;
	while (d->parent->parent && d->parent->fd >= 0)
		d = d->parent;
	close_dir(s, d);
}

void dir_stack_push(struct dir_stack *s, struct dir *d)
{
	d->parent = s->at;
	if (s->at) {
		d->depth = s->at->depth + 1;
		s->at->child = d;
		spare_fd(s);
	}
	s->n_open++;
	s->at = d;
}

struct dir *dir_stack_pop(struct dir_stack *s)
{
	struct dir *d = s->at;

	if (d->fd >= 0)
		close_dir(s, d);
	s->at = d->parent;
	return d;
}

static int moved(struct err *err)
{
	return err_set(err, -ESTALE, "was moved while it was captured");
}

/* Open one directory again, from the one above. */
static int reopen_below(struct dir_stack *s, const struct dir *above, struct err *err)
{
	struct dir *d = above->child;
	struct file_id id;
	struct stat st;
	int fd;

	fd = dir_open(above->fd, d->item->node.e.name);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return moved(err);
	if (fd < 0)
		return err_wrap(err, fd, "cannot be opened again");
	d->fd = fd;
	s->n_open++;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot be examined");
	id = file_id_of(&st);
	return file_id_equal(&d->id, &id) ? 0 : moved(err);
}

/* As many of those above it stay open as fit. */
int dir_stack_reopen(struct dir_stack *s, struct err *err)
{
	struct dir *above = s->at;
	int r;

	while (above->fd < 0)
		above = above->parent;
	for (; above != s->at; above = above->child) {
		r = reopen_below(s, above, err);
		if (r < 0)
			return dir_stack_fail(s, above->child, NULL, r, err);
		if (above->parent && s->at->depth - above->depth >= DIR_FDS_MAX - 1)
			close_dir(s, above);
	}
	return 0;
}

/* --- saying where ----------------------------------------------------------------------- */

static int append_path(const struct dir_stack *s, const struct dir *d, const char *name,
		       struct buf *out)
{
	const size_t depth = d ? d->depth : 0;
	AUTO_FREE const char **steps = calloc(depth + 2, sizeof(*steps));
	int r;

	if (!steps)
		return -ENOMEM;
	steps[depth] = name;
	for (; d && d->parent; d = d->parent)
		steps[d->depth - 1] = d->item->node.e.name;
	r = path_append_shown(out, s->path, strlen(s->path));
	for (size_t i = 0; r >= 0 && steps[i]; i++) {
		if (out->len > 0 && out->data[out->len - 1] != '/')
			r = buf_append_str(out, "/");
		if (r >= 0)
			r = path_append_shown(out, steps[i], strlen(steps[i]));
	}
	return r;
}

/* Of a long path the end is shown, so that the reason fits behind it. */
int dir_stack_fail(const struct dir_stack *s, const struct dir *d, const char *name, int code,
		   struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	const char *shown = NULL, *end;

	if (append_path(s, d, name, &path) >= 0)
		shown = buf_str(&path);
	if (!shown)
		return err_wrap(err, code, "'%s'", name ? name : s->path);
	if (path.len <= SHOWN_MAX)
		return err_wrap(err, code, "'%s'", shown);
	shown += path.len - SHOWN_MAX;
	end = strchr(shown, '/');
	return err_wrap(err, code, "'...%s'", end ? end : shown);
}
