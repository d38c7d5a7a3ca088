/*
 * child-linux.c - from fork to exec: the last walls, in the order in which they can be built.
 *
 * Each step needs something that a later one takes away, so the order is fixed: the terminal needs
 * a session; keys and files are needed before the filter and Landlock refuse them; and the limits,
 * which the filter allows to lower, are the command's and not ours, so they come last.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "runner/sandbox-i.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* The caller's signals: handlers went with exec, but what it ignores or blocks would stay. */
static void reset_signals(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int take_stdio(struct run *run, struct err *err)
{
	if (run->their[0] < 0)
		run->their[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		/* All of them are above 2, so none is written over before it is used. */
		if (run->their[i] < 0 || dup2(run->their[i], i) < 0)
			return err_sys(err, "opening stream %d of the run", i);
	}
	return 0;
}

/*
 * The working directory must be below the root that the run sees: one that is not gives it
 * the host's tree through "." (CVE-2024-21626).  The kernel then names it from elsewhere.
 */
static int enter_cwd(const char *cwd, struct err *err)
{
	char now[4096];

	if (chdir(cwd) < 0)
		return err_sys(err, "entering '%s' of the run", cwd);
	if (syscall(SYS_getcwd, now, sizeof(now)) < 0)
		return err_sys(err, "asking where '%s' of the run is", cwd);
	if (now[0] != '/')
		return err_set(err, -EXDEV, "'%s' of the run is not below its root", cwd);
	return 0;
}

/* Refused whatever the arguments: by a filter, since the kernel looks at these before it says EPERM. */
static bool is_filtered(long rc)
{
	return rc < 0 && (errno == EPERM || errno == ENOSYS);
}

/*
 * The caller's keys hang on its session keyring.  A kernel without keys is fine, and so is a
 * filter that forbids all three calls, as Docker's and nspawn's do: the run inherits it.
 */
static int leave_keys(struct err *err)
{
	int code;

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0)
		return 0;
	code = errno;
	if (is_filtered(syscall(SYS_keyctl, -1, 0, 0, 0, 0)) &&
	    is_filtered(syscall(SYS_add_key, NULL, NULL, NULL, 0, 0)) &&
	    is_filtered(syscall(SYS_request_key, NULL, NULL, NULL, 0)))
		return 0;
	errno = code;
	return err_sys(err, "giving the run keys of its own");
}

static int close_doors(struct run *run, struct err *err)
{
	int r;

	if (setsid() < 0)
		return err_sys(err, "making the session of the run");
	r = leave_keys(err);
	if (r == 0 && run->spec->tty)
		r = tty_open(run, err);
	if (r == 0)
		r = take_stdio(run, err);
	if (r == 0)
		r = landlock_enter(run, err);
	if (r == 0)
		r = enter_cwd(run->spec->cwd, err);
	if (r == 0)
		r = seccomp_enter(run, true, err);
	if (r == 0)
		r = limits_apply(run, false, err);
	if (r == 0 && run->spec->root)
		r = caps_keep_root(err);
	if (r == 0)
		r = ns_become_user(run, err);
	run->walls |= WALL_BIT(WALL_RLIMITS) | WALL_BIT(WALL_SECCOMP);
	return r;
}

static const char *find_path(const char *const *env)
{
	for (; *env; env++) {
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	}
	return DEFAULT_PATH;
}

/* Returns only if it failed: with the errno that says most of why. */
static int exec_in_path(const struct sandbox_spec *spec)
{
	const char *dir = find_path(spec->env), *name = spec->argv[0];
	char path[4096];
	int worst = ENOENT;

	if (strchr(name, '/')) {
		execve(name, (char *const *)(uintptr_t)spec->argv,
		       (char *const *)(uintptr_t)spec->env);
		return errno;
	}
	while (*dir) {
		size_t len = strcspn(dir, ":");
		int n =
		    snprintf(path, sizeof(path), "%.*s/%s", (int)len, len > 0 ? dir : ".", name);

		if (len == 0)
			n = snprintf(path, sizeof(path), "./%s", name);
		if (n > 0 && (size_t)n < sizeof(path)) {
			execve(path, (char *const *)(uintptr_t)spec->argv,
			       (char *const *)(uintptr_t)spec->env);
			if (errno != ENOENT && errno != ENOTDIR)
				worst = errno;
		}
		dir += len;
		dir += *dir == ':';
	}
	return worst;
}

void child_main(struct run *run)
{
	struct line_msg ready = { .kind = LINE_WALLS };
	struct err err = { 0 };
	int r;

	reset_signals();
	r = close_doors(run, &err);
	if (r < 0)
		line_give_up(run->line, &err, false);

	ready.walls = run->walls;
	ready.value = run->landlock;
	r = line_send(run->line, &ready, &run->listener, run->listener >= 0);
	if (r < 0)
		line_leave(125);

	/* CLOEXEC rather than close: the line must outlive this to say that exec failed. */
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
		r = err_sys(&err, "closing the descriptors of the run");
		line_give_up(run->line, &err, false);
	}
	r = exec_in_path(run->spec);
	errno = r;
	IGNORE_RESULT(err_sys(&err, "cannot execute '%s'", run->spec->argv[0]),
		      "the next line reports it");
	line_give_up(run->line, &err, true);
}
