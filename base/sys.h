/*
 * sys.h - every system call that differs between Linux and macOS, and nothing else.
 *
 * The only header with an #ifdef for the platform; sys-linux.c and sys-darwin.c
 * implement it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/attr.h"

#ifdef __APPLE__
#define SYS_ST_MTIM(st) ((st)->st_mtimespec)
#define SYS_ST_CTIM(st) ((st)->st_ctimespec)
#else
#define SYS_ST_MTIM(st) ((st)->st_mtim)
#define SYS_ST_CTIM(st) ((st)->st_ctim)
#endif

/* Fill with bytes nobody can predict; 0 or a negative errno. */
NODISCARD int sys_random(void *data, size_t len);

/* Make a file's data durable, through the drive's own cache where the system can. */
NODISCARD int sys_sync_data(int fd);

/* What `errnum` means, written to `text` or constant; strerror() for any thread. */
const char *sys_errno_text(int errnum, char *text, size_t size);
