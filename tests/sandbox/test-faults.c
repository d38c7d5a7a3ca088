/*
 * test-faults.c - every step of the set-up made to fail: nothing runs, and the sentence comes back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "runner/layout.h"
#include "runner/sandbox-i.h"
#include "tests/lib/test.h"

static const char *failing = ""; /* the step that does */
static const char *slow = "";    /* the step that takes longer than the run may */
static uint64_t wall_ms;
static uint64_t max_pids;
static bool is_scope; /* the cgroup of the run: systemd removes it when its last process ends */

#define SLOW_MS 3200

static int injected(struct err *err, const char *step)
{
	return err_set(err, -EDOM, "injected into %s", step);
}

/* In the place of each step, one that fails or takes its time on demand. */
#define STEP(name, params, args)                                                                  \
	int __real_##name params;                                                                 \
	int __wrap_##name params;                                                                 \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(__real_##name)), \
		       "as the header declares it");                                              \
	int __wrap_##name params                                                                  \
	{                                                                                         \
		if (strcmp(slow, #name) == 0)                                                     \
			usleep(SLOW_MS * 1000);                                                   \
		return strcmp(failing, #name) == 0 ? injected(err, #name) : __real_##name args;   \
	}

STEP(ns_clone, (struct run * run, struct err *err), (run, err))
STEP(ns_map_ids, (struct run * run, struct err *err), (run, err))
STEP(idmap_open, (struct run * run, struct err *err), (run, err))
STEP(idmap_trees, (struct run * run, struct err *err), (run, err))
STEP(line_say_ids, (struct run * run, struct err *err), (run, err))
STEP(line_say_go, (struct run * run, struct err *err), (run, err))
STEP(ns_become, (struct run * run, struct err *err), (run, err))
STEP(ns_settle, (struct run * run, struct err *err), (run, err))
STEP(ns_hide_cgroups, (struct err * err), (err))
STEP(mounts_begin, (struct run * run, struct err *err), (run, err))
STEP(mounts_enter, (struct run * run, struct err *err), (run, err))
STEP(proc_mount, (struct err * err), (err))
STEP(proc_mask, (int root, int dir, int file, struct err *err), (root, dir, file, err))
STEP(dev_build, (int root, struct err *err), (root, err))
STEP(tty_open, (struct run * run, struct err *err), (run, err))
STEP(caps_bound, (struct err * err), (err))
STEP(landlock_enter, (struct run * run, struct err *err), (run, err))
STEP(caps_drop, (struct err * err), (err))
STEP(seccomp_enter, (struct run * run, bool heard, struct err *err), (run, heard, err))
STEP(limits_apply, (const struct run *run, bool ours, struct err *err), (run, ours, err))

enum cgroup_kind __real_cgroup_kind(const struct cgroup *g);
enum cgroup_kind __wrap_cgroup_kind(const struct cgroup *g);
enum cgroup_kind __wrap_cgroup_kind(const struct cgroup *g)
{
	return g && is_scope ? CGROUP_SCOPE : __real_cgroup_kind(g);
}

/* One that has gone with the init of the run has nothing to tell any more. */
void __real_cgroup_use(const struct cgroup *g, struct cgroup_use *ret);
void __wrap_cgroup_use(const struct cgroup *g, struct cgroup_use *ret);
void __wrap_cgroup_use(const struct cgroup *g, struct cgroup_use *ret)
{
	siginfo_t info = { 0 };

	if (!is_scope) {
		__real_cgroup_use(g, ret);
		return;
	}
	*ret = (struct cgroup_use){ 0 };
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
		*ret = (struct cgroup_use){ .mem_peak = 4096, .oom_kills = 1 };
}

static const char *const steps[] = {
	"ns_clone",     "ns_map_ids",     "idmap_open", "line_say_ids",    "line_say_go",
	"idmap_trees",  "ns_become",      "ns_settle",  "ns_hide_cgroups", "mounts_begin",
	"mounts_enter", "proc_mount",     "proc_mask",  "dev_build",       "tty_open",
	"caps_bound",   "landlock_enter", "caps_drop",  "seccomp_enter",   "limits_apply",
};

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What a run sees, told when it has begun. */
struct late {
	struct sandbox_view view;
	int code; /* that is answered */
};

static int look_late(void *ctx, struct sandbox_view *ret, struct err *err)
{
	const struct late *late = ctx;

	*ret = late->view;
	return late->code < 0 ? err_set(err, late->code, "nothing to see") : 0;
}

/* Run something that leaves a mark if it runs. */
static int leave_mark_with(bool tty, struct late *late, struct sandbox_result *res, struct err *err)
{
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	const char *const argv[] = { "sh", "-c", "echo ran > /mark/ran", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	struct sandbox_mount mark = {
		SANDBOX_BIND, test_dir(), -1, "/mark", .writable = true, .owned = true,
	};
	struct sandbox_spec spec;

	sandbox_spec_init(&spec);
	CHECK_OK(layout_add_system(l, err), err);
	if (late) {
		late->view.mounts = late->view.mounts ? late->view.mounts : &mark;
		late->view.n_mounts = 1;
		spec.view = look_late;
		spec.view_ctx = late;
	} else {
		CHECK_OK(layout_add(l, &mark, err), err);
	}
	spec.argv = argv;
	spec.env = env;
	spec.mounts = l->mounts;
	spec.n_mounts = l->n;
	spec.tty = tty;
	spec.limits.wall_ms = wall_ms;
	spec.limits.pids = max_pids;
	return sandbox_run(&spec, res, err);
}

static int leave_mark(bool tty, struct sandbox_result *res, struct err *err)
{
	return leave_mark_with(tty, NULL, res, err);
}

static void need_namespaces(void)
{
	struct sandbox_result res;
	struct err err = { 0 };

	failing = "";
	if (leave_mark(false, &res, &err) < 0)
		TEST_SKIP(err.msg);
	CHECK_EQ(access(test_path("ran"), F_OK), 0);
	unlink(test_path("ran"));
}

TEST(a_step_that_fails_means_that_nothing_runs)
{
	need_namespaces();
	for (size_t i = 0; i < 2 * ARRAY_LEN(steps); i++) {
		const char *step = steps[i / 2];
		struct late late = { 0 };
		struct sandbox_result res;
		struct err err = { 0 };
		char want[64];
		int before = count_fds();

		if (geteuid() != 0 && strncmp(step, "idmap", 5) == 0)
			continue;
		failing = step;
		snprintf(want, sizeof(want), "injected into %s", step);
		CHECK_EQ(leave_mark_with(true, i % 2 ? &late : NULL, &res, &err), -EDOM);
		CHECK_STR(err.msg, want);
		CHECK(!res.exec_failed);
		CHECK_EQ(res.walls, 0);
		CHECK_EQ(access(test_path("ran"), F_OK), -1);
		/* And nothing is left of it. */
		CHECK_EQ(count_fds(), before);
		CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
		CHECK_EQ(errno, ECHILD);
	}
	failing = "";
}

TEST(what_a_run_sees_may_come_late)
{
	struct late late = { .view.cwd = "/mark" };
	struct sandbox_result res;
	struct err err = { 0 };
	int before = count_fds();

	need_namespaces();
	CHECK_OK(leave_mark_with(false, &late, &res, &err), &err);
	CHECK_EQ(res.exit_code, 0);
	CHECK_EQ(access(test_path("ran"), F_OK), 0);
	unlink(test_path("ran"));
	CHECK_EQ(count_fds(), before);
}

TEST(what_is_mounted_too_late_means_that_nothing_runs)
{
	struct late late = { .view.mounted_by_ms = clock_ms() + 600000 };
	struct sandbox_result res;
	struct err err = { 0 };

	need_namespaces();
	CHECK_OK(leave_mark_with(false, &late, &res, &err), &err);
	CHECK_EQ(access(test_path("ran"), F_OK), 0);
	unlink(test_path("ran"));
	late.view.mounted_by_ms = clock_ms();
	CHECK_EQ(leave_mark_with(false, &late, &res, &err), -ESTALE);
	CHECK_HAS(err.msg, "was mounted too late");
	CHECK_EQ(access(test_path("ran"), F_OK), -1);
}

TEST(what_a_run_is_to_see_and_cannot_be_shown_means_that_nothing_runs)
{
	AUTO_CLOSE int was = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const size_t size = (size_t)5 << 20;
	const struct sandbox_mount wrong[] = {
		{ SANDBOX_BIND, "/usr", -1, "not/absolute" },
		{ SANDBOX_BIND, "/usr", was, "/shown" },
		{ SANDBOX_TEXT, NULL, -1, "/shown" },
	};
	struct sandbox_mount large = { SANDBOX_TEXT, NULL, -1, "/shown" };
	struct late none = { .code = -EDOM }, much = { .view.mounts = &large };
	struct sandbox_result res;
	struct err err = { 0 };
	int before;

	need_namespaces();
	large.host = memset(buf_extend(&text, size), 'x', size);
	((char *)text.data)[size - 1] = '\0';
	before = count_fds();
	CHECK_EQ(leave_mark_with(false, &none, &res, &err), -EDOM);
	CHECK_STR(err.msg, "nothing to see");
	CHECK_EQ(leave_mark_with(false, &much, &res, &err), -E2BIG);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct late late = { .view.mounts = &wrong[i] };

		/* An ordinary user's init is made after that, and can compare. */
		if (i != 1 || geteuid() == 0)
			CHECK_EQ(leave_mark_with(false, &late, &res, &err), -EINVAL);
	}
	CHECK_EQ(access(test_path("ran"), F_OK), -1);
	CHECK_EQ(count_fds(), before);
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
}

/* As an init does that fails while its caller says that it may go on. */
TEST(why_an_init_gave_up_is_heard_though_it_left_something_unread)
{
	const struct line_msg why = { .kind = LINE_FAILED, .value = 7 }, go = { .kind = LINE_GO };
	struct line_msg heard = { 0 };
	int ends[2], fds[LINE_FDS_MAX];
	size_t n;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	CHECK_EQ(line_send(ends[0], &go, NULL, 0), 0);
	CHECK_EQ(line_send(ends[1], &why, NULL, 0), 0);
	close(ends[1]);
	CHECK_EQ(line_receive(ends[0], &heard, fds, &n), 1);
	CHECK_EQ(heard.value, 7);
	CHECK_EQ(line_receive(ends[0], &heard, fds, &n), 0);
	close(ends[0]);
}

TEST(a_run_leaves_no_descriptor)
{
	struct sandbox_result res;
	struct err err = { 0 };
	int before = count_fds();

	need_namespaces();
	for (int i = 0; i < 3; i++)
		CHECK_OK(leave_mark(i == 1, &res, &err), &err);
	CHECK_EQ(count_fds(), before);
}

TEST(a_source_that_is_not_what_it_was_is_refused)
{
	const char *const argv[] = { "true", NULL }, *const env[] = { NULL };
	AUTO_CLOSE int was = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sandbox_mount m = { SANDBOX_BIND, "/usr", was, "/shown" };
	struct sandbox_result res;
	struct sandbox_spec spec;
	struct err err = { 0 };

	need_namespaces();
	sandbox_spec_init(&spec);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = &m;
	spec.n_mounts = 1;
	/* The control gets as far as exec: there is no program in that root. */
	CHECK_EQ(sandbox_run(&spec, &res, &err), -ENOENT);
	CHECK(res.exec_failed);
	m.host = "/etc";
	CHECK_EQ(sandbox_run(&spec, &res, &err), -ESTALE);
	CHECK_HAS(err.msg, "'/etc' is not what it was");
	CHECK(!res.exec_failed);
}

/* --- the helper ----------------------------------------------------------------------------- */

/* Says who it is, through the one descriptor that it has. */
static int help(void *ctx, int fd, int ready, struct err *err)
{
	char text[64];
	int n = 0;

	(void)err;
	for (int i = 0; i < 64; i++)
		n += fcntl(i, F_GETFD) >= 0;
	snprintf(text, sizeof(text), "%s %d %d", (const char *)ctx, (int)getpid(), n);
	if (write(fd, text, strlen(text) + 1) < 0 || write(ready, "", 1) < 0)
		return -errno;
	pause();
	return 0;
}

TEST(helpers_run_inside_before_the_command_and_end_with_it)
{
	const char *const argv[] = { "sh", "-c", "test ! -e /proc/2 -a ! -e /proc/3", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	char word[] = "helping", text[2][12] = { "" };
	struct sandbox_result res;
	struct sandbox_spec spec;
	struct err err = { 0 };
	int ends[2];

	need_namespaces();
	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	sandbox_spec_init(&spec);
	CHECK_OK(layout_add_system(l, &err), &err);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = l->mounts;
	spec.n_mounts = l->n;
	for (; spec.n_helpers < SANDBOX_HELPERS_MAX; spec.n_helpers++)
		spec.helpers[spec.n_helpers] = (struct sandbox_helper){ help, word, ends[1] };
	CHECK_OK(sandbox_run(&spec, &res, &err), &err);
	/* The command does not even see it. */
	CHECK_EQ(res.exit_code, 0);
	CHECK_EQ(read(ends[0], text, sizeof(text)), sizeof(text));
	CHECK_STR(text[0], "helping 2 3");
	CHECK_STR(text[1], "helping 3 3");
	close(ends[0]);
	close(ends[1]);
}

/* Ends without a word, or with one. */
static int help_not(void *ctx, int fd, int ready, struct err *err)
{
	(void)fd;
	close(ready);
	return ctx ? err_set(err, -EADDRINUSE, "port %s is taken", (const char *)ctx) : 0;
}

TEST(without_its_helper_no_command_runs)
{
	const char *const argv[] = { "sh", "-c", "echo ran > /mark/ran", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	struct sandbox_mount mark = {
		SANDBOX_BIND, test_dir(), -1, "/mark", .writable = true, .owned = true,
	};
	struct sandbox_result res;
	struct sandbox_spec spec;
	struct err err = { 0 };
	char port[] = "53";

	need_namespaces();
	sandbox_spec_init(&spec);
	CHECK_OK(layout_add_system(l, &err), &err);
	CHECK_OK(layout_add(l, &mark, &err), &err);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = l->mounts;
	spec.n_mounts = l->n;
	spec.helpers[spec.n_helpers++] = (struct sandbox_helper){ help_not, NULL, 2 };
	CHECK_EQ(sandbox_run(&spec, &res, &err), -EIO);
	CHECK_HAS(err.msg, "the helper of the run");
	CHECK_EQ(access(test_path("ran"), F_OK), -1);
	spec.helpers[0].ctx = port;
	CHECK_EQ(sandbox_run(&spec, &res, &err), -EADDRINUSE);
	CHECK_STR(err.msg, "port 53 is taken");
	CHECK_EQ(access(test_path("ran"), F_OK), -1);
}

/* --- what is refused ------------------------------------------------------------------------ */

static int heard;

int __real_refused_hear(const struct sandbox_spec *spec, int listener);
int __wrap_refused_hear(const struct sandbox_spec *spec, int listener);
int __wrap_refused_hear(const struct sandbox_spec *spec, int listener)
{
	heard++;
	return __real_refused_hear(spec, listener);
}

static void count_refused(void *ctx, const char *call, const uint64_t args[6])
{
	(void)call;
	(void)args;
	++*(int *)ctx;
}

TEST(who_refuses_nothing_is_not_listened_to)
{
	const char *const argv[] = { "sh", "-c", "sleep 0.1; exit 3", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	struct sandbox_result res;
	struct sandbox_spec spec;
	struct err err = { 0 };
	int refused = 0;

	need_namespaces();
	sandbox_spec_init(&spec);
	CHECK_OK(layout_add_system(l, &err), &err);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = l->mounts;
	spec.n_mounts = l->n;
	spec.refused = count_refused;
	spec.refused_ctx = &refused;
	heard = 0;
	CHECK_OK(sandbox_run(&spec, &res, &err), &err);
	CHECK_EQ(res.exit_code, 3);
	/* The end of the command is one event of the listener's, and not one to be asked about. */
	CHECK_EQ(heard, 0);
	CHECK_EQ(refused, 0);
}

/* --- beside it ------------------------------------------------------------------------------ */

struct beside {
	int fd, calls, answer;
};

static int step_beside(void *ctx, struct err *err)
{
	struct beside *b = ctx;
	char byte;

	b->calls++;
	if (b->answer < 0)
		return err_set(err, b->answer, "what went on beside it has failed");
	return read(b->fd, &byte, 1) == 1 ? 0 : 1;
}

/* The command writes into a pipe whose other end is what goes on beside it. */
static int run_beside(struct beside *b, struct sandbox_result *res, struct err *err)
{
	const char *const argv[] = { "sh", "-c", "echo x > /mark/fifo; sleep 0.1; exit 3", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	CLEANUP(layout_free_p) struct layout *l = layout_new();
	struct sandbox_mount mark = {
		SANDBOX_BIND, test_dir(), -1, "/mark", .writable = true, .owned = true,
	};
	struct sandbox_spec spec;
	int r;

	sandbox_spec_init(&spec);
	CHECK_OK(layout_add_system(l, err), err);
	CHECK_OK(layout_add(l, &mark, err), err);
	unlink(test_path("fifo"));
	CHECK_EQ(mkfifo(test_path("fifo"), 0666), 0);
	b->fd = open(test_path("fifo"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	CHECK(b->fd >= 0);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = l->mounts;
	spec.n_mounts = l->n;
	spec.beside[spec.n_beside++] = (struct sandbox_beside){ step_beside, b, b->fd };
	r = sandbox_run(&spec, res, err);
	close(b->fd);
	return r;
}

TEST(what_goes_on_beside_a_run_is_called_when_it_has_something_to_do)
{
	struct sandbox_result res;
	struct beside b = { 0 };
	struct err err = { 0 };

	need_namespaces();
	CHECK_OK(run_beside(&b, &res, &err), &err);
	CHECK_EQ(res.exit_code, 3);
	CHECK_EQ(b.calls, 2); /* "x" and the end of its line */
	b = (struct beside){ .answer = -EPROTO };
	CHECK_EQ(run_beside(&b, &res, &err), -EPROTO);
	CHECK_STR(err.msg, "what went on beside it has failed");
	CHECK_EQ(b.calls, 1);
}

TEST(the_time_of_a_run_begins_when_its_walls_stand)
{
	struct sandbox_result res;
	struct err err = { 0 };

	need_namespaces();
	slow = "caps_bound";
	wall_ms = SLOW_MS - 200;
	CHECK_OK(leave_mark(false, &res, &err), &err);
	slow = "";
	wall_ms = 0;
	CHECK(!res.timed_out);
	CHECK_EQ(res.exit_code, 0);
	CHECK(res.duration_ms < SLOW_MS);
	CHECK_EQ(access(test_path("ran"), F_OK), 0);
}

TEST(what_a_run_in_a_scope_used_is_read_while_the_scope_is_there)
{
	struct sandbox_result res;
	struct err err = { 0 };

	need_namespaces();
	is_scope = true;
	max_pids = 100;
	CHECK_OK(leave_mark(false, &res, &err), &err);
	is_scope = false;
	max_pids = 0;
	CHECK_EQ(res.exit_code, 0);
	if (strcmp(res.cgroup, "none") == 0)
		TEST_SKIP("no cgroup can be made here");
	CHECK_EQ(res.max_mem, 4096);
	CHECK(res.oom_killed);
	CHECK_STR(res.limit, "memory");
}

TEST_MAIN("sandbox-faults")
