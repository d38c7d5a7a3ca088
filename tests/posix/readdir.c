/*
 * Reading directories, also while they change.
 */
#include <sys/syscall.h>

#include "tests/posix/posix.h"

enum { MANY = 20000 };

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_dir(const char *path)
{
	DIR *d = opendir(path);

	NEED(d ? 0 : -1);
	return d;
}

static void fill(const char *dir, unsigned from, unsigned to)
{
	char name[PATH_MAX];
	unsigned i;
	int fd;

	for (i = from; i < to; i++) {
		snprintf(name, sizeof(name), "%s/entry-%u", dir, i);
		fd = (int)NEED(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
		close(fd);
	}
}

/* How often each of the names entry-0 ... was seen; others are left out. */
struct tally {
	uint8_t *seen;
	unsigned n;
};

static void tally_add(struct tally *t, const char *name)
{
	unsigned i;

	if (sscanf(name, "entry-%u", &i) == 1 && i < t->n && t->seen[i] < 255)
		t->seen[i]++;
}

/* Each of the names from..to exactly once. */
static void tally_once(const struct tally *t, unsigned from, unsigned to)
{
	unsigned i, missing = 0, twice = 0;

	for (i = from; i < to; i++) {
		missing += t->seen[i] == 0;
		twice += t->seen[i] > 1;
	}
	SAY_IF(missing || twice, "of %u names %u are missing and %u came twice", to - from, missing,
	       twice);
}

CASE(readdir, dots_kinds_and_numbers_are_right)
{
	struct dirent *e;
	unsigned n = 0;
	enum kind k;
	DIR *d;

	NEED(mkdir("d", 0755));
	for (k = 0; k < KINDS; k++) {
		char path[32];

		snprintf(path, sizeof(path), "d/%d", (int)k);
		make(k, path);
	}
	d = open_dir("d");
	NEED(chdir("d"));
	while ((e = readdir(d))) {
		struct stat st = stat_of(e->d_name);

		n++;
		trying("%s", e->d_name);
		if (strcmp(e->d_name, "..") != 0)
			IS(e->d_ino, st.st_ino);
		if (e->d_type != DT_UNKNOWN)
			IS(e->d_type, IFTODT(st.st_mode));
	}
	closedir(d);
	IS(n, 2 + KINDS + 2); /* and the targets of two links */
	IS(ino_of("."), ino_of("../d"));
}

CASE(readdir, an_empty_directory_has_two_names)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	NEED(mkdir("d", 0755));
	d = open_dir("d");
	while ((e = readdir(d))) {
		TRUE(is_dots(e->d_name));
		n++;
	}
	IS(n, 2);
	closedir(d);
}

CASE(readdir, removing_while_reading_skips_nothing)
{
	AUTO_FREE uint8_t *seen = calloc(MANY, 1);
	struct tally t = { seen, MANY };
	struct dirent *e;
	DIR *d;

	NEED(mkdir("d", 0755));
	fill("d", 0, MANY);
	d = open_dir("d");
	while ((e = readdir(d))) {
		if (is_dots(e->d_name))
			continue;
		tally_add(&t, e->d_name);
		NEED(unlinkat(dirfd(d), e->d_name, 0));
	}
	closedir(d);
	tally_once(&t, 0, MANY);
	OK(rmdir("d"));
}

CASE(readdir, rm_removes_a_tree_of_many)
{
	char path[64];
	unsigned i;

	NEED(mkdir("tree", 0755));
	for (i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "tree/%u", i);
		NEED(mkdir(path, 0755));
		fill(path, 0, 150);
	}
	IS(system("rm -r tree"), 0);
	IS(exists("tree"), false);
}

CASE(readdir, names_that_stay_come_once_while_others_come_and_go)
{
	AUTO_FREE uint8_t *seen = calloc(6000, 1);
	struct tally t = { seen, 6000 };
	unsigned i = 0, n = 0;
	struct dirent *e;
	char name[64];
	DIR *d;

	NEED(mkdir("d", 0755));
	fill("d", 0, 6000); /* below 3000 they stay, above they go */
	d = open_dir("d");
	while ((e = readdir(d))) {
		tally_add(&t, e->d_name);
		if (n++ % 2) {
			snprintf(name, sizeof(name), "d/entry-%u", 3000 + i++ % 3000);
			IGNORE_RESULT(unlink(name), "it may be gone already");
			snprintf(name, sizeof(name), "d/new-%u", n);
			make_file(name, "");
		}
		if (n > 100000)
			break;
	}
	closedir(d);
	tally_once(&t, 0, 3000);
	for (i = 3000; i < 6000; i++)
		if (SAY_IF(seen[i] > 1, "a name that was removed came twice"))
			break;
	TRUE(n < 100000);
}

CASE(readdir, renaming_while_reading_loses_nobody)
{
	AUTO_FREE uint8_t *seen = calloc(2000, 1);
	struct tally t = { seen, 2000 };
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	NEED(mkdir("d", 0755));
	fill("d", 0, 2000);
	d = open_dir("d");
	while ((e = readdir(d)) && n++ < 100000) {
		char to[300];

		if (strncmp(e->d_name, "entry-", 6) != 0)
			continue;
		tally_add(&t, e->d_name);
		snprintf(to, sizeof(to), "moved-%s", e->d_name);
		NEED(renameat(dirfd(d), e->d_name, dirfd(d), to));
	}
	closedir(d);
	tally_once(&t, 0, 2000);
}

CASE(readdir, seekdir_comes_back_to_the_same_place)
{
	enum { N = 1500 };
	static long where[N + 2];
	static char names[N + 2][32];
	struct dirent *e;
	struct rng r = { 5 };
	unsigned n = 0, i;
	DIR *d;

	NEED(mkdir("d", 0755));
	fill("d", 0, N);
	d = open_dir("d");
	for (;;) {
		long at = telldir(d);

		e = readdir(d);
		if (!e || n >= N + 2)
			break;
		where[n] = at;
		snprintf(names[n++], sizeof(names[0]), "%.31s", e->d_name);
	}
	IS(n, N + 2);
	for (i = 0; i < 2000; i++) {
		unsigned k = (unsigned)rng_below(&r, n);

		seekdir(d, where[k]);
		e = readdir(d);
		if (SAY_IF(!e || strcmp(e->d_name, names[k]) != 0,
			   "at place %u there is '%s', it was '%s'", k, e ? e->d_name : "nothing",
			   names[k]))
			break;
	}
	/* Others are removed and made: the place is still behind the same name. */
	for (i = 0; i < n; i += 2)
		if (!is_dots(names[i]))
			NEED(unlinkat(dirfd(d), names[i], 0));
	fill("d", N, N + 500);
	for (i = 1; i < n; i += 2) {
		if (is_dots(names[i]))
			continue;
		seekdir(d, where[i]);
		e = readdir(d);
		while (e && strncmp(e->d_name, "entry-", 6) == 0 && atoi(e->d_name + 6) >= N)
			e = readdir(d);
		if (SAY_IF(!e || strcmp(e->d_name, names[i]) != 0,
			   "after changes, at place %u there is '%s', it was '%s'", i,
			   e ? e->d_name : "nothing", names[i]))
			break;
	}
	closedir(d);
}

CASE(readdir, rewinddir_sees_what_is_new)
{
	struct dirent *e;
	bool found = false, gone = true;
	DIR *d;

	NEED(mkdir("d", 0755));
	make_file("d/old", "");
	d = open_dir("d");
	while (readdir(d))
		;
	make_file("d/new", "");
	NEED(unlink("d/old"));
	rewinddir(d);
	while ((e = readdir(d))) {
		found |= strcmp(e->d_name, "new") == 0;
		gone &= strcmp(e->d_name, "old") != 0;
	}
	TRUE(found);
	TRUE(gone);
	closedir(d);
}

static bool lists(const char *dir, const char *name)
{
	struct dirent *e;
	bool found = false;
	DIR *d = open_dir(dir);

	while ((e = readdir(d)))
		found |= strcmp(e->d_name, name) == 0;
	closedir(d);
	return found;
}

CASE(readdir, a_listing_is_never_stale)
{
	unsigned i;

	NEED(mkdir("d", 0755));
	NEED(mkdir("e", 0755));
	for (i = 0; i < 20; i++) {
		char path[32], *name = path + 2;

		snprintf(path, sizeof(path), "d/n%u", i);
		IS(lists("d", name), false);
		if (i % 4 == 0)
			make_file(path, "");
		else if (i % 4 == 1)
			NEED(mkdir(path, 0755));
		else if (i % 4 == 2)
			NEED(symlink("x", path));
		else
			NEED(mkfifo(path, 0644));
		IS(lists("d", name), true);
		NEED(rename(path, "e/moved"));
		IS(lists("d", name), false);
		IS(lists("e", "moved"), true);
		NEED(remove("e/moved"));
		IS(lists("e", "moved"), false);
	}
}

CASE(readdir, two_streams_do_not_disturb_each_other)
{
	struct dirent *e;
	unsigned a = 0, b = 0;
	DIR *x, *y;

	NEED(mkdir("d", 0755));
	fill("d", 0, 1000);
	x = open_dir("d");
	y = open_dir("d");
	while ((e = readdir(x))) {
		a++;
		if (a % 2 && readdir(y))
			b++;
	}
	while (readdir(y))
		b++;
	IS(a, 1002);
	IS(b, 1002);
	closedir(x);
	closedir(y);
}

struct raw_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static unsigned raw_count(int fd, size_t room)
{
	char data[4096];
	unsigned n = 0;
	long got, at;

	while ((got = NEED(syscall(SYS_getdents64, fd, data, room))) > 0)
		for (at = 0; at < got; at += ((struct raw_dirent *)(void *)(data + at))->reclen)
			n++;
	return n;
}

CASE(readdir, small_buffers_give_all_names_too)
{
	char data[64];
	int fd;

	NEED(mkdir("d", 0755));
	fill("d", 0, 500);
	make_file("d/a-name-that-is-longer-than-the-others-are-by-far", "");
	fd = (int)NEED(open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	IS(raw_count(fd, 4096), 503);
	NEED(lseek(fd, 0, SEEK_SET));
	IS(raw_count(fd, 80), 503);
	NEED(lseek(fd, 0, SEEK_SET));
	FAILS(syscall(SYS_getdents64, fd, data, 8), EINVAL);
	close(fd);
}

CASE(readdir, long_names_are_listed_whole)
{
	unsigned i, n = 0;
	struct dirent *e;
	DIR *d;

	NEED(mkdir("d", 0755));
	NEED(chdir("d"));
	for (i = 0; i < 300; i++)
		make_file(name_of(255 - i % 3, i), "");
	d = open_dir(".");
	while ((e = readdir(d)))
		n += strlen(e->d_name) >= 253;
	closedir(d);
	IS(n, 300);
}
