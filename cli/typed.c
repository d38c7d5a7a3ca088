#include "cli/typed.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"

void typed_done(struct typed *t)
{
	texts_free(t->owned, t->n_owned);
	free(t->items);
	*t = (struct typed){ 0 };
}

int typed_read(struct typed *t, const struct opt_list *given, struct err *err)
{
	*t = (struct typed){ .items = calloc(2 * given->n + 1, sizeof(*t->items)),
			     .owned = calloc(given->n + 1, sizeof(*t->owned)) };
	if (!t->items || !t->owned)
		return err_nomem(err);
	for (size_t i = 0; i < given->n; i++)
		t->items[t->n++] = given->items[i];
	for (size_t i = 0; i < given->n; i++) {
		int r = path_unescape(given->items[i], &t->owned[t->n_owned]);

		if (r < 0)
			return err_nomem(err);
		if (r > 0)
			t->items[t->n++] = t->owned[t->n_owned++];
	}
	return 0;
}

struct engine_list typed_list(const struct typed *t)
{
	return (struct engine_list){ .items = t->items, .n = t->n };
}

char *typed_path(const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (path_append_shown(&b, path, strlen(path)) < 0 || !buf_str(&b))
		return NULL;
	return strdup(buf_str(&b));
}
