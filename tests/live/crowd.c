/*
 * crowd - one of many who work in the same clones at once, each on files of its own.
 *
 *   crowd SELF OF SECONDS SEED PROJECT LIST CLONE...
 *
 * LIST names the files of PROJECT, one a line; those whose number is SELF modulo OF are for
 * this process, in every clone.  It makes files of its own besides.  Whatever it changes it
 * keeps in memory too, byte for byte, and compares again and again; what it did not
 * change must be as in PROJECT.  When the time is over it compares everything and says "done",
 * and once more, saying "intact", for each line that it reads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/fdio.h"

#define FILES    8 /* of this process in each clone; half of them are its own */
#define FILE_MAX ((size_t)256 << 10)
#define PIECE    ((size_t)48 << 10)

struct kept {
	char name[PATH_MAX]; /* below the clone; "": not chosen yet */
	uint8_t *data;       /* owned; FILE_MAX bytes, zero behind `size` */
	size_t size;
	bool there;
	unsigned renamed;
};

struct place {
	const char *path;
	int dir;
	struct kept kept[FILES];
};

struct crowd {
	unsigned self, of;
	uint64_t random;
	int project;
	char **list; /* this process's part */
	size_t n_list;
	struct place *places;
	size_t n_places;
	uint64_t ops, written, compared;
};

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

static void need(int r, const char *what, const struct place *p, const struct kept *k)
{
	if (r < 0)
		wrong("%s '%s/%s': %s", what, p->path, k->name, strerror(errno));
}

static uint64_t draw(struct crowd *c, uint64_t below)
{
	uint64_t x = c->random += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return (x ^ (x >> 31)) % below;
}

/* --- comparing ---------------------------------------------------------------------------- */

static void compare(struct crowd *c, struct place *p, struct kept *k)
{
	static uint8_t got[FILE_MAX + 1];
	AUTO_CLOSE int fd = openat(p->dir, k->name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT && !k->there)
		return;
	need(fd, "open", p, k);
	if (!k->there)
		wrong("'%s/%s' was removed and is there", p->path, k->name);
	need(fstat(fd, &st), "stat", p, k);
	n = fdio_pread(fd, got, sizeof(got), 0);
	if (n < 0)
		wrong("read '%s/%s': %s", p->path, k->name, strerror((int)-n));
	if ((size_t)n != k->size || (size_t)st.st_size != k->size)
		wrong("'%s/%s' has %zd bytes, says %jd, should have %zu", p->path, k->name, n,
		      (intmax_t)st.st_size, k->size);
	for (size_t i = 0; i < k->size; i++)
		if (got[i] != k->data[i])
			wrong("'%s/%s' differs at byte %zu of %zu", p->path, k->name, i, k->size);
	c->compared += k->size;
}

static void compare_all(struct crowd *c)
{
	for (size_t i = 0; i < c->n_places; i++)
		for (size_t j = 0; j < FILES; j++)
			if (c->places[i].kept[j].name[0])
				compare(c, &c->places[i], &c->places[i].kept[j]);
}

/* The own directory holds as many names as it should. */
static void count_names(struct place *p, const char *name, size_t want)
{
	DIR *dir = fdopendir(openat(p->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	if (!dir)
		wrong("opendir '%s/%s': %s", p->path, name, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	if (n - 2 != want)
		wrong("'%s/%s' has %zu names, not %zu", p->path, name, n - 2, want);
}

static void read_whole(int dir, const char *name, struct kept *k)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : fdio_pread(fd, k->data, FILE_MAX, 0);

	if (n < 0)
		wrong("reading '%s' of the project: %s", name, strerror((int)-n));
	k->size = (size_t)n;
	memset(k->data + n, 0, FILE_MAX - (size_t)n);
}

/* Also under another name: what is renamed keeps the beginning of it. */
static bool is_chosen(const struct place *p, const char *name)
{
	for (size_t i = 0; i < FILES; i++)
		if (strncmp(p->kept[i].name, name, strlen(name)) == 0)
			return true;
	return false;
}

/* A file that nobody changes in this clone is as in the project. */
static void compare_with_project(struct crowd *c, struct place *p)
{
	static uint8_t data[FILE_MAX];
	const char *name = c->list[draw(c, c->n_list)];
	struct kept k = { .data = data, .there = true };

	if (is_chosen(p, name))
		return;
	snprintf(k.name, sizeof(k.name), "%s", name);
	read_whole(c->project, name, &k);
	compare(c, p, &k);
}

/* --- changing ----------------------------------------------------------------------------- */

static void choose(struct crowd *c, struct place *p, size_t slot)
{
	struct kept *k = &p->kept[slot];
	const char *name;

	k->data = calloc(1, FILE_MAX);
	if (!k->data)
		wrong("out of memory");
	if (slot % 2 == 0) {
		snprintf(k->name, sizeof(k->name), "own-%u/%zu", c->self, slot);
		return;
	}
	do
		name = c->list[draw(c, c->n_list)];
	while (is_chosen(p, name));
	snprintf(k->name, sizeof(k->name), "%s", name);
	read_whole(c->project, name, k);
	k->there = true;
}

static void make(struct place *p, struct kept *k)
{
	AUTO_CLOSE int fd = openat(p->dir, k->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	need(fd, "create", p, k);
	k->there = true;
	k->size = 0;
	memset(k->data, 0, FILE_MAX);
}

static void change(struct crowd *c, struct place *p, struct kept *k)
{
	static uint8_t data[PIECE];
	AUTO_CLOSE int fd = openat(p->dir, k->name, O_RDWR | O_CLOEXEC);
	const size_t len = 1 + draw(c, PIECE), off = draw(c, FILE_MAX - len);
	const bool append = draw(c, 3) == 0 && k->size + len <= FILE_MAX;
	const size_t at = append ? k->size : off;
	int r;

	need(fd, "open", p, k);
	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		const uint64_t word = draw(c, UINT64_MAX);

		memcpy(data + i, &word, len - i < sizeof(word) ? len - i : sizeof(word));
	}
	r = fdio_pwrite(fd, data, len, (off_t)at);
	if (r < 0)
		wrong("write '%s/%s': %s", p->path, k->name, strerror(-r));
	memcpy(k->data + at, data, len);
	if (at + len > k->size)
		k->size = at + len;
	c->written += len;
	if (draw(c, 50) == 0)
		need(fsync(fd), "fsync", p, k);
}

static void cut(struct crowd *c, struct place *p, struct kept *k)
{
	AUTO_CLOSE int fd = openat(p->dir, k->name, O_WRONLY | O_CLOEXEC);
	const size_t size = draw(c, FILE_MAX);

	need(fd, "open", p, k);
	need(ftruncate(fd, (off_t)size), "truncate", p, k);
	if (size < k->size)
		memset(k->data + size, 0, k->size - size);
	k->size = size;
}

static void change_mapped(struct crowd *c, struct place *p, struct kept *k)
{
	AUTO_CLOSE int fd = openat(p->dir, k->name, O_RDWR | O_CLOEXEC);
	uint8_t *map;

	need(fd, "open", p, k);
	if (k->size == 0)
		return;
	map = mmap(NULL, k->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(map == MAP_FAILED ? -1 : 0, "mmap", p, k);
	for (int i = 0; i < 20; i++) {
		const size_t at = draw(c, k->size);

		map[at] = k->data[at] = (uint8_t)draw(c, 256);
	}
	need(msync(map, k->size, MS_SYNC), "msync", p, k);
	munmap(map, k->size);
}

static void rename_it(struct place *p, struct kept *k)
{
	char name[PATH_MAX];
	char *tail = strrchr(k->name, '~');

	snprintf(name, sizeof(name), "%.*s~%u", tail ? (int)(tail - k->name) : (int)strlen(k->name),
		 k->name, ++k->renamed);
	need(renameat(p->dir, k->name, p->dir, name), "rename", p, k);
	memcpy(k->name, name, sizeof(name));
}

static void remove_it(struct place *p, struct kept *k)
{
	need(unlinkat(p->dir, k->name, 0), "unlink", p, k);
	k->there = false;
}

static void do_something(struct crowd *c)
{
	struct place *p = &c->places[draw(c, c->n_places)];
	const size_t slot = draw(c, FILES);
	struct kept *k = &p->kept[slot];
	const uint64_t what = draw(c, 100);

	c->ops++;
	if (!k->name[0])
		choose(c, p, slot);
	if (what < 15)
		compare_with_project(c, p);
	else if (!k->there)
		make(p, k);
	else if (what < 60)
		change(c, p, k);
	else if (what < 68)
		cut(c, p, k);
	else if (what < 74)
		change_mapped(c, p, k);
	else if (what < 82)
		rename_it(p, k);
	else if (what < 88)
		remove_it(p, k);
	else
		compare(c, p, k);
}

/* --- beginning and end -------------------------------------------------------------------- */

static void read_list(struct crowd *c, const char *path)
{
	FILE *f = fopen(path, "re");
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	ssize_t len;

	if (!f)
		wrong("'%s': %s", path, strerror(errno));
	for (unsigned n = 0; (len = getline(&line, &size, f)) > 0; n++) {
		if (n % c->of != c->self)
			continue;
		line[len - 1] = '\0';
		c->list = reallocarray(c->list, c->n_list + 1, sizeof(*c->list));
		if (!c->list)
			wrong("out of memory");
		c->list[c->n_list] = strdup(line);
		c->n_list++;
	}
	fclose(f);
	if (c->n_list < (size_t)2 * FILES)
		wrong("'%s' is too short for %u", path, c->of);
}

static void open_places(struct crowd *c, char **paths, size_t n)
{
	char own[32];

	snprintf(own, sizeof(own), "own-%u", c->self);
	c->places = calloc(n, sizeof(*c->places));
	if (!c->places)
		wrong("out of memory");
	c->n_places = n;
	for (size_t i = 0; i < n; i++) {
		struct place *p = &c->places[i];

		p->path = paths[i];
		p->dir = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		need(p->dir, "open", p, &p->kept[0]);
		need(mkdirat(p->dir, own, 0755), "mkdir of its own in", p, &p->kept[0]);
	}
}

/* The mounts may be other ones when somebody says so. */
static void reopen_places(struct crowd *c, bool open_now)
{
	for (size_t i = 0; i < c->n_places; i++) {
		struct place *p = &c->places[i];

		if (open_now)
			p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else
			close(p->dir);
		need(p->dir, "open", p, &p->kept[0]);
	}
}

static void compare_counts(struct crowd *c)
{
	char own[32];

	snprintf(own, sizeof(own), "own-%u", c->self);
	for (size_t i = 0; i < c->n_places; i++) {
		size_t n = 0;

		for (size_t j = 0; j < FILES; j += 2)
			n += c->places[i].kept[j].there;
		count_names(&c->places[i], own, n);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct crowd c = { 0 };
	char line[16];
	double end;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 8)
		wrong("usage: crowd SELF OF SECONDS SEED PROJECT LIST CLONE...");
	c.self = (unsigned)strtoul(argv[1], NULL, 10);
	c.of = (unsigned)strtoul(argv[2], NULL, 10);
	c.random = strtoull(argv[4], NULL, 10) * 1000 + c.self;
	c.project = open(argv[5], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	read_list(&c, argv[6]);
	open_places(&c, argv + 7, (size_t)(argc - 7));
	for (end = now() + strtod(argv[3], NULL); now() < end;)
		do_something(&c);
	compare_all(&c);
	compare_counts(&c);
	reopen_places(&c, false);
	printf("done %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c.ops, c.written, c.compared);
	while (fgets(line, sizeof(line), stdin)) {
		reopen_places(&c, true);
		compare_all(&c);
		compare_counts(&c);
		reopen_places(&c, false);
		printf("intact\n");
	}
	return 0;
}
