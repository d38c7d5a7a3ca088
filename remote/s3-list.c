/*
 * A store's lists, page by page.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "base/text.h"
#include "remote/s3-i.h"

#define PAGES_MAX 100000 /* of a store that never comes to an end */
#define KEY_MAX   1024   /* what S3 allows */

/* --- one page ----------------------------------------------------------------------------- */

static int read_entry(const char *xml, size_t len, int64_t now, s3_entry_fn fn, void *ctx)
{
	AUTO_FREE char *key = s3_xml_text(xml, len, "Key"), *size = s3_xml_text(xml, len, "Size");
	AUTO_FREE char *modified = s3_xml_text(xml, len, "LastModified");
	struct s3_entry e = { .key = key, .now = now };
	struct tm tm = { 0 };

	if (!key || !size || !modified || strlen(key) > KEY_MAX ||
	    size_parse_u64(size, &e.size) < 0 || !strptime(modified, "%Y-%m-%dT%H:%M:%S", &tm))
		return -EPROTO;
	e.modified = timegm(&tm);
	return fn(&e, ctx);
}

int s3_list_read(const char *body, int64_t now, s3_entry_fn fn, void *ctx, char **ret_next)
{
	size_t len = strlen(body), n;
	AUTO_FREE char *truncated = s3_xml_text(body, len, "IsTruncated");
	const char *at;

	*ret_next = NULL;
	if (!strstr(body, "<ListBucketResult") || !truncated)
		return -EPROTO;
	if (strcmp(truncated, "true") == 0) {
		*ret_next = s3_xml_text(body, len, "NextContinuationToken");
		if (!*ret_next)
			return -EPROTO;
	}
	while ((at = s3_xml_element(body, len, "Contents", &n))) {
		const int r = read_entry(at, n, now, fn, ctx);

		if (r != 0) {
			free(TAKE_PTR(*ret_next));
			return r;
		}
		len -= (size_t)(at + n - body);
		body = at + n;
	}
	return 0;
}

/* --- all pages ---------------------------------------------------------------------------- */

struct listing {
	const char *whole; /* the prefix with `below`, which every key begins with */
	s3_entry_fn fn;
	void *ctx;
};

static int on_entry(const struct s3_entry *e, void *ctx)
{
	const struct listing *l = ctx;
	const size_t len = strlen(l->whole);
	struct s3_entry below = *e;

	if (strncmp(e->key, l->whole, len) != 0)
		return -EPROTO;
	below.key += len;
	return l->fn(&below, l->ctx);
}

static int append_encoded(struct buf *out, const char *text)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	int r = 0;

	for (; r == 0 && *text; text++)
		r = strchr(plain, *text) ? buf_append(out, text, 1)
					 : buf_printf(out, "%%%02X", (unsigned char)*text);
	return r;
}

/* The parameters in their order, each as a signature has it. */
static int make_url(const struct s3_depot *s, const char *whole, const char *token, struct buf *out)
{
	if (buf_printf(out, "%s/?", s->base) < 0 ||
	    (token && (buf_append_str(out, "continuation-token=") < 0 ||
		       append_encoded(out, token) < 0 || buf_append_str(out, "&") < 0)) ||
	    buf_append_str(out, "list-type=2&max-keys=1000&prefix=") < 0)
		return -ENOMEM;
	return append_encoded(out, whole);
}

static int64_t date_of(const struct http_answer *a)
{
	struct tm tm = { 0 };

	return a->date && strptime(a->date, "%a, %d %b %Y %H:%M:%S GMT", &tm) ? timegm(&tm)
									      : time(NULL);
}

/* One page; *token is replaced by the next one's. */
static int read_page(struct s3_depot *s, struct listing *l, char **token, struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	CLEANUP(buf_done) struct buf url = BUF_INIT;
	struct http_request q = { .method = "GET" };
	char *next = NULL;
	const char *body;
	int r;

	if (make_url(s, l->whole, *token, &url) < 0 || !(q.url = buf_str(&url)))
		return err_nomem(err);
	r = s3_send(s, &q, NULL, NULL, &a, err);
	if (r < 0)
		return r;
	if (a.status != 200) {
		r = s3_explain(s, &a, "listing", err);
		return r == -ENOENT
			   ? err_set(err, -EPROTO, "'%s' answers as no S3 store does (404)",
				     s->depot.url)
			   : r;
	}
	body = buf_str(&a.body);
	if (!body)
		return err_nomem(err);
	r = s3_list_read(body, date_of(&a), on_entry, l, &next);
	if (r == -EPROTO)
		return err_set(err, r, "'%s' answers with something that is no list of objects",
			       s->depot.url);
	if (r != 0) {
		free(next);
		return r;
	}
	if (next && *token && strcmp(next, *token) == 0) {
		free(next);
		return err_set(err, -EPROTO, "'%s' gives the same page again and again",
			       s->depot.url);
	}
	free(*token);
	*token = next;
	return 0;
}

int s3_each(struct s3_depot *s, const char *below, s3_entry_fn fn, void *ctx, struct err *err)
{
	AUTO_FREE char *whole = NULL, *token = NULL;
	struct listing l = { .fn = fn, .ctx = ctx };
	int r;

	whole = text_format("%s%s", s->prefix, below);
	if (!whole)
		return err_nomem(err);
	l.whole = whole;
	for (unsigned page = 0; page < PAGES_MAX; page++) {
		r = read_page(s, &l, &token, err);
		if (r != 0 || !token)
			return r;
	}
	return err_set(err, -EPROTO, "'%s' has a list of objects without end", s->depot.url);
}
