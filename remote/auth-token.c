/*
 * Tokens, as github.com/distribution/distribution/docs/spec/auth describes them: GET with the user's name
 * and password, or with nothing; POST with a token that was bought by `docker login`.
 */
#include "remote/auth-token-i.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/wipe.h"
#include "remote/url.h"

#define TOKEN_MAX 16384

static int append_encoded(struct buf *b, const char *name, const char *text, size_t len)
{
	int r = buf_printf(b, "%s=", name);

	for (size_t i = 0; r == 0 && i < len; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (isalnum(c) || (c != '\0' && strchr("-._~", c)))
			r = buf_append_u8(b, c);
		else
			r = buf_printf(b, "%%%02X", c);
	}
	return r;
}

static int append_pair(struct buf *b, const char *name, const char *text)
{
	int r = b->len > 0 ? buf_append_u8(b, '&') : 0;

	return r < 0 ? r : append_encoded(b, name, text, strlen(text));
}

/* "service=...&scope=...", a pair for each of the scopes. */
static int append_query(struct buf *b, const struct challenge *c)
{
	const char *s = c->scope ? c->scope : "";
	int r = c->service ? append_pair(b, "service", c->service) : 0;

	while (r == 0 && *s) {
		const size_t len = strcspn(s, " ");

		if (len > 0 && b->len > 0)
			r = buf_append_u8(b, '&');
		if (r == 0 && len > 0)
			r = append_encoded(b, "scope", s, len);
		s += len + strspn(s + len, " ");
	}
	return r;
}

static int check_realm(const struct auth_place *p, const struct challenge *c, struct err *err)
{
	AUTO_FREE char *origin = url_origin(c->realm);
	AUTO_FREE char *shown = url_shown(c->realm);

	if (!origin)
		return err_set(err, -EPROTO, "'%s' names no token server that can be asked ('%s')",
			       p->server, shown ? shown : "");
	if (!url_is_https(c->realm) &&
	    (url_is_https(p->base) ||
	     !(url_is_loopback(c->realm) || url_same_host(c->realm, p->base))))
		return err_set(err, -EACCES, "'%s' wants a token from '%s', which has no https",
			       p->server, origin);
	return 0;
}

/* It becomes part of a line of our requests. */
static bool can_be_sent(const char *token)
{
	for (; *token; token++)
		if (*token <= ' ' || *token > '~')
			return false;
	return true;
}

int auth_token_read(const char *text, size_t len, char **ret)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *token;
	struct json j;

	if (json_parse(&doc, text, len, &j, NULL) < 0)
		return -EPROTO;
	token = json_text_if(j, "token");
	if (!token)
		token = json_text_if(j, "access_token");
	if (!token || *token == '\0' || strlen(token) > TOKEN_MAX)
		return -EPROTO;
	if (!can_be_sent(token))
		return -EPROTO;
	return asprintf(ret, "Bearer %s", token) < 0 ? -ENOMEM : 0;
}

static int explain(const struct auth_place *p, const struct challenge *c,
		   const struct credential *mine, const struct http_answer *a, struct err *err)
{
	AUTO_FREE char *origin = url_origin(c->realm);

	if ((a->status == 401 || a->status == 403) && mine->user)
		return err_set(err, -EACCES,
			       "'%s' refuses the credentials of '%s' for '%s' (docker login %s)",
			       origin, mine->user, p->server, p->server);
	if (a->status == 401 || a->status == 403)
		return err_set(err, -EACCES, "'%s' gives no token for '%s' (docker login %s)",
			       origin, p->server, p->server);
	return err_set(err, http_is_busy(a) ? -EAGAIN : -EPROTO, "the token server '%s' answers %d",
		       origin, a->status);
}

/* Ask, by GET with the query in the URL or by POST with the form. */
static int ask(const struct auth_place *p, struct http *http, const struct challenge *c,
	       const struct credential *mine, struct http_request *q, char **ret, struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	int r = http_send(http, q, &a, err);

	if (r < 0)
		return err_wrap(err, r, "asking for a token");
	if (a.status != 200)
		return explain(p, c, mine, &a, err);
	r = auth_token_read((const char *)a.body.data, a.body.len, ret);
	wipe_buf(&a.body);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0
		   ? err_set(err, r, "the token server of '%s' answers without a token", p->server)
		   : 0;
}

int auth_basic(const struct credential *c, char **ret)
{
	CLEANUP(wipe_buf) struct buf plain = BUF_INIT, text = BUF_INIT;
	const char *s = NULL;

	if (buf_printf(&plain, "%s:%s", c->user, c->secret) == 0 &&
	    buf_append_str(&text, "Basic ") == 0 &&
	    base64_append(&text, plain.data, plain.len) == 0)
		s = buf_str(&text);
	*ret = s ? strdup(s) : NULL;
	return *ret ? 0 : -ENOMEM;
}

static int ask_by_get(const struct auth_place *p, struct http *http, const struct challenge *c,
		      const struct credential *mine, char **ret, struct err *err)
{
	CLEANUP(wipe_text_p) char *basic = NULL;
	CLEANUP(buf_done) struct buf query = BUF_INIT, url = BUF_INIT;
	struct http_request q = { .method = "GET" };

	if (append_query(&query, c) < 0 || !buf_str(&query) ||
	    buf_printf(&url, "%s%s%s", c->realm, strchr(c->realm, '?') ? "&" : "?",
		       buf_str(&query)) < 0)
		return err_nomem(err);
	if (mine->user && mine->secret && auth_basic(mine, &basic) < 0)
		return err_nomem(err);
	q.url = buf_str(&url);
	q.authorization = basic;
	return q.url ? ask(p, http, c, mine, &q, ret, err) : err_nomem(err);
}

static int ask_by_post(const struct auth_place *p, struct http *http, const struct challenge *c,
		       const struct credential *mine, char **ret, struct err *err)
{
	CLEANUP(wipe_buf) struct buf form = BUF_INIT;
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	struct http_source source;
	struct http_request q = {
		.method = "POST",
		.url = c->realm,
		.headers = &headers,
		.source = &source,
	};

	if (append_query(&form, c) < 0 || append_pair(&form, "grant_type", "refresh_token") < 0 ||
	    append_pair(&form, "client_id", "snapcow") < 0 ||
	    append_pair(&form, "refresh_token", mine->refresh) < 0 ||
	    strlist_add(&headers, "Content-Type: application/x-www-form-urlencoded") < 0)
		return err_nomem(err);
	source = http_source_bytes(form.data, form.len);
	return ask(p, http, c, mine, &q, ret, err);
}

int auth_token(const struct auth_place *p, struct http *http, const struct challenge *c,
	       const struct credential *mine, char **ret, struct err *err)
{
	int r = check_realm(p, c, err);

	if (r < 0)
		return r;
	if (mine->bearer && can_be_sent(mine->bearer))
		return asprintf(ret, "Bearer %s", mine->bearer) < 0 ? err_nomem(err) : 0;
	if (mine->refresh)
		return ask_by_post(p, http, c, mine, ret, err);
	return ask_by_get(p, http, c, mine, ret, err);
}
