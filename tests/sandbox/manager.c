#include "tests/sandbox/manager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "tests/lib/test.h"
#include "tests/sandbox/cgroupfs.h"

#define NAME "org.freedesktop.systemd1"
#define USER 12345

uid_t __wrap_geteuid(void);

static pid_t server;
static char dir[80];
static int starts;

struct manager {
	enum manager_way way;
	int bus_pid;
};

struct asked {
	const char *name;
	uint32_t pid;
	uint64_t mem, swap, pids, cpu_us, weight;
	bool delegated;
};

/* Root plays an ordinary user.  Anybody else stays who it is, as the manager that answers does. */
uid_t __wrap_geteuid(void)
{
	return getuid() == 0 ? USER : getuid();
}

/* --- a scope ----------------------------------------------------------------------------- */

static int read_value(sd_bus_message *m, const char *key, struct asked *a)
{
	const struct {
		const char *key;
		uint64_t *to;
	} numbers[] = { { "MemoryMax", &a->mem },
			{ "MemorySwapMax", &a->swap },
			{ "TasksMax", &a->pids },
			{ "CPUQuotaPerSecUSec", &a->cpu_us },
			{ "CPUWeight", &a->weight } };

	if (strcmp(key, "PIDs") == 0) {
		const void *list;
		size_t size;
		int r = sd_bus_message_enter_container(m, 'v', "au");

		if (r >= 0)
			r = sd_bus_message_read_array(m, 'u', &list, &size);
		if (r < 0 || size != sizeof(a->pid))
			return -EINVAL;
		memcpy(&a->pid, list, size);
		return sd_bus_message_exit_container(m);
	}
	a->delegated |= strcmp(key, "DelegateControllers") == 0;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (strcmp(key, numbers[i].key) == 0)
			return sd_bus_message_read(m, "v", "t", numbers[i].to);
	}
	return sd_bus_message_skip(m, "v");
}

static int read_request(sd_bus_message *m, struct asked *a)
{
	const char *mode, *key;
	int r = sd_bus_message_read(m, "ss", &a->name, &mode);

	a->swap = 1;
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(sv)");
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &key);
		if (r >= 0)
			r = read_value(m, key, a);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

static void make_scope(const struct asked *a)
{
	char group[256], text[64];

	snprintf(group, sizeof(group), MANAGER_GROUP "/%s", a->name);
	cgroupfs_make(group);
	/* A controller that it was not given has no files; that is not even noticed. */
	if (a->mem > 0 && strcmp(cgroupfs_read(group, "memory.max"), "-") != 0) {
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)a->mem / 4096 * 4096);
		cgroupfs_write(group, "memory.max", text);
		cgroupfs_write(group, "memory.swap.max", a->swap == 0 ? "0\n" : "max\n");
	}
	if (a->pids > 0 && strcmp(cgroupfs_read(group, "pids.max"), "-") != 0) {
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)a->pids);
		cgroupfs_write(group, "pids.max", text);
	}
	if (a->cpu_us > 0 && strcmp(cgroupfs_read(group, "cpu.max"), "-") != 0) {
		snprintf(text, sizeof(text), "%llu 100000\n", (unsigned long long)a->cpu_us / 10);
		cgroupfs_write(group, "cpu.max", text);
	}
	if (a->weight > 0 && strcmp(cgroupfs_read(group, "cpu.max"), "-") != 0) {
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)a->weight);
		cgroupfs_write(group, "cpu.weight", text);
	}
	cgroupfs_put(group, (pid_t)a->pid);
}

static int say_done(sd_bus *bus, const struct asked *a, const char *result)
{
	sd_bus_message *m = NULL;
	int r = sd_bus_message_new_signal(bus, &m, "/org/freedesktop/systemd1", NAME ".Manager",
					  "JobRemoved");

	if (r >= 0)
		r = sd_bus_message_append(m, "uoss", 7, "/org/freedesktop/systemd1/job/7", a->name,
					  result);
	if (r >= 0)
		r = sd_bus_message_set_sender(m, NAME);
	if (r >= 0)
		r = sd_bus_send(bus, m, NULL);
	sd_bus_message_unref(m);
	return r;
}

static int start_unit(const struct manager *it, sd_bus_message *m)
{
	sd_bus *bus = sd_bus_message_get_bus(m);
	struct asked a = { 0 };
	FILE *note;
	char path[300];

	if (read_request(m, &a) < 0 || !a.delegated)
		return sd_bus_reply_method_errorf(m, "org.example.Bad", "not as it should be");
	snprintf(path, sizeof(path), "%s/asked", dir);
	note = fopen(path, "we");
	if (note)
		fclose(note);
	if (it->way == MANAGER_SILENT)
		return 1;
	if (it->way == MANAGER_LEAVES)
		_exit(0);
	if (it->way == MANAGER_REFUSES)
		return sd_bus_reply_method_errorf(m, NAME ".Denied", "no scopes today");
	if (it->way == MANAGER_LAX)
		a.mem = a.pids = a.cpu_us = 0;
	if (it->way != MANAGER_LIES && it->way != MANAGER_FAILS)
		make_scope(&a);
	/* The signal first: both orders happen. */
	if (say_done(bus, &a, it->way == MANAGER_FAILS ? "failed" : "done") < 0)
		return -EIO;
	return sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/7");
}

static int stop_unit(sd_bus_message *m)
{
	const char *name, *mode;
	char group[256];

	if (sd_bus_message_read(m, "ss", &name, &mode) < 0)
		return sd_bus_reply_method_errorf(m, "org.example.Bad", "not as it should be");
	snprintf(group, sizeof(group), MANAGER_GROUP "/%s", name);
	cgroupfs_remove(group);
	return sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/8");
}

static int on_call(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	const struct manager *it = ctx;
	const char *member = sd_bus_message_get_member(m);

	(void)error;
	if (!member || sd_bus_message_is_method_call(m, NULL, NULL) <= 0)
		return 0;
	if (strcmp(member, "StartTransientUnit") == 0)
		return start_unit(it, m);
	if (strcmp(member, "StopUnit") == 0)
		return it->way == MANAGER_KEEPS ? 1 : stop_unit(m);
	if (strcmp(member, "Hello") == 0)
		return sd_bus_reply_method_return(m, "s", ":1.42");
	if (strcmp(member, "GetConnectionUnixProcessID") == 0)
		return sd_bus_reply_method_return(m, "u", (uint32_t)it->bus_pid);
	return sd_bus_reply_method_return(m, "");
}

/* --- the process -------------------------------------------------------------------------- */

NORETURN static void serve(int listener, struct manager it)
{
	sd_bus *bus = NULL;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (it.way == MANAGER_DEAF)
		pause();
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 ||
	    sd_bus_set_server(bus, true,
			      SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7)) < 0 ||
	    sd_bus_add_filter(bus, NULL, on_call, &it) < 0 || sd_bus_start(bus) < 0)
		_exit(1);
	for (;;) {
		int r = sd_bus_process(bus, NULL);

		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
		if (r < 0)
			_exit(0);
	}
}

void manager_start(enum manager_way way, int bus_pid)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "runtime-%d", starts++);
	CHECK(snprintf(dir, sizeof(dir), "%s", test_path(name)) < (int)sizeof(dir));
	CHECK(mkdir(dir, 0700) == 0 && chdir(dir) == 0 && mkdir("systemd", 0700) == 0);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", dir,
		 bus_pid > 0 ? "bus" : "systemd/private");
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 4) == 0);
	server = fork();
	CHECK(server >= 0);
	if (server == 0)
		serve(fd, (struct manager){ way, bus_pid });
	close(fd);
}

void manager_stop(void)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = 0;
}

void manager_wait(void)
{
	CHECK(server > 0 && waitpid(server, NULL, 0) == server);
	server = 0;
}

bool manager_was_asked(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/asked", dir);
	return access(path, F_OK) == 0;
}
