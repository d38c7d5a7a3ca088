/*
 * layout.c - the usual mounts.
 *
 * A run by root does not own the host's folders: without an idmapped mount root's files there are a
 * stranger's, and files that only root can read stay unread. A run by an ordinary user reads what
 * that user could, less the secrets below.
 */
#include "runner/layout.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where systems keep what programs are made of. */
static const char *const folders[] = {
	"/usr",    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/etc", "/opt",  "/nix", "/gnu",
};

/* What in them concerns the machine alone, although anyone could read it. */
static const char *const secrets[] = {
	"/etc/shadow",
	"/etc/shadow-",
	"/etc/gshadow",
	"/etc/gshadow-",
	"/etc/sudoers",
	"/etc/sudoers.d",
	"/etc/ssl/private",
	"/etc/pki/tls/private",
	"/etc/krb5.keytab",
	"/etc/security/opasswd",
	"/etc/NetworkManager/system-connections",
	"/etc/wpa_supplicant",
	"/etc/wireguard",
	"/etc/openvpn",
	"/etc/docker",
	"/etc/kubernetes",
	"/etc/machine-id",
	"/etc/letsencrypt",
	"/etc/ppp",
	"/etc/ipsec.secrets",
	"/etc/ssh/ssh_host_dsa_key",
	"/etc/ssh/ssh_host_ecdsa_key",
	"/etc/ssh/ssh_host_ed25519_key",
	"/etc/ssh/ssh_host_rsa_key",
};

struct layout *layout_new(void)
{
	return calloc(1, sizeof(struct layout));
}

void layout_free(struct layout *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_owned; i++)
		free(l->owned[i]);
	free(l);
}

static const char *keep_text(struct layout *l, const char *text)
{
	char *copy = strdup(text);

	if (copy)
		l->owned[l->n_owned++] = copy;
	return copy;
}

int layout_add(struct layout *l, const struct sandbox_mount *m, struct err *err)
{
	struct sandbox_mount own = *m;

	if (l->n == SANDBOX_MOUNTS_MAX)
		return err_set(err, -E2BIG, "a run can have no more than %d mounts",
			       SANDBOX_MOUNTS_MAX);
	own.guest = keep_text(l, m->guest);
	own.host = m->host ? keep_text(l, m->host) : NULL;
	if (!own.guest || (m->host && !own.host))
		return err_nomem(err);
	l->mounts[l->n++] = own;
	return 0;
}

static int add_folder(struct layout *l, const char *path, struct err *err)
{
	struct sandbox_mount m = {
		.kind = SANDBOX_BIND, .host = path, .host_fd = -1, .guest = path
	};
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(path, &st) < 0 && errno == ENOENT)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(path, text, sizeof(text) - 1);
		if (n < 0)
			return err_sys(err, "reading the symlink '%s'", path);
		text[n] = '\0';
		m.kind = SANDBOX_LINK;
		m.host = text;
	}
	return layout_add(l, &m, err);
}

int layout_add_system(struct layout *l, struct err *err)
{
	struct sandbox_mount tmp = { .kind = SANDBOX_FRESH, .guest = "/tmp" };
	struct sandbox_mount var_tmp = { .kind = SANDBOX_FRESH, .guest = "/var/tmp" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(folders); i++)
		r = add_folder(l, folders[i], err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(secrets); i++) {
		struct sandbox_mount m = { .kind = SANDBOX_HIDE, .guest = secrets[i] };
		struct stat st;

		if (lstat(secrets[i], &st) == 0)
			r = layout_add(l, &m, err);
	}
	if (r == 0)
		r = layout_add(l, &tmp, err);
	return r < 0 ? r : layout_add(l, &var_tmp, err);
}
