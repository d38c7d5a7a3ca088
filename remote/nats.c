#include "remote/nats.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define FUNCTION(name)                             \
	{                                          \
#name, offsetof(struct nats, name) \
	}

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	FUNCTION(nats_CloseAndWait),
	FUNCTION(natsStatus_GetText),
	FUNCTION(natsOptions_Create),
	FUNCTION(natsOptions_Destroy),
	FUNCTION(natsOptions_SetURL),
	FUNCTION(natsOptions_SetName),
	FUNCTION(natsOptions_SetTimeout),
	FUNCTION(natsOptions_SetSendAsap),
	FUNCTION(natsOptions_SetPingInterval),
	FUNCTION(natsOptions_SetMaxPingsOut),
	FUNCTION(natsOptions_SetMaxReconnect),
	FUNCTION(natsOptions_SetReconnectWait),
	FUNCTION(natsOptions_SetErrorHandler),
	FUNCTION(natsOptions_SetSecure),
	FUNCTION(natsOptions_SetExpectedHostname),
	FUNCTION(natsOptions_SetUserCredentialsFromFiles),
	FUNCTION(natsConnection_Connect),
	FUNCTION(natsConnection_Destroy),
	FUNCTION(natsConnection_Publish),
	FUNCTION(natsConnection_PublishMsg),
	FUNCTION(natsConnection_PublishRequest),
	FUNCTION(natsConnection_RequestMsg),
	FUNCTION(natsConnection_FlushTimeout),
	FUNCTION(natsConnection_Subscribe),
	FUNCTION(natsConnection_SubscribeSync),
	FUNCTION(natsSubscription_NextMsg),
	FUNCTION(natsSubscription_Destroy),
	FUNCTION(natsInbox_Create),
	FUNCTION(natsInbox_Destroy),
	FUNCTION(natsMsg_Create),
	FUNCTION(natsMsg_Destroy),
	FUNCTION(natsMsg_GetSubject),
	FUNCTION(natsMsg_GetReply),
	FUNCTION(natsMsg_GetData),
	FUNCTION(natsMsg_GetDataLength),
	FUNCTION(natsMsgHeader_Set),
	FUNCTION(natsMsgHeader_Get),
};

/* Each release has a name of its own; the one that we were built with comes first. */
static const char *const libraries[] = { NATS_LIBRARIES };

static struct {
	pthread_once_t once;
	struct nats nats;
	struct err why;
	int r;
} loaded = { .once = PTHREAD_ONCE_INIT };

static int load(struct nats *ret, struct err *err)
{
	void *lib = NULL;

	for (size_t i = 0; !lib && i < ARRAY_LEN(libraries); i++)
		lib = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(
		    err, -ENOTSUP,
		    "cannot load libnats, which queues need (Debian: libnats-dev brings it): %s",
		    dlerror());
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *at = dlsym(lib, functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "libnats lacks '%s'", functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + functions[i].offset, &at, sizeof(at));
	}
	return 0;
}

static void load_once(void)
{
	loaded.r = load(&loaded.nats, &loaded.why);
}

int nats_load(const struct nats **ret, struct err *err)
{
	pthread_once(&loaded.once, load_once);
	if (loaded.r < 0)
		return err_set(err, loaded.r, "%s", loaded.why.msg);
	*ret = &loaded.nats;
	return 0;
}
