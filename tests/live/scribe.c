/*
 * scribe - do numbered things in a directory, and tell afterwards how many of them are there.
 *
 *   scribe write DIR BOARD SELF GROUP SYNC_EVERY
 *   scribe verify DIR
 *
 * Thing n begins with record n at the end of DIR/log; what follows depends on n alone.  So the
 * whole directory is a function of the number of steps that were done, a step being one
 * request to the file system, and whatever a crash leaves must be equal to it after some
 * number of steps: a prefix.  `write` goes on until something fails and prints the errno.
 * `verify` prints how many things are complete, and what the last record says of others.
 *
 * BOARD is a file that scribes share, on another file system: each one's line says how many
 * things are done and how many are synced.  A record holds what the writers of the same
 * GROUP had done before it, so that a clone which has the record must have those too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/fdio.h"

#define WRITERS   6
#define BIG_SIZE  ((size_t)1 << 20)
#define BODY_MAX  50000
#define PAGE      4096
#define BODY_ROOM (BODY_MAX + PAGE + TAIL)
#define TAIL      777 /* bytes that a hard link gets after it was made */
#define KEPT      16  /* rounds whose directory stays */
#define ROUND     8   /* things in a round */

struct line { /* of the board */
	_Atomic uint64_t done, synced;
	uint64_t pad[6];
};

struct record {
	uint64_t n;
	uint64_t others[WRITERS]; /* done before this one, by the writers of its group */
	uint64_t sum;
};

/* How many requests thing n takes after its record, by n % ROUND. */
static const unsigned steps_of[ROUND] = { 2, 1, 1, 1, 1, 1, 2, 3 };

NORETURN PRINTF_LIKE(1, 2) static void wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("wrong: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

/* For whoever looks for the fault: why a state is not the one. */
PRINTF_LIKE(1, 2) static bool differs(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("differs: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	return false;
}

/* --- what is written ---------------------------------------------------------------------- */

static uint64_t scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void fill(uint8_t *data, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i += sizeof(seed)) {
		const size_t n = len - i < sizeof(seed) ? len - i : sizeof(seed);

		seed = scramble(seed);
		memcpy(data + i, &seed, n);
	}
}

static size_t body_size(uint64_t round)
{
	return 1 + scramble(round * ROUND) % BODY_MAX;
}

/* Where its tail begins. */
static size_t tail_at(uint64_t round)
{
	return (body_size(round) + PAGE - 1) / PAGE * PAGE;
}

/* All of it, with a hole between the two. */
static void body(uint64_t round, uint8_t data[BODY_ROOM])
{
	memset(data, 0, BODY_ROOM);
	fill(data, body_size(round), round);
	fill(data + tail_at(round), TAIL, ~round);
}

static bool overwrites(uint64_t n)
{
	return n % ROUND == 1 || n % ROUND == 3;
}

/* Where thing n does so to the big file, and how far. */
static void big_range(uint64_t n, size_t *ret_off, size_t *ret_len)
{
	*ret_len = 1 + scramble(n) % 20000;
	*ret_off = scramble(~n) % (BIG_SIZE - *ret_len) / PAGE * PAGE;
}

static uint64_t record_sum(const struct record *r)
{
	uint64_t sum = scramble(r->n);

	for (size_t i = 0; i < WRITERS; i++)
		sum = scramble(sum ^ r->others[i]);
	return sum;
}

#define NAME_SIZE 32
struct names { /* that round may have */
	char a[NAME_SIZE], b[NAME_SIZE], dir[NAME_SIZE], inner[NAME_SIZE], hard[NAME_SIZE];
};

static struct names names_of(uint64_t round)
{
	struct names s;

	snprintf(s.a, NAME_SIZE, "a%" PRIu64, round);
	snprintf(s.b, NAME_SIZE, "b%" PRIu64, round);
	snprintf(s.dir, NAME_SIZE, "d%" PRIu64, round);
	snprintf(s.inner, NAME_SIZE, "d%" PRIu64 "/body", round);
	snprintf(s.hard, NAME_SIZE, "d%" PRIu64 "/hard", round);
	return s;
}

/* --- writing ------------------------------------------------------------------------------ */

struct scribe {
	int dir, log, big;
	struct line *board;
	size_t self;
	unsigned group; /* a bit for each writer of it */
};

/* Leave with the errno; what a dead mount may say is for the caller to judge. */
NORETURN static void stopped(const char *what, uint64_t n, int error)
{
	printf("stopped %d %s %" PRIu64 "\n", error, what, n);
	exit(0);
}

static void need(int r, const char *what, uint64_t n)
{
	if (r < 0)
		stopped(what, n, errno);
}

/*
 * As one request, for that is what a step is: the kernel cuts a write behind a page that it
 * does not have and that is not written to its end, so each one begins with a page.
 */
static void put(int fd, const void *data, size_t len, size_t off, const char *what, uint64_t n)
{
	const ssize_t done = pwrite(fd, data, len, (off_t)off);

	if (done < 0)
		stopped(what, n, errno);
	if ((size_t)done != len)
		wrong("%s %" PRIu64 ": %zd of %zu bytes were written", what, n, done, len);
}

static void write_record(struct scribe *s, uint64_t n)
{
	struct record r = { .n = n };

	for (size_t i = 0; i < WRITERS; i++)
		if (s->group & 1U << i)
			r.others[i] = atomic_load(&s->board[i].done);
	r.sum = record_sum(&r);
	put(s->log, &r, sizeof(r), (size_t)n * sizeof(r), "record", n);
}

static void make_body(struct scribe *s, const char *name, uint64_t round, uint64_t n)
{
	static uint8_t data[BODY_ROOM];
	AUTO_CLOSE int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	need(fd, "create", n);
	body(round, data);
	put(fd, data, body_size(round), 0, "body", n);
}

static void add_tail(struct scribe *s, const char *name, uint64_t round, uint64_t n)
{
	static uint8_t data[BODY_ROOM];
	AUTO_CLOSE int fd = openat(s->dir, name, O_WRONLY | O_CLOEXEC);

	need(fd, "open", n);
	body(round, data);
	put(fd, data + tail_at(round), TAIL, tail_at(round), "tail", n);
}

static void overwrite_big(struct scribe *s, uint64_t n)
{
	static uint8_t data[BIG_SIZE];
	size_t off, len;

	big_range(n, &off, &len);
	fill(data, len, n);
	put(s->big, data, len, off, "overwrite", n);
}

static void remove_round(struct scribe *s, uint64_t round, uint64_t n)
{
	const struct names names = names_of(round);

	need(unlinkat(s->dir, names.inner, 0), "unlink", n);
	need(unlinkat(s->dir, names.hard, 0), "unlink", n);
	need(unlinkat(s->dir, names.dir, AT_REMOVEDIR), "rmdir", n);
}

static void do_thing(struct scribe *s, uint64_t n)
{
	const uint64_t round = n / ROUND;
	const struct names names = names_of(round);

	write_record(s, n);
	switch (n % ROUND) {
	case 0:
		make_body(s, names.a, round, n);
		break;
	case 2:
		need(renameat(s->dir, names.a, s->dir, names.b), "rename", n);
		break;
	case 4:
		need(mkdirat(s->dir, names.dir, 0755), "mkdir", n);
		break;
	case 5:
		need(renameat(s->dir, names.b, s->dir, names.inner), "rename", n);
		break;
	case 6:
		need(linkat(s->dir, names.inner, s->dir, names.hard, 0), "link", n);
		add_tail(s, names.hard, round, n);
		break;
	case 7:
		if (round >= KEPT)
			remove_round(s, round - KEPT, n);
		break;
	default:
		overwrite_big(s, n);
	}
}

static struct line *board_open(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	void *map = MAP_FAILED;

	if (fd >= 0)
		map = mmap(NULL, WRITERS * sizeof(struct line), PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
	if (map == MAP_FAILED)
		wrong("board '%s': %s", path, strerror(errno));
	return map;
}

NORETURN static void write_on(struct scribe *s, uint64_t sync_every)
{
	for (uint64_t n = 0;; n++) {
		do_thing(s, n);
		atomic_store(&s->board[s->self].done, n + 1);
		if (sync_every == 0 || (n + 1) % sync_every != 0)
			continue;
		need(fsync(n & 1 ? s->log : s->dir), "fsync", n);
		atomic_store(&s->board[s->self].synced, n + 1);
	}
}

NORETURN static void begin(char **argv)
{
	struct scribe s = { .board = board_open(argv[1]),
			    .self = strtoul(argv[2], NULL, 10),
			    .group = (unsigned)strtoul(argv[3], NULL, 10) };

	need(mkdir(argv[0], 0755), "mkdir of all", 0);
	s.dir = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(s.dir, "open of all", 0);
	s.big = openat(s.dir, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	need(s.big, "create of 'big'", 0);
	need(ftruncate(s.big, BIG_SIZE), "truncate of 'big'", 0);
	s.log = openat(s.dir, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	need(s.log, "create of 'log'", 0);
	write_on(&s, strtoull(argv[4], NULL, 10));
}

/* --- verifying ---------------------------------------------------------------------------- */

struct seen {
	int dir;
	uint8_t big[BIG_SIZE];
};

/* How far round `r` came if things before n are done and `steps` requests of n itself. */
struct stage {
	bool a, b, dir, inner, hard;
	bool body; /* it has its bytes */
	bool tail;
};

/* Of thing t: is its request number `step` (from 1) done? */
static bool is_done(uint64_t t, unsigned step, uint64_t n, unsigned steps)
{
	return t < n || (t == n && step <= steps);
}

static struct stage stage_of(uint64_t round, uint64_t n, unsigned steps)
{
	const uint64_t t = round * ROUND, end = (round + KEPT) * ROUND + 7;
	struct stage s = { 0 };

	s.a = is_done(t, 1, n, steps) && !is_done(t + 2, 1, n, steps);
	s.body = is_done(t, 2, n, steps);
	s.b = is_done(t + 2, 1, n, steps) && !is_done(t + 5, 1, n, steps);
	s.dir = is_done(t + 4, 1, n, steps) && !is_done(end, 3, n, steps);
	s.inner = is_done(t + 5, 1, n, steps) && !is_done(end, 1, n, steps);
	s.hard = is_done(t + 6, 1, n, steps) && !is_done(end, 2, n, steps);
	s.tail = is_done(t + 6, 2, n, steps);
	return s;
}

/* Is the file there with exactly the bytes that it should have, or is it not there as it should? */
static bool file_is(struct seen *v, const char *name, bool there, uint64_t round, size_t len,
		    nlink_t links)
{
	static uint8_t want[BODY_ROOM], got[BODY_ROOM + 1];
	AUTO_CLOSE int fd = openat(v->dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno != ENOENT)
		wrong("open '%s': %s", name, strerror(errno));
	if ((fd >= 0) != there)
		return differs("'%s' is %sthere", name, there ? "not " : "");
	if (!there)
		return true;
	body(round, want);
	if (fstat(fd, &st) < 0 || st.st_nlink != links || (size_t)st.st_size != len)
		return differs("'%s' has %ju links and %jd bytes, not %ju and %zu", name,
			       (uintmax_t)st.st_nlink, (intmax_t)st.st_size, (uintmax_t)links, len);
	if (fdio_pread(fd, got, sizeof(got), 0) != (ssize_t)len || memcmp(got, want, len) != 0)
		return differs("'%s' has other bytes", name);
	return true;
}

static bool round_is(struct seen *v, uint64_t round, const struct stage *s)
{
	const size_t len = s->tail ? tail_at(round) + TAIL : s->body ? body_size(round) : 0;
	const nlink_t links = (nlink_t)s->inner + s->hard;
	const struct names names = names_of(round);
	struct stat st;

	if (!file_is(v, names.a, s->a, round, len, 1) || !file_is(v, names.b, s->b, round, len, 1))
		return false;
	if ((fstatat(v->dir, names.dir, &st, 0) == 0 && S_ISDIR(st.st_mode)) != s->dir)
		return differs("'%s' is %sthere", names.dir, s->dir ? "not " : "");
	return file_is(v, names.inner, s->inner, round, len, links) &&
	       file_is(v, names.hard, s->hard, round, len, links);
}

static size_t count_names(int at)
{
	DIR *dir = fdopendir(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	if (!dir)
		wrong("opendir: %s", strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static bool same_big(const uint8_t *got, const uint8_t *want)
{
	size_t first = 0, last = BIG_SIZE - 1;

	if (memcmp(got, want, BIG_SIZE) == 0)
		return true;
	while (got[first] == want[first])
		first++;
	while (got[last] == want[last])
		last--;
	return differs("'big' from byte %zu to %zu", first, last);
}

/* `shadow` is the big file as it was before n; leaves it so. */
static bool big_is(struct seen *v, uint8_t *shadow, uint64_t n, unsigned steps)
{
	static uint8_t before[BIG_SIZE];
	size_t off, len;
	bool same;

	big_range(n, &off, &len);
	memcpy(before, shadow + off, len);
	if (overwrites(n) && steps >= 1)
		fill(shadow + off, len, n);
	same = same_big(v->big, shadow);
	memcpy(shadow + off, before, len);
	return same;
}

/* Is the directory what it is after all things before n, and `steps` requests of n? */
static bool is_state(struct seen *v, uint8_t *shadow, uint64_t n, unsigned steps)
{
	const uint64_t last = n / ROUND, first = last > KEPT + 2 ? last - KEPT - 2 : 0;
	size_t names = 2; /* 'log' and 'big' */

	for (uint64_t r = first; r <= last; r++) {
		const struct stage s = stage_of(r, n, steps);

		if (!round_is(v, r, &s))
			return false;
		names += (size_t)s.a + s.b + s.dir;
	}
	if (count_names(v->dir) != names)
		return differs("%zu names, not %zu", count_names(v->dir), names);
	return big_is(v, shadow, n, steps);
}

/* The number of records, all of them right; the last in `ret`. */
static uint64_t read_log(struct seen *v, struct record *ret)
{
	AUTO_CLOSE int fd = openat(v->dir, "log", O_RDONLY | O_CLOEXEC);
	struct record r;
	uint64_t n = 0;
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return 0;
	while ((got = fdio_pread(fd, &r, sizeof(r), (off_t)(n * sizeof(r)))) == sizeof(r)) {
		if (r.n != n || r.sum != record_sum(&r))
			wrong("record %" PRIu64 " is none", n);
		*ret = r;
		n++;
	}
	if (got != 0)
		wrong("the log ends in %zd bytes of record %" PRIu64, got, n);
	return n;
}

static void read_big(struct seen *v)
{
	AUTO_CLOSE int fd = openat(v->dir, "big", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fdio_pread(fd, v->big, BIG_SIZE, 0) != (ssize_t)BIG_SIZE)
		wrong("'big' is not %zu bytes: %s", BIG_SIZE, strerror(errno));
}

/* How many steps of thing n, the last one, are done. */
static unsigned find_state(struct seen *v, uint64_t n)
{
	static uint8_t shadow[BIG_SIZE];

	for (uint64_t i = 0; i < n; i++) {
		size_t off, len;

		big_range(i, &off, &len);
		if (overwrites(i))
			fill(shadow + off, len, i);
	}
	for (unsigned steps = steps_of[n % ROUND] + 1; steps-- > 0;)
		if (is_state(v, shadow, n, steps))
			return steps;
	wrong("%" PRIu64 " records, and the rest is no state before or after the last", n + 1);
}

static void verify(const char *path)
{
	static struct seen v;
	struct record last = { 0 };
	uint64_t records, complete;

	v.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (v.dir < 0 && errno != ENOENT)
		wrong("open '%s': %s", path, strerror(errno));
	records = v.dir < 0 ? 0 : read_log(&v, &last);
	complete = records;
	if (records > 0) {
		const unsigned steps_max = steps_of[(records - 1) % ROUND];

		read_big(&v);
		if (find_state(&v, records - 1) < steps_max)
			complete--;
	}
	printf("complete %" PRIu64, complete);
	for (size_t i = 0; i < WRITERS; i++)
		printf(" %" PRIu64, last.others[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "write") == 0)
		begin(argv + 2);
	if (argc != 3 || strcmp(argv[1], "verify") != 0)
		wrong("usage: scribe write DIR BOARD SELF GROUP SYNC_EVERY | scribe verify DIR");
	verify(argv[2]);
	return 0;
}
