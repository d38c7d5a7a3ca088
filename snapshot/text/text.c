#include <errno.h>

#include "snapshot/text/text-i.h"

int text_load(struct store *s, const struct content *c, struct buf *out, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	ssize_t n;
	void *to;
	int r;

	buf_reset(out);
	if (c->size == 0)
		return 0;
	to = buf_extend(out, c->size);
	if (!to)
		return err_nomem(err);
	r = content_reader_new(s, c, &rd, err);
	if (r < 0)
		return r;
	n = content_reader_read(rd, 0, to, c->size, err);
	if (n < 0)
		return (int)n;
	return (uint64_t)n == c->size ? 0 : err_set(err, -EBADMSG, "the content ends early");
}
