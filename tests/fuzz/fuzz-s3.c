/*
 * Whatever an S3 store answers or ~/.aws holds: keys stay within their list, what is shown can be shown.
 * The first byte says what the rest is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "remote/s3-i.h"
#include "tests/fuzz/fuzz.h"

static int on_entry(const struct s3_entry *e, void *ctx)
{
	FUZZ_CHECK(strlen(e->key) <= 1024);
	++*(size_t *)ctx;
	return 0;
}

static void check_list(const char *text, size_t len)
{
	AUTO_FREE char *next = NULL;
	size_t n = 0;
	const int r = s3_list_read(text, 0, on_entry, &n, &next);

	FUZZ_CHECK(r == 0 || (r == -EPROTO && !next));
	FUZZ_CHECK(n <= len / strlen("<Contents>"));
}

static void check_refusal(const char *text, size_t len, int status)
{
	struct s3_depot s = { .bucket = (char[]){ "bucket" },
			      .depot.url = (char[]){ "s3://bucket" } };
	struct http_answer a = { .status = status };
	struct err err = { 0 };
	int r;

	FUZZ_CHECK(buf_append(&a.body, text, len) == 0);
	r = s3_explain(&s, &a, "reading", &err);
	FUZZ_CHECK(r < 0 && (r == -ENOENT || err.code == r));
	for (const char *c = err.msg; *c; c++)
		FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
	buf_done(&a.body);
}

static void check_file(const char *text)
{
	CLEANUP(s3_config_done) struct s3_config c = { 0 };
	const int r = s3_config_read(text, "default", &c);

	FUZZ_CHECK(r == 1 || (r == 0 && !c.access && !c.region));
	FUZZ_CHECK(!c.region || !strchr(c.region, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = NULL;

	if (len < 1)
		return 0;
	text = strndup((const char *)data + 1, len - 1);
	FUZZ_CHECK(text);
	len = strlen(text);
	if (data[0] == 'l')
		check_list(text, len);
	else if (data[0] == 'f')
		check_file(text);
	else
		check_refusal(text, len, 300 + data[0]);
	return 0;
}
