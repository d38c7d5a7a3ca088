/*
 * nats.h - libnats, loaded when a queue is used.
 *
 * Only functions that every 3.x has, and no struct of it: JetStream is spoken by its own JSON requests
 * (queue.h), so any release of the library serves a program that was built with another.
 */
#pragma once

#include <nats/nats.h>

#include "base/attr.h"
#include "base/err.h"

/* The functions by the names they have there. */
struct nats {
	__typeof__(&nats_CloseAndWait) nats_CloseAndWait;
	__typeof__(&natsStatus_GetText) natsStatus_GetText;
	__typeof__(&natsOptions_Create) natsOptions_Create;
	__typeof__(&natsOptions_Destroy) natsOptions_Destroy;
	__typeof__(&natsOptions_SetURL) natsOptions_SetURL;
	__typeof__(&natsOptions_SetName) natsOptions_SetName;
	__typeof__(&natsOptions_SetTimeout) natsOptions_SetTimeout;
	__typeof__(&natsOptions_SetSendAsap) natsOptions_SetSendAsap;
	__typeof__(&natsOptions_SetPingInterval) natsOptions_SetPingInterval;
	__typeof__(&natsOptions_SetMaxPingsOut) natsOptions_SetMaxPingsOut;
	__typeof__(&natsOptions_SetMaxReconnect) natsOptions_SetMaxReconnect;
	__typeof__(&natsOptions_SetReconnectWait) natsOptions_SetReconnectWait;
	__typeof__(&natsOptions_SetErrorHandler) natsOptions_SetErrorHandler;
	__typeof__(&natsOptions_SetSecure) natsOptions_SetSecure;
	__typeof__(&natsOptions_SetExpectedHostname) natsOptions_SetExpectedHostname;
	__typeof__(&natsOptions_SetUserCredentialsFromFiles)
	    natsOptions_SetUserCredentialsFromFiles;
	__typeof__(&natsConnection_Connect) natsConnection_Connect;
	__typeof__(&natsConnection_Destroy) natsConnection_Destroy;
	__typeof__(&natsConnection_Publish) natsConnection_Publish;
	__typeof__(&natsConnection_PublishMsg) natsConnection_PublishMsg;
	__typeof__(&natsConnection_PublishRequest) natsConnection_PublishRequest;
	__typeof__(&natsConnection_RequestMsg) natsConnection_RequestMsg;
	__typeof__(&natsConnection_FlushTimeout) natsConnection_FlushTimeout;
	__typeof__(&natsConnection_Subscribe) natsConnection_Subscribe;
	__typeof__(&natsConnection_SubscribeSync) natsConnection_SubscribeSync;
	__typeof__(&natsSubscription_NextMsg) natsSubscription_NextMsg;
	__typeof__(&natsSubscription_Destroy) natsSubscription_Destroy;
	__typeof__(&natsInbox_Create) natsInbox_Create;
	__typeof__(&natsInbox_Destroy) natsInbox_Destroy;
	__typeof__(&natsMsg_Create) natsMsg_Create;
	__typeof__(&natsMsg_Destroy) natsMsg_Destroy;
	__typeof__(&natsMsg_GetSubject) natsMsg_GetSubject;
	__typeof__(&natsMsg_GetReply) natsMsg_GetReply;
	__typeof__(&natsMsg_GetData) natsMsg_GetData;
	__typeof__(&natsMsg_GetDataLength) natsMsg_GetDataLength;
	__typeof__(&natsMsgHeader_Set) natsMsgHeader_Set;
	__typeof__(&natsMsgHeader_Get) natsMsgHeader_Get;
};

/* Loads it once; -ENOTSUP with a sentence if this machine has none. */
NODISCARD int nats_load(const struct nats **ret, struct err *err);
