/*
 * Preloaded into cowfsd and all that it starts: a mover (engine/api/mover.h) does what the file of $MOVER_FAULT
 * says, which is "stop" or the code that it ends with, and removes the file.  Without one it works as ever.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void fail_once(int argc, char **argv)
{
	const char *path = getenv("MOVER_FAULT");
	char word[16] = "";
	FILE *f;

	if (!path || argc < 1 || strcmp(argv[0], "cowfsd-move") != 0)
		return;
	f = fopen(path, "re");
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
