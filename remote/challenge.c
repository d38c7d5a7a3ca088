#include "remote/challenge.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define VALUE_MAX 4096

void challenge_done(struct challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	free(c->error);
	*c = (struct challenge){ 0 };
}

static const struct {
	const char *name;
	size_t offset;
} parameters[] = {
	{ "realm", offsetof(struct challenge, realm) },
	{ "service", offsetof(struct challenge, service) },
	{ "scope", offsetof(struct challenge, scope) },
	{ "error", offsetof(struct challenge, error) },
};

static bool is_token_byte(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_length(const char *s)
{
	size_t n = 0;

	while (is_token_byte(s[n]))
		n++;
	return n;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* A quoted string or a token to the end of `out`; what follows it, or NULL if it is neither. */
static const char *read_value(const char *s, struct buf *out)
{
	size_t n;

	if (*s != '"') {
		n = token_length(s);
		return n > 0 && n <= VALUE_MAX && buf_append(out, s, n) == 0 ? s + n : NULL;
	}
	for (s++; *s != '"'; s++) {
		if (*s == '\\')
			s++;
		/* Control bytes have no place in a URL or in a scope. */
		if ((unsigned char)*s < ' ' || *s == 0x7f || out->len >= VALUE_MAX ||
		    buf_append(out, s, 1) < 0)
			return NULL;
	}
	return s + 1;
}

/* Keep the first of a name: a second one would let two readers disagree. */
static int keep(struct challenge *c, const char *name, size_t len, struct buf *value)
{
	for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
		char **at = (char **)((char *)c + parameters[i].offset);
		const char *text;

		if (strlen(parameters[i].name) != len ||
		    strncasecmp(parameters[i].name, name, len) != 0 || *at)
			continue;
		text = buf_str(value);
		*at = text ? strdup(text) : NULL;
		if (!*at)
			return -ENOMEM;
	}
	return 0;
}

/* name=value pairs up to the next scheme; what follows them, or NULL if there is nothing to read any more. */
static const char *read_parameters(const char *s, struct challenge *c, int *r)
{
	for (;;) {
		CLEANUP(buf_done) struct buf value = BUF_INIT;
		const char *name, *at;
		size_t len;

		s += strspn(s, " \t,");
		name = s;
		len = token_length(s);
		at = skip_blanks(s + len);
		if (len == 0)
			return NULL;
		if (*at != '=')
			return s;
		s = read_value(skip_blanks(at + 1), &value);
		if (!s)
			return NULL;
		*r = keep(c, name, len, &value);
		if (*r < 0)
			return NULL;
	}
}

static enum challenge_kind kind_of(const char *s, size_t len)
{
	if (len == 6 && strncasecmp(s, "Bearer", 6) == 0)
		return CHALLENGE_BEARER;
	return len == 5 && strncasecmp(s, "Basic", 5) == 0 ? CHALLENGE_BASIC : CHALLENGE_NONE;
}

static void take_better(struct challenge *best, struct challenge *c)
{
	/* Without a realm there is no place to ask for a token. */
	if (c->kind == CHALLENGE_BEARER && !c->realm)
		return;
	if (c->kind <= best->kind)
		return;
	challenge_done(best);
	*best = *c;
	*c = (struct challenge){ 0 };
}

int challenge_parse(const char *header, struct challenge *ret)
{
	CLEANUP(challenge_done) struct challenge best = { 0 };
	const char *s = header;
	int r = 0;

	while (s && r == 0) {
		CLEANUP(challenge_done) struct challenge c = { 0 };
		size_t len;

		s += strspn(s, " \t,");
		len = token_length(s);
		if (len == 0 || (s[len] != '\0' && !strchr(" \t,", s[len])))
			break;
		c.kind = kind_of(s, len);
		s = read_parameters(s + len, &c, &r);
		take_better(&best, &c);
	}
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(best);
	return 0;
}

int challenge_choose(const struct strlist *headers, struct challenge *ret)
{
	CLEANUP(challenge_done) struct challenge best = { 0 };

	for (size_t i = 0; i < headers->n; i++) {
		CLEANUP(challenge_done) struct challenge c = { 0 };
		const int r = challenge_parse(headers->list[i], &c);

		if (r < 0)
			return r;
		take_better(&best, &c);
	}
	*ret = TAKE_STRUCT(best);
	return 0;
}
