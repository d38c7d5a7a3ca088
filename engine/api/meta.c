#include "engine/api/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/vec.h"

#define KEY_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static int check_value(const char *key, size_t key_len, const char *value, size_t len,
		       struct err *err)
{
	size_t n = 1;

	if (len > META_VALUE_MAX)
		return err_set(err, -EINVAL, "the value of '%.*s' has %zu bytes, above %d",
			       (int)key_len, key, len, META_VALUE_MAX);
	for (size_t at = 0; at < len && n > 0; at += n)
		n = utf8_printable(value + at, len - at);
	if (n == 0)
		return err_set(err, -EINVAL, "the value of '%.*s' is not printable UTF-8",
			       (int)key_len, key);
	return 0;
}

/* One pair in `len` bytes. */
static int check_pair(const char *pair, size_t len, struct err *err)
{
	const size_t key_len = strspn(pair, KEY_BYTES);

	if (key_len == 0 || key_len >= len || pair[key_len] != '=')
		return err_set(
		    err, -EINVAL,
		    "'%.*s' is not KEY=VALUE with letters, digits, '.', '_' or '-' as KEY",
		    (int)(len < 80 ? len : 80), pair);
	if (key_len > META_KEY_MAX)
		return err_set(err, -EINVAL, "the key '%.*s...' has %zu bytes, above %d", 16, pair,
			       key_len, META_KEY_MAX);
	return check_value(pair, key_len, pair + key_len + 1, len - key_len - 1, err);
}

static int compare_keys(const char *a, const char *b)
{
	const size_t a_len = strcspn(a, "="), b_len = strcspn(b, "=");
	const int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_key(const void *a, const void *b)
{
	return compare_keys(*(const char *const *)a, *(const char *const *)b);
}

static int check_count(size_t n, struct err *err)
{
	return n > META_MAX ? err_set(err, -EINVAL, "%zu keys, above %d", n, META_MAX) : 0;
}

static int key_twice(const char *pair, struct err *err)
{
	return err_set(err, -EINVAL, "the key '%.*s' is given twice", (int)strcspn(pair, "="),
		       pair);
}

int meta_encode(const char *const *pairs, size_t n, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *sorted[META_MAX];
	int r = check_count(n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = check_pair(pairs[i], strlen(pairs[i]), err);
		if (r < 0)
			return r;
		sorted[i] = pairs[i];
	}
	VEC_SORT(sorted, n, by_key);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && compare_keys(sorted[i - 1], sorted[i]) == 0)
			return key_twice(sorted[i], err);
		if ((i > 0 && buf_append(&text, "\n", 1) < 0) ||
		    buf_append(&text, sorted[i], strlen(sorted[i])) < 0)
			return err_nomem(err);
	}
	*ret = n > 0 ? strndup((const char *)text.data, text.len) : NULL;
	return n > 0 && !*ret ? err_nomem(err) : 0;
}

int meta_check(const char *text, struct err *err)
{
	const char *before = NULL;
	size_t n = 0;
	int r;

	for (const char *at = text; at;
	     before = at, at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		r = check_pair(at, strcspn(at, "\n"), err);
		if (r < 0)
			return r;
		if (before && compare_keys(before, at) == 0)
			return key_twice(at, err);
		if (before && compare_keys(before, at) > 0)
			return err_set(err, -EINVAL, "keys are not in their order");
		n++;
	}
	return check_count(n, err);
}

const char *meta_next(const char *text, struct meta_pair *ret)
{
	const size_t len = strcspn(text, "\n"), key_len = strcspn(text, "=");

	*ret = (struct meta_pair){ .key = text, .key_len = key_len < len ? key_len : len };
	ret->value = text + ret->key_len + (ret->key_len < len);
	ret->value_len = (size_t)(text + len - ret->value);
	return text[len] == '\n' ? text + len + 1 : NULL;
}

const char *meta_find(const char *text, const char *key, size_t *ret_len)
{
	struct meta_pair p;

	while (text) {
		text = meta_next(text, &p);
		if (p.key_len == strlen(key) && memcmp(p.key, key, p.key_len) == 0) {
			*ret_len = p.value_len;
			return p.value;
		}
	}
	return NULL;
}

bool meta_matches(const char *text, const char *want)
{
	const size_t key_len = strcspn(want, "=");
	const bool any = want[key_len] == '\0';
	struct meta_pair p;

	while (text) {
		text = meta_next(text, &p);
		if (p.key_len != key_len || memcmp(p.key, want, key_len) != 0)
			continue;
		return any || (p.value_len == strlen(want + key_len + 1) &&
			       memcmp(p.value, want + key_len + 1, p.value_len) == 0);
	}
	return false;
}

bool meta_agree(const char *a, const char *b, const char *key)
{
	size_t a_len = 0, b_len = 0;
	const char *x = meta_find(a, key, &a_len), *y = meta_find(b, key, &b_len);

	return !x == !y && a_len == b_len && (!x || memcmp(x, y, a_len) == 0);
}
