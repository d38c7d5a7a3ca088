#include "tests/model/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void names_done(struct names *l)
{
	while (l->n)
		free(l->list[--l->n]);
	free(l->list);
	l->list = NULL;
}

void names_add(struct names *l, const char *name)
{
	l->list = reallocarray(l->list, l->n + 1, sizeof(char *));
	if (!l->list || !(l->list[l->n++] = strdup(name)))
		abort();
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void names_sort(struct names *l)
{
	if (l->n)
		qsort(l->list, l->n, sizeof(char *), by_name);
}

int names_of(int dir, const char *path, struct names *ret)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), r;
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	errno = 0;
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			names_add(ret, e->d_name);
		errno = 0;
	}
	r = -errno;
	closedir(d);
	names_sort(ret);
	return r;
}
