#include "engine/run/run-secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"

#define DIRS_MAX 2000 /* directories that are looked through: each is some requests to cowfsd */
#define EACH_MAX \
	8 /* secrets in a directory; one with more is hidden as a whole, since each is a mount */
#define ALL_MAX 150  /* of the mounts that a run can have */
#define KEY_MAX 8192 /* so much of a file tells whether a key is in it */

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

struct finding {
	struct strlist *found;
	struct strlist *dirs; /* to look through, in this order */
	const char *above;    /* the path of the one that is looked through, */
	int dir;              /* and itself */
	bool all;
};

static bool has_private_key(int dir, const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[KEY_MAX];
	ssize_t n = fd < 0 ? fd : fdio_read(fd, text, sizeof(text));

	return n > 0 && memmem(text, (size_t)n, "PRIVATE KEY", 11) != NULL;
}

static bool is_secret(const struct finding *f, const char *name)
{
	if (is_one_of(name, secrets, ARRAY_LEN(secrets)))
		return !is_one_of(name, harmless, ARRAY_LEN(harmless));
	return is_like(name, "*.pem") && has_private_key(f->dir, name);
}

static int look_at(const char *name, unsigned char type, void *ctx)
{
	struct finding *f = ctx;

	if (is_secret(f, name))
		return strlist_take(f->found, path_join(f->above, name));
	if ((type != DT_DIR && type != DT_UNKNOWN) || is_one_of(name, skipped, ARRAY_LEN(skipped)))
		return 0;
	f->all &= f->dirs->n < DIRS_MAX;
	return f->dirs->n < DIRS_MAX ? strlist_take(f->dirs, path_join(f->above, name)) : 0;
}

static void cut(struct strlist *l, size_t n)
{
	while (l->n > n) {
		free(l->list[--l->n]);
		l->list[l->n] = NULL;
	}
}

/* One that was closed, removed or replaced by a link meanwhile has nothing to show. */
static int look_through(struct finding *f, int top, const char *path)
{
	AUTO_CLOSE int dir = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const size_t found = f->found->n, dirs = f->dirs->n;
	int r;

	if (dir < 0)
		return 0;
	f->above = path;
	f->dir = dir;
	r = sys_each_name(dir, look_at, f);
	if (r < 0 || f->found->n - found <= EACH_MAX || strcmp(path, ".") == 0)
		return r;
	cut(f->found, found);
	cut(f->dirs, dirs);
	return strlist_add(f->found, path);
}

int run_secrets_find(int dir, struct strlist *ret, bool *ret_all, struct err *err)
{
	CLEANUP(strlist_done) struct strlist dirs = { 0 };
	struct finding f = { .found = ret, .dirs = &dirs, .all = true };
	int r = strlist_add(&dirs, ".");

	for (size_t i = 0; i < dirs.n && r >= 0 && ret->n <= ALL_MAX; i++)
		r = look_through(&f, dir, dirs.list[i]);
	if (r < 0)
		return err_set(err, r, "looking for secrets in the clone");
	if (ret->n > ALL_MAX)
		return err_set(
		    err, -E2BIG,
		    "more than %d files and directories look like secrets, which cannot all be "
		    "hidden: use a profile whose 'hide' names those that matter",
		    ALL_MAX);
	*ret_all = f.all;
	return 0;
}
