#include "runner/net/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number before `end`, which 0xffff bounds; -1: none. */
static long read_port(const char *text, const char *end)
{
	const size_t len = (size_t)(end - text);
	long n;

	if (len == 0 || len > 5 || strspn(text, "0123456789") < len)
		return -1; /* so it ends where the digits do, and strtol() there too */
	n = strtol(text, NULL, 10);
	return n <= UINT16_MAX ? n : -1;
}

int publish_parse(const char *text, size_t len, struct publish_port *ret, struct err *err)
{
	const char *end = text + len, *colon = memchr(text, ':', len);
	const long inside = read_port(text, colon ? colon : end);
	const long outside = colon ? read_port(colon + 1, end) : inside;

	if (inside <= 0 || outside < 0)
		return err_set(
		    err, -EINVAL,
		    "option '--publish': '%.*s' is no PORT or PORT:HOSTPORT (1 to 65535; "
		    "HOSTPORT 0 is any that is free)",
		    (int)len, text);
	*ret = (struct publish_port){ (uint16_t)inside, (uint16_t)outside };
	return 0;
}
