/*
 * Several processes at the same names at once.
 */
#include <sys/mman.h>

#include "tests/posix/posix.h"

enum { WORKERS = 4, ROUNDS = 300 };

/* Counters that parent and children share. */
static unsigned *shared(void)
{
	unsigned *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	NEED(p == MAP_FAILED ? -1 : 0);
	return p;
}

static void all_do(void (*fn)(void *arg), void *arg)
{
	pid_t pids[WORKERS];
	int i;

	for (i = 0; i < WORKERS; i++)
		pids[i] = start(fn, arg);
	for (i = 0; i < WORKERS; i++)
		gather(pids[i]);
}

static void try_to_make(void *arg)
{
	unsigned *wins = arg, i;
	char name[32];
	int fd;

	for (i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0)
			__atomic_add_fetch(&wins[0], 1, __ATOMIC_RELAXED), close(fd);
		else if (errno != EEXIST)
			NEED(-1);
		snprintf(name, sizeof(name), "d%u", i);
		if (mkdir(name, 0755) == 0)
			__atomic_add_fetch(&wins[1], 1, __ATOMIC_RELAXED);
		else if (errno != EEXIST)
			NEED(-1);
		snprintf(name, sizeof(name), "l%u", i);
		if (link("source", name) == 0)
			__atomic_add_fetch(&wins[2], 1, __ATOMIC_RELAXED);
		else if (errno != EEXIST)
			NEED(-1);
		snprintf(name, sizeof(name), "s%u", i);
		if (symlink("x", name) == 0)
			__atomic_add_fetch(&wins[3], 1, __ATOMIC_RELAXED);
		else if (errno != EEXIST)
			NEED(-1);
	}
}

static void try_to_remove(void *arg)
{
	unsigned *wins = arg, i;
	char name[32];

	for (i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		if (unlink(name) == 0)
			__atomic_add_fetch(&wins[4], 1, __ATOMIC_RELAXED);
		else if (errno != ENOENT)
			NEED(-1);
		snprintf(name, sizeof(name), "d%u", i);
		if (rmdir(name) == 0)
			__atomic_add_fetch(&wins[5], 1, __ATOMIC_RELAXED);
		else if (errno != ENOENT)
			NEED(-1);
		snprintf(name, sizeof(name), "l%u", i);
		if (rename(name, "gone") == 0)
			__atomic_add_fetch(&wins[6], 1, __ATOMIC_RELAXED);
		else if (errno != ENOENT)
			NEED(-1);
	}
}

CASE(together, each_name_is_made_and_removed_by_exactly_one)
{
	unsigned *wins = shared(), i;

	make_file("source", "");
	all_do(try_to_make, wins);
	for (i = 0; i < 4; i++)
		IS(wins[i], ROUNDS);
	IS(nlink_of("source"), 1 + ROUNDS);
	all_do(try_to_remove, wins);
	for (i = 4; i < 6; i++)
		IS(wins[i], ROUNDS);
	TRUE(wins[6] >= ROUNDS);
	IS(nlink_of("."), 2);
}

/* Everything anybody does to a handful of names; afterwards the books must balance. */
static void storm(void *arg)
{
	struct rng r = { (uint64_t)getpid() * 2654435761u + 1 };
	unsigned i;

	for (i = 0; i < 2500; i++) {
		char a[32], b[32];
		int fd;

		snprintf(a, sizeof(a), "d%u/n%u", (unsigned)rng_below(&r, 3),
			 (unsigned)rng_below(&r, 6));
		snprintf(b, sizeof(b), "d%u/n%u", (unsigned)rng_below(&r, 3),
			 (unsigned)rng_below(&r, 6));
		switch (rng_below(&r, 9)) {
		case 0:
			fd = open(a, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			if (fd >= 0) {
				SAY_IF(write(fd, a, strlen(a)) < 0, "write failed with %s",
				       strerrorname_np(errno));
				close(fd);
			}
			break;
		case 1:
			IGNORE_RESULT(mkdir(a, 0755), "the books tell");
			break;
		case 2:
			IGNORE_RESULT(unlink(a), "the books tell");
			break;
		case 3:
			IGNORE_RESULT(rmdir(a), "the books tell");
			break;
		case 4:
			IGNORE_RESULT(rename(a, b), "the books tell");
			break;
		case 5:
			IGNORE_RESULT(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE),
				      "the books tell");
			break;
		case 6:
			IGNORE_RESULT(link(a, b), "the books tell");
			break;
		case 7:
			IGNORE_RESULT(symlink(a, b), "the books tell");
			break;
		default:
			fd = open(a, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
			if (fd >= 0)
				close(fd);
		}
	}
}

/* Link counts of files are as many names as there are; of directories 2 and the subdirectories. */
static void balance(void)
{
	struct {
		ino_t ino;
		unsigned names, claims;
	} files[32] = { 0 };
	unsigned d, n, k;

	for (d = 0; d < 3; d++) {
		unsigned subs = 0;
		char path[32];

		for (n = 0; n < 6; n++) {
			struct stat st;

			snprintf(path, sizeof(path), "d%u/n%u", d, n);
			if (lstat(path, &st) != 0) {
				IS(errno, ENOENT);
				continue;
			}
			if (S_ISDIR(st.st_mode)) {
				subs++;
				IS(st.st_nlink, 2);
				continue;
			}
			for (k = 0; files[k].names && files[k].ino != st.st_ino;)
				k++;
			files[k].ino = st.st_ino;
			files[k].names++;
			files[k].claims = (unsigned)st.st_nlink;
		}
		snprintf(path, sizeof(path), "d%u", d);
		IS(nlink_of(path), 2 + subs);
	}
	for (k = 0; files[k].names; k++)
		IS(files[k].claims, files[k].names);
}

CASE(together, after_a_storm_the_books_balance)
{
	NEED(mkdir("d0", 0755));
	NEED(mkdir("d1", 0755));
	NEED(mkdir("d2", 0755));
	all_do(storm, NULL);
	balance();
	remove_all("d0");
	remove_all("d1");
	remove_all("d2");
}

static void read_while_changed(void *arg)
{
	unsigned *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		struct dirent *e;
		unsigned kept = 0;
		DIR *d = opendir("d");

		NEED(d ? 0 : -1);
		while ((e = readdir(d)))
			kept += strncmp(e->d_name, "kept-", 5) == 0;
		closedir(d);
		if (!IS(kept, 200))
			return;
	}
}

CASE(together, a_reader_always_sees_the_names_that_stay)
{
	unsigned *stop = shared(), i;
	char name[32];
	pid_t pid;

	NEED(mkdir("d", 0755));
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "d/kept-%u", i);
		make_file(name, "");
	}
	pid = start(read_while_changed, stop);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "d/t%u", i);
		make_file(name, "");
		if (i >= 50) {
			snprintf(name, sizeof(name), "d/t%u", i - 50);
			NEED(unlink(name));
		}
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELEASE);
	gather(pid);
}

static void make_own(void *arg)
{
	char dir[32], name[64];
	unsigned i;

	snprintf(dir, sizeof(dir), "own-%d", (int)getpid());
	NEED(mkdir(dir, 0755));
	for (i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%s/%u", dir, i);
		make_file(name, name);
	}
	for (i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%s/%u", dir, i);
		if (!CONTENT_IS(name, name))
			return;
	}
	remove_all(dir);
}

CASE(together, each_in_its_own_directory)
{
	all_do(make_own, NULL);
	IS(nlink_of("."), 2);
}

/*
 * A FUSE client of Linux (6.18) answers stat with a size that it does not read up to before the
 * write that made it returns, whoever serves; so end of file is given time.  A wrong byte is not.
 */
static bool read_before(off_t end)
{
	char byte = 0;
	ssize_t n = 0;
	unsigned i;
	int fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));

	for (i = 0; i < 200 && n == 0; i++) {
		n = pread(fd, &byte, 1, end - 1);
		if (n == 0)
			usleep(1000);
	}
	close(fd);
	return !SAY_IF(n != 1 || byte != 'x', "before the size %jd there are %zd bytes, %#x",
		       (intmax_t)end, n, byte);
}

static void size_grows(void *arg)
{
	unsigned *stop = arg;
	off_t last = 0;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		struct stat st;

		NEED(stat("f", &st));
		if (SAY_IF(st.st_size < last, "the size fell from %jd to %jd", (intmax_t)last,
			   (intmax_t)st.st_size))
			return;
		last = st.st_size;
		if (last && !read_before(last))
			return;
	}
}

CASE(together, a_size_that_was_seen_has_bytes_behind_it)
{
	unsigned *stop = shared(), i;
	int fd = open_new("f");
	char data[700];
	pid_t pid;

	memset(data, 'x', sizeof(data));
	pid = start(size_grows, stop);
	for (i = 0; i < 3000; i++)
		IS(write(fd, data, sizeof(data)), sizeof(data));
	__atomic_store_n(stop, 1, __ATOMIC_RELEASE);
	gather(pid);
	close(fd);
}
