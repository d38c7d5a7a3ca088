#include "snapshot/text/kind.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/vec.h"
#include "snapshot/text/ignore.h"

/*
 * The first that matches counts: a key below docs/ is a secret, and a page below tests/ is part of
 * the tests.
 */
static const struct {
	const char *name, *patterns;
} table[] = {
	[KIND_SECRET] = { "secret",
			  ".env\n.env.*\n!.env.example\n!.env.sample\n*.pem\n*.key\n*.p12\n*.pfx\n*.jks\n"
			  "*.keystore\nid_rsa\nid_dsa\nid_ecdsa\nid_ed25519\n.netrc\n.pgpass\n.htpasswd\n"
			  "credentials\ncredentials.json\nservice-account*.json\nsecrets.yml\nsecrets.yaml\n"
			  "secrets/\n.aws/\n.ssh/\n.gnupg/\n.kube/\n*.tfstate\n" },
	[KIND_LOCK] = { "lock",
			"package-lock.json\nnpm-shrinkwrap.json\nyarn.lock\npnpm-lock.yaml\nbun.lock\nbun.lockb\n"
			"Cargo.lock\ngo.sum\npoetry.lock\nuv.lock\nPipfile.lock\npdm.lock\nGemfile.lock\n"
			"composer.lock\nmix.lock\nflake.lock\nPackage.resolved\npubspec.lock\ngradle.lockfile\n"
			"packages.lock.json\nConfig.lock\n" },
	[KIND_TEST] = { "test",
			"test/\ntests/\n__tests__/\nspec/\ntestdata/\n__snapshots__/\ntest_*\n*_test.*\n*.test.*\n"
			"*.spec.*\n*_spec.*\ntest-*\ntest.*\ntests.*\n*Test.java\n*Tests.cs\nconftest.py\n" },
	[KIND_DOCS] = { "docs",
			"docs/\ndoc/\n*.md\n*.rst\n*.adoc\n*.txt\n!CMakeLists.txt\n!requirements*.txt\n"
			"LICENSE*\nCOPYING*\nNOTICE\nAUTHORS\nCHANGELOG*\nREADME*\n" },
	[KIND_CODE] = { "code", NULL },
};
_Static_assert(ARRAY_LEN(table) == KINDS, "a kind has no name");

struct kinds {
	struct ignore *patterns[KINDS]; /* owned; NULL: none */
};

const char *kind_name(enum kind kind)
{
	return table[kind].name;
}

void kinds_free(struct kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < KINDS; i++)
		ignore_free(k->patterns[i]);
	free(k);
}

int kinds_new(struct kinds **ret, struct err *err)
{
	CLEANUP(kinds_free_p) struct kinds *k = calloc(1, sizeof(*k));

	if (!k)
		return err_nomem(err);
	for (size_t i = 0; i < KINDS; i++) {
		const char *text = table[i].patterns;
		int r = text ? ignore_parse(text, strlen(text), &k->patterns[i], err) : 0;

		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(k);
	return 0;
}

/* A program is code, wherever it lies and whatever its name begins with: docs/conf.py, README.sh. */
static bool is_program(const char *path)
{
	static const char *const suffixes[] = {
		".c",   ".cc",    ".cpp",    ".h",    ".hpp", ".rs",    ".go",    ".py",
		".pyx", ".rb",    ".pl",     ".pm",   ".php", ".lua",   ".js",    ".cjs",
		".mjs", ".ts",    ".tsx",    ".jsx",  ".sh",  ".bash",  ".zsh",   ".fish",
		".ps1", ".bat",   ".cmd",    ".java", ".kt",  ".scala", ".swift", ".cs",
		".ex",  ".exs",   ".hs",     ".ml",   ".clj", ".el",    ".r",     ".R",
		".mk",  ".cmake", ".gradle", ".html", ".svg", ".ipynb",
	};
	const char *dot = strrchr(path, '.');

	return dot && VEC_HAS(one, suffixes, ARRAY_LEN(suffixes), strcmp(dot, *one) == 0);
}

enum kind kinds_of(const struct kinds *k, const char *path)
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (k->patterns[kind] && ignore_covers(k->patterns[kind], path))
			return kind == KIND_DOCS && is_program(path) ? KIND_CODE : kind;
	return KIND_CODE;
}
