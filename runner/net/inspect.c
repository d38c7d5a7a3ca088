#include "runner/net/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* The list as --net would have it: with a port everywhere. */
static int add_ports(const char *text, struct buf *out)
{
	for (size_t len;; text += len + 1) {
		len = strcspn(text, ",");
		if (buf_append(out, text, len) < 0 ||
		    (len > 0 && !memchr(text, ':', len) && buf_append_str(out, ":443") < 0))
			return -ENOMEM;
		if (text[len] == '\0')
			return 0;
		if (buf_append_u8(out, ',') < 0)
			return -ENOMEM;
	}
}

static int check_host(const char *text, const struct allow_rule *rule, struct err *err)
{
	if (*rule->host == '\0' || rule->below || rule->any || rule->request.on ||
	    rule->low != rule->high)
		return err_set(err, -EINVAL,
			       "'%.100s' is not HOST[:PORT],... with the name of a host", text);
	return 0;
}

/* Named twice, by a profile and an option, it is still one. */
static void drop_twins(struct allow *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		size_t k = 0;

		while (k < n && (strcmp(list->rules[k].host, list->rules[i].host) != 0 ||
				 list->rules[k].low != list->rules[i].low))
			k++;
		if (k == n)
			list->rules[n++] = list->rules[i];
	}
	list->n = n;
}

int inspect_parse(const char *text, struct allow *ret, struct err *err)
{
	CLEANUP(allow_done) struct allow list = ALLOW_INIT;
	CLEANUP(buf_done) struct buf with_ports = BUF_INIT;
	int r = add_ports(text, &with_ports);

	if (r < 0 || !buf_str(&with_ports))
		return err_nomem(err);
	r = allow_parse(buf_str(&with_ports), &list, err);
	if (r < 0)
		return r;
	drop_twins(&list);
	if (list.mode != NET_LIST || list.n > INSPECT_MAX)
		return err_set(err, -EINVAL, "'%.100s' names no hosts, or more than %d", text,
			       INSPECT_MAX);
	for (size_t i = 0; i < list.n; i++) {
		r = check_host(text, &list.rules[i], err);
		if (r < 0)
			return r;
	}
	allow_done(ret);
	*ret = list;
	list = ALLOW_INIT;
	return 0;
}

bool inspect_has(const struct allow *inspect, const struct allow_target *target, uint16_t port)
{
	struct allow_target unused;

	return inspect && !target->literal &&
	       allow_ask(inspect, target->host, strlen(target->host), port, &unused) == ALLOW_YES;
}

/* --- two lists ---------------------------------------------------------------------------- */

static int check_listed(const struct allow_rule *host, const struct allow *net, struct err *err)
{
	struct allow_target target;

	if (net->mode != NET_LIST ||
	    allow_ask(net, host->host, strlen(host->host), host->low, &target) != ALLOW_YES)
		return err_set(err, -EINVAL,
			       "'%s:%u' is not in the list of '--net', add '--net %s:%u'",
			       host->host, host->low, host->host, host->low);
	if (target.any)
		return err_set(err, -EINVAL,
			       "'--net' lets anything pass to '%s:%u' unread, say '--net "
			       "https://%s:%u' instead",
			       host->host, host->low, host->host, host->low);
	return 0;
}

int inspect_check_rule(const struct allow *inspect, const struct allow_rule *rule, struct err *err)
{
	struct allow_target target = { 0 };
	char port[8] = "";
	bool has = false;

	if (!rule->request.on)
		return 0;
	if (rule->low != 443)
		snprintf(port, sizeof(port), ":%u", rule->low);
	if (*rule->host != '\0' && !rule->below && rule->low == rule->high) {
		memcpy(target.host, rule->host, sizeof(target.host));
		has = inspect_has(inspect, &target, rule->low);
	}
	if (has == rule->request.tls)
		return 0;
	if (has)
		return err_set(err, -EINVAL,
			       "'http://%s:%u' is never asked for where TLS is inspected, say "
			       "'https://%s:%u'",
			       rule->host, rule->low, rule->host, rule->low);
	if (*rule->host == '\0' || rule->below || rule->low != rule->high)
		return err_set(err, -EINVAL,
			       "requests within TLS can be read for one name on one port, not for "
			       "addresses, wildcards or ranges");
	return err_set(err, -EINVAL,
		       "TLS hides the requests to '%s' unless you add '--tls-inspect %s%s'",
		       rule->host, rule->host, port);
}

int inspect_check(const struct allow *inspect, const struct allow *net, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < inspect->n; i++)
		r = check_listed(&inspect->rules[i], net, err);
	if (r < 0)
		return err_wrap(err, r, "option '--tls-inspect'");
	for (size_t i = 0; r >= 0 && i < net->n; i++)
		r = inspect_check_rule(inspect, &net->rules[i], err);
	return r < 0 ? err_wrap(err, r, "option '--net'") : 0;
}
