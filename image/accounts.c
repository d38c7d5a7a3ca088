#include "image/accounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define ACCOUNTS_MAX 1000000
#define FIELDS       7 /* of a line of etc/passwd, which has the most */

static void account_done(struct account *a)
{
	free(a->name);
	free(a->home);
	free(a->shell);
	free(a->members);
}

DEFINE_LIST_DONE(accounts_done, struct accounts, account_done)

/* --- text ------------------------------------------------------------------------------- */

struct fields {
	const char *at[FIELDS];
	size_t len[FIELDS];
	size_t n;
};

static void cut(const char *line, size_t len, struct fields *ret)
{
	const char *end = line + len;

	for (ret->n = 0; ret->n < FIELDS; ret->n++) {
		const char *colon = memchr(line, ':', (size_t)(end - line));

		ret->at[ret->n] = line;
		ret->len[ret->n] = (size_t)((colon ? colon : end) - line);
		if (!colon) {
			ret->n++;
			return;
		}
		line = colon + 1;
	}
}

static bool read_id(const struct fields *f, size_t i, uint32_t *ret)
{
	uint64_t id = 0;

	if (f->len[i] == 0 || f->len[i] > 10)
		return false;
	for (size_t k = 0; k < f->len[i]; k++) {
		if (f->at[i][k] < '0' || f->at[i][k] > '9')
			return false;
		id = id * 10 + (uint64_t)(f->at[i][k] - '0');
	}
	*ret = (uint32_t)id;
	return id < UINT32_MAX;
}

/* false: it is no line of an account. */
static bool read_numbers(const struct fields *f, enum accounts_kind kind, struct account *ret)
{
	const bool user = kind == ACCOUNTS_USERS;

	if (f->n < (user ? FIELDS : 4) || f->len[0] == 0 || memchr(f->at[0], '\0', f->len[0]))
		return false;
	return read_id(f, 2, &ret->id) && (!user || read_id(f, 3, &ret->group));
}

static int add(struct accounts *a, enum accounts_kind kind, const char *line, size_t len,
	       struct err *err)
{
	const bool user = kind == ACCOUNTS_USERS;
	struct account one = { 0 };
	struct fields f;

	cut(line, len, &f);
	if (!read_numbers(&f, kind, &one))
		return 0;
	if (a->n >= ACCOUNTS_MAX)
		return err_set(err, -EDQUOT, "it has more than %d accounts", ACCOUNTS_MAX);
	one.name = strndup(f.at[0], f.len[0]);
	one.home = user ? strndup(f.at[5], f.len[5]) : strdup("");
	one.shell = user ? strndup(f.at[6], f.len[6]) : strdup("");
	one.members = user ? strdup("") : strndup(f.at[3], f.len[3]);
	if (!one.name || !one.home || !one.shell || !one.members ||
	    !VEC_ROOM(a->list, a->n, a->cap)) {
		account_done(&one);
		return err_nomem(err);
	}
	a->list[a->n++] = one;
	return 0;
}

int accounts_parse(struct accounts *a, enum accounts_kind kind, const char *text, size_t len,
		   struct err *err)
{
	const char *at = text, *end = text + len;
	int r = 0;

	while (at < end && r >= 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((newline ? newline : end) - at);

		r = add(a, kind, at, n, err);
		at += n + (newline != NULL);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct account *x = a, *y = b;
	const int order = strcmp(x->name, y->name);

	return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

static void accounts_sort(struct accounts *a)
{
	VEC_SORT(a->list, a->n, by_name);
}

int accounts_load(struct rootfile *l, enum accounts_kind kind, struct accounts *ret,
		  struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = rootfile_text(l, kind == ACCOUNTS_USERS ? "etc/passwd" : "etc/group", &text, err);

	if (r > 0 && text.len > 0)
		r = accounts_parse(ret, kind, (const char *)text.data, text.len, err);
	accounts_sort(ret);
	return r < 0 ? r : 0;
}

/* --- comparing -------------------------------------------------------------------------- */

static bool is_same(const struct account *a, const struct account *b)
{
	return a->id == b->id && a->group == b->group && strcmp(a->home, b->home) == 0 &&
	       strcmp(a->shell, b->shell) == 0 && strcmp(a->members, b->members) == 0;
}

int accounts_compare(const struct accounts *before, const struct accounts *after, accounts_fn fn,
		     void *ctx, struct err *err)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (r >= 0 && (i < before->n || k < after->n)) {
		const struct account *a = i < before->n ? &before->list[i] : NULL;
		const struct account *b = k < after->n ? &after->list[k] : NULL;
		const int c = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);

		i += c <= 0;
		k += c >= 0;
		if (c != 0 || !is_same(a, b))
			r = fn(c <= 0 ? a : NULL, c >= 0 ? b : NULL, ctx, err);
	}
	return r;
}
