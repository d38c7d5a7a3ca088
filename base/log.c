#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/utf8.h"

/* What Linux writes to a pipe in one piece (PIPE_BUF); a longer line could be torn. */
#define LINE_SIZE 4096

static _Atomic int level_most = LOG_INFO;
static _Atomic bool stamps;

void log_set_level(enum log_level most)
{
	atomic_store_explicit(&level_most, (int)most, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&level_most, memory_order_relaxed);
}

void log_set_stamps(bool wanted)
{
	atomic_store_explicit(&stamps, wanted, memory_order_relaxed);
}

/* "2025-03-01T13:05:00.123Z " if lines are to have one. */
static size_t stamp(char line[LINE_SIZE])
{
	struct timespec now;
	struct tm tm;
	size_t len;

	if (!atomic_load_explicit(&stamps, memory_order_relaxed))
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(line, LINE_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	return len +
	       (size_t)snprintf(line + len, LINE_SIZE - len, ".%03ldZ ", now.tv_nsec / 1000000);
}

/* Copy `text` with what a terminal might obey made visible; returns the new length of `line`. */
static size_t append_shown(char line[LINE_SIZE], size_t len, const char *text, bool cut)
{
	static const char mark[] = "...";
	const size_t end = LINE_SIZE - sizeof(mark); /* leaves room for mark and newline */
	size_t left = strlen(text), n;

	while (left > 0) {
		n = utf8_visible(text, left);
		if (len + (n > 0 ? n : 4) > end) {
			cut = true;
			break;
		}
		if (n > 0) {
			memcpy(line + len, text, n);
			len += n;
		} else {
			n = 1;
			line[len] = '\\';
			line[len + 1] = 'x';
			hex_encode(text, 1, line + len + 2);
			len += 4;
		}
		text += n;
		left -= n;
	}
	if (cut) {
		memcpy(line + len, mark, sizeof(mark) - 1);
		len += sizeof(mark) - 1;
	}
	return len;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = {
		[LOG_ERROR] = "error: ",
		[LOG_WARN] = "warning: ",
		[LOG_INFO] = "info: ",
		[LOG_DEBUG] = "debug: ",
	};
	char text[LINE_SIZE] = "", line[LINE_SIZE];
	int saved_errno = errno, n;
	size_t len;
	va_list ap;

	if (!log_enabled(level))
		return;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);

	len = stamp(line);
	memcpy(line + len, prefix[level], strlen(prefix[level]));
	len += strlen(prefix[level]);
	len = append_shown(line, len, text, n >= (int)sizeof(text));
	line[len++] = '\n';
	IGNORE_RESULT(fdio_write(STDERR_FILENO, line, len), "there is nowhere left to complain");
	errno = saved_errno;
}
