#include "runner/net/loop.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BATCH 64

int loop_open(struct loop *l, struct err *err)
{
	AUTO_CLOSE int fd = epoll_create1(EPOLL_CLOEXEC);
	AUTO_CLOSE int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct epoll_event e = { .events = EPOLLIN };

	if (fd < 0 || timer < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, timer, &e) < 0)
		return err_sys(err, "making an event loop");
	*l = (struct loop){ .fd = TAKE_FD(fd), .timer = TAKE_FD(timer) };
	return 0;
}

void loop_close(struct loop *l)
{
	if (l->fd > 0)
		close(l->fd);
	if (l->timer > 0)
		close(l->timer);
	*l = (struct loop){ 0 };
}

/* Without events a watch is taken out: the kernel would go on telling of errors and hang-ups. */
int loop_watch(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };
	int op = events == 0 ? EPOLL_CTL_DEL : w->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (w->fd < 0 || events == w->events)
		return 0;
	if (epoll_ctl(l->fd, op, w->fd, &e) < 0)
		return -errno;
	w->events = events;
	return 0;
}

void loop_stop(struct loop *l, struct loop_watch *w)
{
	if (w->fd < 0)
		return;
	IGNORE_RESULT(loop_watch(l, w, 0), "closing it does the same, unless a fork has it too");
	close(w->fd);
	w->fd = -1;
	w->events = 0;
}

void loop_wake(struct loop *l, uint64_t at_ms)
{
	struct itimerspec when = { 0 };

	if (l->wake_at != 0 && l->wake_at <= at_ms)
		return;
	l->wake_at = at_ms;
	when.it_value.tv_sec = (time_t)(at_ms / 1000);
	when.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000;
	timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int loop_step(struct loop *l, int ms, struct err *err)
{
	struct epoll_event ready[BATCH];
	uint64_t ticks;
	int n = epoll_wait(l->fd, ready, BATCH, ms);

	if (n < 0)
		return errno == EINTR ? 0 : err_sys(err, "waiting for connections");
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = ready[i].data.ptr;

		if (!w && read(l->timer, &ticks, sizeof(ticks)) > 0)
			l->wake_at = 0;
		else if (w && w->fd >= 0 && w->events != 0)
			w->ready(w);
	}
	return 0;
}
