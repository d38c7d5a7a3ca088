#include "base/text.h"
#include "cowfs/core/replaced-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

char *replaced_dir(const struct layer *l, const struct node *dir)
{
	const struct node *n = dir;
	size_t len = 0;
	char *path, *at;

	for (; n->names; n = n->names->dir)
		len += strlen(n->names->name) + 1;
	if (n != l->top)
		return NULL;
	path = malloc(len + 1);
	if (!path)
		return NULL;
	at = path + (len > 0 ? len - 1 : 0);
	*at = '\0';
	for (n = dir; n->names; n = n->names->dir) {
		const size_t name_len = strlen(n->names->name);

		at -= name_len;
		memcpy(at, n->names->name, name_len);
		if (at > path)
			*--at = '/';
	}
	return path;
}

static char *join(const char *dir, const char *name)
{
	if (!dir)
		return NULL;
	return text_format("%s%s%s", dir, *dir != '\0' ? "/" : "", name);
}

void replaced_add(struct layer_changes *c, const struct replaced_name *n)
{
	char *path;

	if (!n->dir_path)
		return;
	path = c->n_replaced < LAYER_REPLACED_MAX ? join(n->dir_path, n->name) : NULL;
	if (!path || !VEC_ROOM(c->replaced, c->n_replaced, c->cap_replaced)) {
		free(path);
		c->n_left_out++;
		return;
	}
	c->replaced[c->n_replaced++] = (struct layer_replaced){
		.dir = n->dir->id,
		.before = n->before ? n->before->id : 0,
		.was = n->was,
		.is = n->is,
		.path = path,
	};
}

void replaced_push(struct replaced_dirs *d, const struct node *dir, const char *in,
		   const char *name)
{
	char *path = join(in, name);

	if (!path || !VEC_ROOM(d->list, d->n, d->cap)) {
		free(path);
		return;
	}
	d->list[d->n].dir = dir;
	d->list[d->n++].path = path;
}

char *replaced_pop(struct replaced_dirs *d, const struct node *dir)
{
	if (d->n == 0 || d->list[d->n - 1].dir != dir)
		return NULL;
	return d->list[--d->n].path;
}

void replaced_dirs_done(struct replaced_dirs *d)
{
	while (d->n > 0)
		free(d->list[--d->n].path);
	free(d->list);
	*d = (struct replaced_dirs){ 0 };
}
