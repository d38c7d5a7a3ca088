#include "remote/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "remote/program.h"

#define AGE            "age"
#define SAID_MAX       ((size_t)64 << 10)
#define RECIPIENTS_MAX ((size_t)1 << 20) /* bytes of a file that lists some */
#define READ_SIZE      ((size_t)256 << 10)
#define BYTES_MAX      ((size_t)64 << 20) /* of what is opened in memory */

void seal_done(struct seal *s)
{
	strlist_done(&s->recipients);
	free(s->identity);
	*s = (struct seal){ 0 };
}

/* --- recipients --------------------------------------------------------------------------- */

static bool is_key(const char *text)
{
	return strncmp(text, "age1", 4) == 0 || strncmp(text, "ssh-ed25519 ", 12) == 0 ||
	       strncmp(text, "ssh-rsa ", 8) == 0;
}

/* Each line of a file, without comments. */
static int add_file(struct seal *s, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = fdio_read_file(AT_FDCWD, path, RECIPIENTS_MAX, &text, err);
	char *rest, *line;

	if (r < 0)
		return err_wrap(err, r, "recipients");
	rest = (char *)(uintptr_t)buf_str(&text);
	if (!rest)
		return err_nomem(err);
	while ((line = strsep(&rest, "\r\n"))) {
		if (*line == '\0' || *line == '#')
			continue;
		if (!is_key(line))
			return err_set(err, -EINVAL,
				       "'%.100s' has a line that is no recipient: age1..., "
				       "ssh-ed25519 ... or ssh-rsa ...",
				       path);
		if (strlist_add(&s->recipients, line) < 0)
			return err_nomem(err);
	}
	return 0;
}

int seal_add_recipient(struct seal *s, const char *text, struct err *err)
{
	if (is_key(text))
		return strlist_add(&s->recipients, text) < 0 ? err_nomem(err) : 0;
	if (!strchr(text, '/') && access(text, R_OK) < 0)
		return err_set(err, -EINVAL,
			       "'%.100s' is no recipient: age1..., an SSH key, or a file of those",
			       text);
	return add_file(s, text, err);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int seal_fingerprint(const struct seal *s, struct digest *ret, struct err *err)
{
	AUTO_FREE char **sorted = calloc(s->recipients.n + 1, sizeof(*sorted));
	struct sha256 sha;

	if (!sorted)
		return err_nomem(err);
	for (size_t i = 0; i < s->recipients.n; i++)
		sorted[i] = s->recipients.list[i];
	qsort(sorted, s->recipients.n, sizeof(*sorted), by_text);
	sha256_begin(&sha);
	for (size_t i = 0; i < s->recipients.n; i++) {
		/* One that is named twice is one. */
		if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
			continue;
		sha256_add(&sha, sorted[i], strlen(sorted[i]));
		sha256_add(&sha, "\n", 1);
	}
	sha256_end(&sha, ret->b);
	return 0;
}

/* --- files -------------------------------------------------------------------------------- */

/* "age: error: no identity matched ..." without what is always there. */
static const char *reason(struct buf *said)
{
	static const char prefix[] = "age: error: ";
	char *text = (char *)(uintptr_t)buf_str(said), *at = text ? strstr(text, prefix) : NULL;

	at = at ? at + sizeof(prefix) - 1 : text;
	if (!at || *at == '\0')
		return "it said nothing";
	at[strcspn(at, "\r\n")] = '\0';
	return at;
}

/* Run it from one file to another: its exit status, or a negative code with a sentence. */
static int run(const char *const argv[], int from, int to, struct buf *said, struct err *err)
{
	const struct program p = {
		.argv = argv, .output_max = SAID_MAX, .by_files = true, .from = from, .to = to
	};
	int r;

	if (lseek(from, 0, SEEK_SET) < 0)
		return err_sys(err, "reading a blob");
	r = program_run(&p, said);
	if (r == -ENOENT)
		return err_set(err, -ENOTSUP, "encryption needs '" AGE "' (Debian: age)");
	return r < 0 ? err_set(err, r, "running '" AGE "': %s", strerror(-r)) : r;
}

int seal_close_file(const struct seal *s, int from, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	AUTO_FREE const char **argv = calloc(2 * s->recipients.n + 3, sizeof(*argv));
	AUTO_CLOSE int to = fdio_open_nameless(s->dir, err);
	size_t n = 0;
	int r;

	if (to < 0)
		return to;
	if (!argv)
		return err_nomem(err);
	argv[n++] = AGE;
	argv[n++] = "--encrypt";
	for (size_t i = 0; i < s->recipients.n; i++) {
		argv[n++] = "-r";
		argv[n++] = s->recipients.list[i];
	}
	r = run(argv, from, to, &said, err);
	if (r > 0)
		return err_set(err, -EINVAL, "encrypting: %.150s", reason(&said));
	return r < 0 ? r : TAKE_FD(to);
}

int seal_open_file(const struct seal *s, int from, int to, struct err *err)
{
	const char *const argv[] = { AGE, "--decrypt", "-i", s->identity, NULL };
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	const char *why;
	int r;

	if (!s->identity)
		return err_set(err, -EACCES, "it is encrypted: name your key with --identity");
	if (access(s->identity, R_OK) < 0)
		return err_set(err, -EACCES, "reading the key '%s': %s", s->identity,
			       strerror(errno));
	r = run(argv, from, to, &said, err);
	if (r <= 0)
		return r;
	why = reason(&said);
	if (strstr(why, "no identity matched"))
		return err_set(err, -ECANCELED, "it is not encrypted for the key in '%.100s'",
			       s->identity);
	return err_set(err, strstr(why, s->identity) ? -EACCES : -EBADMSG, "decrypting: %.150s",
		       why);
}

int seal_measure(int fd, struct digest *ret, uint64_t *ret_size, struct err *err)
{
	CLEANUP(buf_done) struct buf room = BUF_INIT;
	void *at = buf_extend(&room, READ_SIZE);
	struct sha256 sha;
	uint64_t size = 0;
	ssize_t n;

	if (!at)
		return err_nomem(err);
	sha256_begin(&sha);
	while ((n = fdio_pread(fd, at, READ_SIZE, (off_t)size)) > 0) {
		sha256_add(&sha, at, (size_t)n);
		size += (uint64_t)n;
	}
	if (n < 0)
		return err_set(err, (int)n, "reading a blob: %s", strerror((int)-n));
	sha256_end(&sha, ret->b);
	*ret_size = size;
	return 0;
}

/* --- bytes -------------------------------------------------------------------------------- */

static int read_all(int fd, struct buf *out, struct err *err)
{
	struct stat st;
	void *at;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "reading a blob");
	if (st.st_size < 0 || (uint64_t)st.st_size > BYTES_MAX)
		return err_set(err, -EFBIG, "an encrypted blob is too large");
	buf_reset(out);
	at = st.st_size > 0 ? buf_extend(out, (size_t)st.st_size) : NULL;
	if (st.st_size > 0 && !at)
		return err_nomem(err);
	n = st.st_size > 0 ? fdio_pread(fd, at, (size_t)st.st_size, 0) : 0;
	if (n != st.st_size)
		return err_set(err, n < 0 ? (int)n : -EIO, "reading a blob");
	return 0;
}

static int write_nameless(const struct seal *s, const struct buf *in, struct err *err)
{
	AUTO_CLOSE int fd = fdio_open_nameless(s->dir, err);
	int r;

	if (fd < 0)
		return fd;
	r = fdio_write(fd, in->data, in->len);
	return r < 0 ? err_set(err, r, "writing a blob: %s", strerror(-r)) : TAKE_FD(fd);
}

int seal_close(const struct seal *s, const struct buf *in, struct buf *out, struct err *err)
{
	AUTO_CLOSE int from = write_nameless(s, in, err), to = -1;

	if (from < 0)
		return from;
	to = seal_close_file(s, from, err);
	return to < 0 ? to : read_all(to, out, err);
}

int seal_open(const struct seal *s, const struct buf *in, struct buf *out, struct err *err)
{
	AUTO_CLOSE int from = write_nameless(s, in, err), to = -1;
	int r;

	if (from < 0)
		return from;
	to = fdio_open_nameless(s->dir, err);
	if (to < 0)
		return to;
	r = seal_open_file(s, from, to, err);
	return r < 0 ? r : read_all(to, out, err);
}
