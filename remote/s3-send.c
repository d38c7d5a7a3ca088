#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/text.h"
#include "remote/s3-i.h"

#define TOLD_MAX 90 /* bytes of what a store says, in a sentence */

char *s3_url(const struct s3_depot *s, const char *fmt, ...)
{
	AUTO_FREE char *key = NULL;
	char *url;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&key, fmt, args);
	va_end(args);
	if (n < 0) {
		key = NULL;
		return NULL;
	}
	return asprintf(&url, "%s/%s%s", s->base, s->prefix, key) < 0 ? NULL : url;
}

char *s3_blob_url(const struct s3_depot *s, const struct digest *blob)
{
	char hex[SHA256_HEX_SIZE];

	return s3_url(s, "blobs/sha256/%s", hex_encode(blob->b, sizeof(blob->b), hex));
}

static int add_header(struct strlist *l, const char *name, const char *value)
{
	char *line;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return -ENOMEM;
	return strlist_take(l, line);
}

int s3_send(struct s3_depot *s, struct http_request *q, const struct digest *body,
	    const struct strlist *headers, struct http_answer *ret, struct err *err)
{
	const struct digest none = digest_of("", 0);
	CLEANUP(strlist_done) struct strlist all = { 0 };
	char hex[SHA256_HEX_SIZE];
	int r = 0;

	if (!body)
		body = &none;
	for (size_t i = 0; r == 0 && headers && i < headers->n; i++)
		r = strlist_add(&all, headers->list[i]);
	if (r == 0)
		r = add_header(&all, "x-amz-content-sha256",
			       hex_encode(body->b, sizeof(body->b), hex));
	if (r == 0 && s->config.token)
		r = add_header(&all, "x-amz-security-token", s->config.token);
	if (r < 0)
		return err_nomem(err);
	q->headers = &all;
	q->keys = s->config.access ? &s->keys : NULL;
	q->stay = true;
	r = http_send(s->http, q, ret, err);
	q->headers = NULL;
	return r;
}

int s3_put_small(struct s3_depot *s, const char *url, const void *bytes, size_t len,
		 struct err *err)
{
	const struct http_source source = http_source_bytes(bytes, len);
	const struct digest body = digest_of(bytes, len);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	struct http_request q = { .method = "PUT", .url = url, .source = &source };
	int r = s3_send(s, &q, &body, NULL, &a, err);

	return r < 0 || a.status == 200 ? r : s3_explain(s, &a, "putting an object", err);
}

int s3_remove(struct s3_depot *s, const char *url, struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	struct http_request q = { .method = "DELETE", .url = url };
	int r = s3_send(s, &q, NULL, NULL, &a, err);

	/* Most stores say 204 of what was never there, too. */
	return r < 0 || a.status == 204 || a.status == 200
		   ? r
		   : s3_explain(s, &a, "removing an object", err);
}

/* --- answers ------------------------------------------------------------------------------ */

static const struct {
	const char *code; /* what the body says */
	int is;
} codes[] = {
	{ "BadDigest", -EBADMSG },        { "XAmzContentSHA256Mismatch", -EBADMSG },
	{ "EntityTooLarge", -EFBIG },     { "NotImplemented", -ENOTSUP },
	{ "MethodNotAllowed", -ENOTSUP }, { "QuotaExceeded", -EDQUOT },
	{ "XMinioStorageFull", -ENOSPC }, { "InvalidToken", -EACCES },
	{ "ExpiredToken", -EACCES },
};

static int code_of(const struct http_answer *a, const char *code)
{
	for (size_t i = 0; code && i < ARRAY_LEN(codes); i++)
		if (strcmp(code, codes[i].code) == 0)
			return codes[i].is;
	if (a->status == 401 || a->status == 403)
		return -EACCES;
	if (a->status == 501 || a->status == 405)
		return -ENOTSUP;
	if (a->status == 507)
		return -ENOSPC;
	return a->status == 429 || a->status >= 500 ? -EAGAIN : -EPROTO;
}

/* A part of the body, printable, owned; NULL: there is none. */
static char *told(const struct http_answer *a, const char *element)
{
	AUTO_FREE char *text =
	    a->body.len > 0 ? s3_xml_text((const char *)a->body.data, a->body.len, element) : NULL;
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	const char *s;

	if (!text || *text == '\0' || path_append_shown(&shown, text, strnlen(text, TOLD_MAX)) < 0)
		return NULL;
	s = buf_str(&shown);
	return s ? strndup(s, TOLD_MAX) : NULL;
}

static bool is(const char *code, const char *what)
{
	return code && strcmp(code, what) == 0;
}

/* What a person can mend, said so; 0: none of it. */
static int explain_setting(const struct s3_depot *s, const struct http_answer *a, const char *code,
			   struct err *err)
{
	AUTO_FREE char *inside = told(a, "Region");
	const char *region = a->region ? a->region : inside;

	if (is(code, "NoSuchBucket"))
		return err_set(err, -EACCES, "'%s': there is no bucket '%s' (aws s3 mb s3://%s)",
			       s->depot.url, s->bucket, s->bucket);
	if (is(code, "RequestTimeTooSkewed"))
		return err_set(err, -EACCES,
			       "'%s': the clocks of this machine and of the store differ too much "
			       "(timedatectl set-ntp true)",
			       s->depot.url);
	if (a->status == 301 || a->status == 307 || is(code, "AuthorizationHeaderMalformed"))
		return err_set(err, -EACCES,
			       "'%s': the bucket is in another region: AWS_REGION=%.40s",
			       s->depot.url, region ? region : "NAME");
	if (a->status == 403 && !s->config.access && s->config.other)
		return err_set(
		    err, -EACCES,
		    "'%s' wants keys, and the profile gets them by '%.40s', which only "
		    "AWS' tools do (eval \"$(aws configure export-credentials --format env)\")",
		    s->depot.url, s->config.other);
	if (a->status == 403 && !s->config.access)
		return err_set(err, -EACCES,
			       "'%s' wants keys and there are none (AWS_ACCESS_KEY_ID and "
			       "AWS_SECRET_ACCESS_KEY, or: aws configure)",
			       s->depot.url);
	return 0;
}

int s3_explain(const struct s3_depot *s, const struct http_answer *a, const char *what,
	       struct err *err)
{
	AUTO_FREE char *code = told(a, "Code"), *message = told(a, "Message");
	int r = explain_setting(s, a, code, err);

	if (r < 0)
		return r;
	if (a->status == 404)
		return -ENOENT;
	return err_set(err, code_of(a, code), "'%s': %s: %s%s%s (%d)", s->depot.url, what,
		       code ? code : "the store refused", message ? ": " : "",
		       message ? message : "", a->status);
}
