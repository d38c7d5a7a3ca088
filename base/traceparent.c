#include "base/traceparent.h"

#include <stdlib.h>
#include <string.h>

/* Hex digits that are not all 0. */
static bool is_id(const char *p, size_t len)
{
	return strspn(p, "0123456789abcdef") >= len && strspn(p, "0") < len;
}

static bool is_one(const char *text)
{
	if (strspn(text, "0123456789abcdef") != 2 || strncmp(text, "ff", 2) == 0)
		return false;
	if (strlen(text) < TRACEPARENT_SIZE - 1 || text[2] != '-' ||
	    text[TRACEPARENT_SPAN - 1] != '-' || text[TRACEPARENT_FLAGS - 1] != '-')
		return false;
	if (!is_id(text + TRACEPARENT_TRACE, TRACEPARENT_TRACE_LEN) ||
	    !is_id(text + TRACEPARENT_SPAN, TRACEPARENT_SPAN_LEN) ||
	    strspn(text + TRACEPARENT_FLAGS, "0123456789abcdef") != 2)
		return false;
	/* Later versions may have more parts. */
	return text[TRACEPARENT_SIZE - 1] == '\0' ||
	       (text[TRACEPARENT_SIZE - 1] == '-' && strncmp(text, "00", 2) != 0);
}

bool traceparent_take(const char *text, char ret[TRACEPARENT_SIZE])
{
	ret[0] = '\0';
	if (!text || !is_one(text))
		return false;
	memcpy(ret, text, TRACEPARENT_SIZE - 1);
	memcpy(ret, "00", 2);
	ret[TRACEPARENT_SIZE - 1] = '\0';
	return true;
}

void traceparent_set_span(char trace[TRACEPARENT_SIZE], const char *id)
{
	const size_t len = strnlen(id, TRACEPARENT_SPAN_LEN);

	memset(trace + TRACEPARENT_SPAN, '0', TRACEPARENT_SPAN_LEN);
	memcpy(trace + TRACEPARENT_SPAN, id, len);
}

bool traceparent_here(char ret[TRACEPARENT_SIZE])
{
	return traceparent_take(getenv(TRACEPARENT_VARIABLE), ret);
}
