/*
 * refused-linux.c - calls that the list of system calls refuses, reported to the caller.
 *
 * A call that the list forbids by name waits in the kernel until the caller has answered. The
 * answer is an error, unless the call is one of the few that a person may be asked about
 * (seccomp-table.h) and somebody allowed it; nothing in the memory of the run is looked at here.
 * When nobody answers any more, because the caller is dead, the kernel itself says ENOSYS.
 *
 * Some of these calls are no offence: by SANDBOX_ASK_SNAPSHOT a run asks for a snapshot of its
 * clone. From a run with a root of its own, device nodes come here and, where it has one id,
 * changes of ids and owners.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "runner/sandbox-i.h"
#include "runner/seccomp-table.h"

/* A kernel that knows more of it may write more of it. */
union question {
	struct seccomp_notif is;
	char room[512];
};

union answer {
	struct seccomp_notif_resp is;
	char room[512];
};

/* As the list would have said it itself. */
static int error_of(int number)
{
	return number == SYS_socket || number == SYS_socketpair ? -EAFNOSUPPORT : -EPERM;
}

static int send_answer(int listener, uint64_t id, bool allow, int error)
{
	union answer answer = { 0 };

	answer.is.id = id;
	answer.is.error = allow ? 0 : error;
	answer.is.flags = allow ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.is) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static bool is_askable(const char *call)
{
	return VEC_HAS(it, seccomp_askable, seccomp_n_askable, strcmp(*it, call) == 0);
}

/* None of the askable ones has another error than EPERM.  Kernels before 5.5 cannot let one through. */
void sandbox_calls_answer(const struct sandbox_calls *c, uint64_t id, bool allow)
{
	if (c->listener >= 0 && send_answer(c->listener, id, allow, -EPERM) < 0 && allow)
		IGNORE_RESULT(send_answer(c->listener, id, false, -EPERM), "the run is over");
}

static bool asks_snapshot(const struct seccomp_data *call)
{
	return call->nr == SYS_ioctl && (uint32_t)call->args[1] == SANDBOX_ASK_SNAPSHOT;
}

void sandbox_snapshots_answer(const struct sandbox_snapshots *s, uint64_t id, int error,
			      uint64_t number)
{
	union answer answer = { 0 };

	answer.is.id = id;
	answer.is.error = error;
	answer.is.val = error < 0 ? 0 : (int64_t)number;
	if (s->listener >= 0 && ioctl(s->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.is) < 0 &&
	    errno != ENOENT)
		log_warn("answering a run that asked for a snapshot: %s, continuing",
			 strerror(errno));
}

static int hear_snapshot(const struct sandbox_spec *spec, uint64_t id, bool only_looks)
{
	const int r = only_looks ? 0 : spec->snapshots->ask(spec->snapshots->ctx, id);

	if (r >= 0 && !only_looks)
		return 1;
	/* A look costs the run nothing, so it counts as a refused call does. */
	sandbox_snapshots_answer(spec->snapshots, id, r, 0);
	return 0;
}

/* Nothing is refused here: what the kernel cannot do with one id is done otherwise, or said to be done. */
static bool is_of_ids(const char *call)
{
	return VEC_HAS(at, seccomp_one_id, seccomp_n_one_id, strcmp(*at, call) == 0);
}

/* What is answered at once counts as a refused call does; the clerk sets a pace of its own. */
static int hear_ids(struct run *run, int listener, const struct seccomp_notif *question)
{
	struct clerk_call call;
	int r = 0;

	if (owner_read(&question->data, &call)) {
		call.thread = (pid_t)question->pid;
		r = clerk_ask(&run->clerk, question->id, &call);
	}
	return r > 0 ? 1 : send_answer(listener, question->id, false, r);
}

/* 1: the clerk makes it.  0: it is refused as other calls are. */
static int hear_device(struct run *run, const struct seccomp_notif *question)
{
	struct clerk_call call;

	if (!device_read(&question->data, &call) || !device_is_harmless(call.mode, call.dev))
		return 0;
	call.thread = (pid_t)question->pid;
	return clerk_ask(&run->clerk, question->id, &call) > 0;
}

/* Of these two, only a change of RLIMIT_CORE comes here. */
static bool limits_core(const struct seccomp_data *call)
{
	return call->nr == SYS_setrlimit || call->nr == SYS_prlimit64;
}

int refused_hear_clerk(struct run *run, int listener)
{
	const int error = clerk_hear(&run->clerk);

	return listener < 0 ? 0 : send_answer(listener, run->clerk.id, false, error);
}

int refused_hear(struct run *run, int listener)
{
	const struct sandbox_spec *spec = run->spec;
	enum sandbox_verdict says = SANDBOX_CALL_NO;
	union question question = { 0 };
	AUTO_FREE char *name = NULL;
	uint64_t args[6];
	int r;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question.is) < 0)
		return errno == EINTR || errno == ENOENT ? 0 : -errno; /* who asked is gone */
	if (spec->snapshots && asks_snapshot(&question.is.data))
		return hear_snapshot(spec, question.is.id, question.is.data.args[2] != 0);
	if (limits_core(&question.is.data))
		return send_answer(listener, question.is.id, false, 0);
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, question.is.data.nr);
	if (ids_are_answered(run) && name && is_of_ids(name))
		return hear_ids(run, listener, &question.is);
	if (spec->root && hear_device(run, &question.is) > 0)
		return 1;
	if (spec->calls && name && is_askable(name))
		says = spec->calls->ask(spec->calls->ctx, name, question.is.id);
	if (says == SANDBOX_CALL_WAITS)
		return 1;
	if (says == SANDBOX_CALL_YES) {
		sandbox_calls_answer(spec->calls, question.is.id, true);
		return 1;
	}
	r = send_answer(listener, question.is.id, false, error_of(question.is.data.nr));
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		args[i] = question.is.data.args[i];
	if (name)
		spec->refused(spec->refused_ctx, name, args);
	return 0;
}
