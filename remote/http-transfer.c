/*
 * One transfer by libcurl: its options, and its callbacks.
 *
 * libcurl decides nothing itself: it follows no redirect, reads no .netrc, keeps no cookie and
 * unpacks nothing. A sink gets every byte once, whatever number of tries it takes: a try after a
 * lost connection asks for the rest, and if the server sends the whole anyway, the bytes that the
 * sink has are dropped.
 */
#include "remote/http-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "remote/url.h"

#define REFUSAL_MAX ((size_t)64 << 10) /* of a body that only explains a status */
#define READ_MAX    65536

static bool takes_sink(const struct transfer *t)
{
	return t->q->sink && (t->a->status == 200 || t->a->status == 206);
}

/* A partial answer must begin where we asked it to. */
static int begin_body(struct transfer *t)
{
	uint64_t from;

	t->begun = true;
	if (!takes_sink(t))
		return 0;
	if (t->a->status == 200) {
		t->skip = t->q->from + *t->taken;
		return 0;
	}
	if (!t->a->content_range || sscanf(t->a->content_range, "bytes %" SCNu64 "-", &from) != 1 ||
	    from != t->q->from + *t->taken)
		return err_set(&t->why, -EPROTO, "the server sent another range than asked for");
	return 0;
}

static int take_piece(struct transfer *t, const char *data, size_t len)
{
	const uint64_t wanted = t->q->to > 0 ? t->q->to - t->q->from : 0;

	if (t->skip >= len) {
		t->skip -= len;
		return 0;
	}
	data += t->skip;
	len -= t->skip;
	t->skip = 0;
	/* A server that knows no ranges sends what follows, too. */
	if (wanted > 0 && len > wanted - *t->taken)
		len = wanted - *t->taken;
	if (len == 0)
		return 0;
	*t->taken += len;
	return t->q->sink(data, len, t->q->sink_ctx);
}

static int keep_piece(struct transfer *t, const char *data, size_t len)
{
	const bool good = t->a->status >= 200 && t->a->status < 300;
	const size_t max = good ? HTTP_BODY_MAX : REFUSAL_MAX;

	if (len > max - t->a->body.len) {
		if (good)
			return err_set(&t->why, -EFBIG, "the answer has over %zu bytes", max);
		len = max - t->a->body.len;
	}
	return buf_append(&t->a->body, data, len);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	n *= size;
	t->moved += n;
	if (!t->begun)
		t->wrong = begin_body(t);
	if (t->wrong == 0)
		t->wrong = takes_sink(t) ? take_piece(t, data, n) : keep_piece(t, data, n);
	return t->wrong < 0 ? 0 : n;
}

static size_t on_source(char *to, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	const uint64_t left = t->q->source->len - t->sent;

	n *= size;
	if (n > READ_MAX)
		n = READ_MAX;
	if (n > left)
		n = (size_t)left;
	if (n == 0)
		return 0;
	t->wrong = t->q->source->read(t->sent, to, n, t->q->source->ctx);
	if (t->wrong < 0)
		return CURL_READFUNC_ABORT;
	t->sent += n;
	t->moved += n;
	return n;
}

/* libcurl begins again with a new connection where a kept one turned out to be closed. */
static int on_seek(void *ctx, curl_off_t at, int origin)
{
	struct transfer *t = ctx;

	if (origin != SEEK_SET || at < 0 || (uint64_t)at > t->q->source->len)
		return CURL_SEEKFUNC_FAIL;
	t->sent = (uint64_t)at;
	return CURL_SEEKFUNC_OK;
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	n *= size;
	t->moved += n;
	if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		const char *blank = memchr(line, ' ', n);

		/* A head after a head: the first said only "continue". */
		http_answer_done(t->a);
		t->a->status = blank && line + n - blank > 3 ? atoi(blank + 1) : 0;
		return n;
	}
	t->wrong = http_answer_add(t->a, line, n);
	return t->wrong < 0 ? 0 : n;
}

static int on_progress(void *ctx, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total,
		       curl_off_t ul)
{
	struct transfer *t = ctx;
	const uint64_t now = sys_boot_ms();
	const int r = t->q->moved ? t->q->moved(t->moved, t->q->moved_ctx) : 0;

	/* It is called once more after a body was refused, and that is the reason to keep. */
	if (t->wrong == 0)
		t->wrong = r;
	if (t->wrong < 0)
		return 1;
	if (t->moved > 0)
		t->moved_ms = now;
	t->moved = 0;
	if (now - t->moved_ms < t->h->o.stall_ms)
		return 0;
	t->wrong = err_set(&t->why, -ETIMEDOUT, "nothing came or went for %" PRIu64 " ms",
			   t->h->o.stall_ms);
	return 1;
}

/* --- options ------------------------------------------------------------------------------ */

/* Sets *rc to what failed first; the value's type is what the option wants. */
#define SET(t, rc, option, value)                                                       \
	do {                                                                            \
		if (*(rc) == CURLE_OK)                                                  \
			*(rc) = (t)->h->curl->easy_setopt((t)->h->easy, option, value); \
	} while (0)

static void set_fixed(struct transfer *t, CURLcode *rc)
{
	SET(t, rc, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(t, rc, CURLOPT_NOSIGNAL, 1L);
	SET(t, rc, CURLOPT_FOLLOWLOCATION, 0L);
	SET(t, rc, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(t, rc, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(t, rc, CURLOPT_TCP_NODELAY, 1L);
	SET(t, rc, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
	/* libcurl looks at the rate between buffers, so small ones keep it. */
	SET(t, rc, CURLOPT_BUFFERSIZE, t->h->o.rate > 0 ? 16384L : 262144L);
	SET(t, rc, CURLOPT_UPLOAD_BUFFERSIZE, t->h->o.rate > 0 ? 16384L : 262144L);
	SET(t, rc, CURLOPT_USERAGENT, "snapcow");
	SET(t, rc, CURLOPT_HEADERFUNCTION, on_header);
	SET(t, rc, CURLOPT_HEADERDATA, (void *)t);
	SET(t, rc, CURLOPT_WRITEFUNCTION, on_body);
	SET(t, rc, CURLOPT_WRITEDATA, (void *)t);
	SET(t, rc, CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(t, rc, CURLOPT_XFERINFODATA, (void *)t);
	SET(t, rc, CURLOPT_NOPROGRESS, 0L);
}

static void set_client(struct transfer *t, CURLcode *rc)
{
	const struct http_options *o = &t->h->o;

	if (o->ca_file)
		SET(t, rc, CURLOPT_CAINFO, o->ca_file);
	if (o->rate > 0) {
		SET(t, rc, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)o->rate);
		SET(t, rc, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)o->rate);
	}
}

static void set_body(struct transfer *t, CURLcode *rc)
{
	if (strcmp(t->q->method, "HEAD") == 0)
		SET(t, rc, CURLOPT_NOBODY, 1L);
	if (t->q->source) {
		SET(t, rc, CURLOPT_UPLOAD, 1L);
		SET(t, rc, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->q->source->len);
		SET(t, rc, CURLOPT_READFUNCTION, on_source);
		SET(t, rc, CURLOPT_READDATA, (void *)t);
		SET(t, rc, CURLOPT_SEEKFUNCTION, on_seek);
		SET(t, rc, CURLOPT_SEEKDATA, (void *)t);
	}
	SET(t, rc, CURLOPT_CUSTOMREQUEST, t->q->method);
}

/* libcurl computes the signature from the head that it is about to send. */
static void set_keys(struct transfer *t, CURLcode *rc)
{
	const struct http_keys *k = t->trusted ? t->q->keys : NULL;

	if (!k)
		return;
	SET(t, rc, CURLOPT_AWS_SIGV4, k->scope);
	SET(t, rc, CURLOPT_USERNAME, k->access);
	SET(t, rc, CURLOPT_PASSWORD, k->secret);
}

struct lines {
	const struct curl *curl;
	struct curl_slist *list; /* owned */
	bool failed;
};

static void lines_done(struct lines *l)
{
	l->curl->slist_free_all(l->list);
}

static void add_line(struct lines *l, const char *line)
{
	struct curl_slist *longer = l->failed ? NULL : l->curl->slist_append(l->list, line);

	if (longer)
		l->list = longer;
	else
		l->failed = true;
}

/* "Range: bytes=100-199"; false: the whole is wanted. */
static bool add_range(const struct transfer *t, char *line, size_t size)
{
	const uint64_t from = t->q->from + *t->taken;

	if (!t->q->sink || (from == 0 && t->q->to == 0))
		return false;
	if (t->q->to > 0)
		snprintf(line, size, "Range: bytes=%" PRIu64 "-%" PRIu64, from, t->q->to - 1);
	else
		snprintf(line, size, "Range: bytes=%" PRIu64 "-", from);
	return true;
}

static void add_lines(const struct transfer *t, struct lines *l)
{
	const struct strlist *more = t->q->headers;
	char range[64];

	/* libcurl 7.88 would sign the header that this leaves out; a store asked first may refuse before all is sent. */
	if (!t->q->keys)
		add_line(l, "Expect:");
	for (size_t i = 0; more && i < more->n; i++)
		add_line(l, more->list[i]);
	/* A POST or PUT of nothing says so, which some servers insist on. */
	if (!t->q->source && (t->q->method[0] == 'P'))
		add_line(l, "Content-Length: 0");
	if (add_range(t, range, sizeof(range)))
		add_line(l, range);
	if (t->q->authorization && t->trusted) {
		AUTO_FREE char *line = NULL;

		if (asprintf(&line, "Authorization: %s", t->q->authorization) < 0) {
			line = NULL;
			l->failed = true;
			return;
		}
		add_line(l, line);
		sys_wipe(line, strlen(line));
	}
}

/* --- what came of it ---------------------------------------------------------------------- */

static const struct {
	CURLcode rc;
	int code;
} codes[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH },
	{ CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH },
	{ CURLE_COULDNT_CONNECT, -ECONNREFUSED },
	{ CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT },
	{ CURLE_PARTIAL_FILE, -ECONNRESET },
	{ CURLE_RECV_ERROR, -ECONNRESET },
	{ CURLE_SEND_ERROR, -ECONNRESET },
	{ CURLE_GOT_NOTHING, -ECONNRESET },
	{ CURLE_HTTP2, -ECONNRESET },
	{ CURLE_HTTP2_STREAM, -ECONNRESET },
	{ CURLE_OUT_OF_MEMORY, -ENOMEM },
};

/* A lost connection is tried again; what is no HTTP, and TLS that proves nothing, is not. */
static int code_of(CURLcode rc)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].rc == rc)
			return codes[i].code;
	return -EPROTO;
}

static int explain(struct transfer *t, CURLcode rc, const char *detail, struct err *err)
{
	AUTO_FREE char *origin = url_origin(t->url);
	const char *where = origin ? origin : "the server";

	if (t->wrong < 0 && t->why.code == t->wrong)
		return err_set(err, t->wrong, "'%s': %s", where, t->why.msg);
	if (t->wrong < 0)
		return t->wrong;
	return err_set(err, code_of(rc), "'%s': %s", where,
		       *detail ? detail : t->h->curl->easy_strerror(rc));
}

int transfer_run(struct transfer *t, struct err *err)
{
	CLEANUP(lines_done) struct lines lines = { .curl = t->h->curl };
	char detail[CURL_ERROR_SIZE] = "";
	CURLcode rc = CURLE_OK;

	t->moved_ms = sys_boot_ms();
	t->h->curl->easy_reset(t->h->easy);
	http_answer_done(t->a);
	add_lines(t, &lines);
	if (lines.failed)
		return err_nomem(err);
	set_fixed(t, &rc);
	set_client(t, &rc);
	set_body(t, &rc);
	set_keys(t, &rc);
	SET(t, &rc, CURLOPT_ERRORBUFFER, detail);
	SET(t, &rc, CURLOPT_URL, t->url);
	/* In the clear it goes to this machine, and to no proxy. */
	if (url_is_loopback(t->url))
		SET(t, &rc, CURLOPT_NOPROXY, "*");
	SET(t, &rc, CURLOPT_HTTPHEADER, lines.list);
	if (rc != CURLE_OK)
		return err_set(err, -ENOTSUP, "libcurl is too old or refuses an option: %s",
			       t->h->curl->easy_strerror(rc));
	rc = t->h->curl->easy_perform(t->h->easy);
	/* libcurl keeps copies of headers until the next use of the handle. */
	t->h->curl->easy_setopt(t->h->easy, CURLOPT_HTTPHEADER, NULL);
	t->h->curl->easy_setopt(t->h->easy, CURLOPT_ERRORBUFFER, NULL);
	t->h->curl->easy_setopt(t->h->easy, CURLOPT_PASSWORD, NULL);
	return rc == CURLE_OK && t->wrong == 0 ? 0 : explain(t, rc, detail, err);
}
