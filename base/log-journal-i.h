/*
 * log-journal-i.h - private to log*.c: entries for the systemd journal, by its native protocol.
 */
#pragma once

#include "base/log.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Does stderr lead to the journal, as JOURNAL_STREAM of the environment says? */
bool journal_is_stderr(void);

/* False if entries do not go there, or this one could not. */
bool journal_send(enum log_level level, const char *text);
