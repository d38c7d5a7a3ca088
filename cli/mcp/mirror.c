#include "cli/mcp/mirror.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/era.h"

#define ENCODED_BEGIN "=?base64?"
#define ENCODED_END   "?="

bool mirror_is_modern(const struct mirror *h, const struct rpc_message *m)
{
	/* A version that nobody knows is refused as this revision has it. */
	return json_has(rpc_meta(m), META_VERSION) || (h->version && !era_is_legacy(h->version));
}

static int digit_of(char c)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at ? (int)(at - digits) : -1;
}

/* RFC 4648 with its padding; false if it is not that. */
static bool decode_base64(const char *text, size_t len, struct buf *ret)
{
	if (len % 4 != 0)
		return false;
	for (size_t at = 0; at < len; at += 4) {
		const size_t pad = at + 4 < len ? 0 : (text[at + 3] == '=') + (text[at + 2] == '=');
		uint32_t bits = 0;

		for (size_t i = 0; i < 4; i++) {
			const int digit = i < 4 - pad ? digit_of(text[at + i]) : 0;

			if (digit < 0 || (i >= 4 - pad && text[at + i] != '='))
				return false;
			bits = bits << 6 | (uint32_t)digit;
		}
		for (size_t i = 0; i < 3 - pad; i++)
			if (buf_append_u8(ret, (uint8_t)(bits >> (16 - 8 * i))) < 0)
				return false;
	}
	return true;
}

/* Its length without the blanks behind it, which belong to no value (RFC 9110, 5.5). */
static size_t trimmed(const char *value)
{
	size_t len = strlen(value);

	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	return len;
}

/* The value that a header stands for; false if its characters are none of a header. */
static bool decode(const char *value, struct buf *ret)
{
	const size_t len = trimmed(value), begin = strlen(ENCODED_BEGIN), end = strlen(ENCODED_END);

	if (len >= begin + end && strncmp(value, ENCODED_BEGIN, begin) == 0 &&
	    strncmp(value + len - end, ENCODED_END, end) == 0)
		return decode_base64(value + begin, len - begin - end, ret);
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < 0x20 && value[i] != '\t') ||
		    (unsigned char)value[i] > 0x7e)
			return false;
	return buf_append(ret, value, len) >= 0;
}

static int differs(const char *header, struct err *err)
{
	return err_set(err, RPC_HEADER_MISMATCH,
		       "the header '%s' does not say what the body of the request says", header);
}

static int check_plain(const char *header, const char *value, const char *want, struct err *err)
{
	if (!value)
		return err_set(err, RPC_HEADER_MISMATCH, "the header '%s' is missing", header);
	return trimmed(value) == strlen(want) && strncmp(value, want, strlen(want)) == 0
		   ? 0
		   : differs(header, err);
}

static int check_name(const struct mirror *h, const char *want, struct err *err)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;

	if (!h->name)
		return err_set(err, RPC_HEADER_MISMATCH, "the header 'Mcp-Name' is missing");
	if (!decode(h->name, &value))
		return err_set(err, RPC_HEADER_MISMATCH,
			       "the header 'Mcp-Name' holds what no header may hold");
	return value.len == strlen(want) &&
		       (value.len == 0 || memcmp(value.data, want, value.len) == 0)
		   ? 0
		   : differs("Mcp-Name", err);
}

/* The member that Mcp-Name repeats; NULL: none for this method. */
static const char *name_key(const char *method)
{
	static const struct {
		const char *method, *key;
	} keys[] = {
		{ "tools/call", "name" },     { "prompts/get", "name" },
		{ "resources/read", "uri" },  { "tasks/get", "taskId" },
		{ "tasks/update", "taskId" }, { "tasks/cancel", "taskId" },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(method, keys[i].method) == 0)
			return keys[i].key;
	return NULL;
}

int mirror_check(const struct mirror *h, const struct rpc_message *m, struct err *err)
{
	const char *version = json_text_if(rpc_meta(m), META_VERSION);
	const char *key = name_key(m->method);
	const char *name = key ? json_text_if(m->params, key) : NULL;
	int r;

	/* A body without a version or a name is wrong in itself, and told so elsewhere. */
	if (version || !h->version) {
		r = check_plain("MCP-Protocol-Version", h->version, version ? version : "", err);
		if (r < 0)
			return r;
	}
	r = check_plain("Mcp-Method", h->method, m->method, err);
	return r < 0 || !name ? r : check_name(h, name, err);
}
