#include "cli/cmd/cpus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int cpus_read(const char *text, uint64_t *ret, struct err *err)
{
	char *end = NULL;
	double n;

	if (!text)
		return 0;
	n = strspn(text, "0123456789.") == strlen(text) ? strtod(text, &end) : NAN;
	if (!end || end == text || *end != '\0' || !(n == 0 || (n >= 0.001 && n <= 10000)))
		return err_set(
		    err, -EINVAL,
		    "option '--cpus': '%s' is not a number of processors such as 2 or 0.5", text);
	*ret = (uint64_t)(n * 1000 + 0.5);
	return 0;
}
