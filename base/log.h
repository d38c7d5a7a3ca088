/*
 * log.h - messages for the person who runs the program, on stderr only.
 *
 * error: we failed. warn: we went on, and say so ("..., continuing"). info: a person would want to
 * know. debug: anything; off by default.
 *
 * A line reaches stderr in one write, so lines of several threads never mix. Control bytes in it
 * are shown as \xNN: a file name cannot drive the terminal.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level most); /* LOG_INFO at start */
bool log_enabled(enum log_level level);
void log_set_stamps(bool wanted); /* begin each line with the time, for a file of lines */

/* Each line is an object with `time`, `level` and `message`. */
void log_set_json(bool wanted);

/*
 * Send entries to the journal's socket instead of stderr, with the fields MESSAGE, PRIORITY and
 * SYSLOG_IDENTIFIER; NULL: to stderr again.  An entry that the journal does not take goes to
 * stderr.  False if there is no such socket.  Call it before there are threads.
 */
bool log_set_journal(const char *socket);

/* As the environment wants it: SNAPCOW_LOG=json, or the journal if stderr is its stream. */
void log_set_by_environment(void);

void log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                  \
	do {                                            \
		if (log_enabled(LOG_DEBUG))             \
			log_at(LOG_DEBUG, __VA_ARGS__); \
	} while (0)
