#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_set(char **text, struct err *err, const char *fmt, ...)
{
	char *now = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&now, fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_nomem(err);
	free(*text);
	*text = now;
	return 0;
}

int text_copy(char **text, const char *from, struct err *err)
{
	char *now = from ? strdup(from) : NULL;

	if (from && !now)
		return err_nomem(err);
	free(*text);
	*text = now;
	return 0;
}
