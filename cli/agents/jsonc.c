#include "cli/agents/jsonc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define DEPTH_MAX 64

/* --- reading ---------------------------------------------------------------------------- */

struct scan {
	const char *text;
	size_t at, len;
	unsigned depth;
	struct err *err;
};

static int wrong(const struct scan *s, const char *what)
{
	unsigned line = 1;

	for (size_t i = 0; i < s->at && i < s->len; i++)
		line += s->text[i] == '\n';
	return err_set(s->err, -EINVAL, "line %u: %s", line, what);
}

static bool at_end(const struct scan *s)
{
	return s->at >= s->len;
}

static bool is_next(const struct scan *s, const char *word)
{
	const size_t n = strlen(word);

	return s->len - s->at >= n && memcmp(s->text + s->at, word, n) == 0;
}

static int skip_comment(struct scan *s)
{
	const bool line = s->text[s->at + 1] == '/';

	s->at += 2;
	while (!at_end(s) && !is_next(s, line ? "\n" : "*/"))
		s->at++;
	if (line)
		return 0;
	if (at_end(s))
		return wrong(s, "a comment has no end");
	s->at += 2;
	return 0;
}

/* White space and comments. */
static int skip_space(struct scan *s)
{
	while (!at_end(s)) {
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

static int skip_string(struct scan *s)
{
	s->at++;
	while (!at_end(s) && s->text[s->at] != '"') {
		if (s->text[s->at] == '\n')
			break;
		s->at += s->text[s->at] == '\\' ? 2 : 1;
	}
	if (at_end(s) || s->text[s->at] != '"')
		return wrong(s, "a string has no end");
	s->at++;
	return 0;
}

static int skip_word(struct scan *s)
{
	const size_t from = s->at;

	while (!at_end(s) && !memchr(" \t\r\n,:]}/\"{[", s->text[s->at], 12))
		s->at++;
	return s->at == from ? wrong(s, "a value is missing") : 0;
}

static int skip_value(struct scan *s);

/* One member of an object, or one element of an array, whose key is then empty. */
struct member {
	struct jsonc_span key, value; /* the key with its quotes */
	size_t comma;                 /* behind it; 0: none */
};

/* What was found on the way through an object. */
struct object {
	size_t open, close;   /* its braces */
	struct member found;  /* the one that was looked for */
	bool has;             /* there is one */
	struct member before; /* the one before it, or the last if there is none such */
	bool any;             /* `before` is one */
};

static int read_member(struct scan *s, bool keyed, struct member *ret)
{
	int r;

	*ret = (struct member){ .key.from = s->at };
	if (keyed) {
		if (s->text[s->at] != '"')
			return wrong(s, "a name in quotes is missing");
		r = skip_string(s);
		if (r < 0)
			return r;
		ret->key.to = s->at;
		r = skip_space(s);
		if (r < 0)
			return r;
		if (at_end(s) || s->text[s->at++] != ':')
			return wrong(s, "':' is missing behind a name");
		r = skip_space(s);
		if (r < 0)
			return r;
	}
	ret->value.from = s->at;
	r = skip_value(s);
	if (r < 0)
		return r;
	ret->value.to = s->at;
	r = skip_space(s);
	if (r < 0 || at_end(s) || s->text[s->at] != ',')
		return r;
	ret->comma = s->at++;
	return skip_space(s);
}

static bool is_called(const struct scan *s, const struct member *m, const char *key)
{
	const size_t n = strlen(key);

	return m->key.to - m->key.from == n + 2 && memcmp(s->text + m->key.from + 1, key, n) == 0;
}

/* An object or an array, from its first byte to behind its last. */
static int read_object(struct scan *s, const char *key, struct object *ret)
{
	const bool keyed = s->text[s->at] == '{';
	struct member m;
	int r;

	*ret = (struct object){ .open = s->at++ };
	if (++s->depth > DEPTH_MAX)
		return wrong(s, "it is nested too deeply");
	r = skip_space(s);
	if (r < 0)
		return r;
	while (!at_end(s) && s->text[s->at] != (keyed ? '}' : ']')) {
		r = read_member(s, keyed, &m);
		if (r < 0)
			return r;
		if (m.comma == 0 && !at_end(s) && s->text[s->at] != (keyed ? '}' : ']'))
			return wrong(s, "',' is missing");
		if (keyed && key && is_called(s, &m, key)) {
			if (ret->has)
				return wrong(s, "a name is given twice");
			ret->found = m;
			ret->has = true;
		} else if (!ret->has) {
			ret->before = m;
			ret->any = true;
		}
	}
	if (at_end(s))
		return wrong(s, keyed ? "'}' is missing" : "']' is missing");
	ret->close = s->at++;
	s->depth--;
	return 0;
}

static int skip_value(struct scan *s)
{
	struct object unused;

	if (at_end(s))
		return wrong(s, "a value is missing");
	if (s->text[s->at] == '{' || s->text[s->at] == '[')
		return read_object(s, NULL, &unused);
	return s->text[s->at] == '"' ? skip_string(s) : skip_word(s);
}

/* The whole, as an object in which `key` is looked for; 1 if the text holds nothing. */
static int read_top(struct scan *s, const char *key, struct object *ret)
{
	int r = skip_space(s);

	if (r < 0 || at_end(s))
		return r < 0 ? r : 1;
	if (s->text[s->at] != '{')
		return wrong(s, "it is not an object");
	r = read_object(s, key, ret);
	if (r < 0)
		return r;
	r = skip_space(s);
	if (r < 0)
		return r;
	return at_end(s) ? 0 : wrong(s, "something follows the last '}'");
}

/* The object that is a member of the whole; its value must be one. */
static int read_inner(const struct scan *s, const struct object *top, const char *key,
		      struct object *ret)
{
	struct scan inner = *s;

	inner.at = top->found.value.from;
	inner.depth = 1;
	if (inner.text[inner.at] != '{')
		return wrong(&inner, "it is not an object");
	return read_object(&inner, key, ret);
}

/* The object with the member that was looked for in it; -ENOENT if there is no such member. */
static int find_member(const char *text, size_t len, const char *object, const char *key,
		       struct object *ret, struct err *err)
{
	struct scan s = { .text = text, .len = len, .err = err };
	struct object top;
	int r = read_top(&s, object, &top);

	if (r < 0)
		return r;
	if (r > 0 || !top.has)
		return -ENOENT;
	r = read_inner(&s, &top, key, ret);
	if (r < 0)
		return r;
	return ret->has ? 0 : -ENOENT;
}

int jsonc_find(const char *text, size_t len, const char *object, const char *key,
	       struct jsonc_span *ret, struct err *err)
{
	struct object inner;
	int r = find_member(text, len, object, key, &inner, err);

	if (r < 0)
		return r;
	*ret = inner.found.value;
	return 0;
}

/* --- changing --------------------------------------------------------------------------- */

/* By which its lines are indented: two blanks, unless the first indented line says otherwise. */
static const char *indent_unit(const char *text, size_t len, char unit[9])
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < len && n == 0; i++)
		while (text[i] == '\n' && i + 1 + n < len && n < 8 &&
		       (text[i + 1 + n] == ' ' || text[i + 1 + n] == '\t'))
			n++;
	memset(unit, 0, 9);
	for (size_t i = 0; i + 1 < len && n > 0 && *unit == '\0'; i++)
		if (text[i] == '\n' && (text[i + 1] == ' ' || text[i + 1] == '\t'))
			memcpy(unit, text + i + 1, text[i + 1] == '\t' ? 1 : n);
	return *unit != '\0' ? unit : "  ";
}

/* A string and what comes next in the text that is built. */
static int put(struct buf *to, const char *text, size_t len)
{
	return buf_append(to, text, len) < 0 ? -ENOMEM : 0;
}

static int put_text(struct buf *to, const char *text)
{
	return buf_append_str(to, text) < 0 ? -ENOMEM : 0;
}

static int put_indent(struct buf *to, const char *unit, unsigned levels)
{
	int r = put_text(to, "\n");

	for (unsigned i = 0; i < levels && r >= 0; i++)
		r = put_text(to, unit);
	return r;
}

static int put_member(struct buf *to, const char *key, const char *value)
{
	const char *const parts[] = { "\"", key, "\": ", value };
	int r = 0;

	for (size_t i = 0; i < 4 && r >= 0; i++)
		r = put_text(to, parts[i]);
	return r;
}

/* What stands before the closing brace, without the white space there. */
static size_t last_of(const char *text, const struct object *o)
{
	size_t at = o->close;

	while (at > o->open + 1 && memchr(" \t\r\n", text[at - 1], 4))
		at--;
	return at;
}

struct insertion {
	const char *text;
	size_t len;
	const char *unit;
	unsigned level; /* of the new member */
	const char *key, *value;
};

/* The member comes last: a comma behind the one before it, then a line of its own. */
static int insert_last(const struct insertion *in, const struct object *o, struct buf *ret)
{
	const size_t end = last_of(in->text, o);
	const bool comma = o->any && o->before.comma == 0;
	const size_t cut = comma ? o->before.value.to : end;
	int r = put(ret, in->text, cut);

	if (r >= 0 && comma)
		r = put_text(ret, ",");
	if (r >= 0)
		r = put(ret, in->text + cut, end - cut);
	if (r >= 0)
		r = put_indent(ret, in->unit, in->level);
	if (r >= 0)
		r = put_member(ret, in->key, in->value);
	if (r >= 0)
		r = put_indent(ret, in->unit, in->level - 1);
	return r < 0 ? r : put(ret, in->text + o->close, in->len - o->close);
}

/* An object with this one member, as a value of the first level. */
static int wrap(const struct insertion *in, struct buf *ret)
{
	int r = put_text(ret, "{");

	if (r >= 0)
		r = put_indent(ret, in->unit, 2);
	if (r >= 0)
		r = put_member(ret, in->key, in->value);
	if (r >= 0)
		r = put_indent(ret, in->unit, 1);
	return r < 0 ? r : put_text(ret, "}");
}

static int set_in_new(struct insertion *in, const struct object *top, const char *object,
		      struct buf *ret)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;
	int r = wrap(in, &value);

	if (r < 0 || buf_append(&value, "", 1) < 0)
		return -ENOMEM;
	in->key = object;
	in->value = (const char *)value.data;
	in->level = 1;
	return insert_last(in, top, ret);
}

static int set_in(const struct insertion *in, const struct object *o, struct buf *ret)
{
	int r;

	if (!o->has)
		return insert_last(in, o, ret);
	r = put(ret, in->text, o->found.value.from);
	if (r >= 0)
		r = put_text(ret, in->value);
	return r < 0 ? r : put(ret, in->text + o->found.value.to, in->len - o->found.value.to);
}

int jsonc_set(const char *text, size_t len, const char *object, const char *key, const char *value,
	      struct buf *ret, struct err *err)
{
	struct scan s = { .text = text, .len = len, .err = err };
	char unit[9];
	struct insertion in = {
		.text = text,
		.len = len,
		.unit = indent_unit(text, len, unit),
		.level = 2,
		.key = key,
		.value = value,
	};
	struct object top = { 0 }, inner;
	int r = read_top(&s, object, &top);

	if (r > 0) {
		in.text = "{}\n";
		in.len = 3;
		top = (struct object){ .open = 0, .close = 1 };
	}
	if (r < 0)
		return r;
	if (!top.has) {
		r = set_in_new(&in, &top, object, ret);
		return r < 0 ? err_nomem(err) : 0;
	}
	r = read_inner(&s, &top, key, &inner);
	if (r < 0)
		return r;
	return set_in(&in, &inner, ret) < 0 ? err_nomem(err) : 0;
}

int jsonc_remove(const char *text, size_t len, const char *object, const char *key, struct buf *ret,
		 struct err *err)
{
	struct object inner;
	size_t from, to;
	bool last;
	int r = find_member(text, len, object, key, &inner, err);

	if (r < 0)
		return r;
	from = inner.found.key.from;
	to = inner.found.comma > 0 ? inner.found.comma + 1 : inner.found.value.to;
	while (from > 0 && (text[from - 1] == ' ' || text[from - 1] == '\t'))
		from--;
	if (from > 0 && text[from - 1] == '\n')
		from--;
	/* As the last one it takes the comma before it along. */
	last = inner.found.comma == 0 && inner.any && inner.before.comma > 0;
	r = put(ret, text, last ? inner.before.comma : from);
	if (r >= 0 && last)
		r = put(ret, text + inner.before.comma + 1, from - inner.before.comma - 1);
	if (r >= 0)
		r = put(ret, text + to, len - to);
	return r < 0 ? err_nomem(err) : 0;
}
