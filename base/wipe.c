#include "base/wipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

void wipe_text(char *text)
{
	if (text)
		sys_wipe(text, strlen(text));
	free(text);
}

void wipe_buf(struct buf *b)
{
	if (b->data)
		sys_wipe(b->data, b->len);
	buf_done(b);
}
