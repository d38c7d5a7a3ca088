/*
 * What an S3 store lets us do, found by doing it: a list, an object that is put and removed, and whether a
 * second PUT of it on the condition that there is none is refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/text.h"
#include "remote/probe-i.h"
#include "remote/s3-i.h"
#include "remote/url.h"

#define ROUND_TRIPS 5
#define ONLY_IF_NEW "If-None-Match: *"

/* Nobody there, or no TLS that proves anything. */
static int report_lost(const struct s3_depot *s, const struct probe *p, int r,
		       const struct err *why)
{
	char fix[300];
	const bool tls = r == -EPROTO && url_is_https(s->base);

	snprintf(fix, sizeof(fix),
		 tls ? "name its authority: SSL_CERT_FILE=FILE (%.160s)"
		     : "see whether the address is right and can be reached: curl -i %.160s",
		 s->base);
	probe_tell(p, DEPOT_ILL, tls ? "tls" : "reach", fix, "%s", why->msg);
	return r;
}

static void report_reached(const struct s3_depot *s, const struct probe *p,
			   const struct http_answer *a, uint64_t us, time_t before)
{
	struct tm tm = { 0 };

	probe_tell(p, DEPOT_WELL, "reach", "", "'%s' answered after %" PRIu64 " ms", s->base,
		   us / 1000);
	if (url_is_https(s->base))
		probe_tell(p, DEPOT_WELL, "tls", "", "its certificate is good");
	else if (url_is_loopback(s->base))
		probe_tell(p, DEPOT_WELL, "tls", "", "none, and none is needed on this machine");
	else
		probe_tell(p, DEPOT_WEAK, "tls", "give the store a certificate, then use https://",
			   "none: the network sees what travels");
	if (a->date && strptime(a->date, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		probe_clock(p, timegm(&tm), before - 1, time(NULL) + 1);
}

static int report_login(struct s3_depot *s, const struct probe *p, const struct http_answer *a)
{
	struct err why = { 0 };
	int r;

	if (a->status == 200) {
		if (s->config.access)
			probe_tell(p, DEPOT_WELL, "login", "", "with the key '%s'",
				   s->config.access);
		else
			probe_tell(p, DEPOT_WELL, "login", "",
				   "as nobody: everybody may read here");
		return 0;
	}
	r = s3_explain(s, a, "listing", &why);
	if (r == -ENOENT)
		r = err_set(&why, -EPROTO, "'%s' answers as no S3 store does (404)", s->base);
	probe_tell(p, DEPOT_ILL, r == -EACCES ? "login" : "pull",
		   r == -EACCES ? "ask its owner for s3:ListBucket, s3:GetObject, s3:PutObject and "
				  "s3:DeleteObject, and see: aws sts get-caller-identity"
				: "see whether AWS_ENDPOINT_URL is the address of an S3 store",
		   "%s", why.msg);
	return r;
}

static int try_reach(struct s3_depot *s, const struct probe *p)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = text_format("%s/?list-type=2&max-keys=1", s->base);
	struct http_request q = { .method = "GET", .url = url, .quick = true };
	const time_t before = time(NULL);
	const uint64_t start = clock_us();
	struct err why = { 0 };
	int r;

	if (!url)
		return -ENOMEM;
	r = s3_send(s, &q, NULL, NULL, &a, &why);
	if (r < 0)
		return report_lost(s, p, r, &why);
	report_reached(s, p, &a, clock_us() - start, before);
	return report_login(s, p, &a);
}

/* PUT of a byte on the condition that there is none: the status, or a negative errno. */
static int put_new(struct s3_depot *s, const char *url, const struct strlist *headers,
		   struct http_answer *a, struct err *err)
{
	const struct http_source source = http_source_bytes("x", 1);
	const struct digest body = digest_of("x", 1);
	struct http_request q = { .method = "PUT", .url = url, .source = &source, .once = true };
	int r = s3_send(s, &q, &body, headers, a, err);

	return r < 0 ? r : a->status;
}

static void try_push(struct s3_depot *s, const struct probe *p)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 }, again = { 0 };
	CLEANUP(strlist_done) struct strlist condition = { 0 };
	unsigned char random[8] = { 0 };
	char hex[2 * sizeof(random) + 1];
	AUTO_FREE char *url = NULL;
	struct err why = { 0 };
	int r = sys_random(random, sizeof(random));

	url = s3_url(s, "doctor-%s", hex_encode(random, sizeof(random), hex));
	if (r < 0 || !url || strlist_add(&condition, ONLY_IF_NEW) < 0)
		return;
	r = put_new(s, url, &condition, &a, &why);
	if (r == 501)
		r = put_new(s, url, NULL, &a, &why);
	if (r != 200) {
		if (r > 0)
			r = s3_explain(s, &a, "putting an object", &why);
		probe_tell(p, DEPOT_WEAK, "push", "ask its owner for s3:PutObject", "%s", why.msg);
		return;
	}
	r = put_new(s, url, &condition, &again, &why);
	if (s3_remove(s, url, &why) < 0) {
		probe_tell(p, DEPOT_WEAK, "push", "ask its owner for s3:DeleteObject",
			   "an object could be put and not removed: %s", why.msg);
		return;
	}
	probe_tell(p, DEPOT_WELL, "push", "", "an object could be put and removed");
	probe_tell(p, DEPOT_WELL, "names", "",
		   r == 412 ? "the store itself refuses the second of two pushes of one name"
			    : "of two pushes of one name at the same moment the later one wins");
}

static void try_latency(struct s3_depot *s, const struct probe *p)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		const struct digest none = digest_of("", 0);
		const uint64_t start = clock_us();
		uint64_t us;

		if (s3_has_blob(&s->depot, &none, NULL, NULL) < 0)
			return;
		us = clock_us() - start;
		best = us < best ? us : best;
	}
	probe_tell(p, best > 500000 ? DEPOT_WEAK : DEPOT_WELL, "latency",
		   best > 500000 ? "use a store that is nearer" : "",
		   "%" PRIu64 ".%" PRIu64 " ms for a request, the best of %d", best / 1000,
		   best % 1000 / 100, ROUND_TRIPS);
}

int s3_probe(struct depot *d, depot_tell_fn tell, void *ctx)
{
	const struct probe p = { tell, ctx };
	struct s3_depot *s = s3_of(d);
	int r = try_reach(s, &p);

	if (r < 0)
		return r;
	try_push(s, &p);
	try_latency(s, &p);
	return 0;
}
