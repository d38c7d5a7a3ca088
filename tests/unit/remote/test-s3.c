#include "tests/lib/test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strlist.h"
#include "remote/s3-i.h"

#define ENTRY(key, size)                                                         \
	"<Contents><Key>" key                                                    \
	"</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><Size>" size \
	"</Size></Contents>"
#define LIST(truncated, rest)                                                         \
	"<ListBucketResult xmlns=\"x\"><IsTruncated>" truncated "</IsTruncated>" rest \
	"</ListBucketResult>"

static int add(const struct s3_entry *e, void *ctx)
{
	CHECK_EQ(e->modified, 1767323045);
	CHECK_EQ(e->now, 7);
	return strcmp(e->key, "stop") == 0 ? 3 : strlist_add(ctx, e->key);
}

static int read_list(const char *text, struct strlist *keys, char **next)
{
	return s3_list_read(text, 7, add, keys, next);
}

TEST(a_page_gives_its_keys_and_the_next_one)
{
	CLEANUP(strlist_done) struct strlist keys = { 0 };
	AUTO_FREE char *next = NULL, *none = NULL;

	CHECK_EQ(
	    read_list(LIST("true",
			   "<NextContinuationToken>a+b/c=&amp;&quot;</NextContinuationToken>" ENTRY(
			       "tags/a", "1") ENTRY("x&amp;&lt;y", "2")),
		      &keys, &next),
	    0);
	CHECK_EQ(keys.n, 2);
	CHECK_STR(keys.list[0], "tags/a");
	CHECK_STR(keys.list[1], "x&<y");
	CHECK_STR(next, "a+b/c=&\"");
	CHECK_EQ(read_list(LIST("false", ""), &keys, &none), 0);
	CHECK(!none);
	CHECK_EQ(read_list(LIST("false", ENTRY("stop", "1") ENTRY("later", "1")), &keys, &none), 3);
	CHECK_EQ(keys.n, 2);
}

TEST(what_is_no_page_is_refused)
{
	static const char *const wrong[] = {
		"",
		"hello",
		"<ListBucketResult></ListBucketResult>",
		LIST("true", ENTRY("a", "1")),
		LIST("false", "<Contents><Key>a</Key><Size>1</Size></Contents>"),
		LIST(
		    "false",
		    "<Contents><Key>a</Key><LastModified>then</LastModified><Size>1</Size></Contents>"),
		LIST("false", ENTRY("a", "-1")),
		LIST("false", ENTRY("a", "99999999999999999999999")),
	};
	CLEANUP(strlist_done) struct strlist keys = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		AUTO_FREE char *next = NULL;

		CHECK_EQ(read_list(wrong[i], &keys, &next), -EPROTO);
		CHECK(!next);
	}
}

TEST(a_section_of_a_file_says_what_is_not_known_yet)
{
	CLEANUP(s3_config_done) struct s3_config c = { 0 }, none = { 0 };
	static const char text[] =
	    "region = outside\n[ default ]\nregion=a\n# region = no\n"
	    "[profile team]\nregion =  b \r\nendpoint_url = http://h:1\ns3 =\n"
	    "  region = nested\nregion = second\naws_session_token = t=1=\n[other]\n"
	    "aws_access_key_id = no\n";

	CHECK_EQ(s3_config_read(text, "profile team", &c), 1);
	CHECK_STR(c.region, "b");
	CHECK_STR(c.endpoint, "http://h:1");
	CHECK_STR(c.token, "t=1=");
	CHECK(!c.access);
	CHECK_EQ(s3_config_read(text, "default", &c), 1);
	CHECK_STR(c.region, "b");
	CHECK_EQ(s3_config_read(text, "default", &none), 1);
	CHECK_STR(none.region, "a");
	CHECK_EQ(s3_config_read(text, "team", &none), 0);
}

TEST(addresses_that_would_lead_elsewhere_are_refused)
{
	static const char *const wrong[] = {
		"s3://",
		"s3:///x",
		"s3://ab",
		"s3://buc ket/x",
		"s3://bucket/../x",
		"s3://bucket/a//b",
		"s3://bucket/a?b",
		"s3://bucket/a%2e",
		"s3://-bucket/x",
		"s3+https://host",
		"s3+https:///bucket",
		"s3+https://user@host/bucket",
		"s3+http://h:0/bucket",
		"s3+https://h/../bucket",
	};
	static const char *const right[] = { "s3://bucket", "s3://bucket/",
					     "s3://my.bucket/a/b_c-d.e/",
					     "s3+https://h.example:9000/bucket/x" };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CLEANUP(depot_close_p) struct depot *d = NULL;

		CHECK_EQ(depot_open(wrong[i], NULL, &d, &err), -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		CLEANUP(depot_close_p) struct depot *d = NULL;

		CHECK_OK(depot_open(right[i], NULL, &d, &err), &err);
	}
}

static void check_base(const char *url, const char *base)
{
	CLEANUP(depot_close_p) struct depot *d = NULL;
	struct err err = { 0 };

	CHECK_OK(depot_open(url, NULL, &d, &err), &err);
	CHECK_STR(s3_of(d)->base, base);
}

TEST(the_store_is_amazons_unless_another_is_named)
{
	unsetenv("AWS_ENDPOINT_URL");
	setenv("AWS_REGION", "eu-west-1", 1);
	check_base("s3://bucket/x", "https://bucket.s3.eu-west-1.amazonaws.com");
	check_base("s3://my.bucket/x", "https://s3.eu-west-1.amazonaws.com/my.bucket");
	setenv("AWS_REGION", "cn-north-1", 1);
	check_base("s3://bucket/x", "https://bucket.s3.cn-north-1.amazonaws.com.cn");
	setenv("AWS_ENDPOINT_URL", "https://minio.example:9000/", 1);
	check_base("s3://bucket/x", "https://minio.example:9000/bucket");
	setenv("AWS_ENDPOINT_URL_S3", "http://other:1", 1);
	check_base("s3://bucket/x", "http://other:1/bucket");
	check_base("s3+https://named/bucket", "https://named/bucket");
}

TEST_MAIN("s3")
