#include "base/spread.h"

int spread_start(struct spread *s, unsigned nth, void *(*run)(void *), void *arg)
{
	(void)nth; /* nobody can say where a thread begins there */
	*s = (struct spread){ .run = run, .arg = arg };
	return -pthread_create(&s->thread, NULL, run, arg);
}

void spread_join(struct spread *s)
{
	pthread_join(s->thread, NULL);
}
