/*
 * What a registry lets us do, found by doing it: its version, its tags, and an upload that is begun
 * and called off. Nothing stays there.
 */
#include "remote/registry-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/wipe.h"
#include "remote/credential.h"
#include "remote/probe-i.h"
#include "remote/url.h"

#define ROUND_TRIPS 5

static bool is_https(const struct registry *g)
{
	return strncmp(g->origin, "https:", 6) == 0;
}

/* Nobody there, or something that is no registry. */
static int report_lost(const struct registry *g, const struct probe *p, int r,
		       const struct err *why)
{
	char fix[300];

	if (r == -EPROTO && is_https(g)) {
		snprintf(fix, sizeof(fix),
			 "name its authority: SSL_CERT_FILE=FILE; or, for a registry without TLS: "
			 "snapcow remote add --insecure NAME oci://%.80s/%.80s",
			 g->server, g->repository);
		probe_tell(p, DEPOT_ILL, "tls", fix, "%s", why->msg);
		return r;
	}
	if (r == -EHOSTUNREACH)
		snprintf(fix, sizeof(fix), "see whether the name is right: getent hosts %.*s",
			 (int)strcspn(g->server, ":"), g->server);
	else
		snprintf(fix, sizeof(fix),
			 "see whether it runs and can be reached: curl -i %.120s/v2/", g->origin);
	probe_tell(p, DEPOT_ILL, "reach", fix, "%s", why->msg);
	return r;
}

/* One request without credentials: any answer proves that it is there. */
static int try_reach(struct registry *g, const struct probe *p)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = text_format("%s/v2/", g->origin);
	struct http_request q = { .method = "GET", .url = url, .quick = true };
	const time_t before = time(NULL);
	const uint64_t start = clock_us();
	struct err why = { 0 };
	struct tm tm = { 0 };
	int r;

	if (!url)
		return -ENOMEM;
	r = http_send(g->http, &q, &a, &why);
	if (r < 0)
		return report_lost(g, p, r, &why);
	if (a.status >= 500 || (a.status != 200 && a.status != 401 && a.status != 403)) {
		probe_tell(p, DEPOT_ILL, "reach",
			   "see its log, and whether a registry has that address",
			   "'%s' answers as no registry does (%d)", url, a.status);
		return -EPROTO;
	}
	probe_tell(p, DEPOT_WELL, "reach", "", "'%s' answered after %" PRIu64 " ms", g->origin,
		   (clock_us() - start) / 1000);
	if (is_https(g))
		probe_tell(p, DEPOT_WELL, "tls", "", "its certificate is good");
	else if (g->local)
		probe_tell(p, DEPOT_WELL, "tls", "", "none, and none is needed on this machine");
	else
		probe_tell(p, DEPOT_WEAK, "tls", "give the registry a certificate, then use oci://",
			   "none: the network sees and can change what travels");
	if (a.date && strptime(a.date, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		probe_clock(p, timegm(&tm), before - 1, time(NULL) + 1);
	return 0;
}

static int no_tag(const char *tag, void *ctx)
{
	return 1;
}

/* Which of the user's credentials it took, if any. */
static void report_login(const struct registry *g, const struct probe *p)
{
	const struct auth_place place = {
		.base = g->origin,
		.server = g->server,
		.repository = g->repository,
	};
	CLEANUP(credential_done) struct credential mine = { 0 };
	CLEANUP(wipe_text_p) char *authorization = NULL;
	int has = credential_find(g->server, &mine, NULL);

	IGNORE_RESULT(auth_current(&place, &authorization), "then the finding says none");
	if (!authorization)
		probe_tell(p, DEPOT_WELL, "login", "", "it asks for none");
	else if (has > 0)
		probe_tell(p, DEPOT_WELL, "login", "", "as '%s', with docker's credentials",
			   mine.user ? mine.user : "(a token)");
	else
		probe_tell(p, DEPOT_WELL, "login", "", "as nobody: everybody may read here");
}

/* The first request that credentials are needed for. */
static int try_login(struct registry *g, const struct probe *p)
{
	struct err why = { 0 };
	char fix[160];
	int r = registry_list_tags(&g->depot, no_tag, NULL, &why);

	if (r >= 0) {
		report_login(g, p);
		return 0;
	}
	snprintf(fix, sizeof(fix), r == -EACCES ? "docker login %.120s" : "see the log of %.120s",
		 g->server);
	probe_tell(p, DEPOT_ILL, r == -EACCES ? "login" : "pull", fix, "%s", why.msg);
	return r;
}

static void call_off(struct registry *g, const char *location)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = location ? url_resolve(g->origin, location) : NULL;
	struct http_request q = { .method = "DELETE", .url = url, .once = true };

	if (url)
		IGNORE_RESULT(registry_send(g, &q, &a, NULL), "registries forget what is not used");
}

static void try_push(struct registry *g, const struct probe *p)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = registry_url(g, "/blobs/uploads/");
	struct http_request q = { .method = "POST", .url = url, .once = true };
	struct err why = { 0 };
	char fix[260];
	int r = url ? registry_send(g, &q, &a, &why) : -ENOMEM;

	if (r == 0 && a.status == 202) {
		call_off(g, a.location);
		probe_tell(p, DEPOT_WELL, "push", "", "an upload could begin");
		return;
	}
	if (r == 0)
		r = registry_explain(g, &a, "beginning an upload", &why);
	snprintf(fix, sizeof(fix),
		 "log in as somebody who may write to '%.60s': docker login %.100s", g->repository,
		 g->server);
	probe_tell(p, DEPOT_WEAK, "push", fix, "%s",
		   r == -ENOENT ? "the registry has no such repository" : why.msg);
}

static void try_latency(struct registry *g, const struct probe *p)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		const struct digest none = digest_of("", 0);
		const uint64_t start = clock_us();
		uint64_t size, us;

		if (registry_has_blob(&g->depot, &none, &size, NULL) < 0)
			return;
		us = clock_us() - start;
		best = us < best ? us : best;
	}
	probe_tell(p, best > 500000 ? DEPOT_WEAK : DEPOT_WELL, "latency",
		   best > 500000 ? "use a registry that is nearer" : "",
		   "%" PRIu64 ".%" PRIu64 " ms for a request, the best of %d", best / 1000,
		   best % 1000 / 100, ROUND_TRIPS);
}

int registry_probe(struct depot *d, depot_tell_fn tell, void *ctx)
{
	const struct probe p = { tell, ctx };
	struct registry *g = registry_of(d);
	int r = try_reach(g, &p);

	if (r == 0)
		r = try_login(g, &p);
	if (r < 0)
		return r;
	try_push(g, &p);
	try_latency(g, &p);
	return 0;
}
