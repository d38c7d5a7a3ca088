/*
 * sandbox-none.c - for systems without the walls: refuses.
 */
#include <errno.h>

#include "runner/oci.h"
#include "runner/sandbox.h"

uint32_t sandbox_ids_outside(uint32_t *ret_n)
{
	*ret_n = 0;
	return 0;
}

enum sandbox_ids sandbox_root_ids(struct err *why)
{
	err_set(why, -ENOTSUP, "this system has no user namespaces");
	return SANDBOX_IDS_ONE;
}

int sandbox_run(const struct sandbox_spec *spec, struct sandbox_result *ret, struct err *err)
{
	*ret = (struct sandbox_result){ .cgroup = "none" };
	return err_set(err, -ENOTSUP,
		       "this system cannot run a command in a sandbox: that needs Linux");
}

void sandbox_snapshots_answer(const struct sandbox_snapshots *s, uint64_t id, int error,
			      uint64_t number)
{
}

void sandbox_calls_answer(const struct sandbox_calls *c, uint64_t id, bool allow)
{
}

int oci_compile(const char *text, size_t len, struct buf *out, struct err *err)
{
	return err_set(err, -ENOTSUP, "this system has no filters of system calls");
}
