#include "engine/find/hidden-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* With all packs of a snapshot it fits into one question to cowfsd, and into what a manifest says. */
#define TEXT_LEN_MAX ((size_t)640 << 10)

static int begin_list(const struct clone *clone, struct hidden *ret, struct err *err)
{
	*ret = (struct hidden){ .clone = strdup(clone->name), .created = clone->created };
	return ret->clone ? 0 : err_nomem(err);
}

int hidden_load(struct store *s, const struct clone *clone, struct hidden *ret, struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	int r = hidden_get(s, clone->name, &h, err);

	if (r == -ENOENT || (r >= 0 && h.created != clone->created))
		return begin_list(clone, ret, err);
	if (r >= 0)
		*ret = TAKE_STRUCT(h);
	return r;
}

/* --- of a snapshot ---------------------------------------------------------------------- */

/* No clone has such a name. */
struct own_name {
	char text[1 + CATALOG_HEX_SIZE];
};

static struct own_name name_of(const struct catalog_id *snapshot)
{
	struct own_name name = { "@" };

	catalog_id_hex(snapshot, name.text + 1);
	return name;
}

int hidden_load_of(struct store *s, const struct snapshot *of, struct hidden *ret, struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	const struct own_name own = name_of(&of->id);
	int r = hidden_get(s, own.text, &h, err);

	if (r == -ENOENT && of->clone)
		r = hidden_get(s, of->clone, &h, err);
	/* The clone may have gone meanwhile and left its list to the snapshot; one of that name may be a later one. */
	if (of->clone && (r == -ENOENT || (r >= 0 && h.created > of->created))) {
		hidden_done(&h);
		r = hidden_get(s, own.text, &h, err);
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(h);
	return 1;
}

int hidden_put_of(struct batch *b, const struct catalog_id *snapshot, const struct hidden *h,
		  struct err *err)
{
	CLEANUP(hidden_done) struct hidden there = { 0 };
	struct own_name name = name_of(snapshot);
	const struct hidden own = { .clone = name.text, .numbers = h->numbers, .dirs = h->dirs };
	int r = hidden_get(batch_store(b), name.text, &there, err);

	if (r == -ENOENT)
		return hidden_put(b, &own, err);
	/* A damaged one stays damage: what it hid is not known. */
	return r == -EBADMSG ? 0 : r;
}

int hidden_drop_of(struct batch *b, const struct catalog_id *snapshot, struct err *err)
{
	CLEANUP(hidden_done) struct hidden unused = { 0 };
	const struct own_name name = name_of(snapshot);

	/* A damaged record is removed, too. */
	if (hidden_get(batch_store(b), name.text, &unused, NULL) == -ENOENT)
		return 0;
	return ref_delete(b, REF_HIDDEN, name.text, strlen(name.text), err);
}

/* --- numbers ---------------------------------------------------------------------------- */

static int join(struct record_numbers *all, const struct record_numbers *these)
{
	const size_t before = all->n;
	uint64_t *more = reallocarray(all->list, before + these->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < these->n; i++)
		more[before + i] = these->list[i];
	all->list = more;
	all->n = vec_unique_u64(more, before + these->n);
	return all->n > before;
}

int hidden_add(struct hidden *h, const struct hidden *more)
{
	const int files = join(&h->numbers, &more->numbers);
	const int dirs = files < 0 ? files : join(&h->dirs, &more->dirs);

	return dirs < 0 ? dirs : files || dirs;
}

static int write_list(struct buf *out, const struct record_numbers *n)
{
	uint64_t before = 0;
	int r = 0;

	for (size_t i = 0; i < n->n && r >= 0; i++) {
		r = buf_printf(out, "%s%" PRIx64, i > 0 ? " " : "", n->list[i] - before);
		before = n->list[i];
	}
	return r;
}

int hidden_write(const struct hidden *h, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	*ret = NULL;
	if (h->numbers.n == 0 && h->dirs.n == 0)
		return 0;
	if (write_list(&out, &h->numbers) < 0 || buf_append_str(&out, "/") < 0 ||
	    write_list(&out, &h->dirs) < 0 || !buf_str(&out))
		return err_nomem(err);
	if (out.len > TEXT_LEN_MAX)
		return err_set(err, -E2BIG,
			       "too many files were hidden from runs of the clone to tell another "
			       "store: promote its changes and make a new clone of the project");
	*ret = strdup(buf_str(&out));
	return *ret ? 0 : err_nomem(err);
}

/* 1 with the difference, 0 at the end of the list; *at is moved past it. */
static int next_number(const char **at, uint64_t *ret)
{
	char *end;

	*at += **at == ' ';
	if (strspn(*at, "0123456789abcdef") == 0)
		return 0;
	errno = 0;
	*ret = strtoull(*at, &end, 16);
	*at = end;
	return errno == 0 ? 1 : -ERANGE;
}

static int read_list(const char **at, struct record_numbers *ret)
{
	uint64_t before = 0, grown = 0;
	int r;

	while ((r = next_number(at, &grown)) > 0) {
		if (ret->n == RECORD_NUMBERS_MAX || grown > UINT64_MAX - before ||
		    (ret->n > 0 && grown == 0))
			return -EBADMSG;
		if (!VEC_ONE_MORE(ret->list, ret->n))
			return -ENOMEM;
		ret->list[ret->n++] = before += grown;
	}
	return r;
}

int hidden_read(const char *text, struct hidden *ret, struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	const char *at = text;
	int r = strlen(text) > TEXT_LEN_MAX ? -EBADMSG : read_list(&at, &h.numbers);

	if (r == 0 && *at == '/')
		r = (at++, read_list(&at, &h.dirs));
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || *at != '\0' || h.numbers.n + h.dirs.n > RECORD_NUMBERS_MAX)
		return err_set(err, -EBADMSG,
			       "the list of hidden files of a snapshot is malformed");
	*ret = TAKE_STRUCT(h);
	return 0;
}
