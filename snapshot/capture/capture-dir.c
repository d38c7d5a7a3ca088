#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/sys.h"
#include "snapshot/capture/capture-i.h"

#define SHOWN_MAX 150 /* bytes of a path in a sentence */

int dir_open(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* Opening a symlink fails differently on each system. */
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	return fd;
}

void dir_free(struct dir *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_items; i++)
		if (d->items[i].kind != ITEM_LINKED)
			node_free(d->items[i].node);
	free(d->items);
	free(d->dirs);
	buf_done(&d->names);
	ignore_free(d->ignore);
	cleanup_close(&d->fd);
	free(d);
}

/* --- names ------------------------------------------------------------------------------ */

static int add(struct dir *d, const char *name, size_t len, unsigned char type)
{
	const char behind[] = { '\0', (char)type };
	int r = buf_append(&d->names, name, len);

	d->n_items++;
	return r < 0 ? r : buf_append(&d->names, behind, sizeof(behind));
}

static int add_name(const char *name, unsigned char type, void *ctx)
{
	return add(ctx, name, strlen(name), type);
}

unsigned char item_type(const struct item *item)
{
	return (unsigned char)item->name[item->name_len + 1];
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

/* For every name that was added. */
static int make_items(struct dir *d, struct err *err)
{
	const char *name = (const char *)d->names.data;
	const size_t n = d->n_items;

	d->n_items = 0;
	if (n == 0)
		return 0;
	d->items = calloc(n, sizeof(*d->items));
	d->dirs = calloc(n, sizeof(*d->dirs));
	if (!d->items || !d->dirs)
		return err_nomem(err);
	for (; d->n_items < n; d->n_items++) {
		const size_t len = strlen(name);

		d->items[d->n_items].name = name;
		d->items[d->n_items].name_len = (uint16_t)len;
		name += len + 2;
	}
	return 0;
}

/* In order, each once: a name that moved within the directory may have been listed twice. */
static void sort_items(struct dir *d)
{
	const size_t listed = d->n_items;
	size_t n = 0;

	qsort(d->items, listed, sizeof(*d->items), compare_items);
	for (size_t i = 0; i < listed; i++)
		if (i == 0 || strcmp(d->items[i].name, d->items[n - 1].name) != 0)
			d->items[n++] = d->items[i];
	d->n_items = n;
}

/* One that was removed after it was opened cannot be listed; there may be another by now. */
int dir_list_names(struct dir *d, int fd, struct err *err)
{
	int r = sys_each_name(fd, add_name, d);

	if (r < 0)
		d->n_items = 0;
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -ENOENT)
		return NODE_CHANGED;
	if (r < 0) {
		err_wrap(err, r, "cannot be listed");
		return NODE_UNREADABLE;
	}
	r = make_items(d, err);
	if (r == 0 && d->n_items > 0)
		sort_items(d);
	return r;
}

void dir_keep_names(struct dir *d, const char *const *only, size_t n_only)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_items; i++)
		for (size_t k = 0; k < n_only; k++)
			if (strcmp(d->items[i].name, only[k]) == 0) {
				d->items[n++] = d->items[i];
				break;
			}
	d->n_items = n;
}

int dir_recall_names(struct dir *d, struct signature_iter old, struct err *err)
{
	int r = 0;

	for (; r >= 0 && old.left > 0; signature_iter_step(&old)) {
		size_t len;
		const char *name = signature_name(old.next, &len);

		r = add(d, name, len, IFTODT(signature_mode(old.next)));
	}
	if (r < 0)
		d->n_items = 0;
	return r < 0 ? err_nomem(err) : make_items(d, err);
}

/* --- saying where ----------------------------------------------------------------------- */

int dir_append_path(const struct dir *d, const char *name, struct buf *out)
{
	const size_t depth = d ? d->depth : 0;
	AUTO_FREE const char **steps = calloc(depth + 2, sizeof(*steps));
	int r = 0;

	if (!steps)
		return -ENOMEM;
	steps[depth] = name;
	for (; d && d->parent; d = d->parent)
		steps[d->depth - 1] = d->item->name;
	for (size_t i = 0; r >= 0 && steps[i]; i++) {
		if (i > 0)
			r = buf_append_str(out, "/");
		if (r < 0)
			return r;
		r = buf_append_str(out, steps[i]);
	}
	return r;
}

static int show_path(const char *top, const struct dir *d, const char *name, struct buf *out)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	int r = dir_append_path(d, name, &path);

	if (r < 0)
		return r;
	r = path_append_shown(out, top, strlen(top));
	if (r < 0)
		return r;
	if (path.len > 0 && top[strlen(top) - 1] != '/')
		r = buf_append_str(out, "/");
	return r < 0 ? r : path_append_shown(out, (const char *)path.data, path.len);
}

/* Shows only the end of a long path, so that the reason fits after it. */
int dir_fail(const char *top, const struct dir *d, const char *name, int code, struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	const char *shown = NULL, *end;

	if (show_path(top, d, name, &path) >= 0)
		shown = buf_str(&path);
	if (!shown)
		return err_wrap(err, code, "'%s'", name ? name : top);
	if (path.len <= SHOWN_MAX)
		return err_wrap(err, code, "'%s'", shown);
	shown += path.len - SHOWN_MAX;
	end = strchr(shown, '/');
	return err_wrap(err, code, "'...%s'", end ? end : shown);
}
