#include "base/via.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static bool is_short_line(const char *text)
{
	const size_t len = strlen(text);
	size_t at = 0;

	for (size_t n; at < len && (n = utf8_printable(text + at, len - at)) > 0;)
		at += n;
	return len > 0 && len <= VIA_MAX && at == len;
}

const char *via_find(void)
{
	const char *text = getenv(VIA_VARIABLE);

	return text && is_short_line(text) ? text : NULL;
}
