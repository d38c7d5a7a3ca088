/*
 * docker-credential-NAME get: the server on its standard input, one object on its standard output.  The
 * protocol is that of github.com/docker/docker-credential-helpers.
 */
#include "remote/credential.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/sys.h"

#define ANSWER_MAX ((size_t)64 << 10)
#define WAIT_MS    60000 /* it may ask the user to unlock a key ring */

extern char **environ;

static void wipe_buf(struct buf *b)
{
	if (b->data)
		sys_wipe(b->data, b->len);
	buf_done(b);
}

/* A file name of its own, not a path to somewhere else. */
static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return *name != '\0' && strlen(name) < 200;
}

static int start(const char *program, int in, int out, pid_t *ret)
{
	char get[] = "get";
	char *const argv[] = { (char *)(uintptr_t)program, get, NULL };
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	rc = posix_spawnp(ret, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* All that comes until the end; -ETIMEDOUT, -EFBIG. */
static int read_answer(int fd, struct buf *out)
{
	const uint64_t until = sys_boot_ms() + WAIT_MS;

	for (uint64_t now; (now = sys_boot_ms()) < until;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		unsigned char piece[4096];
		ssize_t n;

		if (poll(&p, 1, (int)(until - now)) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0 && out->len + (size_t)n > ANSWER_MAX)
			return -EFBIG;
		if (n > 0 && buf_append(out, piece, (size_t)n) < 0)
			return -ENOMEM;
		sys_wipe(piece, sizeof(piece));
	}
	return -ETIMEDOUT;
}

/* Run it: its exit status, or a negative errno. */
static int run(const char *program, const char *server, struct buf *answer)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;
	pid_t pid = -1;
	int r = sys_pipe(in);

	if (r == 0) {
		r = sys_pipe(out);
		if (r == 0) {
			/* A pipe takes a name without anybody reading it yet. */
			r = fdio_write(in[1], server, strlen(server));
			if (r == 0)
				r = start(program, in[0], out[1], &pid);
			close(out[1]);
		}
		close(in[0]);
		close(in[1]);
	}
	if (pid > 0) {
		r = read_answer(out[0], answer);
		if (r < 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (out[0] >= 0)
		close(out[0]);
	return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int read_object(const char *program, const struct buf *answer, struct credential *ret,
		       struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const char *user, *secret;
	struct json j;

	if (json_parse(&doc, (const char *)answer->data, answer->len, &j, NULL) < 0)
		return err_set(err, -EPROTO, "'%s' answered something that is not JSON", program);
	user = json_text_if(j, "Username");
	secret = json_text_if(j, "Secret");
	if (!user || !secret)
		return err_set(err, -EPROTO, "'%s' answered without a name or a secret", program);
	if (*secret == '\0')
		return 0;
	if (strcmp(user, "<token>") == 0) {
		ret->refresh = strdup(secret);
		return ret->refresh ? 1 : err_nomem(err);
	}
	ret->user = strdup(user);
	ret->secret = strdup(secret);
	if (ret->user && ret->secret)
		return 1;
	credential_done(ret);
	return err_nomem(err);
}

int credential_ask_program(const char *name, const char *server, struct credential *ret,
			   struct err *err)
{
	CLEANUP(wipe_buf) struct buf answer = BUF_INIT;
	AUTO_FREE char *program = NULL;
	int r;

	if (!is_name(name))
		return err_set(err, -EINVAL, "docker's configuration: '%s' is no name of a program",
			       name);
	if (asprintf(&program, "docker-credential-%s", name) < 0) {
		program = NULL;
		return err_nomem(err);
	}
	r = run(program, server, &answer);
	if (r == -ENOENT)
		return err_set(err, r, "docker's configuration wants '%s', which is not installed",
			       program);
	if (r < 0)
		return err_wrap(err, r, "'%s'", program);
	if (r > 0 && answer.len > 0 && memmem(answer.data, answer.len, "credentials not found", 21))
		return 0;
	if (r > 0)
		return err_set(err, -EACCES, "'%s' failed with status %d", program, r);
	return read_object(program, &answer, ret, err);
}
