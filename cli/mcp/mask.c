#include "cli/mcp/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define MASK "***"
#define TEXT_MAX \
	4096 /* bytes that are looked at: callers show far less, and a scan may take their square */

static const char *const secret_names[] = { "token",      "secret",       "passw",
					    "api_key",    "apikey",       "api-key",
					    "access_key", "access-key",   "private_key",
					    "credential", "authorization" };

/* A letter or digit more must follow, so that "sk-" in prose stays. */
static const char *const key_beginnings[] = { "sk-",         "ghp_",   "gho_",  "ghs_",
					      "github_pat_", "glpat-", "xoxb-", "xoxp-",
					      "AKIA",        "ASIA",   "AIza",  "eyJ" };

#define KEY_LENGTH 16 /* a word with such a beginning that is shorter is none */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool has_secret_name(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(secret_names); i++)
		for (size_t at = 0; at + strlen(secret_names[i]) <= len; at++)
			if (strncasecmp(word + at, secret_names[i], strlen(secret_names[i])) == 0)
				return true;
	return false;
}

bool mask_is_secret_name(const char *name)
{
	return has_secret_name(name, strlen(name));
}

static bool is_key(const char *word, size_t len)
{
	return len >= KEY_LENGTH && VEC_HAS(it, key_beginnings, ARRAY_LEN(key_beginnings),
					    strncmp(word, *it, strlen(*it)) == 0);
}

/* How long the value is that stands behind a secret's name: up to a blank, or the quote that ends it. */
static size_t value_length(const char *value)
{
	/* A quote in a text that is itself in quotes, JSON in an argument: with backslashes before it. */
	const size_t slashes = strspn(value, "\\");
	const char quote = value[slashes];

	if (quote == '"' || quote == '\'') {
		const char *end = strchr(value + slashes + 1, quote);

		return end ? (size_t)(end - value) + 1 : strlen(value);
	}
	return strcspn(value, " \t\r\n,;&\"'");
}

/* What stands between a name and its value: quotes, '=' or ':', blanks; 0: no value follows. */
static size_t gap_length(const char *text, bool option)
{
	const size_t quotes = strspn(text, "\"'\\"), blanks = strspn(text + quotes, " \t"),
		     at = quotes + blanks;

	if (text[at] == '=' || text[at] == ':')
		return at + 1 + strspn(text + at + 1, " \t");
	return option && blanks > 0 && quotes == 0 ? at : 0;
}

/* `Authorization: Bearer VALUE`: the scheme stays. */
static size_t scheme_length(const char *value)
{
	static const char *const schemes[] = { "bearer ", "basic ", "token " };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncasecmp(value, schemes[i], strlen(schemes[i])) == 0)
			return strlen(schemes[i]);
	return 0;
}

/* Long words of base64: of lower and upper case and digits, and no path. */
#define BASE64_LENGTH 40

static size_t base64_length(const char *text)
{
	size_t n = 0, upper = 0, lower = 0, digits = 0, slashes = 0;

	for (; isalnum((unsigned char)text[n]) || strchr("+/=", text[n] ? text[n] : ' '); n++) {
		upper += isupper((unsigned char)text[n]) != 0;
		lower += islower((unsigned char)text[n]) != 0;
		digits += isdigit((unsigned char)text[n]) != 0;
		slashes += text[n] == '/';
	}
	return n >= BASE64_LENGTH && upper > 2 && lower > 2 && digits > 2 && slashes * 12 < n ? n
											      : 0;
}

#define PEM_HEAD_MAX 76

/* All lines of a private key in PEM. */
static size_t pem_length(const char *text)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	const char *kind, *last;

	if (strncmp(text, begin, strlen(begin)) != 0)
		return 0;
	kind = memmem(text, strnlen(text, PEM_HEAD_MAX), "PRIVATE KEY-----", 16);
	if (!kind)
		return 0;
	last = strstr(kind, end);
	return last ? (size_t)(last - text) + strlen(end) + strcspn(last + strlen(end), "-") + 5
		    : strlen(text);
}

static int append(struct buf *to, const char *text, size_t len)
{
	return buf_append(to, text, len);
}

/* One word and, if it names a secret, its value; how much of the text that was, or -ENOMEM. */
static long take_word(struct buf *to, const char *text)
{
	size_t len = 0, gap, value;

	while (is_word(text[len]))
		len++;
	if (is_key(text, len))
		return buf_append_str(to, MASK) < 0 ? -1 : (long)len;
	if (append(to, text, len) < 0)
		return -1;
	gap = has_secret_name(text, len) ? gap_length(text + len, *text == '-') : 0;
	gap += gap > 0 ? scheme_length(text + len + gap) : 0;
	value = gap > 0 ? value_length(text + len + gap) : 0;
	if (value == 0)
		return (long)len;
	if (append(to, text + len, gap) < 0 || buf_append_str(to, MASK) < 0)
		return -1;
	return (long)(len + gap + value);
}

/* The beginning of a long text; no word is cut in two, since half a key does not look like one. */
static char *beginning(const char *text)
{
	size_t n = strnlen(text, TEXT_MAX + 1);

	if (n <= TEXT_MAX)
		return strdup(text);
	for (n = TEXT_MAX; n > 0 && !isspace((unsigned char)text[n]); n--)
		continue;
	return n > 0 ? strndup(text, n) : strdup(MASK);
}

static char *mask_all(const char *text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	while (*text != '\0') {
		long n = 1;

		const size_t whole = pem_length(text) > 0 ? pem_length(text) : base64_length(text);

		if (whole > 0)
			n = buf_append_str(&out, MASK) < 0 ? -1 : (long)strnlen(text, whole);
		else if (is_word(*text))
			n = take_word(&out, text);
		else if (append(&out, text, 1) < 0)
			return NULL;
		if (n < 0)
			return NULL;
		text += n;
	}
	return strndup(out.len > 0 ? (const char *)out.data : "", out.len);
}

char *mask_text(const char *text)
{
	AUTO_FREE char *begin = beginning(text);

	return begin ? mask_all(begin) : NULL;
}
