/* A build without a client for registries: it says so. */
#include <errno.h>

#include "remote/depot.h"

int depot_registry_open(const char *url, const struct depot_config *config, struct depot **ret,
			struct err *err)
{
	return err_set(err, -ENOTSUP, "'%s': this build has no client for registries", url);
}
