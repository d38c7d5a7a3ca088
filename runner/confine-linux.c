#include "runner/confine.h"

#include <errno.h>
#include <limits.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"

#define MEMORY_MAX ((rlim_t)2 << 30)

static const int allowed[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(tgkill), /* of abort(); other processes it could name are not ours to save from a crash */
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

static int add_rules(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(allowed) && rc == 0; i++)
		if (allowed[i] != SCMP_SYS(tgkill))
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	/* A signal for itself alone. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	/* Memory, but no code. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return rc;
}

static int filter_calls(struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc;

	if (!ctx)
		return err_nomem(err);
	rc = add_rules(ctx);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc == 0 ? 0
		       : err_set(err, -ENOTSUP,
				 "the process that parses archives cannot be confined: %s",
				 strerror(-rc));
}

/* The caller's own may be lower. */
static int limit_time(uint64_t seconds, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CPU, &limit) < 0)
		return err_sys(err, "the processor time of the process that parses archives");
	if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= seconds)
		return 0;
	/* The second one is for a process that takes no notice of the first. */
	limit.rlim_cur = seconds;
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > seconds + 1)
		limit.rlim_max = seconds + 1;
	if (setrlimit(RLIMIT_CPU, &limit) < 0)
		return err_sys(err, "limiting the time of the process that parses archives");
	return 0;
}

int confine_parser(uint64_t seconds, struct err *err)
{
	const struct rlimit none = { 0, 0 };
	int r = limit_time(seconds, err);

	if (r < 0)
		return r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, "confining the process that parses archives");
/* The sanitizer reserves terabytes. */
#if !defined(__SANITIZE_ADDRESS__)
	if (setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX }) < 0)
		return err_sys(err, "limiting the memory of the process that parses archives");
#endif
	return filter_calls(err);
}

void confine_close_others(const int *keep, unsigned n)
{
	unsigned from = 0;

	for (unsigned i = 0; i < n; i++) {
		if ((unsigned)keep[i] > from)
			syscall(SYS_close_range, from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	syscall(SYS_close_range, from, UINT_MAX, 0);
}
