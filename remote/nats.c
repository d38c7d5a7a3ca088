#include "remote/nats.h"

#include <pthread.h>

#include "base/library.h"

#define FUNCTION(name) { #name, offsetof(struct nats, name) },

static const struct library_function functions[] = { NATS_FUNCTIONS(FUNCTION) };
/* Each release has a name of its own; the one that we were built with comes first. */
static const struct library library = {
	.what = "libnats, which queues need (Debian: libnats-dev brings it)",
	.names = (const char *const[]){ NATS_LIBRARIES, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

static struct {
	pthread_once_t once;
	struct nats nats;
	struct err why;
	int r;
} loaded = { .once = PTHREAD_ONCE_INIT };

static void load_once(void)
{
	loaded.r = library_load(&library, &loaded.nats, &loaded.why);
}

int nats_load(const struct nats **ret, struct err *err)
{
	pthread_once(&loaded.once, load_once);
	if (loaded.r < 0)
		return err_set(err, loaded.r, "%s", loaded.why.msg);
	*ret = &loaded.nats;
	return 0;
}
