#include "engine/host/stash-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/sys.h"
#include "snapshot/capture/lease.h"

#define STASH_DIR  "stash"
#define PART       4 /* a copy takes at most this fraction of what is free */
#define BOOT_SIZE  64
#define COPY_STEP  ((size_t)1 << 20)
#define COPY_LOOK  ((off_t)256 << 20)        /* between two looks whether the writer still waits */
#define PROMISE_AT (2 * CATALOG_ID_SIZE + 1) /* in a name: CAPTURE-PROMISE, in hex */
#define NAME_SIZE  (PROMISE_AT + OBJECT_HEX_SIZE)

const struct catalog_id stash_early = { 0 };

/* --- places ------------------------------------------------------------------------------- */

/* Where copies are. */
struct place {
	char boot[BOOT_SIZE]; /* the name of this one */
	char *all, *mine;     /* owned: STORE/stash, STORE/stash/BOOT */
};

static void place_done(struct place *p)
{
	free(p->all);
	free(p->mine);
}

/* -ENOTSUP where boots have no names. */
static int find_place(const char *store, struct place *ret)
{
	*ret = (struct place){ 0 };
	sys_boot_id(ret->boot, sizeof(ret->boot));
	if (!ret->boot[0])
		return -ENOTSUP;
	ret->all = path_join(store, STASH_DIR);
	ret->mine = ret->all ? path_join(ret->all, ret->boot) : NULL;
	return ret->mine ? 0 : -ENOMEM;
}

static int open_dir_at(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_dir(const char *store, bool make)
{
	CLEANUP(place_done) struct place place;
	struct err ignored = { 0 };
	int r = find_place(store, &place);

	if (r >= 0 && make)
		r = path_make_dirs(place.mine, 0700, &ignored);
	return r < 0 ? r : open_dir_at(AT_FDCWD, place.mine);
}

static void name_of(const struct stash_key *key, char ret[NAME_SIZE])
{
	catalog_id_hex(&key->capture, ret);
	ret[PROMISE_AT - 1] = '-';
	object_id_hex(&key->promise, ret + PROMISE_AT);
}

/* False if it is the name of no whole copy. */
static bool parse_name(const char *name, struct catalog_id *ret_capture, struct object_id *ret)
{
	return strlen(name) == NAME_SIZE - 1 && name[PROMISE_AT - 1] == '-' &&
	       hex_decode(name, PROMISE_AT - 1, ret_capture->b, sizeof(ret_capture->b)) >= 0 &&
	       hex_decode(name + PROMISE_AT, 2 * OBJECT_ID_SIZE, ret->b, sizeof(ret->b)) >= 0;
}

/* --- copies ------------------------------------------------------------------------------- */

static int copy_by_hand(int from, int to, off_t at, off_t end)
{
	AUTO_FREE char *data = malloc(COPY_STEP);
	ssize_t n = 1;
	int r = data ? 0 : -ENOMEM;

	while (r == 0 && at < end && n > 0) {
		const size_t left = (size_t)(end - at);

		n = fdio_pread(from, data, left < COPY_STEP ? left : COPY_STEP, at);
		r = n < 0 ? (int)n : fdio_pwrite(to, data, (size_t)n, at);
		at += n;
	}
	return r;
}

/* The data alone: holes stay holes.  Without the lease it is in vain, and others wait for this thread. */
static int copy_data(int from, int to, off_t size)
{
	off_t at = 0, end;
	int r = ftruncate(to, size) < 0 ? -errno : 0;

	while (r == 0 && at < size) {
		at = lseek(from, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno;
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		end = end < size ? end : size;
		end = end - at < COPY_LOOK ? end : at + COPY_LOOK;
		r = sys_copy_range(from, to, at, end - at);
		if (r == -ENOTSUP)
			r = copy_by_hand(from, to, at, end);
		at = end;
		if (r == 0 && at < size && lease_held(from) != 1)
			r = -ESTALE;
	}
	return r;
}

static bool has_room(int dir, const struct stat *st)
{
	struct statvfs free;

	return fstatvfs(dir, &free) == 0 &&
	       (uint64_t)st->st_blocks * 512 < (uint64_t)free.f_bavail * free.f_frsize / PART;
}

static bool is_as_leased(int fd, uint64_t size, struct stat *ret)
{
	return fstat(fd, ret) == 0 && (uint64_t)ret->st_size == size && lease_held(fd) == 1;
}

static int fill(int dir, const char *part, int fd, uint64_t size)
{
	AUTO_CLOSE int to =
	    openat(dir, part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	int r = to < 0 ? -errno : copy_data(fd, to, (off_t)size);

	if (r < 0)
		return r;
	return is_as_leased(fd, size, &st) ? 0 : -ESTALE;
}

int stash_put(const struct stash_key *key, int fd, uint64_t size)
{
	AUTO_CLOSE int dir = open_dir(key->store, true);
	char name[NAME_SIZE], part[NAME_SIZE + 5];
	struct stat st;
	int r;

	if (dir < 0)
		return dir;
	if (!is_as_leased(fd, size, &st))
		return -ESTALE;
	if (!has_room(dir, &st))
		return -ENOSPC;
	name_of(key, name);
	snprintf(part, sizeof(part), "%s.part", name);
	r = fill(dir, part, fd, size);
	if (r == 0 && renameat(dir, part, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, part, 0);
	return r;
}

int stash_open(const struct stash_key *key, uint64_t size)
{
	AUTO_CLOSE int dir = open_dir(key->store, false);
	AUTO_CLOSE int fd = -1;
	char name[NAME_SIZE];
	struct stat st;

	if (dir < 0)
		return dir;
	name_of(key, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return -ENOENT;
	return TAKE_FD(fd);
}

void stash_drop(const struct stash_key *key)
{
	AUTO_CLOSE int dir = open_dir(key->store, false);
	char name[NAME_SIZE];

	name_of(key, name);
	if (dir >= 0)
		unlinkat(dir, name, 0);
}

int stash_take_over(const struct stash_key *key)
{
	const struct stash_key early = { key->store, stash_early, key->promise };
	AUTO_CLOSE int dir = open_dir(key->store, false);
	char from[NAME_SIZE], to[NAME_SIZE];

	if (dir < 0)
		return dir;
	name_of(&early, from);
	name_of(key, to);
	return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

/* --- all of them -------------------------------------------------------------------------- */

struct listing {
	const struct catalog_id *capture;
	stash_fn fn;
	void *ctx;
};

static int list_one(const char *name, unsigned char type, void *ctx)
{
	const struct listing *l = ctx;
	struct catalog_id capture;
	struct object_id promise;

	if (!parse_name(name, &capture, &promise) || !catalog_id_same(&capture, l->capture))
		return 0;
	return l->fn(&promise, l->ctx);
}

int stash_each(const char *store, const struct catalog_id *capture, stash_fn fn, void *ctx)
{
	AUTO_CLOSE int dir = open_dir(store, false);
	struct listing l = { .capture = capture, .fn = fn, .ctx = ctx };

	if (dir < 0)
		return dir == -ENOENT || dir == -ENOTSUP ? 0 : dir;
	return sys_each_name(dir, list_one, &l);
}

struct adding {
	int dir;
	uint64_t bytes;
};

static int add_one(const char *name, unsigned char type, void *ctx)
{
	struct adding *a = ctx;
	struct stat st;

	if (fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		a->bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

int stash_bytes(const char *store, uint64_t *ret)
{
	AUTO_CLOSE int dir = open_dir(store, false);
	struct adding a = { .dir = dir };
	int r = dir == -ENOENT ? 0 : dir < 0 ? dir : sys_each_name(dir, add_one, &a);

	*ret = a.bytes;
	return r < 0 ? r : 0;
}

struct sweeping {
	int dir;
	const char *boot; /* this one; NULL: all in the directory goes */
	bool (*is_known)(const struct catalog_id *capture, void *ctx);
	void *ctx;
};

static int sweep_file(const char *name, unsigned char type, void *ctx)
{
	const struct sweeping *s = ctx;
	struct catalog_id capture;
	struct object_id promise;

	if (!s->boot || !parse_name(name, &capture, &promise) || !s->is_known(&capture, s->ctx))
		unlinkat(s->dir, name, 0);
	return 0;
}

static int sweep_boot(const char *name, unsigned char type, void *ctx)
{
	const struct sweeping *s = ctx;
	struct sweeping below = *s;
	AUTO_CLOSE int dir = open_dir_at(s->dir, name);

	below.dir = dir;
	below.boot = strcmp(name, s->boot) == 0 ? s->boot : NULL;
	if (dir >= 0)
		IGNORE_RESULT(sys_each_name(dir, sweep_file, &below),
			      "the next start sweeps again");
	unlinkat(s->dir, name, AT_REMOVEDIR); /* if it is empty */
	return 0;
}

void stash_sweep(const char *store, bool (*is_known)(const struct catalog_id *capture, void *ctx),
		 void *ctx)
{
	CLEANUP(place_done) struct place place;
	AUTO_CLOSE int dir = find_place(store, &place) < 0 ? -1 : open_dir_at(AT_FDCWD, place.all);
	struct sweeping s = { .dir = dir, .boot = place.boot, .is_known = is_known, .ctx = ctx };

	if (dir < 0)
		return;
	IGNORE_RESULT(sys_each_name(dir, sweep_boot, &s), "the next start sweeps again");
	rmdir(place.all); /* if it is empty */
}

void stash_tidy(const char *store)
{
	CLEANUP(place_done) struct place place;

	if (find_place(store, &place) < 0)
		return;
	rmdir(place.mine);
	rmdir(place.all);
}
