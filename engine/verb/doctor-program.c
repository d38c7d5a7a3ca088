/*
 * doctor-program.c - the programs that `doctor` looks for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "engine/verb/doctor-i.h"

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *doctor_find_program(const char *name)
{
	const char *at = getenv("PATH");
	size_t n;

	for (; at && *at != '\0'; at += n + (at[n] == ':')) {
		AUTO_FREE char *dir = strndup(at, n = strcspn(at, ":"));
		AUTO_FREE char *path = dir ? path_join(*dir != '\0' ? dir : ".", name) : NULL;

		if (path && is_program(path))
			return realpath(path, NULL);
	}
	return NULL;
}
