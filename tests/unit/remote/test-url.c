#include "tests/lib/test.h"

#include "remote/url.h"

static void check_origin(const char *url, const char *want)
{
	AUTO_FREE char *have = url_origin(url);

	if (want)
		CHECK_STR(have, want);
	else
		CHECK(!have);
}

TEST(an_origin_is_scheme_host_and_port)
{
	check_origin("https://Example.ORG/v2/?a=b", "https://example.org:443");
	check_origin("http://127.0.0.1:5000", "http://127.0.0.1:5000");
	check_origin("HTTP://h?x", "http://h:80");
	check_origin("https://[::1]:5000/", "https://[::1]:5000");
}

TEST(what_could_be_read_in_two_ways_is_no_url)
{
	static const char *const wrong[] = {
		"",
		"ftp://h/",
		"//h/",
		"http://",
		"http:///x",
		"http://u@h/",
		"http://u:p@h/",
		"http://h:/",
		"http://h:0/",
		"http://h:65536/",
		"http://h:8a/",
		"http://h\\@e/",
		"http://h e/",
		"http://h/\r\nX: y",
		"http://[::1/",
		"http://[x]/",
		"http://h\xff/",
		"http://[]/",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		check_origin(wrong[i], NULL);
}

TEST(ports_and_schemes_make_another_origin_and_case_does_not)
{
	CHECK(url_same_origin("https://h/a", "https://H:443/b"));
	CHECK(!url_same_origin("https://h/a", "http://h/a"));
	CHECK(!url_same_origin("https://h/a", "https://h:444/a"));
	CHECK(!url_same_origin("https://h/a", "https://h.evil/a"));
	CHECK(!url_same_origin("no", "no"));
	CHECK(url_same_host("https://h:1/", "http://H:2/") &&
	      !url_same_host("http://h/", "http://g/"));
}

TEST(a_path_is_on_the_server_that_names_it)
{
	AUTO_FREE char *path = url_resolve("https://h:5000/v2/x?y", "/v2/z?a=b");
	AUTO_FREE char *other = url_resolve("https://h/", "http://g/x");

	CHECK_STR(path, "https://h:5000/v2/z?a=b");
	CHECK_STR(other, "http://g/x");
	CHECK(!url_resolve("https://h/", "//g/x"));
	CHECK(!url_resolve("https://h/", "x/y"));
	CHECK(!url_resolve("https://h/", "file:///etc/passwd"));
	CHECK(!url_resolve("https://h/", "/x\n"));
}

TEST(only_names_that_nobody_else_can_have_are_this_machine)
{
	CHECK(url_host_is_loopback("localhost") && url_host_is_loopback("127.0.0.1"));
	CHECK(url_host_is_loopback("127.9.9.9") && url_host_is_loopback("[::1]"));
	CHECK(!url_host_is_loopback("localhost.example.org"));
	CHECK(!url_host_is_loopback("127.0.0.1.example.org"));
	CHECK(!url_host_is_loopback("128.0.0.1") && !url_host_is_loopback("0.0.0.0"));
	CHECK(url_is_loopback("http://localhost:5000/x") && !url_is_loopback("http://a.example/"));
}

TEST_MAIN("url")
