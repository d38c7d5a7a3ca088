/*
 * The client: when a request is sent again.
 *
 * A try that moved the download forward resets the count of tries: a connection that breaks every
 * hundred megabytes still brings a large pack home. Pauses double, and a random part of them keeps
 * many clients that a server lost together from returning together.
 */
#include "remote/http-i.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/size.h"
#include "base/sys.h"
#include "remote/url.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   10000
#define PAUSE_STEP_MS  50 /* how soon a pause ends when we are to stop */

int http_open(const struct http_options *o, struct http **ret, struct err *err)
{
	CLEANUP(http_close_p) struct http *h = calloc(1, sizeof(*h));
	const char *ca_file = getenv("SSL_CERT_FILE");
	int r;

	if (!h)
		return err_nomem(err);
	h->o = *o;
	if (!h->o.ca_file && ca_file && *ca_file)
		h->o.ca_file = ca_file;
	if (h->o.stall_ms == 0)
		h->o.stall_ms = HTTP_STALL_MS;
	if (h->o.tries == 0)
		h->o.tries = HTTP_TRIES;
	r = curl_load(&h->curl, err);
	if (r < 0)
		return r;
	h->easy = h->curl->easy_init();
	if (!h->easy)
		return err_nomem(err);
	*ret = TAKE_PTR(h);
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->easy)
		h->curl->easy_cleanup(h->easy);
	free(h);
}

/* --- pauses ------------------------------------------------------------------------------- */

static int pause_for(const struct http_request *q, uint64_t ms)
{
	const uint64_t until = sys_boot_ms() + ms;

	for (uint64_t now; (now = sys_boot_ms()) < until;) {
		const uint64_t step = until - now < PAUSE_STEP_MS ? until - now : PAUSE_STEP_MS;
		const struct timespec t = { .tv_nsec = (long)step * 1000000 };

		const int r = q->moved ? q->moved(0, q->moved_ctx) : 0;

		if (r < 0)
			return r;
		nanosleep(&t, NULL);
	}
	return 0;
}

static uint64_t backoff_ms(unsigned n)
{
	uint64_t ms = n < 8 ? (uint64_t)PAUSE_FIRST_MS << n : PAUSE_MAX_MS;
	uint16_t dice = 0;

	if (ms > PAUSE_MAX_MS)
		ms = PAUSE_MAX_MS;
	IGNORE_RESULT(sys_random(&dice, sizeof(dice)), "a pause without chance is a pause, too");
	return ms / 2 + ms * dice / 131072;
}

/* What Retry-After asks for: seconds, or a date; 0: nothing that can be read. */
static uint64_t asked_ms(const struct http_answer *a)
{
	struct tm tm = { 0 };
	uint64_t seconds;
	time_t now, then;

	if (!a->retry_after)
		return 0;
	if (size_parse_u64(a->retry_after, &seconds) == 0)
		return seconds < UINT64_MAX / 1000 ? seconds * 1000 : UINT64_MAX;
	if (!strptime(a->retry_after, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return 0;
	now = time(NULL);
	then = timegm(&tm);
	return then > now ? (uint64_t)(then - now) * 1000 : 0;
}

/* --- redirects ---------------------------------------------------------------------------- */

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Where the answer sends us; *url is replaced. */
static int follow(const struct http_request *q, const struct http_answer *a, char **url,
		  struct err *err)
{
	AUTO_FREE char *to = a->location ? url_resolve(*url, a->location) : NULL;
	AUTO_FREE char *shown = a->location ? url_shown(a->location) : NULL;

	if (!to)
		return err_set(err, -EXDEV, "the server redirects to nowhere ('%s')",
			       shown ? shown : "");
	if (q->source)
		return err_set(err, -EXDEV, "the server redirects an upload to '%s', refused",
			       shown);
	if (url_is_https(*url) && !url_is_https(to))
		return err_set(err, -EXDEV, "the server redirects from https to '%s', refused",
			       shown);
	free(*url);
	*url = TAKE_PTR(to);
	return 0;
}

/* --- tries -------------------------------------------------------------------------------- */

/* One try, with the redirects that come of it. */
static int send_once(struct http *h, const struct http_request *q, uint64_t *taken,
		     struct http_answer *a, struct err *err)
{
	AUTO_FREE char *url = strdup(q->url);
	int r;

	if (!url)
		return err_nomem(err);
	for (int n = 0; n <= HTTP_REDIRECTS_MAX; n++) {
		struct transfer t = {
			.h = h,
			.q = q,
			.url = url,
			.a = a,
			.taken = taken,
			.trusted = url_same_origin(url, q->url),
		};

		r = transfer_run(&t, err);
		if (r < 0)
			return r;
		if (!is_redirect(a->status) || q->stay)
			return 0;
		r = follow(q, a, &url, err);
		if (r < 0)
			return r;
	}
	return err_set(err, -ELOOP, "the server redirects more than %d times", HTTP_REDIRECTS_MAX);
}

bool http_is_lost(int r)
{
	return r == -ECONNRESET || r == -ETIMEDOUT || r == -ECONNREFUSED || r == -EHOSTUNREACH;
}

bool http_is_busy(const struct http_answer *a)
{
	const int s = a->status;

	return s == 429 || s == 500 || s == 502 || s == 503 || s == 504;
}

int http_pause(const struct http_request *q, const struct http_answer *a, unsigned n)
{
	const uint64_t asked = a ? asked_ms(a) : 0;

	if (asked > HTTP_WAIT_MAX_MS)
		return -EAGAIN;
	return pause_for(q, asked > 0 ? asked : backoff_ms(n));
}

/* Is there sense in another try, after `n` that failed like this one? */
static bool is_worth_it(const struct http *h, const struct http_request *q, int r, unsigned n)
{
	if (q->once || n + 1 >= h->o.tries)
		return false;
	if (r < 0 && !http_is_lost(r))
		return false;
	return !q->quick || (r != -ECONNREFUSED && r != -EHOSTUNREACH);
}

int http_send(struct http *h, const struct http_request *q, struct http_answer *ret,
	      struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { .length = UINT64_MAX };
	uint64_t taken = 0, before = 0;
	unsigned n = 0;
	int r, paused;

	for (;;) {
		r = send_once(h, q, &taken, &a, err);
		if (r == 0 && !http_is_busy(&a))
			break;
		if (!is_worth_it(h, q, r, n))
			break;
		log_debug("http: a %s is tried again, the server %s", q->method,
			  r < 0 ? "was lost" : "is busy");
		paused = http_pause(q, r == 0 ? &a : NULL, n);
		if (paused == -EAGAIN && r == 0)
			break;
		if (paused < 0)
			return paused;
		n = taken > before ? 0 : n + 1;
		before = taken;
	}
	if (r < 0)
		return r;
	http_answer_done(ret);
	*ret = TAKE_STRUCT(a);
	return 0;
}

static int read_bytes(uint64_t at, void *to, size_t len, void *ctx)
{
	memcpy(to, (const char *)ctx + at, len);
	return 0;
}

struct http_source http_source_bytes(const void *data, size_t len)
{
	return (
	    struct http_source){ .read = read_bytes, .ctx = (void *)(uintptr_t)data, .len = len };
}
