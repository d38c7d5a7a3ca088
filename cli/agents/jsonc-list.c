#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/agents/jsonc-i.h"

/* An array that is a member of an object of the whole, and what was looked for in it. */
struct list {
	size_t open, close; /* its brackets */
	struct jsonc_member found, last;
	bool has, any;
	struct jsonc_member before; /* the element before the one that was found */
	bool any_before;
	size_t n;
};

static bool has_mark(const char *text, const struct jsonc_span *at, const char *mark)
{
	return memmem(text + at->from, at->to - at->from, mark, strlen(mark)) != NULL;
}

/* The command of an element that has one alone, in either form that clients have; NULL: it has not. */
static const char *only_command(struct json j)
{
	struct json list;

	if (json_kind(j, "hooks") == JSON_MISSING)
		return json_text_if(j, "command");
	if (json_kind(j, "hooks") != JSON_ARRAY)
		return NULL;
	list = json_get_array(j, "hooks");
	return json_length(list) == 1 ? json_text_if(json_at_object(list, 0), "command") : NULL;
}

/* An element with the mark is ours if nothing but our command is in it. */
static int check_ours(const char *text, const struct jsonc_span *at, const char *mark,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const size_t len = strlen(mark);
	const char *command;
	struct json j;

	if (json_parse(&doc, text + at->from, at->to - at->from, &j, NULL) >= 0) {
		command = only_command(j);
		if (command && strlen(command) > len &&
		    strcmp(command + strlen(command) - len, mark) == 0)
			return 0;
	}
	return err_set(err, -EINVAL,
		       "an element has more than the command '...%s', so that one must be taken "
		       "out by hand",
		       mark);
}

static int read_list(const char *text, size_t len, struct jsonc_span at, const char *mark,
		     struct list *ret, struct err *err)
{
	struct jsonc_scan s = { .text = text, .len = len, .at = at.from, .err = err };
	struct jsonc_member m;
	int r;

	*ret = (struct list){ .open = at.from, .close = at.to - 1 };
	if (text[at.from] != '[')
		return jsonc_wrong(&s, "it is not a list");
	s.at++;
	s.depth = 3;
	r = jsonc_skip_space(&s);
	while (r >= 0 && s.at < ret->close) {
		r = jsonc_read_member(&s, false, &m);
		if (r < 0)
			return r;
		if (!ret->has && has_mark(text, &m.value, mark)) {
			r = check_ours(text, &m.value, mark, err);
			if (r < 0)
				return r;
			ret->found = m;
			ret->has = true;
			ret->before = ret->last;
			ret->any_before = ret->any;
		}
		ret->last = m;
		ret->any = true;
		ret->n++;
	}
	return r;
}

/* The text with [from, to) replaced. */
static int splice(const char *text, size_t len, size_t from, size_t to, const char *with,
		  struct buf *ret, struct err *err)
{
	if (buf_append(ret, text, from) < 0 || buf_append_str(ret, with) < 0 ||
	    buf_append(ret, text + to, len - to) < 0)
		return err_nomem(err);
	return 0;
}

static int set_new(const char *text, size_t len, const char *object, const char *key,
		   const char *value, struct buf *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf list = BUF_INIT;

	if (buf_append_str(&list, "[") < 0 || buf_append_str(&list, value) < 0 ||
	    buf_append(&list, "]", 2) < 0)
		return err_nomem(err);
	return jsonc_set(text, len, object, key, (const char *)list.data, ret, err);
}

int jsonc_list_set(const char *text, size_t len, const char *object, const char *key,
		   const char *mark, const char *value, struct buf *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf element = BUF_INIT;
	struct jsonc_span at;
	struct list l;
	size_t end;
	int r = jsonc_find(text, len, object, key, &at, err);

	if (r == -ENOENT)
		return set_new(text, len, object, key, value, ret, err);
	if (r >= 0)
		r = read_list(text, len, at, mark, &l, err);
	if (r < 0)
		return r;
	if (l.has)
		return splice(text, len, l.found.value.from, l.found.value.to, value, ret, err);
	end = l.any ? l.last.value.to : l.open + 1;
	if ((l.any && buf_append_str(&element, ", ") < 0) || buf_append_str(&element, value) < 0 ||
	    buf_append(&element, "", 1) < 0)
		return err_nomem(err);
	return splice(text, len, end, end, (const char *)element.data, ret, err);
}

int jsonc_list_remove(const char *text, size_t len, const char *object, const char *key,
		      const char *mark, struct buf *ret, struct err *err)
{
	struct jsonc_span at;
	struct list l;
	size_t from, to;
	int r = jsonc_find(text, len, object, key, &at, err);

	if (r >= 0)
		r = read_list(text, len, at, mark, &l, err);
	if (r < 0)
		return r;
	if (!l.has)
		return -ENOENT;
	if (l.n == 1)
		return jsonc_remove(text, len, object, key, ret, err);
	/* With the comma before it, or as the first one with that behind it and the blanks there. */
	from = l.any_before ? l.before.value.to : l.found.value.from;
	to = l.any_before ? l.found.value.to : l.found.comma + 1;
	while (!l.any_before && to < l.close && (text[to] == ' ' || text[to] == '\t'))
		to++;
	return splice(text, len, from, to, "", ret, err);
}
