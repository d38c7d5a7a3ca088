#include "cowfs/store/xattrs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/le.h"

#define XATTRS_MAGIC       'X'
#define XATTRS_VERSION     1
#define XATTRS_HEADER_SIZE 8
#define RECORD_HEADER_SIZE 6

static int compare_names(const void *va, const void *vb)
{
	const struct xattr *a = va, *b = vb;

	return bytes_compare(a->name, a->name_len, b->name, b->name_len);
}

static bool name_valid(const char *name, size_t len)
{
	return len >= 1 && len <= XATTR_NAME_LEN_MAX && !memchr(name, '\0', len);
}

/* The size the set will have, or what is wrong with it. */
static ssize_t measure(const struct xattr *list, size_t n, struct err *err)
{
	size_t total = XATTRS_HEADER_SIZE;

	for (size_t i = 0; i < n; i++) {
		const struct xattr *x = &list[i];

		if (!name_valid(x->name, x->name_len))
			return err_set(err, -EINVAL,
				       "the name of an attribute has 1 to %d bytes without NUL",
				       XATTR_NAME_LEN_MAX);
		if (x->value_len > XATTR_VALUE_LEN_MAX)
			return err_set(
			    err, -E2BIG, "attribute '%.*s' has a value of %zu bytes, above %zu",
			    (int)x->name_len, x->name, x->value_len, XATTR_VALUE_LEN_MAX);
		total += RECORD_HEADER_SIZE + x->name_len + x->value_len;
		if (total > OBJECT_SIZE_MAX)
			return err_set(err, -E2BIG, "%zu attributes take more than %zu bytes", n,
				       OBJECT_SIZE_MAX);
	}
	return (ssize_t)total;
}

static uint8_t *store_record(uint8_t *p, const struct xattr *x)
{
	le16_store(p, (uint16_t)x->name_len);
	le32_store(p + 2, (uint32_t)x->value_len);
	p += RECORD_HEADER_SIZE;
	memcpy(p, x->name, x->name_len);
	p += x->name_len;
	if (x->value_len > 0)
		memcpy(p, x->value, x->value_len);
	return p + x->value_len;
}

int xattrs_encode(const struct xattr *list, size_t n, struct buf *out, struct err *err)
{
	AUTO_FREE struct xattr *sorted = NULL;
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	ssize_t total;
	uint8_t *p;

	if (n == 0) {
		buf_reset(out);
		return 0;
	}
	total = measure(list, n, err);
	if (total < 0)
		return (int)total;

	sorted = malloc(n * sizeof(*sorted));
	p = buf_extend(&set, (size_t)total);
	if (!sorted || !p)
		return err_nomem(err);
	memcpy(sorted, list, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_names);

	p[0] = XATTRS_MAGIC;
	p[1] = XATTRS_VERSION;
	p[2] = 0;
	p[3] = 0;
	le32_store(p + 4, (uint32_t)n);
	p += XATTRS_HEADER_SIZE;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && compare_names(&sorted[i - 1], &sorted[i]) == 0)
			return err_set(err, -EINVAL, "attribute '%.*s' is given twice",
				       (int)sorted[i].name_len, sorted[i].name);
		p = store_record(p, &sorted[i]);
	}
	assert(p == set.data + set.len);
	buf_swap(out, &set);
	return 0;
}

/* The record at `pos` and the position behind it; false unless all of it is there. */
static bool load_record(const uint8_t *data, size_t len, size_t pos, struct xattr *ret,
			size_t *ret_next)
{
	size_t left = len - pos, name_len, value_len;

	if (left < RECORD_HEADER_SIZE)
		return false;
	name_len = le16_load(data + pos);
	value_len = le32_load(data + pos + 2);
	left -= RECORD_HEADER_SIZE;
	if (name_len > left || value_len > left - name_len)
		return false;

	pos += RECORD_HEADER_SIZE;
	*ret = (struct xattr){
		.name = (const char *)data + pos,
		.name_len = name_len,
		.value = data + pos + name_len,
		.value_len = value_len,
	};
	*ret_next = pos + name_len + value_len;
	return true;
}

int xattrs_verify(const void *data, size_t len, struct err *err)
{
	struct xattr x, before = { 0 };
	const uint8_t *p = data;
	size_t pos = XATTRS_HEADER_SIZE;
	uint32_t n;

	if (len < XATTRS_HEADER_SIZE || p[0] != XATTRS_MAGIC || p[2] != 0 || p[3] != 0)
		return err_set(err, -EBADMSG, "these %zu bytes are no attribute set", len);
	if (p[1] != XATTRS_VERSION)
		return err_set(err, -EBADMSG, "attribute set of version %u, not %u", p[1],
			       XATTRS_VERSION);
	if (len > OBJECT_SIZE_MAX)
		return err_set(err, -EBADMSG, "attribute set of %zu bytes, above %zu", len,
			       OBJECT_SIZE_MAX);
	n = le32_load(p + 4);
	if (n == 0)
		return err_set(err, -EBADMSG, "attribute set without attributes");

	for (uint32_t i = 0; i < n; i++) {
		if (!load_record(p, len, pos, &x, &pos))
			return err_set(err, -EBADMSG, "attribute %u of %u is cut off", i, n);
		if (!name_valid(x.name, x.name_len))
			return err_set(err, -EBADMSG, "attribute %u of %u has no valid name", i, n);
		if (x.value_len > XATTR_VALUE_LEN_MAX)
			return err_set(err, -EBADMSG, "attribute %u of %u has a value of %zu bytes",
				       i, n, x.value_len);
		if (i > 0 && compare_names(&before, &x) >= 0)
			return err_set(err, -EBADMSG, "attribute %u of %u is out of order", i, n);
		before = x;
	}
	if (pos != len)
		return err_set(err, -EBADMSG, "%zu bytes follow the last attribute", len - pos);
	return 0;
}

bool xattrs_next(const struct buf *set, size_t *pos, struct xattr *ret)
{
	size_t at = *pos > 0 ? *pos : XATTRS_HEADER_SIZE;

	if (at >= set->len)
		return false;
	return load_record(set->data, set->len, at, ret, pos);
}

bool xattrs_find(const struct buf *set, const char *name, size_t name_len, struct xattr *ret)
{
	const struct xattr wanted = { .name = name, .name_len = name_len };
	struct xattr x;
	size_t pos = 0;

	while (xattrs_next(set, &pos, &x)) {
		int order = compare_names(&x, &wanted);

		if (order == 0)
			*ret = x;
		if (order >= 0)
			return order == 0;
	}
	return false;
}

int xattrs_put(struct batch *b, const struct xattr *list, size_t n, struct object_id *ret_id,
	       struct err *err)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	int r;

	if (n == 0) {
		*ret_id = (struct object_id){ 0 };
		return 0;
	}
	r = xattrs_encode(list, n, &set, err);
	if (r < 0)
		return r;
	r = batch_put(b, OBJECT_XATTRS, set.data, set.len, ret_id, err);
	return r < 0 ? r : 0;
}

int xattrs_get(struct store *s, const struct object_id *id, struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	char hex[OBJECT_HEX_SIZE];
	int r;

	if (object_id_is_zero(id)) {
		buf_reset(out);
		return 0;
	}
	r = store_require(s, OBJECT_XATTRS, id, &set, err);
	if (r < 0)
		return r;
	r = xattrs_verify(set.data, set.len, err);
	if (r < 0)
		return err_wrap(err, r, "attribute set %s", object_id_hex(id, hex));
	buf_swap(out, &set);
	return 0;
}
