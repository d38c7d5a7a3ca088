#include "engine/run/run-secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/wipe.h"

#define OPTION "option '--secret-for'"
#define BEARER "Authorization: Bearer {"

void run_secrets_done(struct run_secrets *s)
{
	for (size_t i = 0; i < s->n; i++) {
		sys_unmap_secret(s->list[i].memory, s->list[i].size);
		free(s->list[i].rule);
		allow_done(&s->net.list[i].rule);
	}
	free(s->list);
	free(s->net.list);
	*s = (struct run_secrets){ 0 };
}

/* --- the value ---------------------------------------------------------------------------- */

static bool is_header_text(const char *text, size_t len)
{
	return VEC_ALL(it, text, len, ((unsigned char)*it >= 32 || *it == '\t') && *it != 127);
}

/* The header around a value, where nobody inherits it. */
static int keep(struct run_secret *s, struct net_secret *net, const char *form, size_t open,
		size_t close, struct http_span value, struct err *err)
{
	const size_t before = open, after = strlen(form + close + 1);

	if (value.len == 0 || value.len > NET_SECRET_MAX || !is_header_text(value.at, value.len))
		return err_set(err, -EINVAL,
			       OPTION
			       ": the value of '%.*s' is no text of one line, or longer than %d "
			       "bytes",
			       (int)(close - open - 1), form + open + 1, NET_SECRET_MAX);
	s->size = before + value.len + after;
	s->memory = sys_map_secret(s->size);
	if (!s->memory)
		return err_sys(err, "memory for a secret");
	memcpy(s->memory, form, before);
	memcpy(s->memory + before, value.at, value.len);
	memcpy(s->memory + before + value.len, form + close + 1, after);
	net->name = (struct http_span){ s->memory, strcspn(form, ":") };
	net->line = (struct http_span){ s->memory, s->size };
	net->value = (struct http_span){ s->memory + before, value.len };
	return 0;
}

/* A line feed at the end of a file is none of the secret's. */
static int keep_file(struct run_secret *s, struct net_secret *net, const char *form, size_t open,
		     size_t close, const char *path, struct err *err)
{
	CLEANUP(wipe_buf) struct buf text = BUF_INIT;
	int r = fdio_read_file(AT_FDCWD, path, NET_SECRET_MAX + 2, &text, err);

	if (r < 0)
		return err_wrap(err, r, OPTION);
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	return keep(s, net, form, open, close,
		    (struct http_span){ (const char *)text.data, text.len }, err);
}

/* --- the option --------------------------------------------------------------------------- */

/* "NAME" and "@FILE" mean the usual header; owned by the caller. */
static char *form_of(const char *text)
{
	if (strchr(text, '{') || strchr(text, ':'))
		return strdup(text);
	return text_format(BEARER "%s}", text);
}

static bool is_form(const char *form, size_t *ret_open, size_t *ret_close)
{
	static const char *const never[] = { "host",       "content-length", "transfer-encoding",
					     "connection", "upgrade",        "accept-encoding" };
	const size_t name = strspn(form, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789-_");

	*ret_open = strcspn(form, "{");
	*ret_close = *ret_open + strcspn(form + *ret_open, "}");
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (strlen(never[i]) == name && strncasecmp(form, never[i], name) == 0)
			return false;
	return name > 0 && form[name] == ':' && *ret_open > name && form[*ret_open] == '{' &&
	       form[*ret_close] == '}' && *ret_close > *ret_open + 1 &&
	       !strchr(form + *ret_close, '{') && is_header_text(form, strlen(form));
}

/* The run must not have what it is not to see. */
static int check_hidden(const struct run_env *env, const char *name, struct http_span value,
			struct err *err)
{
	for (size_t i = 0; i < env->words.n; i++) {
		const char *word = env->words.list[i];
		const size_t len = strcspn(word, "=");

		if (memmem(word, strlen(word), value.at, value.len))
			return err_set(err, -EINVAL,
				       OPTION ": the run would see '%s' in its variable '%.*s'",
				       name, (int)len, word);
	}
	return 0;
}

static int check_net(const char *rule, const struct net_secret *s, const struct run_net *net,
		     struct err *err)
{
	const struct allow_rule *r = s->rule.rules;
	char text[ADDR_TEXT_MAX];
	const char *host;
	struct allow_target target;
	int x;

	if (s->rule.mode != NET_LIST || s->rule.n != 1 || !r->request.on || r->below ||
	    r->low != r->high)
		return err_set(err, -EINVAL,
			       OPTION ": '%s' is not http://HOST[:PORT][/PATH] or https://", rule);
	host = *r->host != '\0' ? r->host : addr_format(&r->range.first, text);
	if (net->allow.mode != NET_LIST ||
	    allow_ask(&net->allow, host, strlen(host), r->low, &target) != ALLOW_YES)
		return err_set(err, -EINVAL,
			       OPTION ": '%s:%u' is not in the list of '--net', add '--net %s:%u'",
			       host, r->low, host, r->low);
	if (target.any)
		return err_set(err, -EINVAL,
			       OPTION ": '--net' lets anything pass to '%s:%u' unread, say '--net "
				      "http%s://%s:%u' instead",
			       host, r->low, r->request.tls ? "s" : "", host, r->low);
	x = inspect_check_rule(&net->tls.hosts, r, err);
	return x < 0 ? err_wrap(err, x, OPTION) : 0;
}

static int read_value(struct run_secret *s, struct net_secret *net, const char *form, size_t open,
		      size_t close, struct run_env *env, struct err *err)
{
	AUTO_FREE char *name = strndup(form + open + 1, close - open - 1);
	const char *value;
	int r;

	if (!name)
		return err_nomem(err);
	if (*name == '@') {
		r = keep_file(s, net, form, open, close, name + 1, err);
	} else {
		value = getenv(name);
		r = value ? keep(s, net, form, open, close,
				 (struct http_span){ value, strlen(value) }, err)
			  : err_set(err, -EINVAL, OPTION ": '%s' is not in the environment", name);
	}
	if (r >= 0)
		r = check_hidden(env, name, net->value, err);
	return r < 0 ? r : scrub_lend(&env->secrets, name, net->value.at, net->value.len, err);
}

static int read_one(struct run_secrets *s, const char *given, const struct run_net *net,
		    struct run_env *env, struct err *err)
{
	const char *equals = strchr(given, '=');
	AUTO_FREE char *form = equals && equals[1] != '\0' ? form_of(equals + 1) : NULL;
	struct run_secret *one;
	struct net_secret *for_net;
	size_t open, close;
	int r;

	if (!equals || equals[1] == '\0')
		return err_set(err, -EINVAL, OPTION ": '%s' is not http://HOST=NAME", given);
	if (!form)
		return err_nomem(err);
	if (!is_form(form, &open, &close))
		return err_set(err, -EINVAL,
			       OPTION
			       ": '%s' is no header with a name in it, as in 'X-Key: {NAME}'",
			       equals + 1);
	if (!VEC_ONE_MORE(s->list, s->n) || !VEC_ONE_MORE(s->net.list, s->net.n))
		return err_nomem(err);
	one = &s->list[s->n++];
	for_net = &s->net.list[s->net.n++];
	*one = (struct run_secret){ .rule = strndup(given, (size_t)(equals - given)) };
	*for_net = (struct net_secret){ .rule = ALLOW_INIT };
	if (!one->rule)
		return err_nomem(err);
	r = allow_parse(one->rule, &for_net->rule, err);
	if (r < 0)
		return err_wrap(err, r, OPTION);
	r = check_net(one->rule, for_net, net, err);
	return r < 0 ? r : read_value(one, for_net, form, open, close, env, err);
}

int run_secrets_read(struct run_secrets *s, const struct engine_run_options *o,
		     const struct engine_profile *profile, const struct run_net *net,
		     struct run_env *env, struct err *err)
{
	int r = 0;

	if (profile->secret_for.n + o->secret_for.n > NET_SECRETS_MAX)
		return err_set(err, -EINVAL, OPTION ": more than %d secrets in one run",
			       NET_SECRETS_MAX);
	for (size_t i = 0; r >= 0 && i < profile->secret_for.n; i++)
		r = read_one(s, profile->secret_for.list[i], net, env, err);
	for (size_t i = 0; r >= 0 && i < o->secret_for.n; i++)
		r = read_one(s, o->secret_for.items[i], net, env, err);
	return r;
}
