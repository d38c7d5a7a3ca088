/*
 * scope-linux.c - by sd-bus.
 *
 * The manager has a socket of its own, which systemctl uses too; where that is not accessible, the
 * request goes through the bus. Either way the connection is ours, so that we can check the peer
 * before anything is sent: a container that sees the socket of the host's manager would have it
 * move a process of the host with the same number.
 *
 * Linking libsystemd and the six libraries behind it costs 0.7 ms at every start of the program, so
 * it is loaded where it is needed.
 */
#include "runner/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/library.h"

#define MANAGER "org.freedesktop.systemd1"
#define OBJECT  "/org/freedesktop/systemd1"
#define FACE    "org.freedesktop.systemd1.Manager"

/* --- the library -------------------------------------------------------------------------- */

#define FUNCTIONS(X)                      \
	X(sd_bus_new)                     \
	X(sd_bus_set_fd)                  \
	X(sd_bus_set_bus_client)          \
	X(sd_bus_start)                   \
	X(sd_bus_process)                 \
	X(sd_bus_get_fd)                  \
	X(sd_bus_get_events)              \
	X(sd_bus_get_unique_name)         \
	X(sd_bus_match_signal_async)      \
	X(sd_bus_call_async)              \
	X(sd_bus_call_method_async)       \
	X(sd_bus_message_new_method_call) \
	X(sd_bus_message_append)          \
	X(sd_bus_message_open_container)  \
	X(sd_bus_message_close_container) \
	X(sd_bus_message_read)            \
	X(sd_bus_message_get_error)       \
	X(sd_bus_message_unref)           \
	X(sd_bus_close_unref)

static struct {
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} lib;

static const struct library_function functions[] = {
#define X(name) { #name, offsetof(__typeof__(lib), name) },
	FUNCTIONS(X)
#undef X
};
static const struct library library = {
	.what = "libsystemd",
	.names = (const char *const[]){ "libsystemd.so.0", NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

static int load_systemd(struct err *why)
{
	static bool loaded;
	struct err err = { 0 };

	if (!loaded && library_load(&library, &lib, &err) < 0)
		return err_set(why, -ENOENT, "systemd cannot be asked: %s", err.msg);
	loaded = true;
	return 0;
}

/* --- a connection ------------------------------------------------------------------------- */

struct scope {
	sd_bus *bus;
	struct scope_clock clock;
	uint64_t deadline; /* ms */
	pid_t manager;
	char name[128];
	bool on_bus;             /* not the manager's own socket */
	bool same_pids;          /* it knows us by the number that we have */
	sd_bus_message *request; /* owned; until it is known that our numbers are the manager's */
	bool done;
	bool stopping; /* another scope, and there is no answer yet */
	struct err failed;
};

static uint64_t real_now(void *ctx)
{
	return clock_ms();
}

static int real_poll(void *ctx, struct pollfd *fd, int ms)
{
	return poll(fd, 1, ms);
}

void scope_close(struct scope *s)
{
	if (!s)
		return;
	if (s->request)
		lib.sd_bus_message_unref(s->request);
	if (s->bus)
		lib.sd_bus_close_unref(s->bus);
	free(s);
}
DEFINE_CLEANUP(struct scope *, scope_close)

pid_t scope_manager_pid(const struct scope *s)
{
	return s->manager;
}

static int dial(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	/* One that listens and does not accept takes it all the same, until its queue is full. */
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return TAKE_FD(fd);
}

/* Is it in a pid namespace below ours?  Then it bears a number in each. */
static bool is_below(pid_t pid)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char path[32];
	const char *line;
	int a, b;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fdio_read_file(AT_FDCWD, path, 65536, &text, NULL) < 0 || !buf_str(&text))
		return false;
	line = strstr(buf_str(&text), "\nNSpid:");
	return line && sscanf(line, "\nNSpid: %d %d", &a, &b) == 2;
}

/* Is the listener a manager of ours, in this pid namespace? */
static int check_peer(int fd, pid_t *ret, struct err *why)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return err_sys(why, "asking who listens on the socket of systemd");
	if (peer.pid == 0 || is_below(peer.pid))
		return err_set(why, -EXDEV,
			       "the systemd that can be reached is of another pid namespace, as "
			       "that of the host is in a container");
	if (peer.uid != 0 && peer.uid != geteuid())
		return err_set(why, -EPERM, "the systemd that can be reached is user %u's",
			       peer.uid);
	*ret = peer.pid;
	return 0;
}

static int on_job(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	struct scope *s = ctx;
	const char *job, *unit, *result;
	uint32_t id;

	if (lib.sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0 ||
	    strcmp(unit, s->name) != 0 || s->failed.code < 0)
		return 0;
	if (strcmp(result, "done") == 0)
		s->done = true;
	else
		err_set(&s->failed, -EIO, "systemd could not start the scope of the run: '%s'",
			result);
	return 0;
}

static int on_answer(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	const sd_bus_error *e = lib.sd_bus_message_get_error(m);
	struct scope *s = ctx;

	/* sd-bus says so itself, for the manager. */
	if (e && strcmp(e->name, "org.freedesktop.DBus.Error.NoReply") == 0)
		err_set(&s->failed, -ECONNRESET, "systemd has hung up");
	if (e && s->failed.code == 0)
		err_set(&s->failed, -EIO, "systemd refuses the scope of the run: %s",
			e->message ? e->message : e->name);
	return 0;
}

static int send_request(struct scope *s)
{
	int r = lib.sd_bus_call_async(s->bus, NULL, s->request, on_answer, s, UINT64_MAX);

	lib.sd_bus_message_unref(s->request);
	s->request = NULL;
	return r;
}

/* The bus says which process we are to it. */
static int on_pid(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	const sd_bus_error *e = lib.sd_bus_message_get_error(m);
	struct scope *s = ctx;
	uint32_t pid = 0;

	if (e || lib.sd_bus_message_read(m, "u", &pid) < 0)
		err_set(&s->failed, -EIO, "the bus of systemd does not say who we are: %s",
			e && e->message ? e->message : "no number");
	else if (pid != (uint32_t)getpid())
		err_set(&s->failed, -EXDEV,
			"the systemd that can be reached knows this process as %u and not as %d: "
			"it is of another pid namespace",
			pid, (int)getpid());
	else
		s->same_pids = true;
	return s->same_pids && s->request ? send_request(s) : 0;
}

/* The bus has said hello. */
static int ask_own_pid(struct scope *s)
{
	const char *self;
	int r = lib.sd_bus_get_unique_name(s->bus, &self);

	if (r < 0)
		return r;
	return lib.sd_bus_call_method_async(s->bus, NULL, "org.freedesktop.DBus",
					    "/org/freedesktop/DBus", "org.freedesktop.DBus",
					    "GetConnectionUnixProcessID", on_pid, s, "s", self);
}

static int on_hello(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	struct scope *s = ctx;
	int r = ask_own_pid(s);

	if (r < 0)
		err_set(&s->failed, r, "the bus of systemd cannot be used: %s", strerror(-r));
	return 0;
}

/* Everything that is sent before a scope is asked for. */
static int greet(struct scope *s)
{
	int r =
	    lib.sd_bus_match_signal_async(s->bus, NULL, s->on_bus ? MANAGER : NULL, OBJECT, FACE,
					  "JobRemoved", on_job, s->on_bus ? on_hello : NULL, s);

	if (r < 0)
		return r;
	/* On the bus, a manager reports jobs only to its subscribers. */
	if (s->on_bus)
		r = lib.sd_bus_call_method_async(s->bus, NULL, MANAGER, OBJECT, FACE, "Subscribe",
						 NULL, NULL, "");
	return r;
}

static int begin(struct scope *s, int fd)
{
	AUTO_CLOSE int own = fd;
	int r = lib.sd_bus_new(&s->bus);

	if (r < 0)
		return r;
	r = lib.sd_bus_set_fd(s->bus, own, own);
	if (r < 0)
		return r;
	own = -1;
	r = lib.sd_bus_set_bus_client(s->bus, s->on_bus);
	if (r < 0)
		return r;
	r = lib.sd_bus_start(s->bus);
	return r < 0 ? r : greet(s);
}

/* --- where managers listen ---------------------------------------------------------------- */

struct door {
	char path[108];
	bool is_bus;
};

/* "unix:path=/run/..." of a variable, if it is that simple. */
static const char *path_of(const char *address)
{
	static const char prefix[] = "unix:path=";

	if (!address || strncmp(address, prefix, sizeof(prefix) - 1) != 0 ||
	    strpbrk(address, ",;%"))
		return NULL;
	return address + sizeof(prefix) - 1;
}

static void find_doors(struct door doors[2])
{
	const bool root = geteuid() == 0;
	const char *bus =
	    path_of(getenv(root ? "DBUS_SYSTEM_BUS_ADDRESS" : "DBUS_SESSION_BUS_ADDRESS"));
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char own[64];

	snprintf(own, sizeof(own), "/run/user/%u", geteuid());
	if (!runtime || *runtime != '/')
		runtime = own;
	snprintf(doors[0].path, sizeof(doors[0].path), "%s/systemd/private",
		 root ? "/run" : runtime);
	doors[0].is_bus = false;
	if (bus)
		snprintf(doors[1].path, sizeof(doors[1].path), "%s", bus);
	else
		snprintf(doors[1].path, sizeof(doors[1].path), "%s%s", root ? "/run/dbus" : runtime,
			 root ? "/system_bus_socket" : "/bus");
	doors[1].is_bus = true;
}

int scope_open(const struct scope_clock *clock, struct scope **ret, struct err *why)
{
	CLEANUP(scope_close_p) struct scope *s = calloc(1, sizeof(*s));
	struct door doors[2];
	int r = -ENOENT;

	if (!s)
		return err_nomem(why);
	s->clock = clock ? *clock : (struct scope_clock){ real_now, real_poll, NULL };
	find_doors(doors);
	for (size_t i = 0; i < ARRAY_LEN(doors) && r < 0; i++) {
		int fd = dial(doors[i].path);

		r = fd < 0 ? fd : check_peer(fd, &s->manager, why);
		if (fd >= 0 && r < 0)
			close(fd);
		/* One of another pid namespace, or of somebody else, stays that on the other door. */
		if (fd >= 0 && r < 0)
			return r;
		if (r < 0)
			continue;
		s->on_bus = doors[i].is_bus;
		s->same_pids = !s->on_bus;
		r = load_systemd(why);
		if (r < 0) {
			close(fd);
			return r;
		}
		r = begin(s, fd);
		if (r < 0)
			return err_set(why, r, "connecting to systemd at '%s': %s", doors[i].path,
				       strerror(-r));
	}
	if (r < 0)
		return err_set(why, r == -ENOENT || r == -ENOTDIR ? -ENOENT : r,
			       "no systemd listens at '%s': %s", doors[0].path, strerror(-r));
	s->deadline = s->clock.now_ms(s->clock.ctx) + SCOPE_WAIT_MS;
	scope_nudge(s);
	*ret = TAKE_PTR(s);
	return 0;
}

/* --- asking -------------------------------------------------------------------------------- */

/* Only what a limit needs: a manager without the cpu controller refuses, or says yes and means no. */
static int append_controllers(sd_bus_message *m, const struct scope_request *q)
{
	const char *const names[] = { q->mem > 0 ? "memory" : NULL, q->pids > 0 ? "pids" : NULL,
				      q->cpus_milli > 0 ? "cpu" : NULL };
	int r = lib.sd_bus_message_open_container(m, 'r', "sv");

	if (r < 0)
		return r;
	r = lib.sd_bus_message_append(m, "s", "DelegateControllers");
	if (r < 0)
		return r;
	r = lib.sd_bus_message_open_container(m, 'v', "as");
	if (r < 0)
		return r;
	r = lib.sd_bus_message_open_container(m, 'a', "s");
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(names); i++)
		r = names[i] ? lib.sd_bus_message_append(m, "s", names[i]) : 0;
	if (r < 0)
		return r;
	for (int i = 0; r >= 0 && i < 3; i++)
		r = lib.sd_bus_message_close_container(m);
	return r;
}

static int append_u64(sd_bus_message *m, bool wanted, const char *name, uint64_t v)
{
	return wanted ? lib.sd_bus_message_append(m, "(sv)", name, "t", v) : 0;
}

static int append_properties(sd_bus_message *m, const struct scope_request *q)
{
	int r = lib.sd_bus_message_append(m, "(sv)(sv)", "Description", "s", q->description,
					  /* One that failed would stay until somebody resets it. */
					  "CollectMode", "s", "inactive-or-failed");

	if (r < 0)
		return r;
	if (q->also > 0)
		r = lib.sd_bus_message_append(m, "(sv)", "PIDs", "au", 2, (uint32_t)q->pid,
					      (uint32_t)q->also);
	else
		r = lib.sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t)q->pid);
	if (r < 0)
		return r;

	/* Delegated: a process that memory ran out for is no reason to stop all the others. */
	r = append_controllers(m, q);
	if (r < 0)
		return r;
	r = append_u64(m, q->mem > 0 || q->mem_unit > 0, "MemoryMax",
		       q->mem > 0 ? q->mem : q->mem_unit);
	if (r < 0)
		return r;
	r = append_u64(m, q->mem > 0, "MemorySwapMax", 0);
	if (r < 0)
		return r;
	r = append_u64(m, q->pids > 0, "TasksMax", q->pids);
	if (r < 0)
		return r;
	r = append_u64(m, q->cpus_milli > 0, "CPUQuotaPerSecUSec", q->cpus_milli * 1000);
	/* A manager that has no cpu controller leaves it out, and nothing is lost. */
	return r < 0 ? r : append_u64(m, q->weight > 0, "CPUWeight", q->weight);
}

static int write_request(struct scope *s, const struct scope_request *q)
{
	int r = lib.sd_bus_message_new_method_call(s->bus, &s->request, MANAGER, OBJECT, FACE,
						   "StartTransientUnit");

	if (r < 0)
		return r;
	r = lib.sd_bus_message_append(s->request, "ss", q->name, "fail");
	if (r < 0)
		return r;
	r = lib.sd_bus_message_open_container(s->request, 'a', "(sv)");
	if (r < 0)
		return r;
	r = append_properties(s->request, q);
	if (r < 0)
		return r;
	r = lib.sd_bus_message_close_container(s->request);
	if (r < 0)
		return r;
	r = lib.sd_bus_message_append(s->request, "a(sa(sv))", 0);
	return r >= 0 && s->same_pids ? send_request(s) : r;
}

int scope_ask(struct scope *s, const struct scope_request *q, struct err *why)
{
	int r;

	snprintf(s->name, sizeof(s->name), "%s", q->name);
	r = write_request(s, q);
	if (r < 0)
		return err_set(why, r, "asking systemd for the scope of the run: %s", strerror(-r));
	scope_nudge(s);
	return 0;
}

void scope_nudge(struct scope *s)
{
	int r;

	do {
		r = lib.sd_bus_process(s->bus, NULL);
	} while (r > 0 && !s->done && s->failed.code == 0);
	if (r < 0 && !s->done && s->failed.code == 0)
		err_set(&s->failed, r, "systemd has hung up: %s", strerror(-r));
}

int scope_check(struct scope *s, struct err *why)
{
	scope_nudge(s);
	if (s->failed.code < 0)
		return err_set(why, s->failed.code, "%s", s->failed.msg);
	if (s->done)
		return 0;
	if (s->clock.now_ms(s->clock.ctx) >= s->deadline)
		return err_set(why, -ETIMEDOUT,
			       "systemd has not answered for %d s when it was asked for a scope",
			       SCOPE_WAIT_MS / 1000);
	return 1;
}

struct pollfd scope_awaits(struct scope *s, int *ret_ms)
{
	const uint64_t now = s->clock.now_ms(s->clock.ctx);
	const int events = lib.sd_bus_get_events(s->bus);

	*ret_ms = now < s->deadline ? (int)(s->deadline - now) : 0;
	return (struct pollfd){ lib.sd_bus_get_fd(s->bus), (short)(events > 0 ? events : POLLIN),
				0 };
}

int scope_wait(struct scope *s, struct err *why)
{
	for (;;) {
		struct pollfd at;
		int ms, r = scope_check(s, why);

		if (r <= 0)
			return r;
		at = scope_awaits(s, &ms);
		if (s->clock.poll(s->clock.ctx, &at, ms) < 0 && errno != EINTR)
			return err_sys(why, "waiting for systemd");
	}
}

static int on_stopped(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
	struct scope *s = ctx;

	s->stopping = false;
	return 0;
}

void scope_stop(struct scope *s, const char *name)
{
	int r = lib.sd_bus_call_method_async(s->bus, NULL, MANAGER, OBJECT, FACE, "StopUnit",
					     on_stopped, s, "ss", name, "replace");

	s->stopping = r >= 0;
	/* A manager that cannot write to us any more does not read what we have sent, either. */
	while (r >= 0 && s->stopping) {
		struct pollfd at;
		int ms;

		r = lib.sd_bus_process(s->bus, NULL);
		at = scope_awaits(s, &ms);
		if (r == 0 && (ms == 0 || s->clock.poll(s->clock.ctx, &at, ms) < 0))
			return;
	}
}
