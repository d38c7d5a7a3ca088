#include "runner/net/socks.h"

#include <errno.h>
#include <string.h>

#include "runner/net/addr.h"

enum { COMMAND_CONNECT = 1 };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

int socks_parse_greeting(const unsigned char *data, size_t len, bool *ret_open)
{
	if (len > 0 && data[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (len < 2 || len < 2u + data[1])
		return 0;
	*ret_open = memchr(data + 2, 0, data[1]) != NULL;
	return 2 + data[1];
}

int socks_parse_request(const unsigned char *data, size_t len, struct socks_request *ret)
{
	struct socks_request q = { 0 };
	struct addr a = { 0 };
	size_t at = 4, n;

	if (len > 0 && data[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (len < 5)
		return 0;
	if (data[3] == ADDRESS_NAME)
		n = data[at++];
	else if (data[3] == ADDRESS_IPV4 || data[3] == ADDRESS_IPV6)
		n = data[3] == ADDRESS_IPV4 ? 4 : 16;
	else
		return -EBADMSG;
	if (n == 0)
		return -EBADMSG;
	if (len < at + n + 2)
		return 0;
	if (data[3] == ADDRESS_NAME) {
		memcpy(q.host, data + at, n);
		q.host_len = n;
	} else {
		a.len = (uint8_t)n;
		memcpy(a.b, data + at, n);
		q.host_len = strlen(addr_format(&a, q.host));
	}
	q.port = (uint16_t)(data[at + n] << 8 | data[at + n + 1]);
	q.problem = data[1] == COMMAND_CONNECT ? SOCKS_OK : SOCKS_NO_SUCH_COMMAND;
	*ret = q;
	return (int)(at + n + 2);
}

void socks_write_reply(enum socks_reply code, unsigned char out[SOCKS_REPLY_SIZE])
{
	/* Where we are bound to is nobody's business: 0.0.0.0:0, which clients ignore. */
	const unsigned char reply[SOCKS_REPLY_SIZE] = { SOCKS_VERSION, (unsigned char)code, 0,
							ADDRESS_IPV4 };

	memcpy(out, reply, SOCKS_REPLY_SIZE);
}
