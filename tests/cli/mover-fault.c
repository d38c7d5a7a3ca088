/*
 * Preloaded into cowfsd and all that it starts: a mover (engine/api/mover.h) does what the file of $MOVER_FAULT
 * says, which is "stop" or the code that it ends with, and removes the file.  Without one it works as ever.
 * With $WALKER_ALONE a walker (engine/api/walker.h) cannot see how busy the machine is, so it waits for nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_alone;

/* In place of the library's: the mode, if none was given, is anything, and then the kernel does not look at it. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (is_alone && strcmp(path, "/proc/loadavg") == 0) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void fail_once(const char *path)
{
	char word[16] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	if (!fgets(word, sizeof(word), f))
		word[0] = '\0';
	fclose(f);
	if (unlink(path) < 0)
		return;
	if (strcmp(word, "stop") == 0)
		raise(SIGSTOP);
	else
		_exit(atoi(word));
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *fault = getenv("MOVER_FAULT");

	is_alone = argc > 0 && strcmp(argv[0], "cowfsd-walk") == 0 && getenv("WALKER_ALONE");
	if (fault && argc > 0 && strcmp(argv[0], "cowfsd-move") == 0)
		fail_once(fault);
}
