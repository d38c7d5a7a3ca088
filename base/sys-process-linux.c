#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "base/vec.h"

#define SHORT_TURN_NS 100000

/* Somebody else's files cannot be seen, and that is the answer too. */
static bool has_open(pid_t pid, const struct stat *wanted)
{
	char path[64];
	struct dirent *e;
	struct stat st;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)))
		found = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
			st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
	if (dir)
		closedir(dir);
	return found;
}

int sys_signal_holder(pid_t pid, int fd, int sig)
{
	AUTO_CLOSE int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct stat st;

	if (pidfd < 0 || fstat(fd, &st) < 0)
		return -ESRCH;
	/* It lives from here on, or the signal finds nobody. */
	if (!has_open(pid, &st))
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

void sys_wait_process(pid_t pid, int ms)
{
	/* By number: glibc has a name for it since 2.36. */
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		poll(&p, 1, ms);
	else if (errno == ESRCH)
		return;
	else /* no descriptor is left: callers ask again, and not without a pause */
		poll(NULL, 0, ms < 10 ? ms : 10);
}

/* What the system tells of a task in a file of that name; terminated. */
static int read_of_task(pid_t id, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return 0;
}

bool sys_task_is_root(pid_t id)
{
	char text[4096];
	unsigned fsuid = 1;
	const char *p;

	if (read_of_task(id, "status", text, sizeof(text)) < 0)
		return false;
	p = strstr(text, "\nUid:");
	return p && sscanf(p, "\nUid: %*u %*u %*u %u", &fsuid) == 1 && fsuid == 0;
}

int sys_look_at_task(pid_t id, struct sys_task *ret)
{
	unsigned long long user, kernel;
	char text[1024], state;
	const char *p;

	if (read_of_task(id, "stat", text, sizeof(text)) < 0)
		return -ESRCH;
	/* The name may hold anything; behind the last bracket come the state and numbers. */
	p = strrchr(text, ')');
	if (!p || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
			 &kernel) != 3)
		return -ESRCH;
	ret->asleep = state != 'R' && state != 'D';
	ret->cpu_ms = (user + kernel) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
	return 0;
}

/* --- a process and its descendants ---------------------------------------------------------- */

#define TREE_MAX 4096 /* processes that are looked at; a fork bomb must not keep the looker busy */

/* One line of the table of processes. */
struct process {
	pid_t id, parent;
	uint64_t memory, cpu_ms;
	bool counted;
};

struct processes {
	struct process *list; /* owned */
	size_t n, cap;
};

static void processes_done(struct processes *p)
{
	free(p->list);
}

static int look_at_process(pid_t id, struct process *ret)
{
	const unsigned long long tick = (unsigned long long)sysconf(_SC_CLK_TCK);
	unsigned long long user, kernel, of_children[2], pages;
	char text[1024];
	const char *p;
	int parent;

	if (read_of_task(id, "stat", text, sizeof(text)) < 0)
		return -ESRCH;
	p = strrchr(text, ')');
	if (!p || sscanf(p,
			 ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d "
			 "%*d %*d %*u %*u %llu",
			 &parent, &user, &kernel, &of_children[0], &of_children[1], &pages) != 6)
		return -ESRCH;
	*ret = (struct process){
		.id = id,
		.parent = parent,
		.memory = pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.cpu_ms = (user + kernel + of_children[0] + of_children[1]) * 1000 / tick,
	};
	return 0;
}

/* 1: added; 0: it has gone. */
static int add_process(struct processes *p, pid_t id)
{
	if (!VEC_ROOM(p->list, p->n, p->cap))
		return -ENOMEM;
	if (look_at_process(id, &p->list[p->n]) < 0)
		return 0;
	p->n++;
	return 1;
}

/* The children that one of its threads forked. */
static int add_children(struct processes *p, pid_t id, const char *thread)
{
	char file[64], text[4096], *at = text, *end;
	int r = 0;

	snprintf(file, sizeof(file), "task/%.20s/children", thread);
	if (read_of_task(id, file, text, sizeof(text)) < 0)
		return 0;
	for (long child = strtol(at, &end, 10); r >= 0 && end != at; child = strtol(at, &end, 10)) {
		at = end;
		/* The last of a list that is longer than the text may be cut off. */
		if (child > 0 && *end != '\0')
			r = add_process(p, (pid_t)child);
	}
	return r < 0 ? r : 0;
}

static int add_descendants(struct processes *p, pid_t id)
{
	char path[64];
	struct dirent *e;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)id);
	dir = opendir(path);
	while (dir && r >= 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = add_children(p, id, e->d_name);
	if (dir)
		closedir(dir);
	return r;
}

/* From parents to children, as far as they say who those are. */
static int follow_children(pid_t id, struct processes *p)
{
	int r = add_process(p, id);

	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		p->list[i].counted = true;
		if (p->n < TREE_MAX)
			r = add_descendants(p, p->list[i].id);
	}
	return r < 0 ? r : 0;
}

/* Without that: every process there is, and then whose parent is one of them. */
static int search_all(pid_t id, struct processes *p)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	bool more = true;
	int r = dir ? 0 : -errno;

	while (dir && r >= 0 && (e = readdir(dir)))
		if (atoi(e->d_name) > 0)
			r = add_process(p, atoi(e->d_name));
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < p->n; i++)
		p->list[i].counted = p->list[i].id == id;
	/* Parents come in no order before their children: until nobody is added. */
	while (more) {
		more = false;
		for (size_t i = 0; i < p->n; i++)
			for (size_t k = 0; !p->list[i].counted && k < p->n; k++)
				if (p->list[k].counted && p->list[k].id == p->list[i].parent)
					p->list[i].counted = more = true;
	}
	return r < 0 ? r : 0;
}

/* That of its children who have ended is in it.  0 for a process that we may not look into. */
static uint64_t written_by(pid_t id)
{
	unsigned long long v;
	char text[512];
	const char *p =
	    read_of_task(id, "io", text, sizeof(text)) < 0 ? NULL : strstr(text, "\nwrite_bytes:");

	return p && sscanf(p, "\nwrite_bytes: %llu", &v) == 1 ? v : 0;
}

int sys_look_at_tree(pid_t id, struct sys_tree *ret)
{
	/* A kernel without CONFIG_PROC_CHILDREN has no such file anywhere. */
	static const char own[] = "/proc/thread-self/children";
	CLEANUP(processes_done) struct processes p = { 0 };
	const int r = access(own, R_OK) == 0 ? follow_children(id, &p) : search_all(id, &p);

	*ret = (struct sys_tree){ 0 };
	if (r < 0)
		return r;
	for (size_t i = 0; i < p.n; i++) {
		if (!p.list[i].counted)
			continue;
		ret->processes++;
		ret->memory += p.list[i].memory;
		ret->cpu_ms += p.list[i].cpu_ms;
		ret->written += written_by(p.list[i].id);
	}
	return ret->processes > 0 ? 0 : -ESRCH;
}

void sys_end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
}

void sys_name_process(const char *name)
{
	IGNORE_RESULT(prctl(PR_SET_NAME, name), "a name is for people only");
}

int sys_leave_mounts(const char *dir)
{
	/* In a user namespace of our own, so that nothing that is done here reaches the one before. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=4k") < 0 || chdir(dir) < 0)
		return -errno;
	/* The old root ends up on top of the new one, and is the one that "." unmounts. */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

/* As sched_setattr(2) has it; <linux/sched/types.h> and <sched.h> exclude each other. */
struct turns {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * From Linux 6.12 on an ordinary thread may ask for turns of another length (0.1 to 100 ms), and one
 * with shorter turns than the thread that runs may take its place when it wakes.  Older kernels
 * ignore the field.
 */
void sys_take_short_turns(void)
{
	struct turns t = { 0 };

	if (syscall(SYS_sched_getattr, 0, &t, sizeof(t), 0) < 0 || t.policy != SCHED_OTHER)
		return;
	t.size = sizeof(t);
	t.runtime = SHORT_TURN_NS;
	IGNORE_RESULT(syscall(SYS_sched_setattr, 0, &t, 0), "then its turns are as before");
}

void sys_lower_priority(void)
{
	/* On Linux a thread has a priority of its own. */
	IGNORE_RESULT(setpriority(PRIO_PROCESS, (id_t)gettid(), 10), "then it keeps its priority");
}
