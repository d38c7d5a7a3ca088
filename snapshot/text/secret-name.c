#include "snapshot/text/secret-name.h"

#include <limits.h>
#include <string.h>

#include "base/attr.h"

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

bool secret_name_is(const char *name)
{
	return is_one_of(name, secrets, ARRAY_LEN(secrets)) &&
	       !is_one_of(name, harmless, ARRAY_LEN(harmless));
}

bool secret_name_may_have_key(const char *name)
{
	return is_like(name, "*.pem");
}

bool secret_name_is_skipped(const char *name)
{
	return is_one_of(name, skipped, ARRAY_LEN(skipped));
}

bool secret_name_is_unsearched(const char *path, bool with_key)
{
	bool below = false;

	for (const char *at = path;; at += strspn(at, "/")) {
		const size_t len = strcspn(at, "/");
		char name[NAME_MAX + 1];

		if (len >= sizeof(name))
			return below; /* no name of a file: let a person look */
		memcpy(name, at, len);
		name[len] = '\0';
		at += len;
		/* What lies in a directory of such a name is hidden with it. */
		if (secret_name_is(name))
			return below;
		if (*at == '\0')
			return below && with_key && secret_name_may_have_key(name);
		below = below || secret_name_is_skipped(name);
	}
}
