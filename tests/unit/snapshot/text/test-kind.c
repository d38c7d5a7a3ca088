/*
 * What a file is to people, judged by its path alone.
 */
#include "tests/lib/test.h"

#include "snapshot/text/kind.h"

TEST(a_path_has_the_first_kind_that_names_it)
{
	CLEANUP(kinds_free_p) struct kinds *k = NULL;
	static const struct {
		const char *path;
		enum kind kind;
	} table[] = {
		{ "README.md", KIND_DOCS },
		{ "docs/a/b.txt", KIND_DOCS },
		{ "docs/conf.py", KIND_CODE },
		{ "README.sh", KIND_CODE },
		{ "src/notes.txt", KIND_DOCS },
		{ "CMakeLists.txt", KIND_CODE },
		{ "requirements-dev.txt", KIND_CODE },
		{ "test.sh", KIND_TEST },
		{ "tests/README.md", KIND_TEST },
		{ "src/a_test.go", KIND_TEST },
		{ "src/a.spec.ts", KIND_TEST },
		{ "src/latest.c", KIND_CODE },
		{ "src/contest/a.c", KIND_CODE },
		{ "Cargo.lock", KIND_LOCK },
		{ "web/package-lock.json", KIND_LOCK },
		{ "package.json", KIND_CODE },
		{ ".env", KIND_SECRET },
		{ ".env.production", KIND_SECRET },
		{ ".env.example", KIND_CODE },
		{ "docs/server.key", KIND_SECRET },
		{ "secrets/a/b.yaml", KIND_SECRET },
		{ "src/main.c", KIND_CODE },
	};
	struct err err = { 0 };

	CHECK_OK(kinds_new(&k, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (kinds_of(k, table[i].path) != table[i].kind)
			fail_msg("%s is %s", table[i].path, kind_name(kinds_of(k, table[i].path)));
}

TEST_MAIN("kind")
