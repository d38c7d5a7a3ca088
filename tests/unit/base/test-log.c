#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/log.h"

/* stderr goes to a file between these two. */
static int saved = -1;

static void capture_begin(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	saved = dup(STDERR_FILENO);
	CHECK(saved >= 0);
	CHECK_EQ(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

static const char *capture_end(const char *path, struct buf *out)
{
	struct err err = { 0 };
	const char *text;

	CHECK_EQ(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	CHECK_OK(fdio_read_file(AT_FDCWD, path, 1 << 24, out, &err), &err);
	text = buf_str(out);
	CHECK(text);
	return text;
}

TEST(each_level_has_its_prefix_and_ends_its_line)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("levels");

	log_set_level(LOG_DEBUG);
	capture_begin(path);
	log_error("a %d", 1);
	log_warn("b, continuing");
	log_info("c");
	log_debug("d");
	CHECK_STR(capture_end(path, &out),
		  "error: a 1\nwarning: b, continuing\ninfo: c\ndebug: d\n");
	log_set_level(LOG_INFO);
}

TEST(debug_is_off_at_start_and_a_level_hides_all_below_it)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("hidden");

	CHECK(log_enabled(LOG_INFO));
	CHECK(!log_enabled(LOG_DEBUG));
	capture_begin(path);
	log_debug("hidden");
	log_at(LOG_DEBUG, "hidden");
	log_set_level(LOG_ERROR);
	log_warn("hidden");
	log_error("shown");
	CHECK_STR(capture_end(path, &out), "error: shown\n");
	log_set_level(LOG_INFO);
}

TEST(a_file_name_cannot_drive_the_terminal)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("control");

	capture_begin(path);
	log_error("'%s'", "a\x1b[2J\nb\x7f\xc2\x9b\x9bz");
	log_error("'%s'", "gr\xc3\xbc\xc3\x9f \\x \xe2\x82\xac");
	CHECK_STR(capture_end(path, &out), "error: 'a\\x1b[2J\\x0ab\\x7f\\xc2\\x9b\\x9bz'\n"
					   "error: 'gr\xc3\xbc\xc3\x9f \\x \xe2\x82\xac'\n");
}

TEST(a_line_longer_than_one_write_is_cut_and_says_so)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("long");
	static char text[9000];
	const char *line;

	memset(text, 'a', sizeof(text) - 1);
	capture_begin(path);
	log_error("%s", text);
	memset(text, 1, 3000);
	text[3000] = '\0';
	log_error("%s", text);
	line = capture_end(path, &out);

	CHECK(strchr(line, '\n') - line <= 4095);
	CHECK(strchr(line, '\n') - line > 4000);
	CHECK_MEM(strchr(line, '\n') - 3, 4, "...\n", 4);
	line = strchr(line, '\n') + 1;
	CHECK(strlen(line) > 4000);
	CHECK(strlen(line) <= 4096);
	CHECK_STR(line + strlen(line) - 8, "\\x01...\n");
}

TEST(logging_leaves_errno_alone)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("errno");

	capture_begin(path);
	close(STDERR_FILENO);
	errno = ELOOP;
	log_error("into the void");
	CHECK_EQ(errno, ELOOP);
	CHECK_STR(capture_end(path, &out), "");
}

#define N_THREADS 4
#define N_LINES   500

static void *shout(void *letter)
{
	char line[120];
	int i;

	memset(line, *(const char *)letter, sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (i = 0; i < N_LINES; i++)
		log_info("%s", line);
	return NULL;
}

TEST(lines_of_several_threads_never_mix)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("threads"), *p;
	static char letters[N_THREADS] = { 'a', 'b', 'c', 'd' };
	pthread_t thread[N_THREADS];
	int i, n = 0;

	capture_begin(path);
	for (i = 0; i < N_THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, shout, &letters[i]), 0);
	for (i = 0; i < N_THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	for (p = capture_end(path, &out); *p != '\0'; p += 126, n++) {
		CHECK_MEM(p, 6, "info: ", 6);
		CHECK_EQ(strspn(p + 6, (char[]){ p[6], '\0' }), 119);
		CHECK_EQ(p[125], '\n');
	}
	CHECK_EQ(n, N_THREADS * N_LINES);
}

TEST(a_file_of_lines_has_the_time_of_each)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("stamps"), *text;
	int n = 0;

	capture_begin(path);
	log_set_stamps(true);
	log_info("with");
	log_set_stamps(false);
	log_info("without");
	text = capture_end(path, &out);
	CHECK_EQ(
	    sscanf(text, "%*4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ info: with\ninfo: without\n%n", &n),
	    0);
	CHECK_EQ(n, (int)strlen(text));
}

TEST_MAIN("log")
