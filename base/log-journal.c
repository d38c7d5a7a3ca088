/*
 * An entry is a datagram of fields, NAME=VALUE and a newline each. A value with a newline in it
 * follows its name as its length in eight bytes, little-endian, and its bytes: so no text can
 * pretend to be a field. See https://systemd.io/JOURNAL_NATIVE_PROTOCOL/.
 */
#include "base/log-journal-i.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/le.h"

#define ENTRY_SIZE 8192
#define IDENTIFIER "snapcow"

static int journal = -1;

bool journal_is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && (unsigned long long)st.st_dev == dev &&
	       (unsigned long long)st.st_ino == ino;
}

bool log_set_journal(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (journal >= 0)
		close(journal);
	journal = -1;
	if (!path || strlen(path) >= sizeof(to.sun_path))
		return false;
	memcpy(to.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (fd < 0)
		return false;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return false;
	}
	journal = fd;
	return true;
}

static size_t put_message(char *to, const char *text)
{
	static const char name[] = "MESSAGE";
	const size_t len = strlen(text);
	char *at = to;

	memcpy(at, name, sizeof(name) - 1);
	at += sizeof(name) - 1;
	if (memchr(text, '\n', len)) {
		*at++ = '\n';
		le64_store(at, len);
		at += 8;
	} else {
		*at++ = '=';
	}
	memcpy(at, text, len);
	at += len;
	*at++ = '\n';
	return (size_t)(at - to);
}

bool journal_send(enum log_level level, const char *text)
{
	/* By syslog.h: err, warning, info, debug. */
	static const int priority[] = { 3, 4, 6, 7 };
	char entry[ENTRY_SIZE];
	size_t len;

	if (journal < 0 || strlen(text) > sizeof(entry) - 128)
		return false;
	len = (size_t)snprintf(entry, sizeof(entry),
			       "PRIORITY=%d\nSYSLOG_IDENTIFIER=" IDENTIFIER "\n", priority[level]);
	len += put_message(entry + len, text);
	/* A full queue is no reason to wait: the line goes to stderr then. */
	return send(journal, entry, len, MSG_DONTWAIT) == (ssize_t)len;
}
