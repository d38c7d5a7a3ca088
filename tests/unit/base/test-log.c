#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/json.h"
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

TEST(lines_can_be_objects_that_no_text_can_break)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *path = test_path("objects"), *text;
	struct err err = { 0 };
	struct json j;

	log_set_json(true);
	capture_begin(path);
	log_warn("a \"quoted\" \\ line\nand \x1b[31m \xff \xc3\xa9, continuing");
	text = capture_end(path, &out);
	log_set_json(false);
	CHECK(strchr(text, '\n') == text + strlen(text) - 1);
	CHECK_OK(json_parse(&doc, text, strlen(text) - 1, &j, &err), &err);
	CHECK_STR(json_get_text(j, "level"), "warning");
	CHECK_STR(json_get_text(j, "message"),
		  "a \"quoted\" \\ line\nand \x1b[31m \xef\xbf\xbd \xc3\xa9, continuing");
	CHECK_EQ(strlen(json_get_text(j, "time")), strlen("2025-03-01T13:05:00.123Z"));
}

TEST(an_object_of_the_longest_line_is_whole)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *path = test_path("long-object"), *text;
	char most[5000];
	struct err err = { 0 };
	struct json j;

	memset(most, '"', sizeof(most) - 1);
	most[sizeof(most) - 1] = '\0';
	log_set_json(true);
	capture_begin(path);
	log_info("%s", most);
	text = capture_end(path, &out);
	log_set_json(false);
	CHECK(strlen(text) <= 4096);
	CHECK_OK(json_parse(&doc, text, strlen(text) - 1, &j, &err), &err);
	CHECK(strstr(json_get_text(j, "message"), "\"..."));
}

/* Like systemd-journald, at a path of ours. */
static int journal_listen(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	CHECK(fd >= 0 && strlen(path) < sizeof(at.sun_path));
	memcpy(at.sun_path, path, strlen(path));
	CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

TEST(the_journal_gets_fields_and_no_text_can_add_one)
{
	static const char one[] = "PRIORITY=4\nSYSLOG_IDENTIFIER=snapcow\nMESSAGE=b, continuing\n";
	static const char two[] = "PRIORITY=3\nSYSLOG_IDENTIFIER=snapcow\nMESSAGE\n"
				  "\x0e\0\0\0\0\0\0\0a\nPRIORITY=7 b\n";
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("journal"), *file = test_path("journal-stderr");
	const int fd = journal_listen(path);
	char got[512];

	CHECK(!log_set_journal(test_path("no-journal")));
	CHECK(log_set_journal(path));
	capture_begin(file);
	log_warn("b, continuing");
	log_error("a\nPRIORITY=7 b");
	CHECK_EQ(recv(fd, got, sizeof(got), MSG_DONTWAIT), (ssize_t)sizeof(one) - 1);
	CHECK(memcmp(got, one, sizeof(one) - 1) == 0);
	CHECK_EQ(recv(fd, got, sizeof(got), MSG_DONTWAIT), (ssize_t)sizeof(two) - 1);
	CHECK(memcmp(got, two, sizeof(two) - 1) == 0);
	/* The journal is gone: nothing is lost. */
	close(fd);
	log_warn("c, continuing");
	CHECK_STR(capture_end(file, &out), "warning: c, continuing\n");
	CHECK(!log_set_journal(NULL));
}

TEST(the_environment_chooses_the_form)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *path = test_path("by-environment");

	CHECK_EQ(setenv("SNAPCOW_LOG", "json", 1), 0);
	log_set_by_environment();
	capture_begin(path);
	log_info("a");
	CHECK(strstr(capture_end(path, &out), "\"level\":\"info\",\"message\":\"a\"}\n"));
	log_set_json(false);
	CHECK_EQ(unsetenv("SNAPCOW_LOG"), 0);
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
