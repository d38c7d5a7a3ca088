/*
 * capture-xattrs.c - the extended attributes of a file or directory, as a stored set.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cowfs/store/xattrs.h"
#include "snapshot/capture/capture-i.h"

static ssize_t ask(int fd, const char *name, void *data, size_t size)
{
	return name ? sys_get_xattr(fd, name, data, size) : sys_list_xattrs(fd, data, size);
}

/* Append an attribute's value, or for NULL the list of names, and give its length. */
static ssize_t append_xattr(int fd, const char *name, struct buf *out)
{
	const size_t before = out->len;
	ssize_t n;
	void *p;

	do {
		out->len = before;
		n = ask(fd, name, NULL, 0);
		if (n <= 0)
			return n;
		p = buf_extend(out, (size_t)n);
		if (!p)
			return -ENOMEM;
		n = ask(fd, name, p, (size_t)n);
	} while (n == -ERANGE);
	out->len = before + (n > 0 ? (size_t)n : 0);
	return n;
}

/* Attributes that were listed and are gone, or cannot be had at all, are none. */
static int read_values(struct node_reader *nr, int fd, struct xattr *list, size_t *ret_n,
		       struct err *err)
{
	const char *name = (const char *)nr->names.data, *end = name + nr->names.len;
	size_t n = 0, at = 0;
	ssize_t len;

	for (; name < end; name += strlen(name) + 1) {
		len = append_xattr(fd, name, &nr->values);
		if (len == -ENODATA || len == -ENOTSUP)
			continue;
		if (len < 0)
			return node_unreadable(err_wrap(err, (int)len, "attribute '%s'", name));
		list[n++] = (struct xattr){
			.name = name,
			.name_len = strlen(name),
			.value_len = (size_t)len,
		};
	}
	for (size_t i = 0; i < n; at += list[i++].value_len)
		list[i].value = nr->values.data + at;
	*ret_n = n;
	return 0;
}

int node_read_xattrs(struct node_reader *nr, int fd, struct object_id *ret_id, struct err *err)
{
	AUTO_FREE struct xattr *list = NULL;
	ssize_t len;
	size_t n = 0;
	int r;

	buf_reset(&nr->names);
	buf_reset(&nr->values);
	len = append_xattr(fd, NULL, &nr->names);
	if (len < 0)
		return node_unreadable(err_wrap(err, (int)len, "its attributes cannot be listed"));
	if (len == 0) {
		*ret_id = (struct object_id){ 0 };
		return 0;
	}
	if (nr->names.data[nr->names.len - 1] != '\0')
		return node_unreadable(err_set(err, -EIO, "its list of attributes has no end"));

	for (size_t i = 0; i < nr->names.len; i++)
		n += nr->names.data[i] == '\0';
	assert(n > 0);
	list = calloc(n, sizeof(*list));
	if (!list)
		return err_nomem(err);
	r = read_values(nr, fd, list, &n, err);
	if (r != 0)
		return r;
	r = xattrs_put(nr->batch, list, n, ret_id, err);
	return r == -E2BIG || r == -EINVAL ? node_unreadable(r) : r < 0 ? r : 0;
}
