/*
 * Whatever bytes decode as a record of a parsed archive are written as the same bytes; a dpkg database
 * of any bytes gives packages with names, in order; so do accounts and configuration files.
 */
#include "image/accounts.h"
#include "image/conffiles.h"
#include "image/packages.h"
#include "image/stream.h"
#include "tests/fuzz/fuzz.h"

static void try_record(const uint8_t *data, size_t len)
{
	static struct stream_record rec;
	struct stream_writer w = { .fd = -1 };
	struct err err = { 0 };
	int r = stream_decode(data[0] % 9, data + 1, len - 1, &rec, &err);

	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r < 0 || rec.kind == STREAM_END || len > 4096)
		return;
	FUZZ_CHECK(stream_write(&w, &rec, &err) == 0);
	FUZZ_CHECK(w.out.len == len - 1 + 5 &&
		   (len == 1 || memcmp(w.out.data + 5, data + 1, len - 1) == 0));
	stream_writer_done(&w);
}

static void try_lists(const char *text, size_t len)
{
	CLEANUP(accounts_done) struct accounts users = { 0 }, groups = { 0 };
	CLEANUP(conffiles_done) struct conffiles files = { 0 };
	struct err err = { 0 };

	FUZZ_CHECK(accounts_parse(&users, ACCOUNTS_USERS, text, len, &err) == 0);
	FUZZ_CHECK(accounts_parse(&groups, ACCOUNTS_GROUPS, text, len, &err) == 0);
	FUZZ_CHECK(conffiles_parse(&files, text, len, &err) == 0);
	conffiles_sort(&files);
	for (size_t i = 0; i < files.n; i++)
		FUZZ_CHECK(conffiles_find(&files, files.list[i].path) != NULL);
	for (size_t i = 0; i < users.n; i++)
		FUZZ_CHECK(users.list[i].name[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(packages_done) struct packages p = { 0 };
	struct err err = { 0 };

	if (len == 0)
		return 0;
	try_record(data, len);
	FUZZ_CHECK(packages_parse(&p, (const char *)data, len, &err) == 0);
	packages_sort(&p);
	for (size_t i = 0; i < p.n; i++)
		FUZZ_CHECK(p.list[i].name[0] != '\0' || memchr(data, 0, len));
	try_lists((const char *)data, len);
	return 0;
}
