/*
 * nats.h - libnats, loaded when a queue is used.
 *
 * It uses only functions that every 3.x has, and no struct of the library: JetStream's own JSON
 * requests do the rest (queue.h), so any release of the library serves a program that was built
 * with another.
 */
#pragma once

#include <nats/nats.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
#define NATS_FUNCTIONS(F)                          \
	F(nats_CloseAndWait)                       \
	F(natsStatus_GetText)                      \
	F(natsOptions_Create)                      \
	F(natsOptions_Destroy)                     \
	F(natsOptions_SetURL)                      \
	F(natsOptions_SetName)                     \
	F(natsOptions_SetTimeout)                  \
	F(natsOptions_SetSendAsap)                 \
	F(natsOptions_SetPingInterval)             \
	F(natsOptions_SetMaxPingsOut)              \
	F(natsOptions_SetMaxReconnect)             \
	F(natsOptions_SetReconnectWait)            \
	F(natsOptions_SetErrorHandler)             \
	F(natsOptions_SetSecure)                   \
	F(natsOptions_SetExpectedHostname)         \
	F(natsOptions_SetUserCredentialsFromFiles) \
	F(natsConnection_Connect)                  \
	F(natsConnection_Destroy)                  \
	F(natsConnection_Publish)                  \
	F(natsConnection_PublishMsg)               \
	F(natsConnection_PublishRequest)           \
	F(natsConnection_RequestMsg)               \
	F(natsConnection_FlushTimeout)             \
	F(natsConnection_Subscribe)                \
	F(natsConnection_SubscribeSync)            \
	F(natsSubscription_NextMsg)                \
	F(natsSubscription_Destroy)                \
	F(natsInbox_Create)                        \
	F(natsInbox_Destroy)                       \
	F(natsMsg_Create)                          \
	F(natsMsg_Destroy)                         \
	F(natsMsg_GetSubject)                      \
	F(natsMsg_GetReply)                        \
	F(natsMsg_GetData)                         \
	F(natsMsg_GetDataLength)                   \
	F(natsMsgHeader_Set)                       \
	F(natsMsgHeader_Get)

#define NATS_MEMBER(name) __typeof__(&name) name;
struct nats {
	NATS_FUNCTIONS(NATS_MEMBER)
};
#undef NATS_MEMBER

/* Loads it once; -ENOTSUP with a sentence if this machine has none. */
NODISCARD int nats_load(const struct nats **ret, struct err *err);
