#include "snapshot/text/guard.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "snapshot/text/ignore.h"

/* clang-format off */
static const struct guard_rule rules[] = {
	{ "git", ".git\n.gitmodules\n.gitattributes\n.gitconfig\n.hg/\n.hgrc\n.hgsub\n.svn/\n.bzr/\n.jj/\n.sl/\n"
	  "_darcs/\n.pijul/\n.repo/\n.arcconfig\n.arclint\n",
	  "git and its like run what their hooks, filters and configuration name", GUARD_HOLD },
	{ GUARD_BARE, NULL, "git takes such a directory for a repository and runs what its configuration names",
	  GUARD_HOLD },
	{ "ci", ".github/\n.gitlab-ci.yml\n.gitlab-ci.yaml\n.gitlab/\n.forgejo/\n.gitea/\n.circleci/\n.travis.yml\n"
	  ".drone.yml\n.woodpecker.yml\n.woodpecker.yaml\n.woodpecker/\n.buildkite/\n.ci/\nJenkinsfile\n.jenkins/\n"
	  "azure-pipelines.yml\n.azure-pipelines/\nbitbucket-pipelines.yml\nappveyor.yml\n.appveyor.yml\n.cirrus.yml\n"
	  ".cirrus.star\n.builds/\n.build.yml\n.teamcity/\n.tekton/\n.semaphore/\ncodefresh.yml\nbuildspec.yml\n"
	  "cloudbuild.yaml\nbamboo-specs/\n.harness/\n.packit.yaml\n.readthedocs.yaml\n.readthedocs.yml\n",
	  "a build server runs it, with its secrets", GUARD_HOLD },
	{ "shell", ".bashrc\n.bash_profile\n.bash_login\n.bash_logout\n.bash_aliases\n.profile\n.zshrc\n.zshenv\n.zprofile\n"
	  ".zlogin\n.zlogout\n.kshrc\n.cshrc\n.tcshrc\n.login\n.inputrc\n.config/fish/\n.envrc\n.direnv/\n.autoenv\n"
	  ".autoenv.zsh\nmise.toml\nmise.*.toml\n.mise.toml\n.mise.*.toml\nmise/config.toml\nmise/config.*.toml\n.mise/\n.config/mise/\n.config/mise.toml\n"
	  ".rtx.toml\n",
	  "a shell runs it", GUARD_HOLD },
	{ "editor", ".vscode/\n.idea/\n.fleet/\n.vim/\n.vimrc\n.gvimrc\n.lvimrc\n.exrc\n.nvimrc\n.nvim.lua\n.nvim/\n"
	  ".vimspector.json\n.dir-locals*.el\n.emacs\n.emacs.d/\n.helix/\n.zed/\n.kakrc\n*.code-workspace\n"
	  "*.sublime-project\n.devcontainer/\n.devcontainer.json\n",
	  "an editor runs what its tasks name", GUARD_HOLD },
	{ "packages", ".npmrc\n.yarnrc\n.yarnrc.yml\n.yarn/\n.pnpmfile.cjs\n.pnpmfile.mjs\n.pnp.cjs\n.pnp.js\n.pnp.loader.mjs\n"
	  "bunfig.toml\n.pre-commit-config.yaml\n.husky/\n.huskyrc*\nlefthook.yml\nlefthook.yaml\nlefthook-local.yml\n"
	  ".lefthook.yml\n.lefthook.yaml\n.lefthook/\n.overcommit.yml\n.pypirc\npip.conf\n.cargo/\n.bundle/\n.gemrc\n.m2/\n"
	  ".netrc\n",
	  "a package manager or a hook runs what it names, or sends secrets where it says", GUARD_HOLD },
	{ "tools", ".mvn/\nrust-toolchain\nrust-toolchain.toml\n.bazelrc\n.bazeliskrc\n*.pth\nsitecustomize.py\n"
	  "usercustomize.py\n.Rprofile\n.Renviron\n.ghci\n.iex.exs\n.irbrc\n.pryrc\n.pdbrc\n.pdbrc.py\n.perldb\n.ocamlinit\n"
	  ".utoprc\n.sqliterc\n.psqlrc\n.gdbinit\n.lldbinit\n.pylintrc\npylintrc\n.jvmopts\n.sbtopts\n"
	  ".replit\nhie.yaml\nrust-analyzer.toml\n.rust-analyzer.toml\n.octaverc\n.latexmkrc\nlatexmkrc\nansible.cfg\n"
	  ".flake8\nmypy.ini\n.mypy.ini\n.rubocop.yml\n.rspec\n.yardopts\n.solargraph.yml\n.valgrindrc\n.screenrc\n"
	  ".tmux.conf\n.formatter.exs\n.credo.exs\n",
	  "a compiler, interpreter, debugger or build tool runs what it says when it starts here", GUARD_HOLD },
	{ "agents", "AGENTS.md\nAGENTS.*.md\nAGENT.md\n.agents/\n.agent/\nCLAUDE.md\nCLAUDE.*.md\n.claude/\n.claude.json\n"
	  "GEMINI.md\n.gemini/\n.cursor/\n.cursorrules\n.cursorignore\n.windsurfrules\n.windsurf/\n.codeium/\n"
	  "copilot-instructions.md\n.copilot/\n.mcp.json\nmcp.json\n.aider*\n.codex/\n.clinerules\n.cline/\n.roo/\n.roorules*\n"
	  ".roomodes\n.kilocode/\n.kilocodemodes\n.continue/\n.continuerules\n.amp/\n.amazonq/\n.kiro/\n.junie/\n.augment/\n"
	  ".augment-guidelines\n.opencode/\nopencode.json\nopencode.jsonc\n.goose/\n.goosehints\n.trae/\nQWEN.md\n.qwen/\n"
	  "CRUSH.md\n.crush/\ncrush.json\n.crush.json\n.openhands/\n.openhands_instructions\n.zencoder/\n.tabnine/\n.qodo/\n"
	  ".pr_agent.toml\n.coderabbit.yaml\n.sourcegraph/\nWARP.md\n.warp/\n.factory/\n.firebender/\n.rules\n.ruler/\n.idx/\n"
	  ".devin/\nIFLOW.md\n.iflow/\n.vibe/\nreplit.md\n",
	  "an assistant takes it for instructions, or runs what it names", GUARD_HOLD },
	{ "snap", ".snap/\n.snapignore\n", "it says what is captured, held and run here", GUARD_HOLD },
	{ GUARD_SCRIPTS, "package.json\n", "a package manager runs its scripts, some without being asked", GUARD_WARN },
	{ GUARD_RECIPES, "Makefile\nmakefile\nGNUmakefile\n*.mk\n", "make runs it", GUARD_WARN },
	{ "build", "conftest.py\nsetup.py\nnoxfile.py\nbuild.rs\nbinding.gyp\nbuild.gradle\nbuild.gradle.kts\n"
	  "settings.gradle\nsettings.gradle.kts\ngradle/wrapper/\ngradlew\nmvnw\nRakefile\nGemfile\nJustfile\njustfile\n"
	  "Taskfile.yml\nDockerfile\ndocker-compose.yml\ncompose.yaml\nCMakeLists.txt\n*.cmake\nCMakePresets.json\n"
	  "meson.build\nconfigure\nconfigure.ac\ntox.ini\npytest.ini\npyproject.toml\nsetup.cfg\ncomposer.json\nbuild.xml\n"
	  "pom.xml\ngradle.properties\nbuild.sbt\nmix.exs\nrebar.config\nPackage.swift\nVagrantfile\nTiltfile\nflake.nix\n"
	  "shell.nix\ndefault.nix\n*.bzl\nMODULE.bazel\nDirectory.Build.props\nDirectory.Build.targets\n"
	  "eslint.config.*\n.eslintrc*\nvite.config.*\nwebpack.config.*\njest.config.*\nbabel.config.*\n.mocharc*\n",
	  "a build or a test runs it", GUARD_WARN },
	{ "set-id", NULL, "a user who runs it becomes its owner", GUARD_HOLD },
	{ GUARD_CAPABLE, NULL, "a user who runs it may do what only root may", GUARD_HOLD },
	{ GUARD_LEFT_OUT, NULL, "it was to be left out, and is the same file as what is not, or in its way", GUARD_HOLD },
	{ GUARD_LINK, NULL, "it leads, or could lead, out of the project or into .git", GUARD_HOLD },
	{ GUARD_SPARSE, NULL, "it is far larger than what is in it: a copy of it could fill the disk",
	  GUARD_HOLD },
	{ "device", NULL, "it opens a device, not a file", GUARD_HOLD },
	{ "fifo", NULL, "a program that opens it waits for the other end", GUARD_HOLD },
	{ "hidden-program", NULL, "an executable where few people look", GUARD_HOLD },
	{ GUARD_GROUP, NULL, "you are not in its group, so it gets another one", GUARD_WARN },
	{ GUARD_UNSEARCHED, NULL, "runs that hide secrets do not look for new ones among packages and builds, so they can read it",
	  GUARD_WARN },
	{ GUARD_MOUNT, NULL, "it names the directory of the clone, and works only while that is there", GUARD_WARN },
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

static const char *const level_names[] = {
	[GUARD_HOLD] = "hold",
	[GUARD_WARN] = "warn",
	[GUARD_PASS] = "pass",
};

const char *guard_level_name(enum guard_level level)
{
	return level_names[level];
}

bool guard_level_parse(const char *name, enum guard_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
		if (strcmp(level_names[i], name) == 0) {
			*ret = (enum guard_level)i;
			return true;
		}
	return false;
}

const struct guard_rule *guard_rule_named(const char *name)
{
	size_t i = 0;

	while (strcmp(rules[i].name, name) != 0) {
		i++;
		assert(i < ARRAY_LEN(rules));
	}
	return &rules[i];
}

/* A person's own come first, so that they can say more or less than the built-in ones. */
static const struct guard_rule *rule_at(const struct guard *g, size_t i)
{
	return i < g->n_more ? &g->more[i] : &rules[i - g->n_more];
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	VEC_FREE(it, g->patterns, ARRAY_LEN(rules) + g->n_more, ignore_free(*it));
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

/* Neighbouring paths are mostly asked for in a row. */
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
			return true; /* too long to judge: let a person look */
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

/* The rule that a mode triggers, or NULL. */
static const struct guard_rule *match_mode(uint32_t mode)
{
	if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0)
		return guard_rule_named("set-id");
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return guard_rule_named("device");
	return S_ISFIFO(mode) ? guard_rule_named("fifo") : NULL;
}

const struct guard_rule *guard_match(struct guard *g, const char *path, uint32_t mode, char status)
{
	const size_t known = free_part(g, path);
	const struct guard_rule *rule = NULL, *by_mode = status == 'D' ? NULL : match_mode(mode);

	for (size_t i = 0; i < ARRAY_LEN(rules) + g->n_more && !rule; i++)
		/* Following the link may lead to a directory. */
		if (g->patterns[i] &&
		    matches(g->patterns[i], path, known, S_ISDIR(mode) || S_ISLNK(mode)))
			rule = rule_at(g, i);
	if (!rule)
		remember_free(g, path, known);
	if (rule && rule->level == GUARD_HOLD)
		return rule;
	if (!by_mode && (!rule || rule->level == GUARD_WARN) && status != 'D' && S_ISREG(mode) &&
	    (mode & 0111) && is_hidden(path))
		by_mode = guard_rule_named("hidden-program");
	return by_mode ? by_mode : rule;
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
