#include "runner/net/dns.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HEAD     12
#define CLASS_IN 1
#define TTL_S    60

static uint16_t be16(const unsigned char *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

/* The name that begins at *at; a pointer makes no sense in the first name of a packet. */
static int read_name(const unsigned char *b, size_t len, size_t *at, char name[DNS_NAME_MAX + 1])
{
	size_t n = 0;

	for (;;) {
		size_t label;

		if (*at >= len)
			return -EBADMSG;
		label = b[(*at)++];
		if (label == 0)
			break;
		if (label > 63 || label > len - *at || n + label + (n > 0) > DNS_NAME_MAX)
			return -EBADMSG;
		if (n > 0)
			name[n++] = '.';
		for (size_t i = 0; i < label; i++, (*at)++)
			name[n++] =
			    b[*at] > 32 && b[*at] < 127 && b[*at] != '.' ? (char)b[*at] : '?';
	}
	name[n] = '\0';
	return n > 0 ? 0 : -EBADMSG;
}

int dns_parse(const void *data, size_t len, struct dns_question *ret)
{
	const unsigned char *b = data;
	struct dns_question q = { 0 };
	size_t at = HEAD;

	/* A query, of the plain kind, with one question and no answers. */
	if (len < HEAD || b[2] & 0xf8 || be16(b + 4) != 1 || be16(b + 6) != 0 || be16(b + 8) != 0)
		return -EBADMSG;
	if (read_name(b, len, &at, q.name) < 0 || len - at < 4 || be16(b + at + 2) != CLASS_IN)
		return -EBADMSG;
	q.type = be16(b + at);
	q.packet_len = at + 4;
	assert(q.packet_len <= DNS_MAX - 32);
	memcpy(q.packet, b, q.packet_len);
	*ret = q;
	return 0;
}

size_t dns_answer(const struct dns_question *q, enum dns_code code, const struct addr *addr,
		  unsigned char out[DNS_MAX])
{
	const bool found = addr && q->type == (addr->len == 4 ? DNS_A : DNS_AAAA);
	const unsigned char record[] = { 0xc0, HEAD,  0, (unsigned char)q->type, 0, CLASS_IN, 0, 0,
					 0,    TTL_S, 0, addr ? addr->len : 0 };
	size_t len = q->packet_len;

	memcpy(out, q->packet, len);
	out[2] = (unsigned char)(0x84 | (q->packet[2] & 1)); /* an answer, ours, as asked for */
	out[3] = (unsigned char)(0x80 | code);
	memset(out + 4, 0, 8);
	out[5] = 1;
	if (!found)
		return len;
	out[7] = 1;
	memcpy(out + len, record, sizeof(record));
	memcpy(out + len + sizeof(record), addr->b, addr->len);
	return len + sizeof(record) + addr->len;
}
