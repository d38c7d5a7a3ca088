#include "cli/agents/jsonc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/agents/jsonc-i.h"

/* The object with the member that was looked for in it; -ENOENT if there is no such member. */
static int find_member(const char *text, size_t len, const char *object, const char *key,
		       struct jsonc_object *ret, struct err *err)
{
	struct jsonc_scan s = { .text = text, .len = len, .err = err };
	struct jsonc_object top;
	int r = jsonc_read_top(&s, object, &top);

	if (r < 0)
		return r;
	if (r > 0 || !top.has)
		return -ENOENT;
	r = jsonc_read_inner(&s, &top, key, ret);
	if (r < 0)
		return r;
	return ret->has ? 0 : -ENOENT;
}

int jsonc_find(const char *text, size_t len, const char *object, const char *key,
	       struct jsonc_span *ret, struct err *err)
{
	struct jsonc_object inner;
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
static size_t last_of(const char *text, const struct jsonc_object *o)
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
static int insert_last(const struct insertion *in, const struct jsonc_object *o, struct buf *ret)
{
	const size_t end = last_of(in->text, o);
	const bool comma = o->any && o->before.comma == 0;
	const size_t cut = comma ? o->before.value.to : end;

	if (put(ret, in->text, cut) < 0 || (comma && put_text(ret, ",") < 0) ||
	    put(ret, in->text + cut, end - cut) < 0 || put_indent(ret, in->unit, in->level) < 0 ||
	    put_member(ret, in->key, in->value) < 0 || put_indent(ret, in->unit, in->level - 1) < 0)
		return -ENOMEM;
	return put(ret, in->text + o->close, in->len - o->close);
}

/* An object with this one member, as a value of the first level. */
static int wrap(const struct insertion *in, struct buf *ret)
{
	if (put_text(ret, "{") < 0 || put_indent(ret, in->unit, 2) < 0 ||
	    put_member(ret, in->key, in->value) < 0 || put_indent(ret, in->unit, 1) < 0)
		return -ENOMEM;
	return put_text(ret, "}");
}

static int set_in_new(struct insertion *in, const struct jsonc_object *top, const char *object,
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

static int set_in(const struct insertion *in, const struct jsonc_object *o, struct buf *ret)
{
	if (!o->has)
		return insert_last(in, o, ret);
	if (put(ret, in->text, o->found.value.from) < 0 || put_text(ret, in->value) < 0)
		return -ENOMEM;
	return put(ret, in->text + o->found.value.to, in->len - o->found.value.to);
}

int jsonc_set(const char *text, size_t len, const char *object, const char *key, const char *value,
	      struct buf *ret, struct err *err)
{
	struct jsonc_scan s = { .text = text, .len = len, .err = err };
	char unit[9];
	struct insertion in = {
		.text = text,
		.len = len,
		.unit = indent_unit(text, len, unit),
		.level = 2,
		.key = key,
		.value = value,
	};
	struct jsonc_object top = { 0 }, inner;
	int r = jsonc_read_top(&s, object, &top);

	if (r > 0) {
		in.text = "{}\n";
		in.len = 3;
		top = (struct jsonc_object){ .open = 0, .close = 1 };
	}
	if (r < 0)
		return r;
	if (!top.has) {
		r = set_in_new(&in, &top, object, ret);
		return r < 0 ? err_nomem(err) : 0;
	}
	r = jsonc_read_inner(&s, &top, key, &inner);
	if (r < 0)
		return r;
	return set_in(&in, &inner, ret) < 0 ? err_nomem(err) : 0;
}

int jsonc_remove(const char *text, size_t len, const char *object, const char *key, struct buf *ret,
		 struct err *err)
{
	struct jsonc_object inner;
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
	if (put(ret, text, last ? inner.before.comma : from) < 0 ||
	    (last && put(ret, text + inner.before.comma + 1, from - inner.before.comma - 1) < 0) ||
	    put(ret, text + to, len - to) < 0)
		return err_nomem(err);
	return 0;
}
