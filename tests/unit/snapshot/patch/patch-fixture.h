/*
 * patch-fixture.h - for tests of patches: the text between two roots, and git to take it.
 */
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"
#include "snapshot/patch/patch.h"
#include "tests/lib/test.h"

static inline int patch_collect(enum patch_part part, const char *text, size_t len, void *ctx,
				struct err *err)
{
	(void)part;
	return buf_append(ctx, text, len) < 0 ? err_nomem(err) : 0;
}

/* Appends the whole patch to `out`; what was found is `ret`. */
static inline void patch_between(struct store *s, const struct object_id *before,
				 const struct object_id *after, bool renames, struct delta *ret,
				 struct buf *out)
{
	struct patch_counts counts;
	struct err err = { 0 };

	CHECK_OK(
	    delta_find(s, before, after, &(struct delta_options){ .renames = renames }, ret, &err),
	    &err);
	for (size_t i = 0; i < ret->n_files; i++)
		CHECK_OK(patch_file(s, &ret->files[i], 3, patch_collect, out, &counts, &err), &err);
}

extern char **environ;

/* git ARGS... in a directory; its exit code.  It reads `in`; what it says goes to `log`. */
static inline int patch_git_from(const char *dir, const char *in, const char *log,
				 const char *const *args)
{
	const char *argv[32] = { "git", "-C", dir };
	posix_spawn_file_actions_t actions;
	size_t n = 3;
	pid_t pid;
	int status;

	while (*args)
		argv[n++] = *args++;
	setenv("GIT_CEILING_DIRECTORIES", test_dir(), 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("HOME", test_dir(), 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, in, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	CHECK_EQ(posix_spawnp(&pid, "git", &actions, NULL, (char **)(uintptr_t)argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline int patch_git(const char *dir, const char *log, const char *const *args)
{
	return patch_git_from(dir, "/dev/null", log, args);
}

static inline void patch_save(const char *path, const struct buf *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, text->data, text->len), 0);
}
