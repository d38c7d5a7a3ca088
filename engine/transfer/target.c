#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/config-i.h"
#include "engine/transfer/transfer-i.h"

#define FILE_NAME "remotes.json"
#define FILE_MAX  ((size_t)1 << 20)
#define NAME_MAX_ 64

/* --- remotes.json ------------------------------------------------------------------------- */

static int add_remote(struct engine_remotes *r, const char *name, const char *url, struct err *err)
{
	struct engine_remote one = { 0 };

	if (!VEC_ONE_MORE(r->list, r->n))
		return err_nomem(err);
	one.name = strdup(name);
	one.url = strdup(url);
	r->list[r->n++] = one;
	return one.name && one.url ? 0 : err_nomem(err);
}

struct adding {
	struct engine_remotes *to;
	struct err *err;
};

static int on_member(const char *key, const char *text, void *ctx)
{
	const struct adding *a = ctx;

	return add_remote(a->to, key, text, a->err);
}

static int by_name(const void *a, const void *b)
{
	const struct engine_remote *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int config_path(struct engine *e, char **ret, struct err *err)
{
	*ret = config_file(e->home, FILE_NAME);
	return *ret ? 0 : err_set(err, -ENOENT, "there is no home directory to keep remotes in");
}

int engine_remotes(struct engine *e, struct engine_remotes *ret, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = config_file(e->home, FILE_NAME);
	struct json j;
	int r;

	if (!path)
		return 0;
	r = fdio_read_file(AT_FDCWD, path, FILE_MAX, &text, err);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = json_parse(&doc, (const char *)text.data, text.len, &j, err);
	if (r == 0)
		r = json_each_text(j, on_member, &(struct adding){ &all, err });
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	VEC_SORT(all.list, all.n, by_name);
	*ret = TAKE_STRUCT(all);
	return 0;
}

static int save_remotes(struct engine *e, const struct engine_remotes *all, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = NULL, *dir = NULL;
	struct json j = json_begin(&doc);
	int r = config_path(e, &path, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].name)
			json_set_text(j, all->list[i].name, all->list[i].url);
	r = json_append(&doc, &text, err);
	dir = strndup(path, (size_t)(path_base(path) - path) - 1);
	if (r == 0 && !dir)
		r = err_nomem(err);
	if (r == 0)
		r = path_make_dirs(dir, 0700, err);
	return r < 0 ? r : fdio_replace_file(AT_FDCWD, path, text.data, text.len, 0600, err);
}

static struct engine_remote *find(const struct engine_remotes *all, const char *name, size_t len)
{
	return VEC_FIND(it, all->list, all->n,
			strlen(it->name) == len && memcmp(it->name, name, len) == 0);
}

/* It stands before ':' in a target and before '/' in a tag. */
static int check_name(const char *name, struct err *err)
{
	static const char fine[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_ || strspn(name, fine) != len || name[0] == '-' ||
	    name[0] == '.' || depot_is_scheme(name))
		return err_set(err, -EINVAL,
			       "'%.80s' cannot be the name of a remote: letters, digits, '.', '_' "
			       "and '-', at most %d",
			       name, NAME_MAX_);
	return 0;
}

/* The address as it is written down; owned. */
static int choose_url(const struct engine_remote_add_options *o, char **ret, struct err *err)
{
	const char *rest = strncmp(o->url, "oci://", 6) == 0 ? o->url + 6 : o->url;

	if (!o->insecure)
		return text_set(ret, err, "%s", o->url);
	if (depot_is_url(rest))
		return err_set(err, -EINVAL,
			       "option '--insecure': only a registry (oci://) can be without TLS");
	return text_set(ret, err, "oci+http://%s", rest);
}

int engine_remote_add(struct engine *e, const struct engine_remote_add_options *o, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	CLEANUP(depot_close_p) struct depot *d = NULL;
	AUTO_FREE char *url = NULL;
	int r = check_name(o->name, err);

	if (r == 0)
		r = choose_url(o, &url, err);
	if (r == 0)
		r = depot_open(url, NULL, &d, err);
	if (r == 0)
		r = engine_remotes(e, &all, err);
	if (r < 0)
		return r;
	if (find(&all, o->name, strlen(o->name)))
		return err_set(err, -EEXIST, "there is a remote '%s' already", o->name);
	r = add_remote(&all, o->name, url, err);
	return r < 0 ? r : save_remotes(e, &all, err);
}

int engine_remote_remove(struct engine *e, const char *name, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	struct engine_remote *one;
	int r = engine_remotes(e, &all, err);

	if (r < 0)
		return r;
	one = find(&all, name, strlen(name));
	if (!one)
		return err_set(err, -ENOENT, "there is no remote '%.80s'", name);
	free(one->name);
	free(one->url);
	*one = (struct engine_remote){ 0 };
	return save_remotes(e, &all, err);
}

/* --- targets ------------------------------------------------------------------------------ */

void target_done(struct target *t)
{
	free(t->remote);
	free(t->url);
	free(t->name);
	*t = (struct target){ 0 };
}

/* Where the name begins: behind the last ':', if no '/' follows that; the end, if there is none. */
static size_t url_len(const char *text)
{
	const char *colon = strrchr(text, ':');

	return !colon || strchr(colon, '/') || !strchr(text, '/') ? strlen(text)
								  : (size_t)(colon - text);
}

static int find_url(struct engine *e, const char *text, size_t len, struct target *t,
		    struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	const struct engine_remote *one;
	int r = engine_remotes(e, &all, err);

	if (r < 0)
		return r;
	one = find(&all, text, len);
	if (!one)
		return err_set(err, -ENOENT, "there is no remote '%.*s'", len > 80 ? 80 : (int)len,
			       text);
	t->remote = strdup(one->name);
	t->url = strdup(one->url);
	return t->remote && t->url ? 0 : err_nomem(err);
}

/* The remote that has this url, if there is one. */
static int find_name(struct engine *e, struct target *t, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	int r = engine_remotes(e, &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		if (strcmp(all.list[i].url, t->url) != 0)
			continue;
		t->remote = strdup(all.list[i].name);
		return t->remote ? 0 : err_nomem(err);
	}
	return r;
}

const char *target_remote(const struct target *t)
{
	return t->remote ? t->remote : t->url;
}

int target_find(struct engine *e, const char *text, struct target *ret, struct err *err)
{
	CLEANUP(target_done) struct target t = { 0 };
	const bool url = depot_is_url(text);
	/* REMOTE/NAME is what a fetch calls it here, and means the same. */
	const size_t len = url ? url_len(text) : strcspn(text, ":/");
	int r = 0;

	if (url) {
		t.url = strndup(text, len);
		r = t.url ? find_name(e, &t, err) : err_nomem(err);
	} else {
		r = find_url(e, text, len, &t, err);
	}
	if (r < 0)
		return r;
	if (text[len] != '\0') {
		if (!depot_tag_valid(text + len + 1))
			return err_set(err, -EINVAL,
				       "'%.130s' cannot be a name there: letters, digits, '.', '_' "
				       "and '-', at most %d",
				       text + len + 1, DEPOT_TAG_MAX);
		t.name = strdup(text + len + 1);
		if (!t.name)
			return err_nomem(err);
	}
	*ret = TAKE_STRUCT(t);
	return 0;
}

bool engine_remote_is(struct engine *e, const char *text)
{
	CLEANUP(target_done) struct target t = { 0 };
	struct err ignored = { 0 };

	return target_find(e, text, &t, &ignored) == 0;
}
