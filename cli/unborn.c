#include "cli/unborn.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/moved.h"
#include "cli/out.h"
#include "engine/api/projects.h"

int unborn_or(struct invocation *inv, int r, const char *text, char **ret, struct err *err)
{
	AUTO_FREE char *path = NULL;

	/* A folder of many is none until somebody says so: there the failure is the answer. */
	if (r != -ENXIO || engine_project_to_be(inv->engine, &path, NULL) < 0)
		return r;
	inv->adopted = !inv->adopted && moved_adopt(inv);
	if (inv->adopted)
		return r;
	*err = (struct err){ 0 };
	if (inv->json) {
		*ret = TAKE_PTR(path);
		return 0;
	}
	if (inv->quiet)
		return 1;
	fprintf(inv->out, "%s: the project would be ", text);
	out_name_line(inv->out, path);
	return 1;
}

void unborn_empty(const struct invocation *inv, const char *what, const char *next)
{
	AUTO_FREE char *line = NULL;

	if (inv->json || inv->quiet || !isatty(fileno(inv->out)))
		return;
	line = cmd_line(inv, next, NULL);
	fprintf(stderr, "%s\n", what);
	if (line)
		fprintf(stderr, "hint: %s\n", line);
}
