#include "engine/run/run-caller.h"

#include "base/attr.h"
#include "runner/sandbox.h"

void raw_terminal_begin(struct raw_terminal *raw, int fd)
{
	struct termios now;

	raw->fd = -1;
	if (fd < 0 || tcgetattr(fd, &raw->was) < 0)
		return;
	now = raw->was;
	cfmakeraw(&now);
	if (tcsetattr(fd, TCSADRAIN, &now) == 0)
		raw->fd = fd;
}

void raw_terminal_end(struct raw_terminal *raw)
{
	if (raw->fd >= 0)
		tcsetattr(raw->fd, TCSADRAIN, &raw->was);
	raw->fd = -1;
}

void cancel_wait_begin(struct cancel_wait *c)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SANDBOX_CANCEL);
	c->on = sigprocmask(SIG_BLOCK, &one, &c->was) == 0;
}

bool cancel_wait_has_come(void)
{
	sigset_t waiting;

	return sigpending(&waiting) == 0 && sigismember(&waiting, SANDBOX_CANCEL) == 1;
}

void cancel_wait_end(struct cancel_wait *c)
{
	sigset_t one;
	int unused;

	sigemptyset(&one);
	sigaddset(&one, SANDBOX_CANCEL);
	if (c->on && cancel_wait_has_come())
		IGNORE_RESULT(sigwait(&one, &unused), "it is there");
	if (c->on)
		sigprocmask(SIG_SETMASK, &c->was, NULL);
	c->on = false;
}
