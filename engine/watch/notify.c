#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "engine/watch/action-i.h"

#define SIGNED_MAX ((size_t)4096) /* bytes at the end of what a run wrote */
#define NOTIFY_MS  30000

/* --- failures ------------------------------------------------------------------------------ */

/* Numbers differ from run to run: times, ids, addresses. */
static void add_plain(struct sha256 *sum, const char *text, size_t len)
{
	const size_t from = len > SIGNED_MAX ? len - SIGNED_MAX : 0;

	for (size_t i = from; i < len; i++) {
		const bool digit = text[i] >= '0' && text[i] <= '9';

		if (!digit)
			sha256_add(sum, &text[i], 1);
		else if (i == from || text[i - 1] < '0' || text[i - 1] > '9')
			sha256_add(sum, "0", 1);
	}
}

void action_sign(struct engine_firing *f, const struct engine_run *run)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 sum;
	char code[24];

	sha256_begin(&sum);
	snprintf(code, sizeof(code), "%lld\n", (long long)f->exit_code);
	sha256_add(&sum, code, strlen(code));
	if (run) {
		add_plain(&sum, (const char *)run->out.data, run->out.len);
		add_plain(&sum, (const char *)run->err.data, run->err.len);
	} else if (f->why) {
		add_plain(&sum, f->why, strlen(f->why));
	}
	sha256_end(&sum, digest);
	hex_encode(digest, (sizeof(f->signature) - 1) / 2, f->signature);
}

/* --- telling the user ---------------------------------------------------------------------- */

/* The same failure as the one before it is no news. */
static bool is_news(struct engine *e, const struct engine_firing *f)
{
	CLEANUP(engine_firings_done) struct engine_firings all = { 0 };
	struct err ignored = { 0 };

	if (strcmp(f->result, "nothing") == 0)
		return false;
	if (*f->signature == '\0' || engine_watch_log(e, &all, &ignored) < 0)
		return true;
	for (size_t i = 0; i < all.n; i++) {
		const struct engine_firing *o = &all.list[i];

		if (strcmp(o->rule, f->rule) == 0 && strcmp(o->id, f->id) != 0 &&
		    o->state == ENGINE_FIRING_DONE && o->created <= f->created)
			return strcmp(o->signature, f->signature) != 0;
	}
	return true;
}

static void set_env(const struct engine_firing *f)
{
	const char *const facts[][2] = {
		{ "SNAPCOW_WATCH_RULE", f->rule },     { "SNAPCOW_WATCH_PROJECT", f->project },
		{ "SNAPCOW_WATCH_RESULT", f->result }, { "SNAPCOW_WATCH_WHY", f->why },
		{ "SNAPCOW_WATCH_CHANGE", f->change }, { "SNAPCOW_WATCH_CLONE", f->clone },
		{ "SNAPCOW_WATCH_FIRING", f->id },
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (facts[i][1])
			setenv(facts[i][0], facts[i][1], 1);
		else
			unsetenv(facts[i][0]);
}

static void await_end(pid_t pid)
{
	const uint64_t until = engine_clock_ms() + NOTIFY_MS;

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		const uint64_t now = engine_clock_ms();

		if (now >= until)
			kill(-pid, SIGKILL);
		sys_wait_process(pid, now < until ? (int)(until - now) : 1000);
	}
}

/* It must not hold the firing's lock, nor the terminal, and it dies with us: the next process tells nobody again. */
NORETURN static void become_notifier(const char *command, pid_t parent)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sys_end_with(parent);
	setpgid(0, 0);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static int spawn(const char *command, pid_t *ret)
{
	const pid_t parent = getpid();

	fflush(NULL);
	*ret = fork();
	if (*ret < 0)
		return -errno;
	if (*ret == 0)
		become_notifier(command, parent);
	/* Both do it: neither waits for the other. */
	setpgid(*ret, *ret);
	return 0;
}

int action_notify(struct action *a, const char *command, struct err *err)
{
	struct engine_firing *f = a->firing;
	pid_t pid;
	int r;

	if (f->notified || !is_news(a->engine, f))
		return 0;
	f->notified = true;
	r = firing_save(a->engine, &a->lock, f, NULL, err);
	if (r < 0)
		return r;
	set_env(f);
	signal(SIGCHLD, SIG_DFL);
	r = spawn(command, &pid);
	if (r < 0)
		return err_set(err, r, "'%.100s' cannot be started: %s", command, strerror(-r));
	await_end(pid);
	return 0;
}
