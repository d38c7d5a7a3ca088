#include "image/packages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"

#define TEXT_MAX     ((uint64_t)64 << 20)
#define PACKAGES_MAX 200000
#define WORD_MAX     255
#define STATUS       "var/lib/dpkg/status"
#define STATUS_DIR   "var/lib/dpkg/status.d"

static void package_done(struct package *p)
{
	free(p->name);
	free(p->version);
}

void packages_done(struct packages *p)
{
	for (size_t i = 0; i < p->n; i++)
		package_done(&p->list[i]);
	free(p->list);
	*p = (struct packages){ 0 };
}

/* --- text ------------------------------------------------------------------------------- */

struct span {
	const char *at;
	size_t len;
};

/* The fields of a paragraph that count. */
struct paragraph {
	struct span name, version, status, arch;
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
		{ "Architecture:", offsetof(struct paragraph, arch) },
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
	if (p->n > 0)
		qsort(p->list, p->n, sizeof(*p->list), by_name);
}

/* --- trees ------------------------------------------------------------------------------ */

struct loading {
	struct store *store;
	struct root root;
	struct packages *to;
	struct buf hold[2];
};

static void loading_done(struct loading *l)
{
	buf_done(&l->hold[0]);
	buf_done(&l->hold[1]);
}

/* -ENOENT without a sentence if there is no such name. */
static int find(struct loading *l, const char *path, struct tree_entry *ret, struct err *err)
{
	size_t hold = 0, n;
	int r;

	*ret = l->root.top;
	for (const char *p = path; *p != '\0'; p += n + (p[n] == '/')) {
		const struct object_id dir = ret->id;

		n = strcspn(p, "/");
		if (ret->form != TREE_DIR)
			return -ENOENT;
		hold = !hold;
		r = tree_lookup(l->store, &dir, p, n, ret, &l->hold[hold], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_text(struct loading *l, const struct tree_entry *e, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT, hold = BUF_INIT;
	struct tree_entry file = *e;
	struct content c;
	ssize_t n;
	int r = 0;

	if (e->form == TREE_LINK)
		r = root_link(l->store, &l->root, e->ino, &file, &hold, err);
	if (r < 0)
		return r;
	if (!S_ISREG(file.mode) || file.size == 0)
		return 0;
	if (file.size > TEXT_MAX)
		return err_set(err, -EDQUOT, "its dpkg database is too large");
	c = tree_entry_content(&file);
	r = content_reader_new(l->store, &c, &rd, err);
	if (r < 0)
		return r;
	if (!buf_extend(&text, file.size))
		return err_nomem(err);
	n = content_reader_read(rd, 0, text.data, text.len, err);
	return n < 0 ? (int)n : packages_parse(l->to, (const char *)text.data, (size_t)n, err);
}

static int read_dir(struct loading *l, const struct tree_entry *dir, struct err *err)
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
			r = read_text(l, &e, err);
	}
	return r < 0 ? r : 0;
}

int packages_load(struct store *s, const struct object_id *root, struct packages *ret,
		  struct err *err)
{
	CLEANUP(packages_done) struct packages found = { 0 };
	CLEANUP(loading_done) struct loading l = { .store = s, .to = &found };
	struct tree_entry e;
	int r = root_get(s, root, &l.root, err);

	if (r < 0)
		return r;
	r = find(&l, STATUS, &e, err);
	if (r >= 0)
		r = read_text(&l, &e, err);
	found.found = r >= 0;
	if (r < 0 && r != -ENOENT)
		return r;
	r = find(&l, STATUS_DIR, &e, err);
	if (r >= 0 && e.form == TREE_DIR)
		r = read_dir(&l, &e, err);
	found.found |= r >= 0;
	if (r < 0 && r != -ENOENT)
		return r;
	packages_sort(&found);
	*ret = found;
	found = (struct packages){ 0 };
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
