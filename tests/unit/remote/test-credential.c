#include "tests/lib/test.h"

#include <errno.h>

#include "remote/credential.h"

/* user:pass */
#define AUTH "\"auth\":\"dXNlcjpwYXNz\""

static int read_for(const char *server, const char *config, struct credential *c)
{
	struct err err = { 0 };

	return credential_read(config, strlen(config), server, c, &err);
}

static bool has(const char *server, const char *config)
{
	CLEANUP(credential_done) struct credential c = { 0 };
	const int r = read_for(server, config, &c);

	CHECK(r == 0 || (r == 1 && strcmp(c.user, "user") == 0 && strcmp(c.secret, "pass") == 0));
	return r == 1;
}

TEST(a_host_is_found_by_each_spelling_that_docker_used)
{
	CHECK(has("h:5000", "{\"auths\":{\"h:5000\":{" AUTH "}}}"));
	CHECK(has("h:5000", "{\"auths\":{\"https://h:5000/v1/\":{" AUTH "}}}"));
	CHECK(has("H.example", "{\"auths\":{\"http://h.example\":{" AUTH "}}}"));
	CHECK(has("docker.io", "{\"auths\":{\"https://index.docker.io/v1/\":{" AUTH "}}}"));
	CHECK(has("h", "{\"auths\":{\"h\":{\"username\":\"user\",\"password\":\"pass\"}}}"));
}

TEST(a_host_that_only_looks_like_it_is_another)
{
	CHECK(!has("h", "{\"auths\":{\"h:5000\":{" AUTH "}}}"));
	CHECK(!has("h:5000", "{\"auths\":{\"h\":{" AUTH "}}}"));
	CHECK(!has("evil.h", "{\"auths\":{\"h\":{" AUTH "}}}"));
	CHECK(!has("h.evil", "{\"auths\":{\"h\":{" AUTH "}}}"));
	CHECK(!has("evil", "{\"auths\":{\"https://evil.docker.io/v1/\":{" AUTH "}}}"));
}

TEST(an_entry_without_a_secret_is_none)
{
	CHECK(!has("h", "{}"));
	CHECK(!has("h", "{\"auths\":{}}"));
	CHECK(!has("h", "{\"auths\":{\"h\":{}}}"));
	CHECK(!has("h", "{\"auths\":[]}"));
	CHECK(!has("h", "{\"auths\":{\"h\":\"x\"}}"));
}

TEST(tokens_are_kept_apart_from_passwords)
{
	CLEANUP(credential_done) struct credential c = { 0 };

	CHECK_EQ(read_for("h",
			  "{\"auths\":{\"h\":{" AUTH
			  ",\"identitytoken\":\"i\",\"registrytoken\":\"r\"}}}",
			  &c),
		 1);
	CHECK_STR(c.refresh, "i");
	CHECK_STR(c.bearer, "r");
}

TEST(a_damaged_configuration_is_refused_without_being_quoted)
{
	static const char *const wrong[] = {
		"{\"auths\":{\"h\":{\"auth\":\"hush hush\"}}}",
		"{\"auths\":{\"h\":{\"auth\":\"aHVzaA==\"}}}", /* no colon */
		"hush",
		"{\"hush",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CLEANUP(credential_done) struct credential c = { 0 };
		struct err err = { 0 };

		CHECK_EQ(credential_read(wrong[i], strlen(wrong[i]), "h", &c, &err), -EINVAL);
		CHECK_HAS(err.msg, "docker's configuration");
		CHECK(!strstr(err.msg, "hush"));
	}
}

TEST_MAIN("credential")
