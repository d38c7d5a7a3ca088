#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "runner/net/tls.h"

static void read_hosts(const char *text, struct allow *ret)
{
	struct err err = { 0 };

	CHECK_OK(inspect_parse(text, ret, &err), &err);
}

/* Do the two lists agree?  If not, the sentence has the words. */
static bool agree(const char *inspect, const char *net, const char *words)
{
	CLEANUP(allow_done) struct allow hosts = ALLOW_INIT, list = ALLOW_INIT;
	struct err err = { 0 };
	int r;

	if (*inspect != '\0')
		read_hosts(inspect, &hosts);
	CHECK_OK(allow_parse(net, &list, &err), &err);
	r = inspect_check(&hosts, &list, &err);
	CHECK(r == 0 || (r == -EINVAL && strstr(err.msg, words)));
	return r == 0;
}

TEST(a_list_of_inspected_hosts_has_names_on_one_port_each)
{
	static const char *const wrong[] = { "",
					     ",",
					     "a.example,",
					     "*.a.example",
					     "192.0.2.7",
					     "[2001:db8::1]",
					     "a.example:1-2",
					     "a.example:0",
					     "a.example:443/tcp",
					     "https://a.example",
					     "GET https://a.example/x",
					     "a b",
					     "a1,a2,a3,a4,a5,a6,a7,a8,a9,b0,b1,b2,b3,b4,b5,b6,b7" };
	CLEANUP(allow_done) struct allow hosts = ALLOW_INIT;
	struct allow_target target = { .host = "a.example" };
	struct err err = { 0 };

	read_hosts("A.example,b.example:8443,a.example:443", &hosts);
	CHECK_EQ(hosts.n, 2);
	CHECK(inspect_has(&hosts, &target, 443) && !inspect_has(&hosts, &target, 8443));
	CHECK(!inspect_has(NULL, &target, 443));
	strcpy(target.host, "b.example");
	CHECK(inspect_has(&hosts, &target, 8443) && !inspect_has(&hosts, &target, 443));
	strcpy(target.host, "x.a.example");
	CHECK(!inspect_has(&hosts, &target, 443));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CHECK_EQ(inspect_parse(wrong[i], &hosts, &err), -EINVAL);
		CHECK_EQ(hosts.n, 2);
	}
}

TEST(what_is_read_in_tls_and_what_is_inspected_agree)
{
	CHECK(agree("", "a.example:443,http://a.example", ""));
	CHECK(agree("a.example", "a.example:443", ""));
	CHECK(agree("a.example", "GET https://a.example/x,b.example:443", ""));
	CHECK(agree("a.example:8443", "https://a.example:8443", ""));
	CHECK(agree("a.example", "https://a.example,http://a.example", ""));
	CHECK(!agree("", "GET https://a.example/x", "add '--tls-inspect a.example'"));
	CHECK(!agree("a.example", "a.example:443,https://a.example:8443",
		     "add '--tls-inspect a.example:8443'"));
	CHECK(!agree("a.example", "https://*.example.org,a.example:443", "one name on one port"));
	CHECK(!agree("a.example", "b.example:443", "add '--net a.example:443'"));
	CHECK(!agree("a.example", "none", "add '--net a.example:443'"));
	CHECK(!agree("a.example", "a.example:443/tcp", "unread"));
	CHECK(!agree("a.example:5432", "a.example:5432", "unread"));
	CHECK(!agree("a.example", "http://a.example:443", "say 'https://a.example:443'"));
}

TEST(a_rule_for_requests_in_tls_is_for_no_others)
{
	CLEANUP(allow_done) struct allow list = ALLOW_INIT;
	struct allow_target target;
	struct request q = { .method = { "GET", 3 }, .path = { "/x", 2 } };
	struct err err = { 0 };

	CHECK_OK(allow_parse("GET https://a.example/x,GET http://a.example/y", &list, &err), &err);
	CHECK_EQ(allow_ask(&list, "a.example", 9, 443, &target), ALLOW_YES);
	CHECK(target.requests && !target.any);
	CHECK(!allow_request(&list, &target, 443, &q));
	q.tls = true;
	CHECK(allow_request(&list, &target, 443, &q));
	CHECK(!allow_request(&list, &target, 80, &q));
}

/* --- two ends, in memory -------------------------------------------------------------------- */

/* Someone who pretends to be a host, somebody who wants to speak with one, and what lies between. */
struct pair {
	struct allow hosts;
	struct tls_keys keys;
	struct tls *tls;
	struct tls_end *as, *with;
	struct buf to_as, to_with;
	bool as_done, with_done;
};

static void pair_done(struct pair *p)
{
	tls_end_free(p->as);
	tls_end_free(p->with);
	tls_close(p->tls);
	tls_keys_done(&p->keys);
	allow_done(&p->hosts);
	buf_done(&p->to_as);
	buf_done(&p->to_with);
}

/* `with` may be another name than `as`; `other`: roots that know nothing of it. */
static void pair_open(struct pair *p, const char *hosts, const char *as, const char *with,
		      const struct tls_keys *other)
{
	struct tls_plan plan = { .hosts = &p->hosts, .keys = &p->keys };
	const struct tls_keys *roots = other ? other : &p->keys;
	struct err err = { 0 };

	*p = (struct pair){ .hosts = ALLOW_INIT };
	read_hosts(hosts, &p->hosts);
	CHECK_OK(tls_keys_make(&p->hosts, &p->keys, &err), &err);
	plan.roots = (const char *)roots->authority.at;
	plan.roots_len = roots->authority.len;
	CHECK_OK(tls_open(&plan, &p->tls, &err), &err);
	CHECK_OK(tls_end_as(p->tls, as, 443, &p->as, &err), &err);
	CHECK_OK(tls_end_with(p->tls, with, &p->with, &err), &err);
}

/* Go on until nobody has anything to say; in pieces of that size.  What failed, or 0. */
static int shake(struct pair *p, size_t piece, struct err *err)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT;
	int r = tls_end_shake(p->with, NULL, false, &p->to_as, err);

	while (r >= 0 && (p->to_as.len > 0 || p->to_with.len > 0)) {
		const bool turn = p->to_as.len > 0;
		struct buf *from = turn ? &p->to_as : &p->to_with;
		const size_t n = from->len < piece ? from->len : piece;

		CHECK_EQ(buf_append(&in, from->data, n), 0);
		memmove(from->data, from->data + n, from->len - n);
		from->len -= n;
		if (turn && !p->as_done) {
			r = tls_end_shake(p->as, &in, false, &p->to_with, err);
			p->as_done = r > 0;
		} else if (!turn && !p->with_done) {
			r = tls_end_shake(p->with, &in, false, &p->to_as, err);
			p->with_done = r > 0;
		} else {
			break;
		}
		CHECK(r < 0 || in.len == 0);
	}
	return r < 0 ? r : 0;
}

TEST(two_ends_agree_however_their_words_are_cut)
{
	static const size_t pieces[] = { 1, 7, 1400, 1 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		CLEANUP(pair_done) struct pair p;
		CLEANUP(buf_done) struct buf plain = BUF_INIT, heard = BUF_INIT;
		struct err err = { 0 };

		pair_open(&p, "a.example,b.example", "b.example", "b.example", NULL);
		CHECK_OK(shake(&p, pieces[i], &err), &err);
		CHECK(p.as_done && p.with_done);
		CHECK_EQ(buf_append_zero(&plain, 100000), 0);
		CHECK_EQ(tls_end_write(p.with, &plain, &p.to_as), 0);
		tls_end_bye(p.with, &p.to_as);
		CHECK_EQ(tls_end_read(p.as, &p.to_as, false, &p.to_with, &heard, 65536), 0);
		CHECK_EQ(heard.len, 65536);
		heard.len = 0;
		CHECK_EQ(tls_end_read(p.as, &p.to_as, false, &p.to_with, &heard, 65536), 1);
		CHECK_EQ(heard.len, 100000 - 65536);
	}
}

TEST(an_end_that_was_cut_off_is_no_end)
{
	CLEANUP(pair_done) struct pair p;
	CLEANUP(buf_done) struct buf plain = BUF_INIT, heard = BUF_INIT;
	struct err err = { 0 };

	pair_open(&p, "a.example", "a.example", "a.example", NULL);
	CHECK_OK(shake(&p, 1 << 20, &err), &err);
	CHECK_EQ(buf_append_str(&plain, "hello"), 0);
	CHECK_EQ(tls_end_write(p.as, &plain, &p.to_with), 0);
	CHECK_EQ(tls_end_read(p.with, &p.to_with, true, &p.to_as, &heard, 65536), -EPIPE);
	CHECK_EQ(heard.len, 5);
}

TEST(a_host_that_the_roots_do_not_vouch_for_is_refused)
{
	CLEANUP(pair_done) struct pair p, other;
	struct err err = { 0 };

	pair_open(&other, "a.example", "a.example", "a.example", NULL);
	pair_open(&p, "a.example", "a.example", "a.example", &other.keys);
	CHECK_EQ(shake(&p, 1 << 20, &err), -EKEYREJECTED);
	CHECK_STR(err.msg, "its issuer is not known here");
	CHECK(!p.with_done);
}

TEST(a_certificate_is_for_its_own_host_only)
{
	CLEANUP(pair_done) struct pair p;
	struct err err = { 0 };

	pair_open(&p, "a.example,b.example", "a.example", "b.example", NULL);
	CHECK_EQ(shake(&p, 1 << 20, &err), -EKEYREJECTED);
	CHECK_STR(err.msg, "it is for another name");
}

TEST(a_host_that_is_not_inspected_has_no_certificate)
{
	CLEANUP(pair_done) struct pair p;
	struct tls_end *none = NULL;
	struct err err = { 0 };

	pair_open(&p, "a.example", "a.example", "a.example", NULL);
	CHECK_EQ(tls_end_as(p.tls, "b.example", 443, &none, &err), -ENOENT);
	CHECK_EQ(tls_end_as(p.tls, "a.example", 8443, &none, &err), -ENOENT);
}

/* Whatever byte of what a host says first is another one, nobody believes it. */
TEST(a_damaged_handshake_is_never_agreed_on)
{
	CLEANUP(pair_done) struct pair good;
	struct test_rng rng = { test_seed() };
	struct err err = { 0 };
	size_t len;

	pair_open(&good, "a.example", "a.example", "a.example", NULL);
	CHECK(tls_end_shake(good.with, NULL, false, &good.to_as, &err) == 0);
	CHECK(tls_end_shake(good.as, &good.to_as, false, &good.to_with, &err) == 0);
	len = good.to_with.len;
	for (size_t at = 5; at < len; at += 1 + test_rand(&rng) % (len / 24)) {
		struct tls_end *as = NULL, *with = NULL;
		CLEANUP(buf_done) struct buf to_as = BUF_INIT, to_with = BUF_INIT;
		int r;

		CHECK_OK(tls_end_as(good.tls, "a.example", 443, &as, &err), &err);
		CHECK_OK(tls_end_with(good.tls, "a.example", &with, &err), &err);
		CHECK(tls_end_shake(with, NULL, false, &to_as, &err) == 0);
		CHECK(tls_end_shake(as, &to_as, false, &to_with, &err) == 0);
		if (at < to_with.len) {
			to_with.data[at] ^= 0x10;
			r = tls_end_shake(with, &to_with, true, &to_as, &err);
			/* A length that is another one now: the rest of it never comes. */
			if (r == 0)
				r = tls_end_shake(with, &to_with, true, &to_as, &err);
			CHECK(r < 0);
		}
		tls_end_free(as);
		tls_end_free(with);
	}
}

TEST_MAIN("tls")
