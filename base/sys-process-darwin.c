#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"

int sys_signal_holder(pid_t pid, int fd, int sig)
{
	return -ESRCH; /* nobody can tell */
}

void sys_wait_process(pid_t pid, int ms)
{
	for (; ms > 0 && kill(pid, 0) == 0; ms--)
		usleep(1000);
}

/* Nobody tells.  Then it counts as asleep. */
int sys_look_at_task(pid_t id, struct sys_task *ret)
{
	*ret = (struct sys_task){ .asleep = true };
	return 0;
}

int sys_look_at_tree(pid_t id, struct sys_tree *ret)
{
	*ret = (struct sys_tree){ 0 };
	return -ENOTSUP;
}

bool sys_task_is_root(pid_t id)
{
	return false;
}

void sys_end_with(pid_t parent)
{
}

void sys_name_process(const char *name)
{
	pthread_setname_np(name);
}

int sys_leave_mounts(const char *dir)
{
	return -ENOTSUP;
}

void sys_lower_priority(void)
{
	pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}

void sys_take_short_turns(void)
{
	pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
}
