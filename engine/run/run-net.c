#include "engine/run/run-net.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/run/run-refusal.h"

#define PROXY "127.0.0.1:3128"
_Static_assert(BRIDGE_PORT == 3128, "the variables name it");

void run_net_done(struct run_net *n)
{
	proxy_close(n->proxy);
	cleanup_close(&n->inside);
	allow_done(&n->allow);
	run_tls_done(&n->tls);
	*n = RUN_NET_INIT;
}

int run_net_choose(struct run_net *n, const struct run_terms *terms, struct sandbox_spec *spec,
		   struct err *err)
{
	int r = allow_parse(terms->net ? terms->net : "none", &n->allow, err);

	if (r < 0)
		return err_wrap(err, r, "option '--net'");
	/* An empty list, so that there is something that can ask. */
	if (terms->ask_ms > 0 && (n->allow.mode == NET_NONE || n->allow.mode == NET_LOOPBACK))
		n->allow.mode = NET_LIST;
	n->max_out = terms->limits.net_out;
	if (n->max_out > 0 && n->allow.mode == NET_HOST)
		return err_set(err, -EINVAL,
			       "option '--net-out': nothing counts what is sent with '--net host': "
			       "list hosts, or say '--net-out 0'");
	spec->net = n->allow.mode == NET_HOST   ? SANDBOX_NET_HOST
		    : n->allow.mode == NET_LIST ? SANDBOX_NET_HELPER
						: SANDBOX_NET_NONE;
	return 0;
}

struct engine_list run_net_variables(const struct run_net *n)
{
	static const char *const variables[] = {
		"http_proxy=http://" PROXY,         "HTTP_PROXY=http://" PROXY,
		"https_proxy=http://" PROXY,        "HTTPS_PROXY=http://" PROXY,
		"all_proxy=socks5h://" PROXY,       "ALL_PROXY=socks5h://" PROXY,
		"no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1",
	};

	if (n->allow.mode != NET_LIST)
		return (struct engine_list){ 0 };
	return (struct engine_list){ variables, ARRAY_LEN(variables) };
}

/*
 * The name may be a symlink, often into a folder that a run does not see, so we show the text at its
 * target.  If the host lacks the file, the run needs none: libraries then ask 127.0.0.1.
 */
static int show_text(struct layout *l, const char *name, const char *text, struct err *err)
{
	AUTO_FREE char *path = realpath(name, NULL);
	const struct sandbox_mount m = { .kind = SANDBOX_TEXT, .host = text, .guest = path };

	if (!path && errno == ENOENT)
		return 0;
	return path ? layout_add(l, &m, err) : err_sys(err, "looking for '%s'", name);
}

static const char resolver[] = "nameserver 127.0.0.1\n";
/* As root's programs look up the host's own name. */
static const char root_hosts[] = "127.0.0.1 localhost snap\n::1 localhost ip6-localhost\n";
static const char hosts[] = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n";

int run_net_show(const struct run_net *n, struct layout *l, struct err *err)
{
	int r;

	if (n->allow.mode != NET_LIST)
		return 0;
	r = show_text(l, "/etc/resolv.conf", resolver, err);
	/* The host's resolver is beyond the bridge, where no run can go. */
	if (r >= 0)
		r = show_text(l, "/etc/hosts", hosts, err);
	return r < 0 ? r : run_tls_show(&n->tls, l, err);
}

int run_net_show_over(const struct run_net *n, struct layout *l, struct err *err)
{
	const struct sandbox_mount files[] = {
		{ .kind = SANDBOX_TEXT,
		  .host = resolver,
		  .guest = "/etc/resolv.conf",
		  .only_over = true },
		{ .kind = SANDBOX_TEXT,
		  .host = root_hosts,
		  .guest = "/etc/hosts",
		  .only_over = true },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && n->allow.mode == NET_LIST && i < ARRAY_LEN(files); i++)
		r = layout_add(l, &files[i], err);
	return r;
}

static int be_bridge(void *ctx, int fd, int ready_fd, struct err *err)
{
	return bridge_main(ctx, fd, ready_fd, err);
}

/* Without a proxy the bridge ends too, and every connection from inside is refused. */
static int step_proxy(void *ctx, struct err *err)
{
	struct run_net *n = ctx;
	int r = proxy_step(n->proxy, err);

	if (r < 0)
		log_warn("the run has no network any more: %s, continuing", err->msg);
	if (r != 0) {
		n->sent = proxy_sent(n->proxy, &n->capped);
		proxy_close(TAKE_PTR(n->proxy));
	}
	return r != 0;
}

static void take_refusal(void *ctx, const struct net_refusal *refused)
{
	struct run_net *n = ctx;
	char sentence[NET_HOST_SHOWN * 3], what[NET_HOST_SHOWN + 16], flag[NET_FLAG_MAX];
	char kind[] = "connection", rule[16];
	const struct engine_refusal refusal = {
		.kind = kind, .what = what, .rule = rule, .flag = flag, .message = sentence
	};

	net_refusal_explain(refused, sentence, sizeof(sentence));
	net_refusal_target(refused, what, sizeof(what));
	snprintf(flag, sizeof(flag), "%s", refused->flag);
	snprintf(rule, sizeof(rule), "%s", net_rule_name(refused->rule));
	if (run_refusals_add(n->refusals, n->secrets, &refusal) < 0)
		log_warn("out of memory: a refused connection is not kept, continuing");
}

int run_net_open(struct run_net *n, const struct scrub *secrets, struct engine_refusals *refusals,
		 struct sandbox_spec *spec, struct err *err)
{
	const struct proxy_options options = { .allow = &n->allow,
					       .max_out = n->max_out,
					       .secrets = n->hidden,
					       .tls = run_tls_plan(&n->tls),
					       .refused = take_refusal,
					       .refused_ctx = n,
					       .ask = n->ask,
					       .ask_ctx = n->ask_ctx };
	int outside, r;

	if (n->allow.mode != NET_LIST)
		return 0;
	n->secrets = secrets;
	n->refusals = refusals;
	n->bridge = (struct bridge_options){ .port = BRIDGE_PORT,
					     .dns_port = BRIDGE_DNS_PORT,
					     .allow = &n->allow };
	r = proxy_socketpair(&outside, &n->inside, err);
	if (r == 0)
		r = proxy_open(&options, outside, &n->proxy, err);
	if (r < 0)
		return r;
	spec->helpers[spec->n_helpers++] =
	    (struct sandbox_helper){ .main = be_bridge, .ctx = &n->bridge, .fd = n->inside };
	spec->beside[spec->n_beside++] =
	    (struct sandbox_beside){ .step = step_proxy, .ctx = n, .fd = proxy_fd(n->proxy) };
	return 0;
}

void run_net_tell(const struct run_net *n, struct engine_run *run)
{
	bool capped = n->capped;

	run->net_sent = n->proxy ? proxy_sent(n->proxy, &capped) : n->sent;
	if (capped)
		snprintf(run->limit, sizeof(run->limit), "%s", RUN_NET_OUT);
}
