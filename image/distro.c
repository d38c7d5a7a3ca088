#include "image/distro.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/md5.h"
#include "base/path.h"

#define INFO        "var/lib/dpkg/info"
#define LIST        ".list"
#define OWNED_MAX   4000000
#define PACKAGE_MAX 255

int distro_is(struct store *s, const struct object_id *root, struct err *err)
{
	CLEANUP(rootfile_done) struct rootfile l = { 0 };
	struct tree_entry e;
	int r = rootfile_open(s, root, &l, err);

	if (r >= 0)
		r = rootfile_find(&l, "usr", &e, err);
	if (r >= 0)
		r = rootfile_find(&l, "etc/passwd", &e, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* --- loading ---------------------------------------------------------------------------- */

static void side_done(struct distro_side *s)
{
	size_t pos = 0;
	char *path;

	while ((path = map_next(&s->owned, &pos)) != NULL) {
		map_remove(&s->owned, path);
		free(path);
	}
	map_done(&s->owned);
	conffiles_done(&s->conffiles);
	accounts_done(&s->users);
	accounts_done(&s->groups);
	packages_done(&s->packages);
	rootfile_done(&s->files);
}

void distro_done(struct distro *s)
{
	side_done(&s->before);
	side_done(&s->after);
}

static int load_side(struct store *s, const struct object_id *root, struct distro_side *ret,
		     struct err *err)
{
	int r;

	ret->owned = MAP_INIT(map_hash_str, map_equal_str);
	r = rootfile_open(s, root, &ret->files, err);
	if (r < 0)
		return r;
	r = packages_load(s, root, &ret->packages, err);
	if (r < 0)
		return r;
	r = accounts_load(&ret->files, ACCOUNTS_USERS, &ret->users, err);
	if (r < 0)
		return r;
	r = accounts_load(&ret->files, ACCOUNTS_GROUPS, &ret->groups, err);
	return r < 0 ? r : conffiles_load(&ret->files, &ret->conffiles, err);
}

/* dpkg names some files by the links that distributions have for these folders now. */
static char *real_path(const char *path)
{
	static const char *const merged[] = { "bin/", "sbin/", "lib/", "lib32/", "lib64/" };

	for (size_t i = 0; i < ARRAY_LEN(merged); i++)
		if (strncmp(path, merged[i], strlen(merged[i])) == 0)
			return path_join("usr", path);
	return strdup(path);
}

static int own(struct distro_side *s, const char *line, size_t len, struct err *err)
{
	AUTO_FREE char *given = NULL, *path = NULL;
	void *other;
	int r;

	if (len < 2 || line[0] != '/' || line[1] == '.')
		return 0;
	if (s->owned.n >= OWNED_MAX)
		return err_set(err, -EDQUOT, "its packages have more than %d files", OWNED_MAX);
	given = strndup(line + 1, len - 1);
	path = given ? real_path(given) : NULL;
	if (!path)
		return err_nomem(err);
	r = map_add(&s->owned, path, path, &other);
	if (r == 0)
		path = NULL;
	return r < 0 ? err_nomem(err) : 0;
}

static int own_list(struct distro_side *s, const struct tree_entry *e, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = rootfile_read(&s->files, e, &text, err);
	const char *at = (const char *)text.data, *end = at + text.len;

	if (r < 0)
		return err_wrap(err, r, "reading '" INFO "'");
	while (at < end && r >= 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((newline ? newline : end) - at);

		r = own(s, at, n, err);
		at += n + (newline != NULL);
	}
	return r;
}

/* "libc6:arm64.list" is about libc6. */
static bool is_list_of(const struct tree_entry *e, const struct packages *mine,
		       const struct packages *theirs)
{
	const struct package *a, *b;
	char name[PACKAGE_MAX + 1];

	if (e->form == TREE_DIR || e->name_len <= strlen(LIST) || e->name_len > PACKAGE_MAX)
		return false;
	memcpy(name, e->name, e->name_len);
	name[e->name_len] = '\0';
	if (strcmp(name + e->name_len - strlen(LIST), LIST) != 0)
		return false;
	name[e->name_len - strlen(LIST)] = '\0';
	name[strcspn(name, ":")] = '\0';
	a = packages_find(mine, name);
	b = packages_find(theirs, name);
	return a && (!b || strcmp(a->version, b->version) != 0);
}

/* The files of the packages that the other side does not have in that version. */
static int load_owned(struct distro_side *s, const struct packages *theirs, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = rootfile_find(&s->files, INFO, &e, err);

	if (r == -ENOENT || (r >= 0 && e.form != TREE_DIR))
		return 0;
	if (r < 0)
		return r;
	r = tree_iter_new(s->files.store, &e.id, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		if (is_list_of(&e, &s->packages, theirs))
			r = own_list(s, &e, err);
	return r < 0 ? r : 0;
}

int distro_load(struct store *s, const struct object_id *before, const struct object_id *after,
		struct distro *ret, struct err *err)
{
	int r;

	*ret = (struct distro){ 0 };
	r = load_side(s, before, &ret->before, err);
	if (r < 0)
		return r;
	r = load_side(s, after, &ret->after, err);
	if (r < 0)
		return r;
	r = load_owned(&ret->before, &ret->after.packages, err);
	return r < 0 ? r : load_owned(&ret->after, &ret->before.packages, err);
}

/* --- asking ----------------------------------------------------------------------------- */

static bool is_same(const struct distro *s, const struct conffile *c)
{
	const struct package *a = c ? packages_find(&s->before.packages, c->package) : NULL;
	const struct package *b = c ? packages_find(&s->after.packages, c->package) : NULL;

	return a && b && strcmp(a->version, b->version) == 0;
}

/*
 * The newer side may be that of a run which writes into the database what it likes.  A package whose version is
 * the same has the configuration that it had.
 */
const struct conffile *distro_conffile(const struct distro *s, const char *path)
{
	const struct conffile *old = conffiles_find(&s->before.conffiles, path),
			      *new = conffiles_find(&s->after.conffiles, path);

	return !new || is_same(s, old) || is_same(s, new) ? old : new;
}

enum distro_part distro_part(const struct distro *s, const char *path)
{
	AUTO_FREE char *real = real_path(path);

	if (distro_is_derived(path))
		return DISTRO_DERIVED;
	if (distro_conffile(s, path) || strncmp(path, "etc/", 4) == 0)
		return DISTRO_CONFIG;
	if (real && (map_get(&s->before.owned, real) || map_get(&s->after.owned, real)))
		return DISTRO_PACKAGE;
	return distro_is_state(path) ? DISTRO_STATE : DISTRO_OTHER;
}

int distro_is_shipped(struct distro *s, const struct delta_file *f, const struct conffile *conffile,
		      struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct content *c = &f->after.content;
	uint8_t digest[MD5_SIZE];
	char hex[MD5_HEX_SIZE];
	ssize_t n = 0;
	int r;

	if (!S_ISREG(f->after.mode) || c->size > ROOTFILE_TEXT_MAX)
		return 0;
	if (c->size > 0) {
		r = content_reader_new(s->after.files.store, c, &rd, err);
		if (r < 0)
			return r;
		if (!buf_extend(&text, c->size))
			return err_nomem(err);
		n = content_reader_read(rd, 0, text.data, text.len, err);
		if (n < 0)
			return (int)n;
	}
	md5(text.data, (size_t)n, digest);
	return strcmp(hex_encode(digest, sizeof(digest), hex), conffile->sum) == 0;
}
