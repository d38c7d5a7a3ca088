/*
 * The lease of one file.
 */
#include <sys/stat.h>

#include "tests/unit/snapshot/capture/lease-fixture.h"

#define NOBODY 65534

TEST(a_writer_waits_until_the_file_is_taken)
{
	static const act_fn acts[] = { open_wronly, open_rdwr,  open_append,
				       open_trunc,  open_creat, truncate_path };
	SCENE(sc, 0, 0);

	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		add_file(&sc, i);
		CHECK_EQ(end_of(start_writer(&sc, i, acts[i])), 0);
		CHECK_EQ(atomic_load(&sc.b->taken[i]), 1);
	}
	check_clean(&sc);
	CHECK_EQ(leases_count(sc.l).broken, ARRAY_LEN(acts));
	CHECK_EQ(leases_drop(sc.l, 0), -ENOENT);
}

TEST(reading_and_renaming_break_nothing_and_the_descriptor_keeps_the_file)
{
	AUTO_CLOSE int mine = -1;
	char path[256], text[64];
	struct stat st;
	SCENE(sc, 0, 0);

	for (uint64_t key = 1; key <= 4; key++)
		add_file(&sc, key);
	snprintf(path, sizeof(path), "%s", name_of(1));
	close(open_file(path));
	CHECK_EQ(chmod(path, 0600), 0);
	CHECK_EQ(utimensat(AT_FDCWD, path, NULL, 0), 0);
	CHECK_EQ(unlink(path), 0);
	make_file(test_path("other"));
	CHECK_EQ(rename(test_path("other"), name_of(2)), 0);
	snprintf(path, sizeof(path), "%s", name_of(3));
	CHECK_EQ(rename(path, test_path("elsewhere")), 0);
	CHECK_EQ(link(name_of(4), test_path("second-name")), 0);
	for (uint64_t key = 1; key <= 4; key++) {
		mine = leases_dup(sc.l, key);
		CHECK(mine >= 0);
		CHECK_EQ(fdio_pread(mine, text, sizeof(text), 0), strlen(OLD_BYTES));
		CHECK_MEM(text, strlen(OLD_BYTES), OLD_BYTES, strlen(OLD_BYTES));
		CHECK_EQ(lease_held(mine), 1);
		CHECK_EQ(fstat(mine, &st), 0);
		CHECK_EQ(leases_drop(sc.l, key), 1);
		CHECK_EQ(lease_held(mine), 0);
		close(TAKE_FD(mine));
	}
	CHECK_EQ(leases_count(sc.l).broken, 0);
	CHECK_EQ(leases_count(sc.l).held, 0);
}

TEST(a_write_through_another_name_breaks_it)
{
	SCENE(sc, 0, 0);
	char path[256];
	pid_t pid;

	add_file(&sc, 1);
	snprintf(path, sizeof(path), "%s", test_path("a-link"));
	CHECK_EQ(link(name_of(1), path), 0);
	pid = fork();
	if (pid == 0)
		_exit(open_wronly(path) || !atomic_load(&sc.b->taken[1]));
	CHECK_EQ(end_of(pid), 0);
	check_clean(&sc);
}

/* The hole in the kernel's leases that lease.h names: should it be closed one day, this says so. */
TEST(emptying_by_an_open_for_reading_shows_in_the_size_alone)
{
	AUTO_CLOSE int mine = -1, other = -1;
	SCENE(sc, 0, 0);
	struct stat st;

	add_file(&sc, 1);
	mine = leases_dup(sc.l, 1);
	other = open(name_of(1), O_RDONLY | O_TRUNC | O_CLOEXEC);
	CHECK(other >= 0);
	CHECK_EQ(fstat(mine, &st), 0);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(lease_held(mine), 1);
	CHECK_EQ(end_of(start_writer(&sc, 1, open_wronly)),
		 0); /* and nobody makes it grow unseen */
	CHECK_EQ(atomic_load(&sc.b->different), 1);
	CHECK_EQ(atomic_load(&sc.b->early), 0);
}

TEST(a_take_that_fails_lets_the_writer_go_on)
{
	SCENE(sc, 0, 0);

	sc.answer = -EIO;
	add_file(&sc, 1);
	CHECK_EQ(end_of(start_writer(&sc, 1, open_wronly)), 0);
	CHECK_EQ(leases_drop(sc.l, 1), -ENOENT);
	CHECK_EQ(leases_count(sc.l).failed, 1);
	check_clean(&sc);
}

TEST(a_file_that_is_open_or_mapped_for_writing_is_refused)
{
	AUTO_CLOSE int fd = -1;
	int writer;
	void *at;
	SCENE(sc, 0, 0);

	make_file(test_path("busy"));
	fd = open_file(test_path("busy"));
	writer = open(test_path("busy"), O_RDWR | O_CLOEXEC);
	CHECK_EQ(add(&sc, 1, fd, true), -EAGAIN);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
	CHECK(at != MAP_FAILED);
	close(writer);
	CHECK_EQ(add(&sc, 1, fd, true), -EAGAIN);
	munmap(at, 4096);
	CHECK_EQ(add(&sc, 1, TAKE_FD(fd), true), 0);
	CHECK_EQ(leases_count(sc.l).held, 1);
}

TEST(a_lease_that_was_tried_ends_with_its_descriptor_or_before)
{
	struct lease_trial trial;
	int fd;
	SCENE(sc, 0, 0);

	make_file(name_of(1));
	fd = open_file(name_of(1));
	CHECK_EQ(leases_try(sc.l, fd, true, &trial), 0);
	lease_give_up(fd, &trial);
	CHECK(!trial.is_set);
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
	CHECK_EQ(leases_try(sc.l, fd, false, &trial), 0);
	close(fd);
	fd = open(name_of(1), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(leases_count(sc.l).held, 0);
}

TEST(each_refusal_has_its_own_code_and_leaves_the_descriptor)
{
	AUTO_CLOSE int fd = -1, dir = -1, proc = -1;
	SCENE(sc, 2, 0);

	add_file(&sc, 1);
	make_file(test_path("one"));
	fd = open_file(test_path("one"));
	CHECK_EQ(add(&sc, 1, fd, true), -EEXIST);
	dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(add(&sc, 2, dir, true), -ENOTSUP);
	proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	CHECK(!lease_possible(proc));
	add_file(&sc, 3);
	CHECK_EQ(add(&sc, 4, fd, true), -EMFILE);
	CHECK_EQ(leases_dup(sc.l, 4), -ENOENT);
	CHECK_EQ(leases_drop(sc.l, 3), 1);
	CHECK_EQ(add(&sc, 4, TAKE_FD(fd), true), 0);
}

TEST(files_of_another_owner_are_refused_without_the_privilege)
{
	pid_t pid;

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	make_file(test_path("roots"));
	close(open_file(test_path("roots")));
	pid = fork();
	if (pid == 0) {
		struct scene sc = scene_new();
		int fd = open(test_path("roots"), O_RDONLY | O_CLOEXEC);
		const struct leases_options options = { .take = take, .ctx = &sc };

		if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(1);
		if (leases_open(&options, &sc.l, NULL) < 0)
			_exit(2);
		_exit(add(&sc, 1, fd, true) == -EACCES ? 0 : 3);
	}
	CHECK_EQ(end_of(pid), 0);
}

/* In the long run only: the kernel's patience is 45 s, and it is one for the whole machine. */
TEST(a_take_that_outlasts_the_kernel_knows_it)
{
	pid_t pid;

	if (!getenv("SNAP_TESTS_LONG"))
		return;
	SCENE(sc, 0, 0);
	add_file(&sc, 1);
	atomic_store(&sc.b->gate_shut, 1);
	pid = start_writer(&sc, 1, open_wronly);
	CHECK_EQ(end_of(pid), 0);
	CHECK_EQ(atomic_load(&sc.b->early), 1);
	atomic_store(&sc.b->gate_shut, 0);
	WAIT_FOR(leases_count(sc.l).held == 0);
	CHECK_EQ(leases_count(sc.l).lapsed, 1);
	CHECK_EQ(atomic_load(&sc.b->unheld), 1);
}

TEST_MAIN("lease")
