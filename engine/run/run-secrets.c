#include "engine/run/run-secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"

#define DIRS_MAX 5000 /* directories that are looked through: at most a second */
#define KEY_MAX  8192 /* so much of a file tells whether a key is in it */

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
	".docker",
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

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(list[i], name, 0) == 0)
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
	return fnmatch("*.pem", name, 0) == 0 && has_private_key(f->dir, name);
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

/* One that was closed, removed or replaced by a link meanwhile has nothing to show. */
static int look_through(struct finding *f, int top, const char *path, struct err *err)
{
	AUTO_CLOSE int dir = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir < 0)
		return 0;
	f->above = path;
	f->dir = dir;
	r = sys_each_name(dir, look_at, f);
	return r < 0 ? err_set(err, r, "looking for secrets in '%s'", path) : 0;
}

int run_secrets_find(int dir, struct strlist *ret, bool *ret_all, struct err *err)
{
	CLEANUP(strlist_done) struct strlist dirs = { 0 };
	struct finding f = { .found = ret, .dirs = &dirs, .all = true };
	int r = strlist_add(&dirs, ".");

	if (r < 0)
		return err_nomem(err);
	for (size_t i = 0; i < dirs.n && r >= 0; i++)
		r = look_through(&f, dir, dirs.list[i], err);
	*ret_all = f.all;
	return r;
}
