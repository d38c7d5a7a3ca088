#include "remote/http-depot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/size.h"

/* How long a transfer may stand still, as a duration; for tests and for lines that do. */
#define STALL_VARIABLE "SNAPCOW_REMOTE_STALL"

int http_depot_open(const struct depot_config *config, struct http **ret, struct err *err)
{
	const char *stall = getenv(STALL_VARIABLE);
	struct http_options o = { .ca_file = config->ca_file,
				  .rate = config->rate,
				  .tries = config->tries };

	if (stall && *stall && duration_parse(stall, &o.stall_ms) < 0)
		return err_set(err, -EINVAL, "'%s' in " STALL_VARIABLE " is no duration", stall);
	return http_open(&o, ret, err);
}

static int count(const void *data, size_t len, void *ctx)
{
	struct http_blob *b = ctx;

	b->n += len;
	return b->sink(data, len, b->ctx);
}

void http_blob_init(struct http_blob *b, const char *url, uint64_t off, uint64_t len,
		    depot_sink_fn sink, void *ctx, const struct depot_watch *watch)
{
	*b = (struct http_blob){
		.request = {
			.method = "GET",
			.url = url,
			.sink = count,
			.sink_ctx = b,
			.from = off,
			.to = len == DEPOT_TO_END ? 0 : off + len,
			.moved = watch ? watch->moved : NULL,
			.moved_ctx = watch ? watch->ctx : NULL,
		},
		.sink = sink,
		.ctx = ctx,
	};
}

int http_blob_check(const struct http_blob *b, uint64_t len, const struct depot *d,
		    const struct digest *blob, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];

	if (len == DEPOT_TO_END || b->n >= len)
		return 0;
	return err_set(err, -ECONNRESET,
		       "'%s' sent %" PRIu64 " bytes of blob %s instead of %" PRIu64, d->url, b->n,
		       digest_text(blob, text), len);
}
