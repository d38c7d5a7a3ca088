#include "engine/act/maker-i.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/user.h"

static char *user; /* once; a directory service may take long to say it */

static void find_user(void)
{
	user = user_name(geteuid());
}

int maker_note(struct engine_clone *c, const char *via)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_user);
	c->who = user ? strdup(user) : NULL;
	c->via = via ? strdup(via) : NULL;
	return c->who && (!via || c->via) ? 0 : -ENOMEM;
}
