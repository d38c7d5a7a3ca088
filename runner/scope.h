/*
 * scope.h - a cgroup from systemd: a transient scope around one process, with limits.
 *
 * The request goes over D-Bus, to the system's manager as root and to the user's own otherwise.
 * Three steps, so that other work can be done meanwhile: scope_open() connects, scope_ask() sends
 * the request, scope_wait() waits until the process has been moved. Only the last blocks. The scope
 * ends by itself with its last process.
 *
 * systemd silently leaves out a controller that the manager itself does not have. Read the limits
 * back from the group.
 *
 * libsystemd is loaded when the first scope is opened: a machine without systemd needs none.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

#define SCOPE_WEIGHT  100   /* what every group has unless somebody says otherwise */
#define SCOPE_WAIT_MS 30000 /* how long a manager may take before it counts as silent */

struct scope;

/* How time passes and is waited for; a test has its own. */
struct scope_clock {
	uint64_t (*now_ms)(void *ctx);
	int (*poll)(void *ctx, struct pollfd *fd, int ms); /* as poll(2) of one descriptor */
	void *ctx;
};

struct scope_request {
	const char *name;        /* of the unit; ends in ".scope" */
	const char *description; /* for people who list units */
	pid_t pid;               /* a child of ours, or ourselves */
	uint64_t mem;            /* bytes; 0 is no limit, here and below */
	uint64_t
	    mem_unit; /* bytes without swap, as MemoryMax of a unit; only where the manager can */
	uint64_t pids;
	uint64_t cpus_milli;
	pid_t also;      /* another process; 0 is none */
	uint64_t weight; /* of its part of the processors beside others; 0: by its threads */
};

/*
 * A manager that could be asked: it answers on a socket, and knows processes by the numbers that
 * we do.  `clock` NULL: the real one.  -ENOENT: no manager runs here; -EXDEV: it runs in another
 * pid namespace, where our numbers mean other processes.
 */
NODISCARD int scope_open(const struct scope_clock *clock, struct scope **ret, struct err *why);
NODISCARD int scope_ask(struct scope *s, const struct scope_request *request, struct err *why);

/* Pass on what is ready to be passed on, without waiting. */
void scope_nudge(struct scope *s);

/*
 * 0 when the scope stands, 1 while that is not known, without waiting.  -ETIMEDOUT if the manager has
 * not answered within SCOPE_WAIT_MS.
 */
NODISCARD int scope_check(struct scope *s, struct err *why);

/* For a loop of the caller's own: what to wait for before the next scope_check(), and how long. */
struct pollfd scope_awaits(struct scope *s, int *ret_ms);

/* The same as scope_check(), but waits until it is known. */
NODISCARD int scope_wait(struct scope *s, struct err *why);

/*
 * Have the manager end another scope, once ours stands, and wait until it has heard of it.  For one
 * that has no processes: a scope ends by itself only after its last one.  If that fails, it stays.
 */
void scope_stop(struct scope *s, const char *name);

/* The manager's process, whose own groups tell what it can give. */
pid_t scope_manager_pid(const struct scope *s);

void scope_close(struct scope *s); /* the connection; NULL is fine */
