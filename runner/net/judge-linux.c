#include "runner/net/judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "runner/net/hello.h"
#include "runner/net/relay.h"

void judge_init(struct judge *j, const char *host)
{
	*j = (struct judge){ .host = host, .stage = host ? JUDGE_FIRST : JUDGE_PASS };
	j->first_request = true;
}

void judge_requests(struct judge *j, const struct allow *allow, const struct allow_target *target,
		    uint16_t port)
{
	judge_init(j, target->host);
	j->allow = allow;
	j->target = target;
	j->port = port;
}

void judge_secrets(struct judge *j, const struct net_secrets *secrets,
		   const struct allow_target *target, uint16_t port)
{
	if (!net_secrets_concern(secrets, target, port))
		return;
	j->secrets = secrets;
	j->target = target;
	j->port = port;
}

static int refuse(struct judge *j, enum net_rule rule, const char *other, size_t len)
{
	j->rule = rule;
	snprintf(j->other, sizeof(j->other), "%.*s", (int)len, other);
	return -ECANCELED;
}

static bool is_host(const struct judge *j, const char *name, size_t len)
{
	char canonical[ALLOW_HOST_MAX + 1];
	struct addr addr;

	if (j->target && j->target->literal) {
		if (len >= sizeof(canonical) || memchr(name, '\0', len))
			return false;
		memcpy(canonical, name, len);
		canonical[len] = '\0';
		return addr_parse(canonical, &addr) == 0 && addr_equal(&addr, &j->target->addr);
	}
	return allow_canonical(name, len, canonical) && strcmp(canonical, j->host) == 0;
}

static bool is_authority(const struct judge *j, struct http_span authority)
{
	const uint16_t same = j->port > 0 ? j->port : 1;
	struct http_span host;
	uint16_t port;

	return http_split_authority(authority, same, &host, &port) &&
	       (j->port == 0 || port == j->port) && is_host(j, host.at, host.len);
}

/* Where the request wants to go, if it says so in its first line; servers heed that first. */
static struct http_span named_in_target(const struct http_head *head)
{
	struct http_span t = head->target, path, authority = { 0 };
	const char *scheme = memchr(t.at, ':', t.len);

	if (t.at[0] == '/' || (t.at[0] == '*' && t.len == 1))
		return authority;
	if (!http_split_uri(t, &authority, &path))
		authority = t;
	if (scheme && t.len > 8 && strncmp(t.at, "https://", 8) == 0) {
		authority = (struct http_span){ t.at + 8, t.len - 8 };
		path.at = memchr(authority.at, '/', authority.len);
		authority.len = path.at ? (size_t)(path.at - authority.at) : authority.len;
	}
	return authority;
}

/* The words in which a refusal names a request. */
static int refuse_request(struct judge *j, const struct http_head *head, const struct request *q)
{
	char words[NET_HOST_SHOWN];
	const struct http_span path = q->path.len > 0 ? q->path : head->target;

	snprintf(words, sizeof(words), "%.*s %.*s", (int)head->method.len, head->method.at,
		 (int)path.len, path.at);
	return refuse(j, NET_RULE_REQUEST, words, strlen(words));
}

/* Behind an upgrade nothing would be read; and a header must not undo what was judged. */
static int judge_request(struct judge *j, const struct http_head *head, struct request *q)
{
	const bool known = request_of(head, q);

	q->tls = j->tls;
	if (j->allow && (!known || head->overrides || head->asks_upgrade ||
			 !allow_request(j->allow, j->target, j->port, q)))
		return refuse_request(j, head, q);
	if (j->secrets &&
	    (!known || head->overrides || head->asks_upgrade || !net_secrets_permit(q)))
		return refuse_request(j, head, q);
	return 0;
}

/* The head goes on, with the secrets that are for it. */
static int pass_head(struct judge *j, const struct http_head *head, const struct request *q,
		     struct buf *in, struct buf *out)
{
	const char *data = (const char *)in->data;
	int r;

	if (j->secrets)
		r = net_secrets_add(j->secrets, j->target, j->port, data, head, q, out);
	else if (j->last)
		r = http_append_closing(out, data, head);
	else
		return relay_pass(in, out, head->len);
	if (r == 0)
		relay_consume(in, head->len);
	return r;
}

static int judge_head(struct judge *j, struct buf *in, struct buf *out)
{
	static const char unreadable[] = "(a request that cannot be read)";
	static const char nobody[] = "(no host at all)";
	struct http_span named;
	struct http_head head;
	struct request q = { 0 };
	int r = http_parse_head((const char *)in->data, in->len, &head);

	if (r < 0)
		return refuse(j, NET_RULE_HTTP, unreadable, strlen(unreadable));
	if (r == 0)
		return 0;
	j->is_http = true;
	/* What comes after a CONNECT would not be for this server. */
	if (head.method.len == 7 && strncasecmp(head.method.at, "CONNECT", 7) == 0)
		return refuse(j, NET_RULE_HTTP, head.target.at, head.target.len);
	named = named_in_target(&head);
	if (named.len > 0 && !is_authority(j, named))
		return refuse(j, NET_RULE_HTTP, named.at, named.len);
	/* Without one a server answers for whichever host it has first. */
	if (head.host.len == 0)
		return refuse(j, NET_RULE_HTTP, nobody, strlen(nobody));
	if (!is_authority(j, head.host))
		return refuse(j, NET_RULE_HTTP, head.host.at, head.host.len);
	r = judge_request(j, &head, &q);
	if (r < 0)
		return r;
	http_body_init(&j->body, &head);
	/* Only the first answer is known to be the answer to this request. */
	j->last = !j->body.done;
	j->stage = head.upgrade && j->first_request && !j->last ? JUDGE_UPGRADE : JUDGE_BODY;
	j->first_request = false;
	return pass_head(j, &head, &q, in, out);
}

/* No TLS: a request, or nothing that goes on. */
static int judge_plain(struct judge *j, const struct buf *in)
{
	static const char unreadable[] = "(a request that cannot be read)";

	switch (http_sniff((const char *)in->data, in->len)) {
	case HTTP_MAYBE:
		return 0;
	case HTTP_REQUEST:
		j->stage = JUDGE_HEAD;
		return 0;
	case HTTP_NO_REQUEST:
		return refuse(j, NET_RULE_HTTP, unreadable, strlen(unreadable));
	case HTTP_OTHER:
		/* Inspected TLS must carry HTTP requests: no option lets anything else pass. */
		return j->tls ? refuse(j, NET_RULE_HTTP, unreadable, strlen(unreadable))
			      : refuse(j, NET_RULE_PROTOCOL, "", 0);
	}
	return -EINVAL;
}

static int judge_first(struct judge *j, const struct buf *in)
{
	static const char hidden[] = "(TLS, which hides it)";
	char name[HELLO_NAME_MAX + 1];

	if (j->tls)
		return judge_plain(j, in);
	switch (hello_read(in->data, in->len, name)) {
	case HELLO_MORE:
		return 0;
	case HELLO_OTHER:
		return judge_plain(j, in);
	case HELLO_BAD:
		return refuse(j, NET_RULE_SNI, "(a hello that cannot be read)", 29);
	case HELLO_READ:
		if (name[0] != '\0' && !is_host(j, name, strlen(name)))
			return refuse(j, NET_RULE_SNI, name, strlen(name));
		if (j->allow)
			return refuse(j, NET_RULE_REQUEST, hidden, strlen(hidden));
		j->stage = JUDGE_PASS;
		return 0;
	}
	return -EINVAL;
}

/* The upgrade has happened only if the server says 101; else requests go on. */
static void hear_reply(struct judge *j)
{
	if (j->reply_len < sizeof(j->reply))
		return;
	j->stage =
	    memcmp(j->reply, "HTTP/1.1 101", sizeof(j->reply)) == 0 ? JUDGE_PASS : JUDGE_BODY;
}

int judge_client(struct judge *j, struct buf *in, struct buf *out, bool eof)
{
	enum judge_stage before;
	ssize_t n;
	int r = 0;

	do {
		before = j->stage;
		switch (j->stage) {
		case JUDGE_FIRST:
			r = in->len > 0 ? judge_first(j, in) : 0;
			break;
		case JUDGE_HEAD:
			r = in->len > 0 ? judge_head(j, in, out) : 0;
			break;
		case JUDGE_BODY:
			n = http_body_take(&j->body, (const char *)in->data, in->len);
			r = n < 0 ? refuse(j, NET_RULE_HTTP, "(a body without an end)", 23)
				  : relay_pass(in, out, (size_t)n);
			if (r == 0 && j->body.done)
				j->stage = j->last ? JUDGE_OVER : JUDGE_HEAD;
			break;
		case JUDGE_OVER:
			buf_reset(in);
			break;
		case JUDGE_UPGRADE:
			hear_reply(j);
			break;
		case JUDGE_PASS:
			r = relay_pass(in, out, in->len);
			break;
		}
	} while (r == 0 && j->stage != before);
	/* What was not understood by the end goes nowhere. */
	if (r == 0 && eof && j->stage != JUDGE_PASS && j->stage != JUDGE_UPGRADE)
		buf_reset(in);
	return r;
}

int judge_server(struct judge *j, struct buf *in, struct buf *out, bool eof)
{
	const size_t room = sizeof(j->reply) - j->reply_len, n = in->len < room ? in->len : room;

	if (n > 0)
		memcpy(j->reply + j->reply_len, in->data, n);
	j->reply_len += n;
	return relay_pass(in, out,
			  j->secrets && j->is_http
			      ? net_secrets_mask(j->secrets, j->target, j->port, &j->mask, in, eof)
			      : in->len);
}
