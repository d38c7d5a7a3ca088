/*
 * http-depot.h - shared by depots that are reached by HTTP.
 */
#pragma once

#include "remote/depot.h"
#include "remote/http.h"

/* A connection by the depot's settings and SNAPCOW_REMOTE_STALL. */
NODISCARD int http_depot_open(const struct depot_config *config, struct http **ret,
			      struct err *err);

/* A request for bytes of a blob, and how many have come: a server may send less than it says. */
struct http_blob {
	struct http_request request;
	depot_sink_fn sink;
	void *ctx;
	uint64_t n;
};

/* `b` stays where it is until its request has been sent. */
void http_blob_init(struct http_blob *b, const char *url, uint64_t off, uint64_t len,
		    depot_sink_fn sink, void *ctx, const struct depot_watch *watch);

/* Did all of it come?  -ECONNRESET if not. */
NODISCARD int http_blob_check(const struct http_blob *b, uint64_t len, const struct depot *d,
			      const struct digest *blob, struct err *err);
