#include "snapshot/text/guard.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "snapshot/text/ignore.h"

/* clang-format off */
static const struct guard_rule rules[] = {
	{ "git", ".git\n.gitmodules\n.gitattributes\n.gitconfig\n",
	  "git runs what its hooks, filters and configuration name" },
	{ "ci", ".github/\n.gitlab-ci.yml\n.gitlab/\n.circleci/\n.travis.yml\n.drone.yml\n.woodpecker.yml\n"
	  ".woodpecker/\n.buildkite/\n.ci/\nJenkinsfile\nazure-pipelines.yml\nbitbucket-pipelines.yml\n"
	  "appveyor.yml\n.cirrus.yml\n.builds/\n.build.yml\n",
	  "a build server runs it, with its secrets" },
	{ "shell", ".bashrc\n.bash_profile\n.bash_login\n.bash_logout\n.profile\n.zshrc\n.zshenv\n.zprofile\n"
	  ".zlogin\n.kshrc\n.cshrc\n.tcshrc\n.inputrc\n.config/fish/\n.envrc\n.direnv/\n.autoenv\n",
	  "a shell runs it" },
	{ "editor", ".vscode/\n.idea/\n.vim/\n.vimrc\n.exrc\n.nvimrc\n.nvim.lua\n.dir-locals.el\n.zed/\n"
	  "*.code-workspace\n.devcontainer/\n.devcontainer.json\n",
	  "an editor runs what its tasks name" },
	{ "packages", ".npmrc\n.yarnrc\n.yarnrc.yml\n.yarn/\n.pnpmfile.cjs\n.pre-commit-config.yaml\n.husky/\n"
	  "lefthook.yml\n.lefthook.yml\n.pypirc\npip.conf\n.cargo/\n.bundle/\n.gemrc\n.m2/\n.netrc\n",
	  "a package manager or a hook runs what it names, or sends secrets where it says" },
	{ "agents", "AGENTS.md\n.cursor/\n.cursorrules\n.mcp.json\n.aider*\n.github/copilot-instructions.md\n",
	  "an assistant takes it for instructions, or runs what it names" },
	{ "snap", ".snap/\n.snapignore\n", "it says what is captured, held and run here" },
	{ "set-id", NULL, "whoever runs it becomes its owner" },
	{ GUARD_CAPABLE, NULL, "whoever runs it may do what only root may" },
	{ GUARD_LEFT_OUT, NULL, "it was to be left out, and is the same file as what is not, or in its way" },
	{ "device", NULL, "it opens a device, not a file" },
	{ "hidden-program", NULL, "an executable where few people look" },
};
/* clang-format on */

struct guard {
	const struct guard_rule *more; /* borrowed */
	size_t n_more;
	struct ignore **patterns; /* owned; as many as there are rules in all */
	char *free_dir;           /* owned; a directory that no pattern holds, or NULL */
};

const struct guard_rule *guard_rules(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(rules);
	return rules;
}

static const struct guard_rule *rule_at(const struct guard *g, size_t i)
{
	return i < ARRAY_LEN(rules) ? &rules[i] : &g->more[i - ARRAY_LEN(rules)];
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	for (size_t i = 0; g->patterns && i < ARRAY_LEN(rules) + g->n_more; i++)
		ignore_free(g->patterns[i]);
	free(g->patterns);
	free(g->free_dir);
	free(g);
}

int guard_new(const struct guard_rule *more, size_t n, struct guard **ret, struct err *err)
{
	CLEANUP(guard_free_p) struct guard *g = calloc(1, sizeof(*g));
	int r = 0;

	if (!g)
		return err_nomem(err);
	g->more = more;
	g->n_more = n;
	g->patterns = calloc(ARRAY_LEN(rules) + n, sizeof(struct ignore *));
	if (!g->patterns)
		return err_nomem(err);
	for (size_t i = 0; i < ARRAY_LEN(rules) + n && r >= 0; i++) {
		const char *text = rule_at(g, i)->patterns;

		if (text)
			r = ignore_parse(text, strlen(text), &g->patterns[i], err);
		if (r < 0)
			return err_wrap(err, r, "rule '%s'", rule_at(g, i)->name);
	}
	*ret = TAKE_PTR(g);
	return 0;
}

/* How much of a path is the directory that is known to be free, or one above that; 0: nothing. */
static size_t free_part(const struct guard *g, const char *path)
{
	const char *dir = g->free_dir;
	size_t part = 0;

	for (size_t i = 0; dir; i++) {
		if ((dir[i] == '/' || dir[i] == '\0') && path[i] == '/')
			part = i;
		if (dir[i] == '\0' || dir[i] != path[i])
			break;
	}
	return part;
}

/* What lies beside each other is asked for one after the other, mostly. */
static void remember_free(struct guard *g, const char *path, size_t known)
{
	const char *slash = strrchr(path, '/');

	if (!slash || (size_t)(slash - path) == known)
		return;
	free(g->free_dir);
	g->free_dir =
	    strndup(path, (size_t)(slash - path)); /* without memory it is looked at again */
}

/* It, or a directory above it, but for those that are known to be free. */
static bool matches(const struct ignore *ig, const char *path, size_t known, bool is_dir)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(known ? path + known + 1 : path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		const size_t len = (size_t)(slash - path);

		if (len >= sizeof(above))
			return true; /* too long to tell: let a person look */
		memcpy(above, path, len);
		above[len] = '\0';
		if (ignore_match(ig, above, true) == IGNORE_OUT)
			return true;
	}
	return ignore_match(ig, path, is_dir) == IGNORE_OUT;
}

static bool is_hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.") != NULL;
}

static bool holds_mode(const struct guard_rule *rule, const char *path, uint32_t mode)
{
	if (strcmp(rule->name, "set-id") == 0)
		return S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0;
	if (strcmp(rule->name, GUARD_CAPABLE) == 0 || strcmp(rule->name, GUARD_LEFT_OUT) == 0)
		return false; /* no mode tells */
	if (strcmp(rule->name, "device") == 0)
		return S_ISCHR(mode) || S_ISBLK(mode);
	return S_ISREG(mode) && (mode & 0111) != 0 && is_hidden(path);
}

const struct guard_rule *guard_match(struct guard *g, const char *path, uint32_t mode, char status)
{
	const size_t known = free_part(g, path);

	for (size_t i = 0; i < ARRAY_LEN(rules) + g->n_more; i++) {
		const struct guard_rule *rule = rule_at(g, i);

		/* Who follows a link finds a directory there, for all that we know. */
		if (g->patterns[i]
			? matches(g->patterns[i], path, known, S_ISDIR(mode) || S_ISLNK(mode))
			: status != 'D' && holds_mode(rule, path, mode))
			return rule;
	}
	remember_free(g, path, known);
	return NULL;
}

bool guard_allowed(const char *path, const char *const *allowed, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(allowed[i]);

		while (len > 1 && allowed[i][len - 1] == '/')
			len--;
		if (strncmp(path, allowed[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return false;
}
