#include "engine/find/patterns-i.h"

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
