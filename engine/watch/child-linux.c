/*
 * Children of the process that follows the rules: each does one thing, and none outlives it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/watch/loop-i.h"

#define PATIENCE_MIN_MS UINT64_C(1000)
#define PATIENCE_MAX_MS UINT64_C(60000)
#define PATIENCE_STEPS  6
#define BUSY_MS         UINT64_C(200) /* after which a lock is tried again */

/* --- what failed --------------------------------------------------------------------------- */

bool loop_child_is_left_alone(struct loop *l, const char *what)
{
	for (size_t i = 0; i < l->n_failed; i++)
		if (strcmp(l->failed[i].what, what) == 0 &&
		    l->failed[i].until > engine_clock_ms()) {
			loop_wake_in(l, l->failed[i].until);
			return true;
		}
	return false;
}

uint64_t loop_patience(unsigned failures)
{
	return failures < PATIENCE_STEPS ? PATIENCE_MIN_MS << failures : PATIENCE_MAX_MS;
}

void loop_child_leave_alone(struct loop *l, const char *what, bool busy)
{
	struct failed *f = NULL, *unused = NULL;

	for (size_t i = 0; i < l->n_failed && !f; i++) {
		if (strcmp(l->failed[i].what, what) == 0)
			f = &l->failed[i];
		if (l->failed[i].until + PATIENCE_MAX_MS < engine_clock_ms())
			unused = &l->failed[i];
	}
	if (!f && !unused && VEC_ONE_MORE(l->failed, l->n_failed))
		unused = &l->failed[l->n_failed++];
	if (!f && unused) {
		f = unused;
		*f = (struct failed){ 0 };
		snprintf(f->what, sizeof(f->what), "%s", what);
	}
	if (f)
		f->until = engine_clock_ms() + (busy ? BUSY_MS : loop_patience(f->count++));
}

/* --- children ------------------------------------------------------------------------------ */

bool loop_child_is_running(const struct loop *l, enum child_kind kind, const char *what)
{
	return VEC_HAS(it, l->children, l->n_children,
		       it->kind == kind && strcmp(it->what, what) == 0);
}

/* It has nothing of ours but the engine, and ends when we do. */
static void become_child(struct loop *l, pid_t parent)
{
	sigset_t none;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	docket_lock_done(l->lock);
	if (l->tree)
		close(tree_fd(l->tree));
	close(l->timer);
	close(l->signals);
	sys_name_process("snap-watch-act");
}

static int work(struct loop *l, enum child_kind kind, const char *what, struct err *err)
{
	const struct engine_rule *rule;

	switch (kind) {
	case CHILD_ACTION:
		return action_do(l->engine, what, err);
	case CHILD_ADVANCE:
		return advance_all(l->engine, l->control.paused, err);
	case CHILD_HEALTH:
		return advance_all(l->engine, true, err);
	case CHILD_TELL:
		return news_tell(l->engine, &l->firings, &l->changes, err);
	case CHILD_PROBE:
		rule = rules_find(&l->rules, what);
		return rule ? trigger_probe(l->engine, rule, err) : -ENOENT;
	}
	return -EINVAL;
}

int loop_child_start(struct loop *l, enum child_kind kind, const char *what, struct err *err)
{
	const pid_t parent = getpid();
	struct child *c;
	pid_t pid;

	if (!VEC_ONE_MORE(l->children, l->n_children))
		return err_nomem(err);
	/* A database must not be open in two processes, and buffered text not printed twice. */
	store_close(l->engine->store);
	l->engine->store = NULL;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return err_sys(err, "making a process for an action");
	if (pid == 0) {
		struct err problem = { 0 };
		int r;

		become_child(l, parent);
		r = work(l, kind, what, &problem);
		if (r < 0 && r != -EBUSY)
			log_warn("%s: %s", what, problem.msg);
		_exit(r == -EBUSY ? CHILD_BUSY : r < 0 ? CHILD_FAILED : r > 0);
	}
	c = &l->children[l->n_children++];
	*c = (struct child){ .pid = pid, .kind = kind };
	snprintf(c->what, sizeof(c->what), "%s", what);
	l->busy = true;
	return 0;
}

void loop_child_end_all(struct loop *l)
{
	for (size_t i = 0; i < l->n_children; i++)
		kill(l->children[i].pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	l->n_children = 0;
}
