#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/log-journal-i.h"
#include "base/utf8.h"

/* What Linux writes to a pipe in one piece (PIPE_BUF); a longer line could be torn. */
#define LINE_SIZE 4096

static _Atomic int level_most = LOG_INFO;
static _Atomic bool stamps, as_json;

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

void log_set_json(bool wanted)
{
	atomic_store_explicit(&as_json, wanted, memory_order_relaxed);
}

void log_set_by_environment(void)
{
	const char *form = getenv("SNAPCOW_LOG");

	if (form && strcmp(form, "json") == 0)
		log_set_json(true);
	else if (journal_is_stderr())
		log_set_journal(JOURNAL_SOCKET);
}

#define TIME_SIZE 40

/* "2025-03-01T13:05:00.123Z" */
static size_t put_time(char *line)
{
	struct timespec now;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(line, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	return len +
	       (size_t)snprintf(line + len, TIME_SIZE - len, ".%03ldZ", now.tv_nsec / 1000000);
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

static const char *const names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warning",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

static size_t put_line(char line[LINE_SIZE], enum log_level level, const char *text, bool cut)
{
	size_t len = 0;

	if (atomic_load_explicit(&stamps, memory_order_relaxed)) {
		len = put_time(line);
		line[len++] = ' ';
	}
	len += (size_t)snprintf(line + len, LINE_SIZE - len, "%s: ", names[level]);
	return append_shown(line, len, text, cut);
}

/* One byte or character of a JSON string; returns how many bytes of `text` it was. */
static size_t escape(char to[8], const char *text, size_t left)
{
	const size_t n = utf8_visible(text, left);

	if (n > 0 && *text != '"' && *text != '\\') {
		memcpy(to, text, n);
		to[n] = '\0';
		return n;
	}
	snprintf(to, 8, "\\u%04x", (unsigned char)*text < 0x80 ? (unsigned)*text : 0xfffdu);
	return 1;
}

static size_t put_object(char line[LINE_SIZE], enum log_level level, const char *text, bool cut)
{
	const size_t end = LINE_SIZE - sizeof("...\"}\n") - 8;
	size_t len = 0, left = strlen(text);

	len = (size_t)snprintf(line, LINE_SIZE, "{\"time\":\"");
	len += put_time(line + len);
	len += (size_t)snprintf(line + len, LINE_SIZE - len, "\",\"level\":\"%s\",\"message\":\"",
				names[level]);
	while (left > 0 && len < end) {
		char one[8];
		const size_t n = escape(one, text, left);

		len += (size_t)snprintf(line + len, LINE_SIZE - len, "%s", one);
		text += n;
		left -= n;
	}
	return len +
	       (size_t)snprintf(line + len, LINE_SIZE - len, "%s\"}", cut || left > 0 ? "..." : "");
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char text[LINE_SIZE] = "", line[LINE_SIZE];
	int saved_errno = errno, n;
	size_t len;
	va_list ap;

	if (!log_enabled(level))
		return;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);

	if (journal_send(level, text)) {
		errno = saved_errno;
		return;
	}
	len = (atomic_load_explicit(&as_json, memory_order_relaxed) ? put_object : put_line)(
	    line, level, text, n >= (int)sizeof(text));
	line[len++] = '\n';
	IGNORE_RESULT(fdio_write(STDERR_FILENO, line, len), "there is nowhere left to complain");
	errno = saved_errno;
}
