/*
 * One thread makes warm clones, waits for their walkers and gives them up.  It reaps a walker with
 * the lock held, so whoever holds the lock and sees a walker may kill it.
 */
#include "engine/host/warm-clone-i.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/api/walker.h"
#include "engine/host/host-i.h"

#define KEEP_MS     600000 /* a warm clone that nobody takes */
#define QUIET_MS    200    /* cowfsd must have been quiet for so long: */
#define QUIET_SHARE 10     /* busy for less than this fraction of it, */
#define PATIENCE_MS 10000  /* unless this much time has passed */
#define FILES_MAX   200000
#define FILE_COST   4096 /* bytes of memory, here and in the kernel; about 3,300 were measured */
#define MEMORY_MIN  ((uint64_t)512 << 20) /* that must be left */

/* The snapshot that should have a warm clone. */
struct wish {
	bool open; /* not fulfilled yet */
	struct catalog_id snapshot, project;
	struct object_id root;
	uint64_t files;
};

struct warm_clone {
	struct host *host;

	pthread_mutex_t lock; /* guards what follows; no other lock is taken while it is held */
	pthread_cond_t changed;
	pthread_t thread;
	bool started, ending;
	bool hopeless; /* warm clones do not work here */
	struct wish wish;

	struct layer *layer; /* owned, with `mount`; NULL: there is none */
	struct mount *mount;
	struct object_id root;
	struct catalog_id snapshot;
	pid_t walker;   /* 0: none runs */
	bool cut;       /* it was ended early and must run again */
	unsigned rests; /* callers that must not be disturbed */
	unsigned walks; /* completed ones: the first reads names, the second small files */
	uint64_t made;  /* engine_clock_ms() */
	uint64_t taken;
};

/* --- the walker ------------------------------------------------------------------------- */

extern char **environ;

/* posix_spawn() and not fork(): the process has threads.  All other descriptors close. */
static int start_walker(const char *store, int tree, bool ahead, pid_t *ret)
{
	char self[PATH_MAX], name[] = WALKER_NAME;
	const char *path = sys_self_path(self, sizeof(self));
	AUTO_FREE char *of = strdup(store); /* shown in the list of processes */
	char parent[16], *argv[] = { name, of, ahead ? parent : NULL, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	if (!path || !of)
		return -ENOMEM;
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	rc = posix_spawn_file_actions_adddup2(&actions, tree, WALKER_FD);
	if (rc == 0)
		rc = posix_spawn(ret, path, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* lock held */
static void end_walker(struct warm_clone *s)
{
	if (s->walker == 0)
		return;
	/* It needs a processor in order to die. */
	IGNORE_RESULT(setpriority(PRIO_PROCESS, (id_t)s->walker, 0), "then it takes longer");
	kill(s->walker, SIGKILL);
}

/* lock held, but while it waits */
static void await_walker(struct warm_clone *s)
{
	const pid_t walker = s->walker;
	siginfo_t info;
	int rc, status;

	pthread_mutex_unlock(&s->lock);
	do
		rc = waitid(P_PID, (id_t)walker, &info, WEXITED | WNOWAIT);
	while (rc < 0 && errno == EINTR);
	pthread_mutex_lock(&s->lock);
	waitpid(walker, &status, 0);
	s->walker = 0;
	if (s->layer && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		log_debug("the warm clone is %s after %llu ms", s->walks == 0 ? "ready" : "warm",
			  (unsigned long long)(engine_clock_ms() - s->made));
		if (s->walks++ == 0 && !s->ending && !s->wish.open)
			IGNORE_RESULT(
			    start_walker(s->host->dir, mount_fd(s->mount), true, &s->walker),
			    "then what is in files is read when it is wanted");
	}
	pthread_cond_broadcast(&s->changed);
}

/* --- making and dropping ---------------------------------------------------------------- */

void warm_clone_drop(struct layer *layer, struct mount *mount)
{
	struct err err = { 0 };

	if (mount && mount_close(mount, true, &err) < 0) {
		/* The layer is still in use, so both must stay. */
		log_warn("closing a warm clone: %s, continuing", err.msg);
		return;
	}
	layer_discard(layer);
}

static int mount_warm_clone(struct host *h, struct layer *layer, struct mount **ret,
			    struct err *err)
{
	const struct mount_options options = { .source = "snapcow", .others = host_for_others() };

	return mount_open(h->mounts, layer, &options, ret, err);
}

/* Opening the layer pins the root; that counts only if the snapshot was still there then. */
static int open_layer(struct host *h, const struct wish *w, struct layer **ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot named = { 0 };
	CLEANUP(layer_discard_p) struct layer *layer = NULL;
	int r;

	r = host_serve(h, err);
	if (r < 0)
		return r;
	r = layer_open_warm(h->layers, &w->root, &layer, err);
	if (r < 0)
		return r;
	r = snapshot_get(h->store, &w->snapshot, &named, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(layer);
	return r;
}

/* On failure *layer and *mount hold what was made so far. */
static int make_parts(struct host *h, const struct wish *w, struct layer **layer,
		      struct mount **mount, pid_t *ret_walker, struct err *err)
{
	int r;

	if (w->files > FILES_MAX)
		return err_set(err, -EFBIG, "it has too many files");
	if (sys_available_memory() < MEMORY_MIN + w->files * FILE_COST)
		return err_set(err, -ENOMEM, "memory is short");
	r = open_layer(h, w, layer, err);
	if (r < 0)
		return r;
	r = mount_warm_clone(h, *layer, mount, err);
	return r < 0 ? r : start_walker(h->dir, mount_fd(*mount), false, ret_walker);
}

static int make(struct host *h, const struct wish *w, struct layer **ret_layer,
		struct mount **ret_mount, pid_t *ret_walker, struct err *err)
{
	struct layer *layer = NULL;
	struct mount *mount = NULL;
	int r = make_parts(h, w, &layer, &mount, ret_walker, err);

	if (r < 0) {
		warm_clone_drop(layer, mount);
		return r;
	}
	*ret_layer = layer;
	*ret_mount = mount;
	return 0;
}

/* lock held, but while it closes it */
static void give_up(struct warm_clone *s)
{
	struct layer *layer = TAKE_PTR(s->layer);
	struct mount *mount = TAKE_PTR(s->mount);

	if (!layer)
		return;
	pthread_mutex_unlock(&s->lock);
	warm_clone_drop(layer, mount);
	pthread_mutex_lock(&s->lock);
}

/* lock held, but while it works */
static void fulfil(struct warm_clone *s)
{
	const struct wish w = s->wish;
	struct layer *layer = NULL;
	struct mount *mount = NULL;
	struct err err = { 0 };
	pid_t walker = 0;
	int r;

	s->wish.open = false;
	give_up(s);
	pthread_mutex_unlock(&s->lock);
	r = make(s->host, &w, &layer, &mount, &walker, &err);
	pthread_mutex_lock(&s->lock);
	if (r < 0) {
		s->hopeless |= r == -ENOTSUP;
		log_debug("no warm clone: %s", err.code == r ? err.msg : strerror(-r));
		return;
	}
	s->layer = layer;
	s->mount = mount;
	s->walker = walker;
	s->walks = 0;
	s->cut = false;
	s->root = w.root;
	s->snapshot = w.snapshot;
	s->made = engine_clock_ms();
	/* A wish for the same root that came meanwhile is fulfilled, too. */
	s->wish.open &= !object_id_equal(&s->wish.root, &w.root);
	if (s->ending || s->wish.open)
		end_walker(s);
}

/* --- the thread ------------------------------------------------------------------------- */

/* lock held.  False if the time is over. */
static bool wait_until(struct warm_clone *s, uint64_t ms)
{
	const struct timespec until = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	return sys_cond_wait_until(&s->changed, &s->lock, &until) != -ETIMEDOUT;
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/*
 * A clone that was just made is about to be used, and a walk at the same time would slow down both.
 * lock held; returns when the daemon is quiet or the state has changed.
 */
static void wait_for_quiet(struct warm_clone *s)
{
	const uint64_t patience = engine_clock_ms() + PATIENCE_MS;
	uint64_t used, until;

	do {
		used = cpu_ms();
		until = engine_clock_ms() + QUIET_MS;
		while (!s->ending && wait_until(s, until))
			continue;
		used = cpu_ms() - used;
	} while (!s->ending &&
		 (s->rests > 0 || (used * QUIET_SHARE >= QUIET_MS && until < patience)));
}

/* lock held, but while it waits */
static void walk_on(struct warm_clone *s)
{
	wait_for_quiet(s);
	if (s->ending || s->wish.open || !s->layer)
		return;
	s->cut = false;
	IGNORE_RESULT(start_walker(s->host->dir, mount_fd(s->mount), s->walks > 0, &s->walker),
		      "then it is as warm as it was");
}

static void *warm_clone_run(void *arg)
{
	struct warm_clone *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		if (s->walker != 0) {
			await_walker(s);
		} else if (s->wish.open) {
			wait_for_quiet(s);
			if (!s->ending)
				fulfil(s);
		} else if (s->cut && s->layer) {
			walk_on(s);
		} else if (!s->layer) {
			pthread_cond_wait(&s->changed, &s->lock);
		} else if (engine_clock_ms() < s->made + KEEP_MS) {
			wait_until(s, s->made + KEEP_MS);
		} else {
			log_debug("nobody wanted the warm clone");
			give_up(s);
		}
	}
	if (s->walker != 0)
		await_walker(s);
	give_up(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --- what others want of it ------------------------------------------------------------- */

int warm_clone_new(struct host *h, struct warm_clone **ret, struct err *err)
{
	struct warm_clone *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->host = h;
	pthread_mutex_init(&s->lock, NULL);
	sys_cond_init(&s->changed);
	*ret = s;
	return 0;
}

void warm_clone_end(struct warm_clone *s)
{
	bool started;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	started = s->started;
	s->started = false;
	end_walker(s);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (started)
		pthread_join(s->thread, NULL);
}

void warm_clone_free(struct warm_clone *s)
{
	if (!s)
		return;
	warm_clone_end(s);
	assert(!s->layer);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* lock held */
static void start_thread(struct warm_clone *s)
{
	if (!s->started && pthread_create(&s->thread, NULL, warm_clone_run, s) == 0)
		s->started = true;
}

/* lock held */
static void want(struct warm_clone *s, const struct snapshot *base)
{
	const bool there =
	    s->layer && object_id_equal(&s->root, &base->root) && !mount_ended(s->mount);

	s->wish = (struct wish){
		.open = !there,
		.snapshot = base->id,
		.project = base->project,
		.root = base->root,
		.files = base->files,
	};
	if (!there)
		end_walker(s);
	start_thread(s);
	pthread_cond_broadcast(&s->changed);
}

void warm_clone_follow(struct warm_clone *s, const struct snapshot *base)
{
	pthread_mutex_lock(&s->lock);
	if (!s->ending && !s->hopeless)
		want(s, base);
	pthread_mutex_unlock(&s->lock);
}

void warm_clone_renew(struct warm_clone *s, const struct snapshot *newest)
{
	pthread_mutex_lock(&s->lock);
	if (!s->ending && !s->hopeless && catalog_id_same(&s->wish.project, &newest->project))
		want(s, newest);
	pthread_mutex_unlock(&s->lock);
}

void warm_clone_rest(struct warm_clone *s)
{
	pthread_mutex_lock(&s->lock);
	s->rests++;
	s->cut |= s->walker != 0;
	end_walker(s);
	pthread_mutex_unlock(&s->lock);
}

void warm_clone_rested(struct warm_clone *s)
{
	pthread_mutex_lock(&s->lock);
	s->rests--;
	pthread_mutex_unlock(&s->lock);
}

/* lock held, but while it waits for the walker */
static bool take_layer(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		       struct mount **ret_mount)
{
	bool found;

	for (;;) {
		found = !s->ending && s->layer && object_id_equal(&s->root, root) &&
			!mount_ended(s->mount);
		if (!found || s->walker == 0)
			break;
		end_walker(s);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	if (found) {
		*ret_layer = TAKE_PTR(s->layer);
		*ret_mount = TAKE_PTR(s->mount);
	}
	return found;
}

bool warm_clone_take(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		     struct mount **ret_mount)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	found = take_layer(s, root, ret_layer, ret_mount);
	if (found)
		s->taken++;
	pthread_mutex_unlock(&s->lock);
	return found;
}

void warm_clone_let_go(struct warm_clone *s)
{
	CLEANUP(snapshot_done) struct snapshot named = { 0 };
	struct catalog_id snapshot;
	struct object_id root;
	struct layer *layer;
	struct mount *mount;
	bool found;

	pthread_mutex_lock(&s->lock);
	snapshot = s->snapshot;
	root = s->root;
	found = s->layer != NULL;
	pthread_mutex_unlock(&s->lock);
	if (!found || snapshot_get(s->host->store, &snapshot, &named, NULL) != -ENOENT)
		return;
	pthread_mutex_lock(&s->lock);
	found = take_layer(s, &root, &layer, &mount);
	pthread_mutex_unlock(&s->lock);
	if (found)
		warm_clone_drop(layer, mount);
}

void warm_clone_news(struct warm_clone *s, struct warm_clone_news *ret)
{
	pthread_mutex_lock(&s->lock);
	if (s->wish.open || !s->layer)
		ret->state = WARM_CLONE_NONE;
	else if (s->walks == 0)
		ret->state = s->walker != 0 || s->cut ? WARM_CLONE_WARMING : WARM_CLONE_READY;
	else
		ret->state = s->walks == 1 ? WARM_CLONE_READY : WARM_CLONE_WARM;
	ret->taken = s->taken;
	pthread_mutex_unlock(&s->lock);
}
