#include "tests/lib/test.h"

#include <errno.h>

#include "remote/reference.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void check(const char *text, const char *host, const char *repository, const char *name,
		  bool plain)
{
	CLEANUP(reference_done) struct reference r = { 0 };
	struct err err = { 0 };

	CHECK_OK(reference_parse(text, &r, &err), &err);
	CHECK_STR(r.host, host);
	CHECK_STR(r.repository, repository);
	CHECK_EQ(r.plain, plain);
	if (name)
		CHECK_STR(r.name, name);
	else
		CHECK(!r.name);
}

TEST(a_reference_is_a_host_a_repository_and_perhaps_a_name)
{
	check("ghcr.io/team/snaps", "ghcr.io", "team/snaps", NULL, false);
	check("localhost:5000/snaps", "localhost:5000", "snaps", NULL, true);
	check("127.0.0.1:5000/a/b/c:main", "127.0.0.1:5000", "a/b/c", "main", true);
	check("[::1]:5000/a", "[::1]:5000", "a", NULL, true);
	check("h/a@sha256:" HEX, "h", "a", "sha256:" HEX, false);
	check("h/a:tag@sha256:" HEX, "h", "a", "sha256:" HEX, false);
	check("h/a.b_c__d-e---f/0:V1.2-x", "h", "a.b_c__d-e---f/0", "V1.2-x", false);
}

TEST(a_host_is_told_from_a_name_by_its_dot_or_port)
{
	CHECK(reference_has_host("ghcr.io/a") && reference_has_host("localhost/a"));
	CHECK(reference_has_host("box:5000/a") && reference_has_host("[::1]:5000/a"));
	CHECK(!reference_has_host("team/a") && !reference_has_host("ftp://h.example/a"));
	CHECK(!reference_has_host("a.b") && !reference_has_host("") && !reference_has_host("/a.b"));
}

TEST(what_is_no_reference_says_why)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "HOST[:PORT]/REPOSITORY" },
		{ "host", "HOST[:PORT]/REPOSITORY" },
		{ "/x", "HOST[:PORT]/REPOSITORY" },
		{ "host/", "HOST[:PORT]/REPOSITORY" },
		{ "u@host/x", "no host" },
		{ "host:x/y", "no host" },
		{ "host/A", "no name of a repository" },
		{ "host/a/../b", "no name of a repository" },
		{ "host/a//b", "no name of a repository" },
		{ "host/a/", "no name of a repository" },
		{ "host/-a", "no name of a repository" },
		{ "host/a___b", "no name of a repository" },
		{ "host/a:", "no tag" },
		{ "host/a:.x", "no tag" },
		{ "host/a:b:c", "no tag" },
		{ "host/a@sha256:12", "no digest" },
		{ "host/a?x", "no name of a repository" },
		{ "host/a%2f", "no name of a repository" },
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct reference r = { 0 };
		struct err err = { 0 };

		CHECK_EQ(reference_parse(wrong[i].text, &r, &err), -EINVAL);
		CHECK_HAS(err.msg, wrong[i].says);
		CHECK(!r.host && !r.repository && !r.name);
	}
}

TEST_MAIN("reference")
