#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

char *text_format(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

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

void texts_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

int texts_add(char ***list, size_t *n, const char *text, struct err *err)
{
	if (!VEC_ONE_MORE(*list, *n))
		return err_nomem(err);
	(*list)[*n] = strdup(text);
	if (!(*list)[*n])
		return err_nomem(err);
	(*n)++;
	return 0;
}

int texts_add_all(char ***list, size_t *n, char *const *from, size_t n_from, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n_from && r >= 0; i++)
		r = texts_add(list, n, from[i], err);
	return r;
}
