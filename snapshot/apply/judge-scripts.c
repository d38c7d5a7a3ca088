/*
 * Names the scripts and recipes that a change of package.json or a makefile would run: a long diff
 * hides the one line that matters, a name does not. It decides nothing.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "snapshot/apply/judge.h"

#define NAMES_MAX 5
#define PARTS_MAX 2000

/* --- parts of a file that have names ---------------------------------------------------- */

struct part {
	char *name; /* owned; "" for the text outside of all others */
	struct buf text;
};

struct parts {
	struct part *list; /* owned */
	size_t n;
	bool unread; /* it cannot be parsed, or is too long */
};

static void parts_done(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->list[i].name);
		buf_done(&p->list[i].text);
	}
	free(p->list);
	*p = (struct parts){ 0 };
}

static struct part *part_named(const struct parts *p, const char *name)
{
	return VEC_FIND(it, p->list, p->n, strcmp(it->name, name) == 0);
}

static int part_at(struct parts *p, const char *name, struct part **ret)
{
	*ret = part_named(p, name);
	if (*ret)
		return 0;
	if (p->n == PARTS_MAX) {
		p->unread = true;
		return -E2BIG;
	}
	if (!VEC_ONE_MORE(p->list, p->n))
		return -ENOMEM;
	p->list[p->n] = (struct part){ .name = strdup(name) };
	if (!p->list[p->n].name)
		return -ENOMEM;
	*ret = &p->list[p->n++];
	return 0;
}

static int part_add(struct parts *p, const char *name, const void *text, size_t len)
{
	struct part *part;
	int r = part_at(p, name, &part);

	return r < 0 ? r : buf_append(&part->text, text, len);
}

static bool part_same(const struct part *a, const struct part *b)
{
	return a && b && a->text.len == b->text.len &&
	       (a->text.len == 0 || memcmp(a->text.data, b->text.data, a->text.len) == 0);
}

/* "script 'a', 'b' and 3 more" */
static int describe_parts(const struct parts *before, const struct parts *after, const char *what,
			  const char *between, struct buf *out)
{
	size_t named = 0, more = 0;
	bool other = false;
	int r = 0;

	if (after->unread || before->unread)
		return buf_printf(out, "its %ss cannot be told apart", what);
	for (size_t i = 0; i < after->n && r >= 0; i++) {
		const struct part *p = &after->list[i];

		if (part_same(part_named(before, p->name), p))
			continue;
		if (*p->name == '\0')
			other = p->text.len > 0;
		else if (named++ < NAMES_MAX)
			r = buf_printf(out, "%s'%s'", named > 1 ? ", " : "", p->name);
		else
			more++;
	}
	if (r < 0 || (more > 0 && buf_printf(out, " and %zu more", more) < 0) ||
	    (other && buf_printf(out, "%s%s", named > 0 ? "; and " : "", between) < 0))
		return -ENOMEM;
	if (named > 0) {
		CLEANUP(buf_done) struct buf rest = BUF_INIT;

		buf_swap(&rest, out);
		r = buf_printf(out, "%s%s ", what, named > 1 ? "s" : "");
		if (r < 0)
			return r;
		r = buf_append(out, rest.data, rest.len);
	}
	return r;
}

/* --- package.json ----------------------------------------------------------------------- */

static int add_script(const char *key, const char *text, void *ctx)
{
	return part_add(ctx, *key != '\0' ? key : "(no name)", text, strlen(text));
}

static int read_scripts(const struct buf *file, struct parts *ret)
{
	static const char bom[] = "\xef\xbb\xbf";
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *text = (const char *)file->data;
	size_t len = file->len;
	struct json top;
	int r;

	if (len >= 3 && memcmp(text, bom, 3) == 0) {
		text += 3;
		len -= 3;
	}
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	r = json_parse(&doc, text, len, &top, NULL);
	if (r == -ENOMEM)
		return r;
	ret->unread = r < 0;
	if (r < 0 || !json_has(top, "scripts"))
		return 0;
	r = json_each_text(json_get_object(top, "scripts"), add_script, ret);
	return r == -E2BIG ? 0 : r;
}

int judge_scripts(const struct buf *before, const struct buf *after, struct buf *out)
{
	CLEANUP(parts_done) struct parts was = { 0 }, is = { 0 };
	int r = before ? read_scripts(before, &was) : 0;

	was.unread = false; /* without a before, everything is new */
	if (r < 0)
		return r;
	r = read_scripts(after, &is);
	return r < 0 ? r : describe_parts(&was, &is, "script", "", out);
}

/* --- makefiles -------------------------------------------------------------------------- */

/* The targets of a line "a b: c", trimmed; 0 if it is no such line. */
static size_t targets_of(const char *line, size_t len)
{
	size_t colon = 0;

	while (colon < len && line[colon] != ':' && line[colon] != '=' && line[colon] != '#')
		colon++;
	if (colon == 0 || colon == len || line[colon] != ':')
		return 0;
	/* "a := b", "a ::= b", ":::=" set a variable. */
	for (size_t i = colon; i < len && i < colon + 4; i++) {
		if (line[i] == '=')
			return 0;
		if (line[i] != ':')
			break;
	}
	while (colon > 0 && isspace((unsigned char)line[colon - 1]))
		colon--;
	return colon;
}

static int read_recipes(const struct buf *file, struct parts *ret)
{
	const char *at = (const char *)file->data, *end = at + file->len;
	AUTO_FREE char *target = strdup("");
	bool goes_on = false;
	int r = 0;

	while (at < end && r >= 0 && target) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((newline ? newline : end) - at);
		const size_t named = goes_on || *at == '\t' ? 0 : targets_of(at, len);

		if (named > 0) {
			free(target);
			target = strndup(at, named);
		} else if (!goes_on && *at != '\t' && len > 0 && *at != '#') {
			free(target);
			target = strdup("");
		}
		/* Skip comments and empty lines. */
		if (target && len > 0 && (goes_on || *at != '#'))
			r = part_add(ret, target, at, len);
		if (target && r >= 0 && len > 0 && (goes_on || *at != '#'))
			r = part_add(ret, target, "\n", 1);
		goes_on = len > 0 && at[len - 1] == '\\';
		at += len + 1;
	}
	return !target ? -ENOMEM : r == -E2BIG ? 0 : r;
}

int judge_recipes(const struct buf *before, const struct buf *after, struct buf *out)
{
	CLEANUP(parts_done) struct parts was = { 0 }, is = { 0 };
	int r = before ? read_recipes(before, &was) : 0;

	if (r < 0)
		return r;
	r = read_recipes(after, &is);
	return r < 0 ? r
		     : describe_parts(&was, &is, "recipe", "what stands outside of recipes", out);
}
