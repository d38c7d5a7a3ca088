#include "engine/act/patterns-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

int patterns_parse(const struct engine_list *list, struct ignore **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (list->n == 0)
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (buf_append(&text, list->items[i], strlen(list->items[i])) < 0 ||
		    buf_append(&text, "\n", 1) < 0)
			return err_nomem(err);
	return ignore_parse(text.data, text.len, ret, err);
}

bool patterns_name(const struct ignore *patterns, const char *path)
{
	AUTO_FREE char *above = strdup(path);

	if (!above)
		return false;
	/* From the top, because a match there saves looking at the rest of a deep path. */
	for (char *slash = strchr(above, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (ignore_match(patterns, above, true) == IGNORE_OUT)
			return true;
		*slash = '/';
	}
	return ignore_match(patterns, path, false) == IGNORE_OUT;
}
