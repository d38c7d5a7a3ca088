#include <errno.h>
#include <string.h>

#include "cli/agents/jsonc-i.h"

#define DEPTH_MAX 64

int jsonc_wrong(const struct jsonc_scan *s, const char *what)
{
	unsigned line = 1;

	for (size_t i = 0; i < s->at && i < s->len; i++)
		line += s->text[i] == '\n';
	return err_set(s->err, -EINVAL, "line %u: %s", line, what);
}

static bool jsonc_at_end(const struct jsonc_scan *s)
{
	return s->at >= s->len;
}

static bool is_next(const struct jsonc_scan *s, const char *word)
{
	const size_t n = strlen(word);

	return s->len - s->at >= n && memcmp(s->text + s->at, word, n) == 0;
}

static int skip_comment(struct jsonc_scan *s)
{
	const bool line = s->text[s->at + 1] == '/';

	s->at += 2;
	while (!jsonc_at_end(s) && !is_next(s, line ? "\n" : "*/"))
		s->at++;
	if (line)
		return 0;
	if (jsonc_at_end(s))
		return jsonc_wrong(s, "a comment has no end");
	s->at += 2;
	return 0;
}

int jsonc_skip_space(struct jsonc_scan *s)
{
	while (!jsonc_at_end(s)) {
		int r;

		if (memchr(" \t\r\n", s->text[s->at], 4)) {
			s->at++;
			continue;
		}
		if (!is_next(s, "//") && !is_next(s, "/*"))
			return 0;
		r = skip_comment(s);
		if (r < 0)
			return r;
	}
	return 0;
}

static int skip_string(struct jsonc_scan *s)
{
	s->at++;
	while (!jsonc_at_end(s) && s->text[s->at] != '"') {
		if (s->text[s->at] == '\n')
			break;
		s->at += s->text[s->at] == '\\' ? 2 : 1;
	}
	if (jsonc_at_end(s) || s->text[s->at] != '"')
		return jsonc_wrong(s, "a string has no end");
	s->at++;
	return 0;
}

static int skip_word(struct jsonc_scan *s)
{
	const size_t from = s->at;

	while (!jsonc_at_end(s) && !memchr(" \t\r\n,:]}/\"{[", s->text[s->at], 12))
		s->at++;
	return s->at == from ? jsonc_wrong(s, "a value is missing") : 0;
}

static int skip_value(struct jsonc_scan *s);

int jsonc_read_member(struct jsonc_scan *s, bool keyed, struct jsonc_member *ret)
{
	int r;

	*ret = (struct jsonc_member){ .key.from = s->at };
	if (keyed) {
		if (s->text[s->at] != '"')
			return jsonc_wrong(s, "a name in quotes is missing");
		r = skip_string(s);
		if (r < 0)
			return r;
		ret->key.to = s->at;
		r = jsonc_skip_space(s);
		if (r < 0)
			return r;
		if (jsonc_at_end(s) || s->text[s->at++] != ':')
			return jsonc_wrong(s, "':' is missing behind a name");
		r = jsonc_skip_space(s);
		if (r < 0)
			return r;
	}
	ret->value.from = s->at;
	r = skip_value(s);
	if (r < 0)
		return r;
	ret->value.to = s->at;
	r = jsonc_skip_space(s);
	if (r < 0 || jsonc_at_end(s) || s->text[s->at] != ',')
		return r;
	ret->comma = s->at++;
	return jsonc_skip_space(s);
}

static bool is_called(const struct jsonc_scan *s, const struct jsonc_member *m, const char *key)
{
	const size_t n = strlen(key);

	return m->key.to - m->key.from == n + 2 && memcmp(s->text + m->key.from + 1, key, n) == 0;
}

/* An object or an array, from its first byte to behind its last. */
static int jsonc_read_object(struct jsonc_scan *s, const char *key, struct jsonc_object *ret)
{
	const bool keyed = s->text[s->at] == '{';
	struct jsonc_member m;
	int r;

	*ret = (struct jsonc_object){ .open = s->at++ };
	if (++s->depth > DEPTH_MAX)
		return jsonc_wrong(s, "it is nested too deeply");
	r = jsonc_skip_space(s);
	if (r < 0)
		return r;
	while (!jsonc_at_end(s) && s->text[s->at] != (keyed ? '}' : ']')) {
		r = jsonc_read_member(s, keyed, &m);
		if (r < 0)
			return r;
		if (m.comma == 0 && !jsonc_at_end(s) && s->text[s->at] != (keyed ? '}' : ']'))
			return jsonc_wrong(s, "',' is missing");
		if (keyed && key && is_called(s, &m, key)) {
			if (ret->has)
				return jsonc_wrong(s, "a name is given twice");
			ret->found = m;
			ret->has = true;
		} else if (!ret->has) {
			ret->before = m;
			ret->any = true;
		}
	}
	if (jsonc_at_end(s))
		return jsonc_wrong(s, keyed ? "'}' is missing" : "']' is missing");
	ret->close = s->at++;
	s->depth--;
	return 0;
}

static int skip_value(struct jsonc_scan *s)
{
	struct jsonc_object unused;

	if (jsonc_at_end(s))
		return jsonc_wrong(s, "a value is missing");
	if (s->text[s->at] == '{' || s->text[s->at] == '[')
		return jsonc_read_object(s, NULL, &unused);
	return s->text[s->at] == '"' ? skip_string(s) : skip_word(s);
}

int jsonc_read_top(struct jsonc_scan *s, const char *key, struct jsonc_object *ret)
{
	int r = jsonc_skip_space(s);

	if (r < 0 || jsonc_at_end(s))
		return r < 0 ? r : 1;
	if (s->text[s->at] != '{')
		return jsonc_wrong(s, "it is not an object");
	r = jsonc_read_object(s, key, ret);
	if (r < 0)
		return r;
	r = jsonc_skip_space(s);
	if (r < 0)
		return r;
	return jsonc_at_end(s) ? 0 : jsonc_wrong(s, "something follows the last '}'");
}

int jsonc_read_inner(const struct jsonc_scan *s, const struct jsonc_object *top, const char *key,
		     struct jsonc_object *ret)
{
	struct jsonc_scan inner = *s;

	inner.at = top->found.value.from;
	inner.depth = 1;
	if (inner.text[inner.at] != '{')
		return jsonc_wrong(&inner, "it is not an object");
	return jsonc_read_object(&inner, key, ret);
}
