#include "engine/api/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/path.h"
#include "base/size.h"
#include "base/sys.h"
#include "engine/api/service.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"
#include "engine/verb/doctor-i.h"
#include "engine/wire/control-i.h"

#define SPACE_WEAK  ((uint64_t)1 << 30)
#define SPACE_ILL   ((uint64_t)16 << 20)
#define MEMORY_WEAK ((uint64_t)256 << 20)

/* --- programs --------------------------------------------------------------------------- */

/* Which programs our names lead to. */
static void look_at_names(struct engine_diagnosis *d)
{
	AUTO_FREE char *snap = doctor_find_program("snap");
	AUTO_FREE char *snapcow = doctor_find_program("snapcow");
	char link[PATH_MAX];
	const char *self = sys_self_path(link, sizeof(link));
	AUTO_FREE char *real = self ? realpath(self, NULL) : NULL;

	if (!snapcow)
		doctor_finds(d, ENGINE_WEAK, "name", "add the directory of this program to PATH",
			     "'snapcow' is not on PATH; this is '%s'", real ? real : "?");
	else if (real && strcmp(real, snapcow) != 0)
		doctor_finds(d, ENGINE_WEAK, "name", "remove the one that you do not want",
			     "'snapcow' on PATH is '%s', and this is '%s'", snapcow, real);
	else if (!snap)
		doctor_well(d, "name", "'snapcow' is this program; 'snap' is nobody's");
	else if (strcmp(snap, snapcow) == 0)
		doctor_well(d, "name", "'snap' and 'snapcow' are this program");
	else
		doctor_well(d, "name", "'snap' is another program, '%s'; this one is 'snapcow'",
			    snap);
}

/* --- the store -------------------------------------------------------------------------- */

static void look_at_store(struct engine *e, struct engine_diagnosis *d)
{
	struct err err = { 0 };
	struct store *s;
	int r;

	if (!engine_has_store(e)) {
		doctor_well(d, "store", "none yet; it will be in '%s'", e->store_path);
		return;
	}
	r = engine_store(e, STORE_READ, &s, &err);
	if (r >= 0 && access(e->store_path, W_OK) == 0)
		doctor_well(d, "store", "'%s' can be read and written", e->store_path);
	else if (r >= 0)
		doctor_finds(d, ENGINE_WEAK, "store", "chown it to the user whose store it is",
			     "'%s' can only be read", e->store_path);
	else if (r == -EPROTO)
		doctor_finds(d, ENGINE_ILL, "store", "install the newer program again", "%s",
			     err.msg);
	else
		doctor_finds(d, ENGINE_ILL, "store", r == -EBADMSG ? "snapcow check" : "", "%s",
			     err.msg);
}

/* In the store's directory, or in its nearest existing parent. */
static void look_at_space(struct engine *e, struct engine_diagnosis *d)
{
	AUTO_FREE char *dir = strdup(e->store_path);
	char text[SIZE_TEXT_MAX];
	struct statvfs v;
	uint64_t left;
	int rc;

	if (!dir)
		return;
	while ((rc = statvfs(dir, &v)) < 0 && strrchr(dir, '/') > dir)
		*strrchr(dir, '/') = '\0';
	if (rc < 0)
		return;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	size_format(left, text);
	if (left < SPACE_WEAK)
		doctor_finds(d, left < SPACE_ILL ? ENGINE_ILL : ENGINE_WEAK, "space",
			     "snapcow gc, or make room on the disk", "only %s are free in '%s'",
			     text, dir);
	else
		doctor_well(d, "space", "%s are free in '%s'", text, dir);
}

static void look_at_rest(struct engine *e, struct engine_diagnosis *d)
{
	if (!engine_has_store(e))
		return;
	switch (doctor_rest(e->store_path)) {
	case DOCTOR_REST_ENCRYPTED:
		doctor_well(d, "encryption", "what the store has on its disk is encrypted");
		break;
	case DOCTOR_REST_PLAIN:
		doctor_well(
		    d, "encryption",
		    "nothing encrypts the store: anyone who has the disk can read it (LUKS for the "
		    "disk or fscrypt for the directory would)");
		break;
	case DOCTOR_REST_NONE:
		doctor_finds(d, ENGINE_WEAK, "encryption", "snapcow --store, or SNAPCOW_STORE",
			     "the store is in memory alone: it ends with the machine");
		break;
	case DOCTOR_REST_UNKNOWN:
		doctor_well(d, "encryption",
			    "whether the store's disk is encrypted cannot be seen from here");
		break;
	}
}

/* Warn before the store's limit makes writes fail. */
static void look_at_limit(struct engine *e, struct engine_diagnosis *d)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);
	char limit[SIZE_TEXT_MAX], taken[SIZE_TEXT_MAX];
	CLEANUP(config_done) struct config config = { 0 };
	uint64_t bytes;
	struct err err = { 0 };
	struct store *s;

	if (path && config_read(path, &config, &err) < 0) {
		doctor_finds(d, ENGINE_ILL, "config", "mend that file, or remove it", "%s",
			     err.msg);
		return;
	}
	if (config.store_limit == 0 || !engine_has_store(e) ||
	    engine_store(e, STORE_READ, &s, &err) < 0)
		return;
	bytes = store_disk_bytes(s);
	size_format(config.store_limit, limit);
	size_format(bytes, taken);
	if (bytes > config.store_limit - config.store_limit / 10)
		doctor_finds(d, ENGINE_WEAK, "limit", "snapcow gc, or a larger 'store.limit'",
			     "the store takes %s of the %s that '%s' allows", taken, limit, path);
	else
		doctor_well(d, "limit", "the store takes %s of the %s that '%s' allows", taken,
			    limit, path);
}

static void look_at_memory(struct engine_diagnosis *d)
{
	const uint64_t left = sys_available_memory();
	char text[SIZE_TEXT_MAX];

	if (left == UINT64_MAX)
		return;
	size_format(left, text);
	if (left < MEMORY_WEAK)
		doctor_finds(d, ENGINE_WEAK, "memory", "end what you do not need",
			     "only %s can be used", text);
	else
		doctor_well(d, "memory", "%s can be used", text);
}

/* --- the daemon and its mounts ---------------------------------------------------------- */

struct below {
	const char *clones;
	uint64_t n;
	char first[PATH_MAX]; /* of the mounts that no daemon serves */
};

static int on_mount(const char *path, dev_t dev, void *ctx)
{
	struct below *b = ctx;

	if (path_is_below(path, b->clones) && strcmp(path, b->clones) != 0) {
		b->n++;
		snprintf(b->first, sizeof(b->first), "%s", path);
	}
	return 0;
}

/*
 * A mount without a daemon is stale.  We only read the list of mounts, because touching a mount that
 * hangs may hang us as well.
 */
static void look_at_mounts(struct engine *e, uint64_t served, struct engine_diagnosis *d)
{
	AUTO_FREE char *real = realpath(e->store_path, NULL);
	AUTO_FREE char *clones = real ? path_join(real, CLONES_DIR) : NULL;
	struct below b = { .clones = clones };

	if (!clones)
		return;
	if (sys_each_mount(on_mount, &b) < 0)
		doctor_finds(d, ENGINE_WEAK, "mounts", "", "the list of mounts cannot be read");
	else if (b.n > served)
		doctor_finds(d, ENGINE_WEAK, "mounts", "snapcow start",
			     "%llu left by a daemon that died, as '%s'",
			     (unsigned long long)(b.n - served), b.first);
	else
		doctor_well(d, "mounts", "%llu, none of them stale", (unsigned long long)b.n);
}

static void look_at_daemon(struct engine *e, struct engine_diagnosis *d)
{
	struct engine_service s = { 0 };
	struct err err = { 0 };
	int r;

	engine_revive(e);
	r = engine_service(e, &s, &err);
	if (r == -ESRCH)
		doctor_well(d, "daemon", "not running; the next command that needs it starts it");
	else if (r < 0)
		doctor_finds(d, ENGINE_WEAK, "daemon", "", "%s", err.msg);
	else if (strcmp(s.version, engine_version()) != 0)
		doctor_finds(d, ENGINE_WEAK, "daemon", "snapcow stop",
			     "cowfsd %s, process %lld, is not of this version, %s", s.version,
			     (long long)s.pid, engine_version());
	else
		doctor_well(d, "daemon", "cowfsd %s, process %lld", s.version, (long long)s.pid);
	if (r >= 0 || r == -ESRCH)
		look_at_mounts(e, s.mounted, d);
}

/* --- all of it -------------------------------------------------------------------------- */

void engine_doctor(const struct engine_options *options, struct engine_diagnosis *ret)
{
	CLEANUP(engine_close_p) struct engine *e = NULL;
	struct err err = { 0 };

	*ret = (struct engine_diagnosis){ 0 };
	doctor_look_at_system(ret);
	look_at_memory(ret);
	if (engine_open(options, &e, &err) < 0) {
		doctor_finds(ret, ENGINE_ILL, "store", "say where with -C and --store", "%s",
			     err.msg);
	} else {
		look_at_store(e, ret);
		look_at_space(e, ret);
		look_at_rest(e, ret);
		look_at_limit(e, ret);
		look_at_daemon(e, ret);
	}
	look_at_names(ret);
}
