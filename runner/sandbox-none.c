/*
 * sandbox-none.c - for systems without the walls: refuses.
 */
#include <errno.h>

#include "runner/oci.h"
#include "runner/sandbox.h"

int sandbox_run(const struct sandbox_spec *spec, struct sandbox_result *ret, struct err *err)
{
	(void)spec;
	*ret = (struct sandbox_result){ .cgroup = "none" };
	return err_set(err, -ENOTSUP,
		       "this system cannot run a command in a sandbox: that needs Linux");
}

int oci_compile(const char *text, size_t len, struct buf *out, struct err *err)
{
	(void)text;
	(void)len;
	(void)out;
	return err_set(err, -ENOTSUP, "this system has no filters of system calls");
}
