#include "engine/run/run-secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-walk.h"

#define DIRS_MAX 50000 /* directories that are looked through: about a second */
#define KEY_MAX  8192  /* so much of a file tells whether a key is in it */

static const char *const secrets[] = {
	".env",
	".env.*",
	"*.env",
	".envrc",
	".netrc",
	"_netrc",
	".npmrc",
	".pypirc",
	".git-credentials",
	".htpasswd",
	".pgpass",
	".my.cnf",
	".vault-token",
	".dockercfg",
	".ssh",
	".aws",
	".gnupg",
	".kube",
	"kubeconfig",
	"id_rsa",
	"id_dsa",
	"id_ecdsa",
	"id_ecdsa_sk",
	"id_ed25519",
	"id_ed25519_sk",
	"*.key",
	"*.p12",
	"*.pfx",
	"*.jks",
	"*.keystore",
	"*.kdbx",
	"*.ppk",
	"*.ovpn",
	"credentials.json",
	"service-account*.json",
	"secrets.yaml",
	"secrets.yml",
	"secrets.json",
	"secrets.toml",
	"terraform.tfstate*",
};

/* Templates, which tell names and no values. */
static const char *const harmless[] = {
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults",
};

/* What package managers and builds put there is nobody's secret. */
static const char *const skipped[] = {
	".git", "node_modules", ".venv", "venv", "site-packages", "vendor", "target", "__pycache__",
};

/* fnmatch() with one star at most: it is asked some fifty times for each name of a project. */
static bool is_like(const char *name, const char *pattern)
{
	const char *star = strchr(pattern, '*');
	size_t len, head, tail;

	if (!star)
		return strcmp(name, pattern) == 0;
	len = strlen(name);
	head = (size_t)(star - pattern);
	tail = strlen(star + 1);
	return len >= head + tail && memcmp(name, pattern, head) == 0 &&
	       memcmp(name + len - tail, star + 1, tail) == 0;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_like(name, list[i]))
			return true;
	return false;
}

void run_secrets_found_done(struct run_secrets_found *f)
{
	VEC_FREE(it, f->list, f->n, free(it->path));
	*f = (struct run_secrets_found){ 0 };
}

/* A path from the top, which is "". */
static char *path_in(const char *above, const char *name)
{
	return *above != '\0' ? path_join(above, name) : strdup(name);
}

static int add(struct run_secrets_found *f, const char *above, const char *name, uint64_t ino)
{
	char *path;

	if (!VEC_ROOM(f->list, f->n, f->cap))
		return -ENOMEM;
	path = path_in(above, name);
	if (!path)
		return -ENOMEM;
	f->list[f->n++] = (struct run_secret){ path, ino };
	return 0;
}

static void cut(struct run_secrets_found *f, size_t n)
{
	while (f->n > n)
		free(f->list[--f->n].path);
}

static bool has(const struct run_secrets_found *f, size_t n, uint64_t ino)
{
	return VEC_HAS(it, f->list, n, it->ino == ino);
}

static int too_many(const struct run_secrets_in *in, const struct run_secrets_found *f,
		    struct err *err)
{
	if (f->n <= in->max)
		return 0;
	return err_set(err, -E2BIG,
		       "more than %zu files and directories look like secrets, which cannot all be "
		       "hidden: use a profile whose 'hide' names those that matter",
		       in->max);
}

/* --- one state -------------------------------------------------------------------------- */

struct queued {
	char *path; /* owned; "" is the top */
	uint64_t ino;
	struct object_id tree;
};

struct finding {
	const struct run_secrets_in *in;
	const struct root *root;
	struct run_secrets_found *found;
	struct run_secrets_found links; /* other names of files with several */
	struct queued *dirs;            /* owned; looked through in this order */
	size_t n, cap;
	const struct queued *at; /* borrowed while no directory is added */
};

static void finding_done(struct finding *f)
{
	run_secrets_found_done(&f->links);
	VEC_FREE(it, f->dirs, f->n, free(it->path));
}

static ssize_t read_stored(const struct finding *f, const struct content *c, char *text, size_t len)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct err unused = { 0 };
	int r = content_reader_new(f->in->store, c, &rd, &unused);

	return r < 0 ? r : content_reader_read(rd, 0, text, len, &unused);
}

/* What is promised is read through the mount, which has the promise kept. */
static ssize_t read_promised(const struct finding *f, const char *name, char *text, size_t len)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	AUTO_FREE char *path = path_in(f->at->path, name);
	AUTO_CLOSE int fd = path ? sys_open_below(f->in->dir, path, flags) : -ENOMEM;

	return fd < 0 ? fd : fdio_read(fd, text, len);
}

/* What cannot be read is hidden, too. */
static bool may_have_key(const struct finding *f, const struct tree_entry *e, const char *name)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry file = *e;
	struct err unused = { 0 };
	struct content c;
	char text[KEY_MAX];
	ssize_t n;

	if (e->form == TREE_LINK &&
	    root_link(f->in->store, f->root, e->ino, &file, &hold, &unused) < 0)
		return true;
	c = tree_entry_content(&file);
	n = c.form == CONTENT_LAZY ? read_promised(f, name, text, sizeof(text))
				   : read_stored(f, &c, text, sizeof(text));
	return n < 0 || memmem(text, (size_t)n, "PRIVATE KEY", 11) != NULL;
}

static bool is_secret(const struct finding *f, const struct tree_entry *e, const char *name)
{
	if (is_one_of(name, secrets, ARRAY_LEN(secrets)))
		return !is_one_of(name, harmless, ARRAY_LEN(harmless));
	return S_ISREG(e->mode) && is_like(name, "*.pem") && may_have_key(f, e, name);
}

static int queue(struct finding *f, const struct tree_entry *e, const char *name)
{
	const size_t at = (size_t)(f->at - f->dirs);
	char *path;

	if (is_one_of(name, skipped, ARRAY_LEN(skipped)))
		return 0;
	if (f->n == DIRS_MAX) {
		f->found->all = false;
		return 0;
	}
	path = path_in(f->at->path, name);
	if (!path || !VEC_ROOM(f->dirs, f->n, f->cap)) {
		free(path);
		return -ENOMEM;
	}
	f->at = &f->dirs[at];
	f->dirs[f->n++] = (struct queued){ .path = path, .ino = e->ino, .tree = e->id };
	return 0;
}

static int look_at(struct finding *f, const struct tree_entry *e)
{
	char name[TREE_NAME_LEN_MAX + 1];

	memcpy(name, e->name, e->name_len);
	name[e->name_len] = '\0';
	if (is_secret(f, e, name))
		return add(f->found, f->at->path, name, e->ino);
	if (e->form == TREE_LINK)
		return add(&f->links, f->at->path, name, e->ino);
	return e->form == TREE_DIR ? queue(f, e, name) : 0;
}

static int look_through(struct finding *f, size_t which, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	const size_t found = f->found->n, queued = f->n;
	struct tree_entry e;
	int r = tree_iter_new(f->in->store, &f->dirs[which].tree, &it, err);

	f->at = &f->dirs[which];
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = look_at(f, &e) < 0 ? err_nomem(err) : 0;
	if (r < 0 || f->found->n - found <= f->in->each || which == 0)
		return r;
	cut(f->found, found);
	while (f->n > queued)
		free(f->dirs[--f->n].path);
	f->at = &f->dirs[which];
	return add(f->found, "", f->at->path, f->at->ino) < 0 ? err_nomem(err) : 0;
}

/* Files with several names, one of which is a secret's. */
static int add_links(struct finding *f, struct err *err)
{
	const size_t n = f->found->n;

	for (size_t i = 0; i < f->links.n; i++) {
		const struct run_secret *l = &f->links.list[i];

		if (has(f->found, n, l->ino) && add(f->found, "", l->path, l->ino) < 0)
			return err_nomem(err);
	}
	return 0;
}

static int find_in(const struct run_secrets_in *in, const struct root *root,
		   struct run_secrets_found *ret, struct err *err)
{
	CLEANUP(finding_done) struct finding f = { .in = in, .root = root, .found = ret };
	int r = 0;

	ret->all = true;
	f.dirs = calloc(1, sizeof(*f.dirs));
	if (!f.dirs || !(f.dirs[0].path = strdup("")))
		return err_nomem(err);
	f.dirs[0].tree = root->top.id;
	f.n = f.cap = 1;
	for (size_t i = 0; i < f.n && r >= 0; i++) {
		r = look_through(&f, i, err);
		r = r < 0 ? r : too_many(in, ret, err);
	}
	return r < 0 ? r : add_links(&f, err);
}

/* --- what was moved --------------------------------------------------------------------- */

struct moving {
	struct run_secrets_found *missing, *found;
};

/* Everywhere, also in the directories of packages. */
static int look_for(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		    struct err *err)
{
	struct moving *m = ctx;

	if (has(m->found, m->found->n, e->ino))
		return TREE_WALK_PAST;
	if (!has(m->missing, m->missing->n, e->ino))
		return 0;
	return add(m->found, "", path, e->ino) < 0 ? err_nomem(err) : TREE_WALK_PAST;
}

static int find_moved(const struct run_secrets_in *in, const struct root *root,
		      struct run_secrets_found *ret, struct err *err)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found before = { 0 };
	const struct run_secrets_in then = { in->store, in->before, NULL,
					     in->dir,   in->each,   SIZE_MAX };
	struct moving m = { &before, ret };
	struct root was;
	size_t missing = 0;
	int r = root_get(in->store, in->before, &was, err);

	r = r < 0 ? r : find_in(&then, &was, &before, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < before.n; i++)
		missing += !has(ret, ret->n, before.list[i].ino);
	return missing == 0 ? 0 : tree_walk(in->store, &root->top.id, "", look_for, &m, err);
}

int run_secrets_find(const struct run_secrets_in *in, struct run_secrets_found *ret,
		     struct err *err)
{
	struct root root;
	int r = root_get(in->store, in->root, &root, err);

	r = r < 0 ? r : find_in(in, &root, ret, err);
	if (r >= 0 && in->before && !object_id_equal(in->before, in->root))
		r = find_moved(in, &root, ret, err);
	r = r < 0 ? r : too_many(in, ret, err);
	return r < 0 ? err_wrap(err, r, "looking for secrets in the clone") : 0;
}
