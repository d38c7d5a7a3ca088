#include "cli/editor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"

static const char *editor(void)
{
	const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");

	return visual && *visual != '\0' ? visual : plain && *plain != '\0' ? plain : "vi";
}

/* A shell reads it, as it may be more than one word. */
static NORETURN void become_editor(const char *path)
{
	AUTO_FREE char *line = NULL;

	if (asprintf(&line, "%s \"$1\"", editor()) >= 0)
		execl("/bin/sh", "sh", "-c", line, "sh", path, (char *)NULL);
	_exit(127);
}

/* ^C is the editor's, while it runs. */
static int run_editor(const char *path, struct err *err)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction was_int, was_quit;
	int status = 0;
	pid_t pid;

	sigaction(SIGINT, &ignore, &was_int);
	sigaction(SIGQUIT, &ignore, &was_quit);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &was_int, NULL);
		sigaction(SIGQUIT, &was_quit, NULL);
		become_editor(path);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &was_int, NULL);
	sigaction(SIGQUIT, &was_quit, NULL);
	if (pid < 0)
		return err_sys(err, "starting '%s'", editor());
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, -ECHILD, "'%s' did not end with 0, so nothing is decided",
			       editor());
	return 0;
}

static int write_text(const char *text, const char *like, char **ret, struct err *err)
{
	const char *tmp = getenv("TMPDIR"), *dot = strrchr(path_base(like), '.');
	AUTO_CLOSE int fd = -1;
	int r;
	AUTO_FREE char *path =
	    text_format("%s/snap-XXXXXX%s", tmp && *tmp == '/' ? tmp : "/tmp", dot ? dot : "");

	if (!path)
		return err_nomem(err);
	fd = mkstemps(path, dot ? (int)strlen(dot) : 0);
	if (fd < 0)
		return err_sys(err, "'%s'", path);
	r = fdio_write(fd, text, strlen(text));
	if (r < 0) {
		unlink(path);
		return err_set(err, r, "'%s' cannot be written", path);
	}
	*ret = TAKE_PTR(path);
	return 0;
}

int editor_open(const char *text, const char *like, char **ret_path, struct err *err)
{
	int r = write_text(text, like, ret_path, err);

	return r < 0 ? r : run_editor(*ret_path, err);
}

int editor_has_markers(const char *path, struct err *err)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	AUTO_FREE char *line = NULL;
	size_t room = 0;

	if (!f)
		return err_sys(err, "'%s'", path);
	while (getline(&line, &room, f) >= 0)
		if (strncmp(line, "<<<<<<< ", 8) == 0 || strncmp(line, ">>>>>>> ", 8) == 0 ||
		    strncmp(line, "||||||| ", 8) == 0)
			return 1;
	return 0;
}
