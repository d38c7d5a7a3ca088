#include "image/packages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "image/rootfile.h"

#define PACKAGES_MAX 200000
#define WORD_MAX     255
#define STATUS       "var/lib/dpkg/status"
#define STATUS_DIR   "var/lib/dpkg/status.d"
#define MARKS        "var/lib/apt/extended_states"

static void package_done(struct package *p)
{
	free(p->name);
	free(p->version);
}

DEFINE_LIST_DONE(packages_done, struct packages, package_done)

/* --- text ------------------------------------------------------------------------------- */

struct span {
	const char *at;
	size_t len;
};

/* The fields of a paragraph that count. */
struct paragraph {
	struct span name, version, status, automatic;
};

static struct span trim(const char *at, size_t len)
{
	while (len > 0 && (*at == ' ' || *at == '\t')) {
		at++;
		len--;
	}
	while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t' || at[len - 1] == '\r'))
		len--;
	return (struct span){ at, len };
}

static void take_line(struct paragraph *p, const char *line, size_t len)
{
	static const struct {
		const char *key;
		size_t at;
	} fields[] = {
		{ "Package:", offsetof(struct paragraph, name) },
		{ "Version:", offsetof(struct paragraph, version) },
		{ "Status:", offsetof(struct paragraph, status) },
		{ "Auto-Installed:", offsetof(struct paragraph, automatic) },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const size_t n = strlen(fields[i].key);

		if (len >= n && memcmp(line, fields[i].key, n) == 0)
			*(struct span *)(void *)((char *)p + fields[i].at) =
			    trim(line + n, len - n);
	}
}

/* Files of status.d have no status: what is there is installed. */
static bool is_installed(const struct paragraph *p)
{
	static const char end[] = " installed";
	const size_t n = strlen(end);

	if (p->name.len == 0 || p->name.len > WORD_MAX || p->version.len > WORD_MAX)
		return false;
	return p->status.len == 0 ||
	       (p->status.len >= n && memcmp(p->status.at + p->status.len - n, end, n) == 0);
}

static int add(struct packages *p, const struct paragraph *para, struct err *err)
{
	struct package one = { 0 };

	if (!is_installed(para))
		return 0;
	if (p->n >= PACKAGES_MAX)
		return err_set(err, -EDQUOT, "its dpkg database has more than %d packages",
			       PACKAGES_MAX);
	one.name = strndup(para->name.at, para->name.len);
	one.automatic = para->automatic.len == 1 && *para->automatic.at == '1';
	one.version = strndup(para->version.len > 0 ? para->version.at : "", para->version.len);
	if (!one.name || !one.version || !VEC_ROOM(p->list, p->n, p->cap)) {
		package_done(&one);
		return err_nomem(err);
	}
	p->list[p->n++] = one;
	return 0;
}

int packages_parse(struct packages *p, const char *text, size_t len, struct err *err)
{
	struct paragraph para = { 0 };
	const char *at = text, *end = text + len;
	int r = 0;

	while (at < end && r >= 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((newline ? newline : end) - at);

		if (n == 0) {
			r = add(p, &para, err);
			para = (struct paragraph){ 0 };
		} else if (*at != ' ' && *at != '\t') {
			take_line(&para, at, n);
		}
		at += n + (newline != NULL);
	}
	return r < 0 ? r : add(p, &para, err);
}

static int by_name(const void *a, const void *b)
{
	const struct package *x = a, *y = b;
	const int c = strcmp(x->name, y->name);

	return c != 0 ? c : strcmp(x->version, y->version);
}

void packages_sort(struct packages *p)
{
	VEC_SORT(p->list, p->n, by_name);
}

static int name_of(const void *key, const void *item)
{
	return strcmp(key, ((const struct package *)item)->name);
}

struct package *packages_find(const struct packages *p, const char *name)
{
	return p->n == 0 ? NULL : bsearch(name, p->list, p->n, sizeof(*p->list), name_of);
}

/* --- trees ------------------------------------------------------------------------------ */

static int parse_file(struct rootfile *l, const struct tree_entry *e, struct packages *to,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = rootfile_read(l, e, &text, err);

	if (r < 0)
		return err_wrap(err, r, "reading its dpkg database");
	return text.len == 0 ? 0 : packages_parse(to, (const char *)text.data, text.len, err);
}

static int parse_dir(struct rootfile *l, const struct tree_entry *dir, struct packages *to,
		     struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = tree_iter_new(l->store, &dir->id, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		static const char sums[] = ".md5sums";
		const size_t n = strlen(sums);

		if (e.name_len >= n && memcmp(e.name + e.name_len - n, sums, n) == 0)
			continue;
		if (e.form != TREE_DIR)
			r = parse_file(l, &e, to, err);
	}
	return r < 0 ? r : 0;
}

/* apt knows which packages nobody asked for. */
static int load_marks(struct rootfile *l, struct packages *to, struct err *err)
{
	CLEANUP(packages_done) struct packages marks = { 0 };
	struct tree_entry e;
	int r = rootfile_find(l, MARKS, &e, err);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = parse_file(l, &e, &marks, err);
	for (size_t i = 0; r >= 0 && i < marks.n; i++) {
		struct package *p = packages_find(to, marks.list[i].name);

		if (p)
			p->automatic = marks.list[i].automatic;
	}
	return r;
}

int packages_load(struct store *s, const struct object_id *root, struct packages *ret,
		  struct err *err)
{
	CLEANUP(packages_done) struct packages found = { 0 };
	CLEANUP(rootfile_done) struct rootfile l = { 0 };
	struct tree_entry e;
	int r = rootfile_open(s, root, &l, err);

	if (r < 0)
		return r;
	r = rootfile_find(&l, STATUS, &e, err);
	if (r >= 0)
		r = parse_file(&l, &e, &found, err);
	if (r < 0 && r != -ENOENT)
		return r;
	r = rootfile_find(&l, STATUS_DIR, &e, err);
	if (r >= 0 && e.form == TREE_DIR)
		r = parse_dir(&l, &e, &found, err);
	if (r < 0 && r != -ENOENT)
		return r;
	found.found = found.n > 0;
	packages_sort(&found);
	r = load_marks(&l, &found, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(found);
	return 0;
}

/* --- comparing -------------------------------------------------------------------------- */

int packages_compare(const struct packages *before, const struct packages *after, packages_fn fn,
		     void *ctx, struct err *err)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (r >= 0 && (i < before->n || k < after->n)) {
		const struct package *a = i < before->n ? &before->list[i] : NULL;
		const struct package *b = k < after->n ? &after->list[k] : NULL;
		const int c = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);

		i += c <= 0;
		k += c >= 0;
		if (c == 0 && strcmp(a->version, b->version) == 0)
			continue;
		r = fn(c <= 0 ? a : NULL, c >= 0 ? b : NULL, ctx, err);
	}
	return r;
}
