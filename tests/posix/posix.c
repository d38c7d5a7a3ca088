/*
 * posix - does a directory behave as POSIX and Linux promise?
 *
 *   posix [--user UID] DIR [THEME[/CASE]]...
 *
 * Prints TAP.  Everything happens in a directory that is made in DIR and removed after.
 * With --user, for root, all of it runs as that user.
 */
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/posix/posix.h"

#define CASE_SECONDS 300
#define STATUS_SKIP  77

struct registered {
	const char *theme, *name;
	case_fn fn;
	size_t index; /* in their file */
};

static struct registered *cases; /* owned, for the life of the program */
static size_t n_cases;

static char root[PATH_MAX]; /* the directory that was made in DIR */
static unsigned failures;   /* of this process */
static pid_t case_pid;      /* the process of the case; its children report by their status */
static char attempt[512];   /* what is being tried */

void case_register(const char *theme, const char *name, case_fn fn)
{
	struct registered *more = realloc(cases, (n_cases + 1) * sizeof(*cases));

	if (!more)
		abort();
	cases = more;
	cases[n_cases] = (struct registered){ theme, name, fn, n_cases };
	n_cases++;
}

const char *dir_under_test(void)
{
	return root;
}

/* --- checks ------------------------------------------------------------------------------ */

PRINTF_LIKE(3, 0)
static void report(const char *file, int line, const char *fmt, va_list ap)
{
	const char *base = strrchr(file, '/');
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	failures++;
	if (failures == 40)
		printf("# ... and more\n");
	if (failures < 40)
		printf("# %s:%d: %s%s%s\n", base ? base + 1 : file, line, attempt,
		       attempt[0] ? ": " : "", text);
	fflush(stdout);
}

static void fail(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(file, line, fmt, ap);
	va_end(ap);
}

static const char *errno_name(int e)
{
	const char *name = strerrorname_np(e);

	return name ? name : "no errno";
}

intmax_t check_ok(intmax_t r, const char *text, const char *file, int line, bool need)
{
	int e = errno;

	if (r >= 0)
		return r;
	fail(file, line, "%s failed with %s", text, errno_name(e));
	if (need)
		_exit(1);
	return r;
}

void check_fails(intmax_t r, const char *text, const char *file, int line, const int *errnos)
{
	int e = errno;
	const int *want;

	if (r >= 0) {
		fail(file, line, "%s succeeded with %jd, want %s", text, r, errno_name(errnos[0]));
		return;
	}
	for (want = errnos; *want; want++)
		if (e == *want)
			return;
	fail(file, line, "%s failed with %s, want %s", text, errno_name(e), errno_name(errnos[0]));
}

bool check_is(intmax_t a, intmax_t b, const char *at, const char *bt, const char *file, int line)
{
	if (a != b)
		fail(file, line, "%s is %jd, want %s = %jd", at, a, bt, b);
	return a == b;
}

bool check_true(bool cond, const char *text, const char *file, int line)
{
	if (!cond)
		fail(file, line, "%s is false", text);
	return cond;
}

bool check_say(bool bad, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	if (!bad)
		return false;
	va_start(ap, fmt);
	report(file, line, fmt, ap);
	va_end(ap);
	return true;
}

void trying(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(attempt, sizeof(attempt), fmt, ap);
	va_end(ap);
}

void note(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fputc('\n', stdout);
	fflush(stdout);
}

/* Only the process of the case knows the pipe on which the reason travels. */
static int reason_fd = -1;

void skip(const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (getpid() != case_pid || failures)
		_exit(1);
	IGNORE_RESULT(
	    write(reason_fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1),
	    "the status says enough");
	_exit(STATUS_SKIP);
}

void need_root(void)
{
	if (geteuid() != 0)
		skip("needs root");
}

static void look_in(void *arg)
{
	if (access(".", R_OK | X_OK) != 0)
		_exit(2);
}

void need_other_user(void)
{
	pid_t pid;
	int status;

	need_root();
	pid = NEED(fork());
	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) ||
		    setresuid(OTHER, OTHER, OTHER))
			_exit(2);
		look_in(NULL);
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0));
	if (status != 0)
		skip("the file system or a directory above it keeps other users out");
}

/* --- children ---------------------------------------------------------------------------- */

pid_t start(void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	NEED(pid);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		failures = 0;
		fn(arg);
		_exit(failures != 0);
	}
	return pid;
}

void gather(pid_t pid)
{
	int status;

	NEED(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		fail(__FILE__, __LINE__, "a child died of signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		failures++;
}

struct as {
	uid_t uid;
	gid_t gid;
	void (*fn)(void *arg);
	void *arg;
};

static void become(void *arg)
{
	const struct as *as = arg;

	if (as->uid != KEEP) {
		NEED(setgroups(0, NULL));
		NEED(setresgid(as->gid, as->gid, as->gid));
		NEED(setresuid(as->uid, as->uid, as->uid));
	}
	as->fn(as->arg);
}

void as_user(uid_t uid, gid_t gid, void (*fn)(void *arg), void *arg)
{
	struct as as = { uid, gid, fn, arg };

	gather(start(become, &as));
}

/* --- running ----------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	IGNORE_RESULT(remove(path), "the walk's result tells");
	return 0;
}

static void remove_tree(const char *path)
{
	char command[PATH_MAX + 64];

	/* Deep trees have paths that are too long for nftw(3). */
	if (nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS) != 0 || access(path, F_OK) == 0) {
		snprintf(command, sizeof(command), "rm -rf '%s'", path);
		IGNORE_RESULT(system(command), "leftovers are the user's to see");
	}
}

NORETURN static void run_case(const struct registered *c, const char *dir, int fd)
{
	reason_fd = fd;
	case_pid = getpid();
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CASE_SECONDS);
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	if (chdir(dir) != 0) {
		printf("# cannot enter %s: %s\n", dir, strerror(errno));
		_exit(1);
	}
	c->fn();
	fflush(stdout);
	_exit(failures != 0);
}

/* 0 passed, 1 failed, STATUS_SKIP with the reason. */
static int case_status(const struct registered *c, const char *dir, char *reason, size_t size)
{
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return 1;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		close(fds[0]);
		run_case(c, dir, fds[1]);
	}
	close(fds[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL); /* its children, should it have died before them */
	n = fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0 ? read(fds[0], reason, size - 1) : 0;
	reason[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	if (WIFSIGNALED(status)) {
		printf("# died of signal %d%s\n", WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? ", it took too long" : "");
		return 1;
	}
	return WEXITSTATUS(status);
}

static bool wanted(const struct registered *c, int n_words, char **words)
{
	char full[256];
	int i;

	snprintf(full, sizeof(full), "%s/%s", c->theme, c->name);
	for (i = 0; i < n_words; i++)
		if (strcmp(words[i], c->theme) == 0 || strcmp(words[i], full) == 0)
			return true;
	return n_words == 0;
}

static int by_theme(const void *a, const void *b)
{
	const struct registered *x = a, *y = b;
	int d = strcmp(x->theme, y->theme);

	return d ? d : x->index < y->index ? -1 : 1;
}

static int run_all(int n_words, char **words)
{
	char dir[PATH_MAX + 32], reason[256];
	unsigned number = 0, planned = 0, bad = 0;
	size_t i;
	int status;

	qsort(cases, n_cases, sizeof(*cases), by_theme);
	for (i = 0; i < n_cases; i++)
		planned += wanted(&cases[i], n_words, words);
	printf("1..%u\n", planned);
	for (i = 0; i < n_cases; i++) {
		if (!wanted(&cases[i], n_words, words))
			continue;
		snprintf(dir, sizeof(dir), "%s/case", root);
		if (mkdir(dir, 0755) != 0) {
			printf("Bail out! cannot make %s: %s\n", dir, strerror(errno));
			return 1;
		}
		status = case_status(&cases[i], dir, reason, sizeof(reason));
		remove_tree(dir);
		if (status == 0 && access(dir, F_OK) == 0) {
			printf("# %s cannot be removed\n", dir);
			status = 1;
		}
		if (access(dir, F_OK) == 0) {
			char aside[PATH_MAX + 32];

			snprintf(aside, sizeof(aside), "%s/left-%u", root, number);
			IGNORE_RESULT(rename(dir, aside), "the next mkdir tells");
		}
		bad += status != 0 && status != STATUS_SKIP;
		printf("%sok %u - %s/%s%s%s\n", status && status != STATUS_SKIP ? "not " : "",
		       ++number, cases[i].theme, cases[i].name,
		       status == STATUS_SKIP ? " # SKIP " : "",
		       status == STATUS_SKIP ? reason : "");
		fflush(stdout);
	}
	return bad || !planned;
}

static int make_root(const char *dir, uid_t user)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/posix-XXXXXX", dir);
	if (!mkdtemp(path) || !realpath(path, root))
		return -errno;
	if (chmod(root, 0755) != 0)
		return -errno;
	if (user != KEEP && chown(root, user, user) != 0)
		return -errno;
	return 0;
}

/* As another user it is done by a child: what is left is for root to remove. */
static int run_as(uid_t user, int n_words, char **words)
{
	int status;
	pid_t pid;

	if (user == KEEP)
		return run_all(n_words, words);
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(user, user, user) ||
		    setresuid(user, user, user)) {
			printf("Bail out! cannot become user %u: %s\n", (unsigned)user,
			       strerror(errno));
			exit(1);
		}
		exit(run_all(n_words, words));
	}
	return pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
}

NORETURN static void usage(void)
{
	fputs("usage: posix [--user UID] DIR [THEME[/CASE]]...\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	uid_t user = KEEP;
	int r, at = 1;

	if (argc > 3 && strcmp(argv[1], "--user") == 0) {
		user = (uid_t)strtoul(argv[2], NULL, 10);
		at = 3;
	}
	if (at >= argc || argv[at][0] == '-')
		usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = make_root(argv[at], user);
	if (r < 0) {
		printf("Bail out! cannot use %s: %s\n", argv[at], strerror(-r));
		return 1;
	}
	r = run_as(user, argc - at - 1, argv + at + 1);
	remove_tree(root);
	return r;
}
