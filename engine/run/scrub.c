#include "engine/run/scrub.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define MASK "***"

void scrub_done(struct scrub *s)
{
	VEC_FREE(it, s->values, s->n, free(it->owned));
	*s = (struct scrub){ 0 };
}

static int add_value(struct scrub *s, const void *value, size_t len, struct err *err)
{
	void *copy = malloc(len);

	if (!copy || !VEC_ONE_MORE(s->values, s->n)) {
		free(copy);
		return err_nomem(err);
	}
	memcpy(copy, value, len);
	s->values[s->n++] = (struct scrub_value){ copy, len, copy };
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cut blanks off both ends. */
static const char *trim(const char *text, size_t *len)
{
	while (*len > 0 && is_blank(text[*len - 1]))
		--*len;
	while (*len > 0 && is_blank(*text)) {
		text++;
		--*len;
	}
	return text;
}

/*
 * A secret of many lines may be printed with other line ends, behind a prefix, or in part, so each of
 * its lines is a secret too.  Short lines are skipped: they are words that occur everywhere.
 */
static int add_lines(struct scrub *s, const char *value, size_t len, struct err *err)
{
	size_t inner_len = len, n, line_len;
	const char *inner = trim(value, &inner_len), *end, *line;
	const bool single = !memchr(inner, '\n', inner_len);
	int r = 0;

	for (; inner_len > 0 && r == 0; inner += n, inner_len -= n) {
		end = memchr(inner, '\n', inner_len);
		n = end ? (size_t)(end - inner) + 1 : inner_len;
		line_len = n;
		line = trim(inner, &line_len);
		if (line_len < len && line_len >= (single ? SCRUB_SHORTEST : SCRUB_LINE_SHORTEST))
			r = add_value(s, line, line_len, err);
	}
	return r;
}

static int check_length(const char *name, size_t len, struct err *err)
{
	if (len < SCRUB_SHORTEST)
		return err_set(err, -EINVAL,
			       "secret '%s' has less than %d bytes: nobody could tell it from the "
			       "rest of the output",
			       name, SCRUB_SHORTEST);
	return 0;
}

int scrub_lend(struct scrub *s, const char *name, const void *value, size_t len, struct err *err)
{
	int r = check_length(name, len, err);

	if (r < 0)
		return r;
	if (!VEC_ONE_MORE(s->values, s->n))
		return err_nomem(err);
	s->values[s->n++] = (struct scrub_value){ value, len, NULL };
	return 0;
}

int scrub_add(struct scrub *s, const char *name, const void *value, size_t len, struct err *err)
{
	int r = check_length(name, len, err);

	if (r < 0)
		return r;
	r = add_value(s, value, len, err);
	return r < 0 ? r : add_lines(s, value, len, err);
}

void scrub_stream_done(struct scrub_stream *s)
{
	buf_done(&s->held);
}

/* The length of the longest secret that `data` begins with; 0: none. */
static size_t secret_at(const struct scrub *s, const unsigned char *data, size_t len)
{
	size_t most = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct scrub_value *v = &s->values[i];

		if (v->len <= len && v->len > most && memcmp(v->data, data, v->len) == 0)
			most = v->len;
	}
	return most;
}

/* Is all of `data` the beginning of a longer secret? */
static bool may_become_one(const struct scrub *s, const unsigned char *data, size_t len)
{
	return VEC_HAS(it, s->values, s->n, it->len > len && memcmp(it->data, data, len) == 0);
}

/*
 * Secrets may overlap: how far those reach that begin within the first *reach bytes, or in turn in
 * what they add.  False if one of them may still become a secret when more is written.
 */
static bool reach_of(const struct scrub *s, const unsigned char *data, size_t len, size_t *reach)
{
	bool known = true;

	for (size_t at = 1; at < *reach; at++) {
		const size_t n = secret_at(s, data + at, len - at);

		*reach = at + n > *reach ? at + n : *reach;
		known = known && !may_become_one(s, data + at, len - at);
	}
	return known;
}

/* How many bytes of `data` cannot begin a secret. */
static size_t harmless(const struct scrub *s, const unsigned char *data, size_t len)
{
	size_t least = len;

	for (size_t i = 0; i < s->n; i++) {
		const unsigned char *at = memchr(data, s->values[i].data[0], least);

		if (at)
			least = (size_t)(at - data);
	}
	return least;
}

/* Returns how many bytes were consumed: fewer than `len` only if the rest may become a secret. */
static ssize_t pass(const struct scrub *s, const unsigned char *data, size_t len, bool at_end,
		    struct buf *out)
{
	size_t i = 0;

	while (i < len) {
		size_t n = harmless(s, data + i, len - i);

		if (buf_append(out, data + i, n) < 0)
			return -ENOMEM;
		i += n;
		if (i == len)
			break;
		/* This secret may still become a longer one. */
		if (!at_end && may_become_one(s, data + i, len - i))
			break;
		n = secret_at(s, data + i, len - i);
		if (n > 0 && !reach_of(s, data + i, len - i, &n) && !at_end)
			break;
		if (n > 0 ? buf_append_str(out, MASK) < 0 : buf_append(out, data + i, 1) < 0)
			return -ENOMEM;
		i += n > 0 ? n : 1;
	}
	return (ssize_t)i;
}

static int push(struct scrub_stream *s, const void *data, size_t len, bool at_end, struct buf *out)
{
	CLEANUP(buf_done) struct buf rest = BUF_INIT;
	ssize_t n;

	if (s->scrub->n == 0)
		return buf_append(out, data, len);
	if (buf_append(&s->held, data, len) < 0)
		return -ENOMEM;
	n = pass(s->scrub, s->held.data, s->held.len, at_end, out);
	if (n < 0 || buf_append(&rest, s->held.data + n, s->held.len - (size_t)n) < 0)
		return -ENOMEM;
	buf_swap(&s->held, &rest);
	return 0;
}

int scrub_write(struct scrub_stream *s, const void *data, size_t len, struct buf *out)
{
	return push(s, data, len, false, out);
}

int scrub_end(struct scrub_stream *s, struct buf *out)
{
	return push(s, "", 0, true, out);
}

char *scrub_text(const struct scrub *s, const char *text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	if (s->n > 0 && pass(s, (const unsigned char *)text, strlen(text), true, &out) < 0)
		return NULL;
	return strdup(s->n == 0 ? text : buf_str(&out) ? buf_str(&out) : "");
}
