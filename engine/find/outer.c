#include "engine/find/outer-i.h"

#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

static const char *const marks[] = {
	"package.json",
	"pyproject.toml",
	"setup.py",
	"Cargo.toml",
	"go.mod",
	"Makefile",
	"CMakeLists.txt",
	"meson.build",
	"pom.xml",
	"build.gradle",
	"Gemfile",
	"composer.json",
	"mix.exs",
	"build.gradle.kts",
	".hg",
	".svn",
	"WORKSPACE",
	"MODULE.bazel",
	".jj",
};

static const char *mark_in(const char *dir)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		AUTO_FREE char *path = path_join(dir, marks[i]);

		if (path && lstat(path, &st) == 0)
			return marks[i];
	}
	return NULL;
}

bool outer_is_marked(const char *dir)
{
	return mark_in(dir) != NULL;
}

char *outer_find(const struct engine *e, const char *dir, const char **ret_mark)
{
	AUTO_FREE char *up = strdup(dir);
	const char *mark;

	if (!up)
		return NULL;
	for (;;) {
		*strrchr(up, '/') = '\0';
		if (*up == '\0' || (e->home && strcmp(up, e->home) == 0))
			return NULL;
		mark = mark_in(up);
		if (mark) {
			*ret_mark = mark;
			return TAKE_PTR(up);
		}
	}
}
