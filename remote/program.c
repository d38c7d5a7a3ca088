#include "remote/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/sys.h"

extern char **environ;

static int start(const struct program *p, int in, int out, pid_t *ret)
{
	char *const *argv = (char *const *)(uintptr_t)p->argv;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, p->by_files ? p->from : in, 0);
	posix_spawn_file_actions_adddup2(&actions, p->by_files ? p->to : out, 1);
	if (p->quiet || p->by_files)
		posix_spawn_file_actions_adddup2(&actions, out, 2);
	posix_spawnattr_init(&attributes);
	if (p->apart) {
		posix_spawnattr_setpgroup(&attributes, 0);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	}
	rc = posix_spawnp(ret, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* All that comes until the end. */
static int read_output(const struct program *p, int fd, struct buf *out)
{
	const uint64_t until = p->wait_ms > 0 ? sys_boot_ms() + p->wait_ms : UINT64_MAX;
	const size_t before = out->len;

	for (uint64_t now; (now = sys_boot_ms()) < until;) {
		struct pollfd one = { .fd = fd, .events = POLLIN };
		unsigned char piece[4096];
		ssize_t n;

		if (poll(&one, 1, p->wait_ms > 0 ? (int)(until - now) : -1) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0 && out->len - before + (size_t)n > p->output_max)
			return -EFBIG;
		if (n > 0 && buf_append(out, piece, (size_t)n) < 0)
			return -ENOMEM;
		sys_wipe(piece, sizeof(piece));
	}
	return -ETIMEDOUT;
}

int program_run(const struct program *p, struct buf *output)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;
	pid_t pid = -1;
	int r = sys_pipe(in);

	if (r == 0) {
		r = sys_pipe(out);
		if (r == 0) {
			r = fdio_write(in[1], p->input, p->input_len);
			if (r == 0)
				r = start(p, in[0], out[1], &pid);
			close(out[1]);
		}
		close(in[0]);
		close(in[1]);
	}
	if (pid > 0) {
		r = read_output(p, out[0], output);
		if (r < 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (out[0] >= 0)
		close(out[0]);
	return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}
