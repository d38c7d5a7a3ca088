/*
 * A ClientHello (RFC 8446, 4.1.2), perhaps cut into several records: the bytes of the
 * handshake are put together first and then read once.
 */
#include "runner/net/hello.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RECORD_HANDSHAKE  22
#define TYPE_CLIENT_HELLO 1
#define EXT_SERVER_NAME   0

struct span {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static const unsigned char *take_bytes(struct span *s, size_t n)
{
	const unsigned char *at = s->at;

	if (s->bad || n > s->left) {
		s->bad = true;
		return NULL;
	}
	s->at += n;
	s->left -= n;
	return at;
}

static size_t take_number(struct span *s, size_t bytes)
{
	const unsigned char *at = take_bytes(s, bytes);
	size_t n = 0;

	for (size_t i = 0; at && i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* A run of bytes behind its own length. */
static struct span take_span(struct span *s, size_t length_bytes)
{
	const size_t n = take_number(s, length_bytes);
	const unsigned char *at = take_bytes(s, n);

	return (struct span){ .at = at, .left = at ? n : 0, .bad = s->bad };
}

/* More than one name would let the server choose another one than we do. */
static bool read_server_name(struct span ext, char name[HELLO_NAME_MAX + 1])
{
	struct span list = take_span(&ext, 2);
	const bool is_host = take_number(&list, 1) == 0;
	const struct span host = take_span(&list, 2);

	if (ext.bad || list.bad || ext.left > 0 || list.left > 0 || !is_host || host.left == 0 ||
	    host.left > HELLO_NAME_MAX || memchr(host.at, '\0', host.left))
		return false;
	memcpy(name, host.at, host.left);
	name[host.left] = '\0';
	return true;
}

static bool read_body(struct span body, char name[HELLO_NAME_MAX + 1])
{
	struct span extensions;
	bool named = false;

	name[0] = '\0';
	take_bytes(&body, 2 + 32);
	take_span(&body, 1); /* session */
	take_span(&body, 2); /* ciphers */
	take_span(&body, 1); /* compression */
	if (!body.bad && body.left == 0)
		return true; /* before TLS 1.2 there need be no extensions */
	extensions = take_span(&body, 2);
	if (body.bad || body.left > 0)
		return false;
	while (extensions.left > 0) {
		const size_t type = take_number(&extensions, 2);
		const struct span ext = take_span(&extensions, 2);

		if (extensions.bad)
			return false;
		if (type != EXT_SERVER_NAME)
			continue;
		if (named || !read_server_name(ext, name))
			return false;
		named = true;
	}
	return true;
}

/* The handshake bytes of all whole records; false if one of them is none. */
static bool join_records(struct span all, unsigned char *out, size_t *ret_len)
{
	*ret_len = 0;
	while (all.left >= 5) {
		struct span record = { .at = all.at + 5 };

		if (all.at[0] != RECORD_HANDSHAKE || all.at[1] != 3)
			return false;
		record.left = (size_t)all.at[3] << 8 | all.at[4];
		if (record.left == 0 || record.left > HELLO_MAX)
			return false;
		if (record.left > all.left - 5)
			return true;
		memcpy(out + *ret_len, record.at, record.left);
		*ret_len += record.left;
		take_bytes(&all, 5 + record.left);
		/* What comes behind the hello is nobody's business here. */
		if (*ret_len >= 4 && *ret_len - 4 >= ((size_t)out[1] << 16 | out[2] << 8 | out[3]))
			return true;
	}
	return all.left == 0 || (all.at[0] == RECORD_HANDSHAKE && (all.left < 2 || all.at[1] == 3));
}

enum hello_answer hello_read(const void *data, size_t len, char name[HELLO_NAME_MAX + 1])
{
	unsigned char joined[HELLO_MAX];
	const unsigned char *b = data;
	struct span hello;
	size_t n, body;

	if (len == 0)
		return HELLO_MORE;
	if (b[0] != RECORD_HANDSHAKE || (len > 1 && b[1] != 3))
		return HELLO_OTHER;
	if (len > HELLO_MAX)
		len = HELLO_MAX;
	if (!join_records((struct span){ .at = b, .left = len }, joined, &n))
		return HELLO_BAD;
	if (n > 0 && joined[0] != TYPE_CLIENT_HELLO)
		return HELLO_BAD;
	if (n >= 4) {
		body = (size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3];
		if (n - 4 >= body) {
			hello = (struct span){ .at = joined + 4, .left = body };
			return read_body(hello, name) ? HELLO_READ : HELLO_BAD;
		}
		if (body > HELLO_MAX)
			return HELLO_BAD;
	}
	return len == HELLO_MAX ? HELLO_BAD : HELLO_MORE;
}
