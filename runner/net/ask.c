#include "runner/net/ask.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/le.h"

#define HEAD 8

size_t ask_encode(const struct ask *a, unsigned char out[ASK_MAX])
{
	assert(a->host_len > 0 && a->host_len <= ASK_HOST_MAX);
	out[0] = ASK_VERSION;
	out[1] = (unsigned char)a->kind;
	le16_store(out + 2, a->port);
	le32_store(out + 4, a->id);
	memcpy(out + HEAD, a->host, a->host_len);
	return HEAD + a->host_len;
}

int ask_decode(const void *data, size_t len, struct ask *ret)
{
	const unsigned char *b = data;

	if (len <= HEAD || len > ASK_MAX || b[0] != ASK_VERSION)
		return -EBADMSG;
	if (b[1] != ASK_OPEN && b[1] != ASK_NAME)
		return -EBADMSG;
	*ret = (struct ask){
		.kind = (enum ask_kind)b[1],
		.port = le16_load(b + 2),
		.id = le32_load(b + 4),
		.host_len = len - HEAD,
	};
	if (ret->kind == ASK_NAME && ret->port != 0)
		return -EBADMSG;
	memcpy(ret->host, b + HEAD, len - HEAD);
	return 0;
}

size_t answer_encode(const struct answer *a, unsigned char out[ANSWER_MAX])
{
	const size_t len = strlen(a->sentence);

	out[0] = ASK_VERSION;
	out[1] = (unsigned char)a->status;
	le16_store(out + 2, 0);
	le32_store(out + 4, a->id);
	memcpy(out + HEAD, a->sentence, len);
	return HEAD + len;
}

int answer_decode(const void *data, size_t len, struct answer *ret)
{
	const unsigned char *b = data;

	if (len < HEAD || len > ANSWER_MAX || b[0] != ASK_VERSION || b[1] > ASK_FAILED ||
	    le16_load(b + 2) != 0 || memchr(b + HEAD, '\0', len - HEAD))
		return -EBADMSG;
	*ret = (struct answer){ .status = (enum ask_status)b[1], .id = le32_load(b + 4) };
	memcpy(ret->sentence, b + HEAD, len - HEAD);
	return 0;
}
