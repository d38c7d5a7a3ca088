/*
 * distro-table.c - the kinds of files of a distribution. Patterns are those of fnmatch(3), in which
 * `*` takes slashes too.
 */
#include <fnmatch.h>
#include <string.h>

#include "base/attr.h"
#include "base/vec.h"
#include "image/distro.h"

/* Written by a program from what other files say: the program is to be run, not its result copied. */
static const char *const derived[] = {
	"etc/passwd*",
	"etc/group*",
	"etc/shadow*",
	"etc/gshadow*",
	"etc/subuid*",
	"etc/subgid*",
	"etc/.pwd.lock",
	"etc/ld.so.cache",
	"etc/alternatives/*",
	"etc/rc?.d/*",
	"etc/mailcap",
	"etc/machine-id",
	"etc/ssl/certs/*",
	"etc/systemd/system/*.wants/*",
	"etc/systemd/system/*.requires/*",
	"*/__pycache__/*",
	"usr/share/info/dir*",
	"usr/share/mime/*",
	"usr/share/applications/mimeinfo.cache",
	"usr/share/glib-2.0/schemas/gschemas.compiled",
	"usr/lib/*/gconv/gconv-modules.cache",
	"usr/lib/locale/locale-archive",
};

static const char *const state[] = {
	"var/*", "run/*", "tmp/*", "home/*", "root/*", "boot/initrd*",
};

/* All that lies in such a folder itself. */
static const char *const services[] = {
	"etc/init.d/",
	"etc/systemd/system/",
	"etc/systemd/user/",
	"lib/systemd/system/",
	"usr/lib/systemd/system/",
	"usr/lib/systemd/user/",
	"usr/local/lib/systemd/system/",
};

static bool is_any(const char *path, const char *const *patterns, size_t n)
{
	return VEC_HAS(it, patterns, n, fnmatch(*it, path, 0) == 0);
}

bool distro_is_derived(const char *path)
{
	return is_any(path, derived, ARRAY_LEN(derived));
}

bool distro_is_state(const char *path)
{
	return is_any(path, state, ARRAY_LEN(state));
}

const char *distro_service(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++) {
		const size_t n = strlen(services[i]);
		const char *name = path + n;

		if (strncmp(path, services[i], n) == 0 && *name != '\0' && *name != '.' &&
		    strchr(name, '/') == NULL)
			return name;
	}
	return NULL;
}
