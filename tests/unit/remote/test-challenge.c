#include "tests/lib/test.h"

#include "remote/challenge.h"

static void check(const char *header, enum challenge_kind kind, const char *realm,
		  const char *service, const char *scope)
{
	CLEANUP(challenge_done) struct challenge c = { 0 };

	CHECK_EQ(challenge_parse(header, &c), 0);
	CHECK_EQ(c.kind, kind);
	CHECK_STR(c.realm ? c.realm : "-", realm ? realm : "-");
	CHECK_STR(c.service ? c.service : "-", service ? service : "-");
	CHECK_STR(c.scope ? c.scope : "-", scope ? scope : "-");
}

TEST(what_registries_send_is_read)
{
	check("Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\","
	      "scope=\"repository:a/b:pull,push\"",
	      CHALLENGE_BEARER, "https://auth.docker.io/token", "registry.docker.io",
	      "repository:a/b:pull,push");
	check("Basic realm=\"Registry\"", CHALLENGE_BASIC, "Registry", NULL, NULL);
	check("basic", CHALLENGE_BASIC, NULL, NULL, NULL);
	check("BEARER Realm = x , Service=y", CHALLENGE_BEARER, "x", "y", NULL);
	check("Bearer realm=\"a\\\"b\"", CHALLENGE_BEARER, "a\"b", NULL, NULL);
}

TEST(a_token_is_better_than_a_password_and_others_are_passed_over)
{
	check("Negotiate, Basic realm=\"x\", Bearer realm=\"https://y\",service=\"z\"",
	      CHALLENGE_BEARER, "https://y", "z", NULL);
	check("Bearer realm=\"https://y\", Basic realm=\"x\"", CHALLENGE_BEARER, "https://y", NULL,
	      NULL);
	check("Digest realm=\"x\", nonce=\"Basic y\", Basic realm=\"b\"", CHALLENGE_BASIC, "b",
	      NULL, NULL);
}

TEST(the_first_of_a_name_counts)
{
	check("Bearer realm=\"https://a\",realm=\"https://b\"", CHALLENGE_BEARER, "https://a", NULL,
	      NULL);
}

TEST(what_is_no_challenge_is_none)
{
	check("", CHALLENGE_NONE, NULL, NULL, NULL);
	check("Bearer", CHALLENGE_NONE, NULL, NULL, NULL);
	check("Bearer service=\"x\"", CHALLENGE_NONE, NULL, NULL, NULL);
	check("Bearer realm=\"open", CHALLENGE_NONE, NULL, NULL, NULL);
	check("Bearer realm=\"a\nb\"", CHALLENGE_NONE, NULL, NULL, NULL);
	check("=x", CHALLENGE_NONE, NULL, NULL, NULL);
	check("Digest x=y", CHALLENGE_NONE, NULL, NULL, NULL);
}

TEST(the_best_of_several_headers_is_chosen)
{
	CLEANUP(strlist_done) struct strlist l = { 0 };
	CLEANUP(challenge_done) struct challenge c = { 0 };

	CHECK_EQ(strlist_add(&l, "Basic realm=\"x\""), 0);
	CHECK_EQ(strlist_add(&l, "rubbish=\""), 0);
	CHECK_EQ(strlist_add(&l, "Bearer realm=\"https://y\""), 0);
	CHECK_EQ(challenge_choose(&l, &c), 0);
	CHECK_EQ(c.kind, CHALLENGE_BEARER);
}

TEST_MAIN("challenge")
