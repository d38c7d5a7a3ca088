#include <unistd.h>

#include "engine/api/remote.h"
#include "remote/depot-serve.h"
#include "remote/stream.h"

int engine_serve_depot(const char *root, struct err *err)
{
	return depot_serve(STDIN_FILENO, STDOUT_FILENO, root, err);
}

const char *engine_serve_protocol(void)
{
	return STREAM_MAGIC;
}
