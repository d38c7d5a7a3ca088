#include "cli/http/token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/hex.h"
#include "base/sys.h"

#define SECRET_BYTES 32
#define LEAST_LENGTH 16

int token_make(char token[TOKEN_SIZE], struct err *err)
{
	unsigned char bytes[SECRET_BYTES];
	int r = sys_random(bytes, sizeof(bytes));

	if (r < 0)
		return err_wrap(err, r, "a token for clients");
	hex_encode(bytes, sizeof(bytes), token);
	return 0;
}

static int write_new(int fd, const char *path, char token[TOKEN_SIZE], struct err *err)
{
	int r = token_make(token, err);

	if (r < 0)
		return r;
	r = fdio_write(fd, token, strlen(token));
	if (r >= 0)
		r = fdio_write(fd, "\n", 1);
	return r < 0 ? err_wrap(err, r, "writing the token to '%s'", path) : 0;
}

static int read_old(int fd, const char *path, char token[TOKEN_SIZE], struct err *err)
{
	char text[TOKEN_SIZE + 2];
	struct stat st;
	ssize_t n;
	size_t len;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "the token file '%s'", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(
		    err, -EPERM,
		    "others may use the token file '%s': make it yours with 'chmod 600 %s'", path,
		    path);
	n = fdio_read(fd, text, sizeof(text));
	if (n < 0)
		return err_wrap(err, (int)n, "reading the token file '%s'", path);
	for (len = 0; len < (size_t)n && text[len] > ' ' && text[len] < 0x7f; len++)
		continue;
	if (len < LEAST_LENGTH || len >= TOKEN_SIZE)
		return err_set(err, -EINVAL,
			       "the first line of '%s' is no token: it must have %d to %d visible "
			       "characters without a space; remove the file, and one is made",
			       path, LEAST_LENGTH, TOKEN_SIZE - 1);
	memcpy(token, text, len);
	token[len] = '\0';
	return 0;
}

int token_from_file(const char *path, char token[TOKEN_SIZE], struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		return write_new(fd, path, token, err);
	if (errno != EEXIST)
		return err_sys(err, "making the token file '%s'", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? err_sys(err, "opening the token file '%s'", path)
		      : read_old(fd, path, token, err);
}
