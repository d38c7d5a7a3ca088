/*
 * Whatever stands in the headers of a request to `snap mcp --http`: nobody comes in without the token and
 * the name of this machine, a refusal has its reason, and headers that say something else than the body
 * are refused.  The input is lines: Host, Origin, Authorization, version, method, name, then the body.
 */
#include "base/cleanup.h"
#include "cli/http/door.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/mirror.h"
#include "cli/mcp/record.h"
#include "cli/mcp/response.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* --- of handshakes, which have no headers to repeat ------------------------------------------- */

int response_error(struct session *s, struct json request, int code, const char *sentence,
		   struct err *err)
{
	return 0;
}

void answer_capabilities(const struct session *s, struct json j)
{
}

void response_server_info(const struct session *s, struct json j)
{
}

void record_client(struct session *s, const struct rpc_message *initialize)
{
}

/* --- the target ------------------------------------------------------------------------- */

#define TOKEN   "s3cr3t-t0ken"
#define HEADERS 6

/* The next line as a text of its own; NULL: it is empty, and there is no such header. */
static char *next_line(const char **at, const char *end)
{
	const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
	const size_t len = (size_t)((stop ? stop : end) - *at);
	char *line = len > 0 && !memchr(*at, '\0', len) ? strndup(*at, len) : NULL;

	*at += len + (stop != NULL);
	return line;
}

static void check_door(char *const headers[HEADERS], bool remote)
{
	const struct door d = { .token = TOKEN, .remote = remote };
	const struct door_request r = { headers[0], headers[1], headers[2] };
	const char *why = NULL;
	const unsigned status = door_check(&d, &r, &why);

	FUZZ_CHECK(status == 0 || (status >= 400 && status < 500 && why && *why != '\0'));
	if (status != 0)
		return;
	FUZZ_CHECK(r.authorization && strstr(r.authorization, TOKEN));
	FUZZ_CHECK(remote || (r.host && door_is_loopback(r.host, strlen(r.host))));
	if (r.origin && !remote)
		FUZZ_CHECK(strstr(r.origin, "localhost") || strstr(r.origin, "127.") ||
			   strstr(r.origin, "[::1]") || strcasestr(r.origin, "localhost"));
}

/* Blanks around the value of a header are none of it. */
static bool is_same(const char *header, const char *want)
{
	const char *begin = header + strspn(header, " \t");
	const size_t len = strlen(want);

	return strncmp(begin, want, len) == 0 && begin[len + strspn(begin + len, " \t")] == '\0';
}

static void check_mirror(char *const headers[HEADERS], const char *body, size_t len)
{
	const struct mirror h = { headers[3], headers[4], headers[5] };
	CLEANUP(rpc_done) struct rpc_message m = { 0 };
	struct err err = { 0 };
	int r;

	if (rpc_parse(&m, body, len, &err) < 0 || m.kind != RPC_REQUEST ||
	    !mirror_is_modern(&h, &m))
		return;
	r = mirror_check(&h, &m, &err);
	FUZZ_CHECK(r == 0 || (r == RPC_HEADER_MISMATCH && err.msg[0] != '\0'));
	if (r == 0)
		FUZZ_CHECK(h.version && h.method && is_same(h.method, m.method));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *at = (const char *)data, *end = len > 0 ? at + len : at;
	char *headers[HEADERS];

	for (size_t i = 0; i < HEADERS; i++)
		headers[i] = at ? next_line(&at, end) : NULL;
	check_door(headers, false);
	check_door(headers, true);
	if (at < end)
		check_mirror(headers, at, (size_t)(end - at));
	for (size_t i = 0; i < HEADERS; i++)
		free(headers[i]);
	return 0;
}
