/*
 * gc of a depot in a directory, under its lock: a manifest that a tag names when the lock is held
 * stays with all its blobs, and a push moves its tag under the same lock, if its blobs are there.
 * So no tag ever names something that is gone. Beyond that, young blobs stay: where locks do not
 * reach, as on a disk that is synced between machines, a push in progress has that time.
 *
 * Manifests go before other blobs, so that every snapshot in a log is whole, even if gc is
 * interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/sys.h"
#include "remote/depot-dir-i.h"
#include "remote/depot-mark.h"

struct collecting {
	struct dir_depot *dir;
	const struct depot_retention *what;
	struct depot_marks marks;
	struct depot_freed *freed;
	bool manifests; /* this round removes manifests alone */
	int64_t before; /* nanoseconds since 1970: what is older may go */
	struct err *err;
};

static int mark_listed(struct collecting *c, struct json manifests,
		       const struct dir_index_change *change)
{
	for (size_t i = 0; i < json_length(manifests); i++) {
		struct json entry = json_at_object(manifests, i);
		const char *text = json_text_if(entry, "digest");
		struct digest d;
		int r;

		if (dir_index_drops(entry, change)) {
			c->freed->names++;
			continue;
		}
		if (!text || digest_parse(text, &d) < 0)
			return err_set(c->err, -EBADMSG,
				       "'%s/index.json' lists something without a digest",
				       c->dir->path);
		r = depot_mark_manifest(&c->marks, &d);
		if (r == -ENOENT)
			return err_set(c->err, -EBADMSG,
				       "'%s' lists manifest %s and lacks it: nothing is removed",
				       c->dir->depot.url, text);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_needed(struct collecting *c, const char *name, bool *ret_manifest)
{
	struct digest d;

	*ret_manifest = false;
	if (strncmp(name, FDIO_TEMP_PREFIX, sizeof(FDIO_TEMP_PREFIX) - 1) == 0)
		return false;
	/* A name that is no blob's is somebody else's. */
	if (strlen(name) != SHA256_HEX_SIZE - 1 ||
	    hex_decode(name, strlen(name), d.b, sizeof(d.b)) < 0)
		return true;
	*ret_manifest = depot_is_gone(&c->marks, &d);
	return depot_is_needed(&c->marks, &d);
}

static int sweep_one(const char *name, unsigned char type, void *ctx)
{
	struct collecting *c = ctx;
	bool is_manifest;
	const bool needed = is_needed(c, name, &is_manifest);
	struct stat st;

	if (is_manifest != c->manifests ||
	    fstatat(c->dir->blobs, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (needed) {
		c->freed->kept += (uint64_t)st.st_size;
		return 0;
	}
	if (SYS_ST_MTIM(&st).tv_sec * INT64_C(1000000000) + SYS_ST_MTIM(&st).tv_nsec > c->before) {
		c->freed->young += (uint64_t)st.st_size;
		return 0;
	}
	if (!c->what->dry && unlinkat(c->dir->blobs, name, 0) < 0 && errno != ENOENT)
		return err_sys(c->err, "removing '%s/blobs/sha256/%s'", c->dir->path, name);
	c->freed->blobs++;
	c->freed->bytes += (uint64_t)st.st_size;
	c->freed->manifests += is_manifest;
	return 0;
}

static int sweep(struct collecting *c)
{
	for (int round = 0; round < 2; round++) {
		AUTO_CLOSE int fd = openat(c->dir->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int r;

		c->manifests = round == 0;
		if (fd < 0)
			return err_sys(c->err, "reading '%s/blobs/sha256'", c->dir->path);
		r = sys_each_name(fd, sweep_one, c);
		if (r < 0)
			return c->err->code == r ? r
						 : err_set(c->err, r, "reading '%s': %s",
							   c->dir->path, strerror(-r));
		if (!c->what->dry && fsync(c->dir->blobs) < 0)
			return err_sys(c->err, "syncing '%s/blobs/sha256'", c->dir->path);
	}
	return 0;
}

/* Tags that should go and stay, since they name something else by now. */
static uint64_t count_moved(struct json manifests, const struct depot_retention *what)
{
	uint64_t n = 0;

	for (size_t i = 0; i < what->n_drop; i++) {
		struct digest now;

		n += dir_index_find(manifests, what->drop[i].tag, &now) == 0 &&
		     !digest_equal(&now, &what->drop[i].expect);
	}
	return n;
}

static int64_t limit_of(const struct depot_retention *what)
{
	struct timespec now;
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (ms <= what->grace_ms)
		return 0;
	return (int64_t)(ms - what->grace_ms) * 1000000 + now.tv_nsec % 1000000;
}

int dir_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		struct err *err)
{
	const struct dir_index_change change = { .drops = what->drop, .n_drops = what->n_drop };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err own = { 0 };
	struct collecting c = { .dir = dir_of(d),
				.what = what,
				.freed = ret,
				.before = limit_of(what),
				.err = err ? err : &own };
	AUTO_CLOSE int lock = -1;
	struct json manifests;
	int r;

	c.marks = (struct depot_marks){ .depot = d, .err = c.err };
	*ret = (struct depot_freed){ 0 };
	r = dir_use(c.dir, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = dir_lock(c.dir, &lock, err);
	if (r == 0)
		r = dir_index_load(c.dir, &doc, &manifests, err);
	if (r == 0)
		r = mark_listed(&c, manifests, &change);
	if (r == 0)
		r = depot_mark_retained(&c.marks, what);
	if (r == 0)
		ret->moved = count_moved(manifests, what);
	if (r == 0 && ret->names > 0 && !what->dry)
		r = dir_index_change(c.dir, manifests, &change, err);
	if (r >= 0)
		r = sweep(&c);
	depot_marks_done(&c.marks);
	return r;
}
