/*
 * Inode number, times, size and owner show whether a file is the captured one. A rename changes the
 * ctime, so a displaced file is recognised by the rest. The kernel may stamp two writes within one
 * tick alike, so a file that was fresh at capture is compared byte by byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

/* Longer than a tick of any kernel, and than a step of file systems that count in seconds. */
#define FRESH_NS        ((int64_t)20000000)
#define FRESH_COARSE_NS ((int64_t)2000000000)
#define NS_PER_S        ((int64_t)1000000000)

bool sign_matches(const struct stat *st, const struct tree_entry *e, bool with_ctime)
{
	const struct timespec *m = &SYS_ST_MTIM(st), *c = &SYS_ST_CTIM(st);

	if (st->st_mode != e->mode || st->st_uid != e->uid || st->st_gid != e->gid)
		return false;
	if (S_ISDIR(e->mode))
		return true;
	if (m->tv_sec != e->mtime_s || m->tv_nsec != (long)e->mtime_ns)
		return false;
	if ((S_ISREG(e->mode) || S_ISLNK(e->mode)) && (uint64_t)st->st_size != e->size)
		return false;
	if ((S_ISCHR(e->mode) || S_ISBLK(e->mode)) && (uint64_t)st->st_rdev != e->rdev)
		return false;
	return !with_ctime || (c->tv_sec == e->ctime_s && c->tv_nsec == (long)e->ctime_ns);
}

bool sign_same_bytes(const struct stat *st, const struct tree_entry *e)
{
	const struct timespec *m = &SYS_ST_MTIM(st);

	return m->tv_sec == e->mtime_s && m->tv_nsec == (long)e->mtime_ns &&
	       (uint64_t)st->st_size == e->size;
}

bool sign_is_shared(const struct stat *st, const struct plan_step *s)
{
	return st->st_nlink > (s->before_linked ? s->before.nlink : 1);
}

/* --- content ---------------------------------------------------------------------------- */

/* Could somebody have written to it after the capture without changing its times? */
static bool is_in_doubt(const struct acting *a, const struct tree_entry *e)
{
	const int64_t tick = e->ctime_ns == 0 ? FRESH_COARSE_NS : FRESH_NS;

	return S_ISREG(e->mode) && e->ctime_s * NS_PER_S + e->ctime_ns + tick > a->plan->as_of;
}

/* The first offset from `at` on where not both have a hole: holes cost nothing. */
static int skip_holes(struct content_reader *rd, int fd, uint64_t size, uint64_t *at,
		      struct err *err)
{
	uint64_t data = size;
	off_t there;
	int r = content_reader_seek_data(rd, *at, &data, err);

	if (r < 0 && r != -ENXIO)
		return r;
	if (r == 0 && data == *at)
		return 0;
	there = lseek(fd, (off_t)*at, SEEK_DATA);
	if (there >= 0 && (uint64_t)there < data)
		data = (uint64_t)there;
	if (there >= 0 || errno == ENXIO)
		*at = data < size ? data : size;
	return 0;
}

static int same_bytes(struct content_reader *rd, int fd, uint64_t size, struct err *err)
{
	AUTO_FREE uint8_t *have = malloc(CHUNK_SIZE_MAX), *want = malloc(CHUNK_SIZE_MAX);
	ssize_t n, m;
	int r;

	if (!have || !want)
		return err_nomem(err);
	for (uint64_t at = 0; at < size; at += (uint64_t)n) {
		r = skip_holes(rd, fd, size, &at, err);
		if (r < 0)
			return r;
		if (at == size)
			break;
		n = content_reader_read(rd, at, want, CHUNK_SIZE_MAX, err);
		if (n <= 0)
			return n < 0 ? (int)n : 0;
		m = fdio_pread(fd, have, (size_t)n, (off_t)at);
		if (m < 0)
			return err_wrap(err, (int)m, "reading what was displaced");
		if (m != n || memcmp(have, want, (size_t)n) != 0)
			return 0;
	}
	return 1;
}

static int same_content(struct acting *a, const char *slot, const struct tree_entry *e,
			struct err *err)
{
	AUTO_CLOSE int fd = openat(a->stage_fd, slot, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	const struct content c = tree_entry_content(e);
	int r;

	if (fd < 0)
		return err_sys(err, "opening what was displaced");
	r = content_reader_new(a->store, &c, &rd, err);
	return r < 0 ? r : same_bytes(rd, fd, e->size, err);
}

int sign_is_displaced(struct acting *a, const struct plan_step *s, const char *slot,
		      const struct stat *st, struct err *err)
{
	if (st->st_ino != s->old_ino || !sign_matches(st, &s->before, false))
		return 0;
	return is_in_doubt(a, &s->before) ? same_content(a, slot, &s->before, err) : 1;
}

int sign_displaced(struct acting *a, const struct plan_step *s, const char *slot, struct err *err)
{
	struct stat st;

	if (fstatat(a->stage_fd, slot, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "'%s'", s->path);
	return sign_is_displaced(a, s, slot, &st, err);
}

/* --- all of it, beforehand -------------------------------------------------------------- */

static const struct plan_step *find_step(const struct plan_step *list, size_t n, const char *path)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		const int order = path_compare(list[mid].path, path);

		if (order == 0)
			return &list[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int foreign(const char *path, uint32_t uid, struct err *err)
{
	return err_set(err, -EPERM, "'%s' belongs to user %u, and only root can change that", path,
		       uid);
}

/* Check a directory of the plan that was just opened for the first time. */
static int check_opened(struct acting *a, size_t i, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[i];
	const struct stat *st = &a->dir_st;

	s->old_ino = st->st_ino;
	if (geteuid() != 0 && st->st_uid != geteuid())
		return foreign(s->path, st->st_uid, err);
	if (s->act == PLAN_CHANGE && !sign_matches(st, &s->before, false))
		acting_note(a, s->path, "has other attributes than a moment ago");
	return 0;
}

/* dir_at(), checking the directory unless that was done. */
static int checked_dir_at(struct acting *a, size_t i, struct err *err)
{
	int fd = dir_at(a, i, err), r;

	if (fd < 0 || a->plan->dirs[i].old_ino != 0)
		return fd;
	r = check_opened(a, i, err);
	return r < 0 ? r : fd;
}

static int check_dir(struct acting *a, size_t i, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[i];
	int fd;

	if (s->act == PLAN_CREATE)
		return geteuid() != 0 && s->after.uid != geteuid()
			   ? foreign(s->path, s->after.uid, err)
			   : 0;
	if (s->old_ino != 0)
		return 0;
	fd = checked_dir_at(a, i, err);
	if (fd == -ESTALE) {
		acting_note(a, s->path, "is gone");
		return 0;
	}
	return fd < 0 ? fd : 0;
}

/* A new file's place must be free, or another step frees it. */
static void check_place(struct acting *a, const struct plan_step *s, int fd, bool there,
			const struct stat *st)
{
	const struct plan *p = a->plan;
	const struct plan_step *dir;

	if (!there)
		return;
	dir = S_ISDIR(st->st_mode) ? find_step(p->dirs, p->n_dirs, s->path) : NULL;
	if (!dir || dir->act != PLAN_REMOVE)
		acting_note(a, s->path, dir_why_taken(fd, step_name(s)));
}

static int check_file(struct acting *a, struct plan_step *s, struct err *err)
{
	const bool in_new = a->plan->dirs[s->dir].act == PLAN_CREATE;
	struct stat st = { 0 };
	bool there;
	int fd;

	if (geteuid() != 0 && s->act != PLAN_REMOVE && s->after.uid != geteuid())
		return foreign(s->path, s->after.uid, err);
	if (geteuid() != 0 && s->act == PLAN_CHANGE && s->before.uid != geteuid())
		return foreign(s->path, s->before.uid, err);
	if (in_new)
		return 0;
	fd = checked_dir_at(a, s->dir, err);
	if (fd == -ESTALE)
		return 0; /* reported for the directory */
	if (fd < 0)
		return fd;
	there = fstatat(fd, step_name(s), &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return err_sys(err, "'%s'", s->path);
	if (s->act == PLAN_CREATE) {
		check_place(a, s, fd, there, &st);
		return 0;
	}
	s->old_ino = st.st_ino;
	if (!there)
		acting_note(a, s->path, "was removed meanwhile");
	else if (!sign_matches(&st, &s->before, true))
		acting_note(a, s->path, "changed meanwhile");
	if (s->act == PLAN_CHANGE && sign_is_shared(&st, s))
		s->act = PLAN_REPLACE;
	return 0;
}

int sign_check_all(struct acting *a, struct err *err)
{
	struct plan *p = a->plan;
	int r = 0;

	/* Opening a directory for a file checks it, so few are left here. */
	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		r = check_file(a, &p->files[i], err);
	for (size_t i = 0; i < p->n_dirs && r >= 0; i++)
		r = check_dir(a, i, err);
	if (r < 0)
		return r;
	return a->report->n > 0 ? -ESTALE : 0;
}
