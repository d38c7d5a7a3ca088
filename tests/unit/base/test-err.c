#include "tests/lib/test.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"

TEST(set_records_code_and_sentence_and_returns_the_code)
{
	struct err err = { 0 };

	CHECK_EQ(err_set(&err, -EINVAL, "'%s' is %d", "x", 7), -EINVAL);
	CHECK_EQ(err.code, -EINVAL);
	CHECK_STR(err.msg, "'x' is 7");
}

TEST(sys_takes_errno_and_appends_its_description)
{
	struct err err = { 0 };

	errno = ENOENT;
	CHECK_EQ(err_sys(&err, "opening '%s'", "/x"), -ENOENT);
	CHECK_EQ(err.code, -ENOENT);
	CHECK_STR(err.msg, "opening '/x': No such file or directory");
}

TEST(wrap_puts_context_before_the_recorded_sentence)
{
	struct err err = { 0 };

	err_set(&err, -EBADMSG, "chunk is damaged");
	CHECK_EQ(err_wrap(&err, -EBADMSG, "reading '%s'", "a"), -EBADMSG);
	CHECK_STR(err.msg, "reading 'a': chunk is damaged");
}

TEST(wrap_writes_a_sentence_when_none_is_recorded)
{
	struct err err = { 0 };

	CHECK_EQ(err_wrap(&err, -EACCES, "reading"), -EACCES);
	CHECK_EQ(err.code, -EACCES);
	CHECK_STR(err.msg, "reading: Permission denied");
}

TEST(wrap_does_not_blame_a_sentence_recorded_for_another_code)
{
	struct err err = { 0 };

	err_set(&err, -ENOENT, "an older failure");
	CHECK_EQ(err_wrap(&err, -EACCES, "reading"), -EACCES);
	CHECK_STR(err.msg, "reading: Permission denied");
}

TEST(the_recorded_sentence_may_be_among_the_arguments)
{
	struct err err = { 0 };

	err_set(&err, -EIO, "disk is gone");
	CHECK_EQ(err_wrap(&err, -EIO, "[%s] twice", err.msg), -EIO);
	CHECK_STR(err.msg, "[disk is gone] twice: disk is gone");
	CHECK_EQ(err_set(&err, -EIO, "again: %s", err.msg), -EIO);
	CHECK_STR(err.msg, "again: [disk is gone] twice: disk is gone");
	errno = EIO;
	CHECK_EQ(err_sys(&err, "<%.5s>", err.msg), -EIO);
	CHECK_STR(err.msg, "<again>: Input/output error");
}

TEST(a_sentence_that_just_fits_is_kept_whole)
{
	char text[252];
	struct err err = { 0 };

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, -EINVAL, "%s", text);
	CHECK_STR(err.msg, text);
}

TEST(a_sentence_that_is_too_long_ends_in_dots)
{
	char text[1000];
	struct err err = { 0 };

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, -EINVAL, "%s", text);
	CHECK_EQ(strlen(err.msg), 251);
	CHECK_STR(err.msg + 247, "a...");

	CHECK_EQ(err_wrap(&err, -EINVAL, "%s", text), -EINVAL);
	CHECK_EQ(strlen(err.msg), 251);
	CHECK_STR(err.msg + 247, "a...");

	errno = EIO;
	CHECK_EQ(err_sys(&err, "%s", text), -EIO);
	CHECK_STR(err.msg + 247, "a...");
}

TEST(truncation_never_splits_a_character)
{
	static const char *const letters[] = { "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	struct err err = { 0 };
	size_t i, shift, n, len;
	char text[600];

	for (i = 0; i < ARRAY_LEN(letters); i++) {
		n = strlen(letters[i]);
		for (shift = 0; shift < 4; shift++) {
			memset(text, 'x', shift);
			for (len = shift; len + n < sizeof(text); len += n)
				memcpy(text + len, letters[i], n);
			text[len] = '\0';
			err_set(&err, -EINVAL, "%s", text);
			len = strlen(err.msg);
			CHECK_STR(err.msg + len - 3, "...");
			CHECK_EQ((len - 3 - shift) % n, 0);
			CHECK(len > 251 - n);
		}
	}
}

TEST(bytes_that_are_no_utf8_are_truncated_too)
{
	struct err err = { 0 };
	char text[600];

	memset(text, 0x80, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, -EINVAL, "%s", text);
	CHECK_EQ(strlen(err.msg), 251);
	CHECK_STR(err.msg + 248, "...");
}

TEST(without_an_err_only_the_code_comes_back)
{
	CHECK_EQ(err_set(NULL, -EINVAL, "x"), -EINVAL);
	errno = EPERM;
	CHECK_EQ(err_sys(NULL, "x"), -EPERM);
	CHECK_EQ(err_wrap(NULL, -EIO, "x"), -EIO);
	CHECK_EQ(err_nomem(NULL), -ENOMEM);
}

TEST(out_of_memory_has_its_sentence)
{
	struct err err = { 0 };

	CHECK_EQ(err_nomem(&err), -ENOMEM);
	CHECK_EQ(err.code, -ENOMEM);
	CHECK_STR(err.msg, "out of memory");
}

TEST(an_err_travels_from_a_child_down_a_pipe)
{
	struct err err = { 0 };
	int fd[2], status;
	pid_t pid;

	CHECK_EQ(pipe(fd), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct err mine = { 0 };

		errno = ENOENT;
		err_sys(&mine, "cannot execute '%s'", "/no/such/program");
		_exit(write(fd[1], &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
	}
	close(fd[1]);
	CHECK_EQ(fdio_read(fd[0], &err, sizeof(err)), sizeof(err));
	close(fd[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(err.code, -ENOENT);
	CHECK_STR(err.msg, "cannot execute '/no/such/program': No such file or directory");
}

TEST_MAIN("err")
