#include "engine/cowfsd/greet-i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

/*
 * A sandbox that can see the socket may show us our own user id.  The peer is the same user only if
 * it is in our user namespace and, in another mount namespace, sees the same root and store.
 */
int greet_check_peer(int fd, const char *store, bool *ret_beside, struct err *err)
{
	bool beside;
	uid_t uid;
	int place;

	if (sys_peer_uid(fd, &uid) < 0 || uid != geteuid())
		return err_set(err, -EACCES, "this cowfsd serves user %u only", geteuid());
	place = sys_peer_place(fd);
	beside = place == SYS_PEER_BESIDE;
	if (place != SYS_PEER_HERE && !(beside && sys_peer_sees(fd, store) == 1))
		return err_set(
		    err, -EPERM,
		    "cowfsd (process %d) serves only those who share its user namespace and see "
		    "its store as it does, no containers and sandboxes: 'kill %d' ends it",
		    getpid(), getpid());
	*ret_beside = beside;
	return 0;
}

static void add_warm_clone(struct server *s, struct control_hello *hello)
{
	static const char *const states[] = {
		[WARM_CLONE_NONE] = "none",
		[WARM_CLONE_WARMING] = "warming",
		[WARM_CLONE_READY] = "ready",
		[WARM_CLONE_WARM] = "warm",
	};
	struct warm_clone_news news;

	warm_clone_news(s->host->warm_clone, &news);
	snprintf(hello->warm_clone, sizeof(hello->warm_clone), "%s", states[news.state]);
	hello->warm_ready = news.ready;
	hello->warm_taken = news.taken;
}

int greet_send_hello(struct server *s, int fd, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct control_hello hello = {
		.protocol = CONTROL_PROTOCOL,
		.pid = getpid(),
		.mounted = live_count(s->host),
		.began = s->began,
	};

	snprintf(hello.version, sizeof(hello.version), "%s", engine_version());
	add_warm_clone(s, &hello);
	pthread_mutex_lock(&s->lock);
	hello.busy = s->n_acts > 0;
	pthread_mutex_unlock(&s->lock);
	control_set_hello(json_begin(&doc), &hello);
	return control_write(fd, &doc, true, err);
}

int greet_read_client(struct control *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json line, client;
	const char *version;
	bool same;
	int r = control_read(c, CONTROL_ASK_MAX, &doc, &line, err);

	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	client = json_get_object(line, "client");
	version = json_get_text(client, "version");
	same = json_get_uint(client, "protocol") == CONTROL_PROTOCOL && version &&
	       strcmp(version, engine_version()) == 0;
	r = json_end(&doc, err);
	return r < 0 ? r : same;
}
