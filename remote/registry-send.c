#include "remote/registry-i.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/wipe.h"
#include "remote/url.h"

#define ROUNDS_MAX 2   /* how often one request may be refused for its authorization */
#define TOLD_MAX   110 /* bytes of what a registry says, in a sentence */

char *registry_url(const struct registry *g, const char *fmt, ...)
{
	CLEANUP(buf_done) struct buf url = BUF_INIT;
	AUTO_FREE char *rest = NULL;
	va_list args;
	const char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&rest, fmt, args);
	va_end(args);
	if (n < 0) {
		rest = NULL;
		return NULL;
	}
	if (buf_printf(&url, "%s/v2/%s%s", g->origin, g->repository, rest) < 0)
		return NULL;
	text = buf_str(&url);
	return text ? strdup(text) : NULL;
}

int registry_send(struct registry *g, struct http_request *q, struct http_answer *ret,
		  struct err *err)
{
	const struct auth_place place = {
		.base = g->origin,
		.server = g->server,
		.repository = g->repository,
	};
	const bool ours = url_same_origin(q->url, g->origin);

	for (int round = 0;; round++) {
		CLEANUP(wipe_text_p) char *authorization = NULL;
		int r = ours ? auth_current(&place, &authorization) : 0;

		if (r < 0)
			return err_nomem(err);
		q->authorization = authorization;
		r = http_send(g->http, q, ret, err);
		q->authorization = NULL;
		if (r < 0 || ret->status != 401 || !ours)
			return r;
		if (round == ROUNDS_MAX)
			return registry_explain(g, ret, "asking", err);
		r = auth_meet(&place, g->http, ret, authorization, err);
		if (r < 0)
			return r;
	}
}

char *registry_error_text(const char *body, size_t len)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *code, *message, *text;
	struct json j, list;

	if (json_parse(&doc, body, len, &j, NULL) < 0 || json_kind(j, "errors") != JSON_ARRAY)
		return NULL;
	list = json_get_array(j, "errors");
	if (json_length(list) == 0)
		return NULL;
	j = json_at_object(list, 0);
	if (!j.node)
		return NULL;
	code = json_text_if(j, "code");
	message = json_text_if(j, "message");
	if (!code && !message)
		return NULL;
	if (code && path_append_shown(&out, code, strnlen(code, TOLD_MAX / 2)) < 0)
		return NULL;
	if (code && message && buf_append_str(&out, ": ") < 0)
		return NULL;
	if (message && path_append_shown(&out, message, strnlen(message, TOLD_MAX)) < 0)
		return NULL;
	text = buf_str(&out);
	return text ? strndup(text, TOLD_MAX) : NULL;
}

static const struct {
	int status, code;
	const char *means;
} meanings[] = {
	{ 400, -EPROTO, "the request is refused as wrong" },
	{ 401, -EACCES, "credentials are wanted" },
	{ 403, -EACCES, "that is not allowed with these credentials" },
	{ 405, -ENOTSUP, "the registry does not allow that" },
	{ 413, -EFBIG, "that is too large for it" },
	{ 416, -EPROTO, "there is no such range" },
	{ 429, -EAGAIN, "too many requests" },
	{ 507, -ENOSPC, "it is full" },
};

static bool says_full(const struct http_answer *a)
{
	return a->body.len > 0 && (memmem(a->body.data, a->body.len, "no space left", 13) ||
				   memmem(a->body.data, a->body.len, "ENOSPC", 6));
}

int registry_explain(const struct registry *g, const struct http_answer *a, const char *what,
		     struct err *err)
{
	AUTO_FREE char *told =
	    a->body.len > 0 ? registry_error_text((const char *)a->body.data, a->body.len) : NULL;
	const char *means =
	    a->status >= 500 ? "the registry has failed" : "an answer nobody expects";
	int code = a->status >= 500 ? -EAGAIN : -EPROTO;

	if (a->status == 404)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].status != a->status)
			continue;
		code = meanings[i].code;
		means = meanings[i].means;
	}
	if (told && strncmp(told, "UNSUPPORTED", 11) == 0)
		code = -ENOTSUP;
	if (told && strncmp(told, "DIGEST_INVALID", 14) == 0)
		code = -EBADMSG;
	if (says_full(a))
		code = -ENOSPC;
	return err_set(err, code, "'%s': %s: %s (%d)", g->depot.url, what, told ? told : means,
		       a->status);
}

bool registry_confirms(const struct http_answer *a, const struct digest *d)
{
	char text[DIGEST_TEXT_SIZE];

	/* Other algorithms are allowed, and say nothing to us. */
	if (!a->digest || strncmp(a->digest, "sha256:", 7) != 0)
		return true;
	return strcmp(a->digest, digest_text(d, text)) == 0;
}
