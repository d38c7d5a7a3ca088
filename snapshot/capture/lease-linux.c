/*
 * Leases of the kernel (fcntl(2), F_SETLEASE), and the threads that answer their breaks.
 *
 * One thread, the receiver, gets every signal. F_SETOWN_EX directs them to that thread alone, so no
 * other thread of the process needs a mask for them. The signal is one with a queue and names the
 * descriptor. When the queue is full (RLIMIT_SIGPENDING counts all signals of the user) the kernel
 * sends a plain SIGIO instead, which names none: the receiver then checks every lease. A
 * descriptor's number may belong to another file by the time its signal is read, so each lease is
 * checked in any case (F_GETLEASE) before it counts as broken.
 *
 * The takers do the reading. A lease goes HELD -> QUEUED -> TAKING and is then freed, or put off
 * and queued again if it cannot be taken yet; no taker waits for that. The kernel has a lease before the tables do. If a signal finds
 * nothing in them, its descriptor is noted, and leases_add() then checks the lease. It also does so
 * when there were too many to note, or a plain SIGIO came since the lease was tried.
 */
#include "snapshot/capture/lease.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdio.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/sys.h"
#include "base/vec.h"

#define TAKERS_MAX   8
#define TAKERS       2
#define STACK_SIZE   (512 * 1024)
#define AGAIN_MS     20 /* before a lease that was put off is queued again */
#define LEASE_SIGNAL SIGRTMIN

#define MISSED_MAX 64

enum lease_state { LEASE_HELD, LEASE_QUEUED, LEASE_TAKING };

struct lease {
	uint64_t key;
	int fd; /* owned */
	enum lease_state state;
	bool copied;     /* somebody may have another descriptor of it */
	bool last;       /* it was put off when leases_close() had begun: it is taken once more */
	uint64_t due_ms; /* of one that was put off */
	struct lease *next; /* in a queue */
};

struct lease_queue {
	struct lease *first, **end;
};

struct leases {
	struct leases_options opts;

	pthread_mutex_t lock; /* guards all below; a leaf, but for the map's memory */
	pthread_cond_t work;  /* a queue grew, or `drained` */
	pthread_cond_t known; /* `receiver_tid` is */
	struct map by_key, by_fd;
	struct lease_queue queue;
	struct lease_queue
	    later; /* those that were put off; by their due times, as all wait alike */
	struct leases_count count;
	int missed[MISSED_MAX]; /* descriptors whose signal found no lease, perhaps long ago */
	size_t n_missed;
	_Atomic uint64_t doubts; /* how often signals may have been missed; read without the lock */
	pid_t receiver_tid;
	bool ending;  /* the receiver goes */
	bool drained; /* the takers go when the queue is empty */

	pthread_t receiver, takers[TAKERS_MAX];
	bool has_receiver;
	unsigned n_takers;
};

static uint64_t hash_fd(const void *key)
{
	return (unsigned)*(const int *)key;
}

static bool equal_fd(const void *a, const void *b)
{
	return *(const int *)a == *(const int *)b;
}

/* --- breaks ----------------------------------------------------------------------------- */

static void push(struct lease_queue *q, struct lease *e)
{
	e->next = NULL;
	*q->end = e;
	q->end = &e->next;
}

static struct lease *pop(struct lease_queue *q)
{
	struct lease *e = q->first;

	if (!e)
		return NULL;
	q->first = e->next;
	if (!q->first)
		q->end = &q->first;
	return e;
}

static void enqueue(struct leases *l, struct lease *e)
{
	e->state = LEASE_QUEUED;
	push(&l->queue, e);
	pthread_cond_signal(&l->work);
}

static void put_off(struct leases *l, struct lease *e)
{
	e->state = LEASE_QUEUED;
	e->last = l->drained;
	e->due_ms = clock_ms() + AGAIN_MS;
	push(&l->later, e);
	pthread_cond_signal(&l->work);
}

static void serve_if_broken(struct leases *l, struct lease *e)
{
	if (e->state == LEASE_HELD && fcntl(e->fd, F_GETLEASE) != F_RDLCK)
		enqueue(l, e);
}

static void sweep(struct leases *l)
{
	struct lease *e;
	size_t pos = 0;

	while ((e = map_next(&l->by_fd, &pos)))
		serve_if_broken(l, e);
}

/* Its lease may be one that is not in the set yet. */
static void note_missed(struct leases *l, int fd)
{
	for (size_t i = 0; i < l->n_missed; i++)
		if (l->missed[i] == fd)
			return;
	if (l->n_missed == MISSED_MAX) {
		l->n_missed = 0;
		l->doubts++;
	}
	l->missed[l->n_missed++] = fd;
}

static bool was_missed(struct leases *l, int fd)
{
	for (size_t i = 0; i < l->n_missed; i++)
		if (l->missed[i] == fd) {
			l->missed[i] = l->missed[--l->n_missed];
			return true;
		}
	return false;
}

static void receive(struct leases *l, const siginfo_t *info)
{
	struct lease *e;
	LOCKED(&l->lock);

	if (info->si_signo == LEASE_SIGNAL) {
		e = map_get(&l->by_fd, &info->si_fd);
		if (e)
			serve_if_broken(l, e);
		else
			note_missed(l, info->si_fd);
		return;
	}
	if (!l->ending)
		l->count.swept++;
	l->doubts++;
	sweep(l);
}

static bool is_ending(struct leases *l)
{
	LOCKED(&l->lock);

	return l->ending;
}

static void *run_receiver(void *arg)
{
	struct leases *l = arg;
	siginfo_t info;
	sigset_t mine;

	pthread_setname_np(pthread_self(), "leases");
	sigemptyset(&mine);
	sigaddset(&mine, LEASE_SIGNAL);
	sigaddset(&mine, SIGIO);
	pthread_mutex_lock(&l->lock);
	l->receiver_tid = gettid();
	pthread_cond_broadcast(&l->known);
	pthread_mutex_unlock(&l->lock);
	while (!is_ending(l))
		if (sigwaitinfo(&mine, &info) > 0)
			receive(l, &info);
	return NULL;
}

static void forget(struct leases *l, struct lease *e)
{
	map_remove(&l->by_key, &e->key);
	map_remove(&l->by_fd, &e->fd);
	l->count.held--;
}

/* Forget a lease and let its writer go on.  True if the kernel had it until now.  Under the lock. */
static bool free_lease(struct leases *l, struct lease *e)
{
	/* Closing is not enough: a duplicate of the descriptor would keep the lease. */
	const bool held = fcntl(e->fd, F_SETLEASE, F_UNLCK) == 0;

	forget(l, e);
	close(e->fd);
	free(e);
	return held;
}

/* The same of all, at the end, when there is nothing to be told and nothing to be looked up. */
static void free_all(struct leases *l)
{
	struct lease *e;
	size_t pos = 0;

	while ((e = map_next(&l->by_fd, &pos))) {
		if (e->copied)
			IGNORE_RESULT(fcntl(e->fd, F_SETLEASE, F_UNLCK), "it may be broken");
		close(e->fd);
		free(e);
	}
	map_done(&l->by_key);
	map_done(&l->by_fd);
}

/* At the end it is the time of all. */
static void queue_due(struct leases *l)
{
	const uint64_t now = clock_ms();

	while (l->later.first && (l->drained || l->later.first->due_ms <= now))
		push(&l->queue, pop(&l->later));
}

static struct lease *next_broken(struct leases *l)
{
	struct lease *e;

	for (;;) {
		queue_due(l);
		e = pop(&l->queue);
		if (e || l->drained)
			break;
		if (l->later.first)
			sys_cond_wait_ms(&l->work, &l->lock, AGAIN_MS);
		else
			pthread_cond_wait(&l->work, &l->lock);
	}
	if (e)
		e->state = LEASE_TAKING;
	return e;
}

static void *run_taker(void *arg)
{
	struct leases *l = arg;
	struct lease *e;
	int r;
	LOCKED(&l->lock);

	pthread_setname_np(pthread_self(), "leases-take");
	while ((e = next_broken(l))) {
		pthread_mutex_unlock(&l->lock);
		r = l->opts.take(l->opts.ctx, e->key, e->fd);
		pthread_mutex_lock(&l->lock);
		if (r == -EAGAIN && !e->last) {
			put_off(l, e);
			continue;
		}
		l->count.broken++;
		l->count.failed += r < 0;
		l->count.lapsed += !free_lease(l, e);
	}
	return NULL;
}

/* --- the set ---------------------------------------------------------------------------- */

static size_t room_for_leases(size_t asked)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	size_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		limit.rlim_cur = 2 * LEASES_MAX;
	room = limit.rlim_cur / 2 < LEASES_MAX ? limit.rlim_cur / 2 : LEASES_MAX;
	return asked && asked < room ? asked : room;
}

static int start_threads(struct leases *l, struct err *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return err_set(err, -rc, "cannot make a thread for leases");
	rc = pthread_attr_setstacksize(&attr, STACK_SIZE);
	assert(rc == 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&l->receiver, &attr, run_receiver, l);
	l->has_receiver = rc == 0;
	while (rc == 0 && l->n_takers < l->opts.takers) {
		rc = pthread_create(&l->takers[l->n_takers], &attr, run_taker, l);
		l->n_takers += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return l->n_takers > 0 ? 0 : err_set(err, -rc, "cannot make a thread for leases");
}

int leases_open(const struct leases_options *options, struct leases **ret, struct err *err)
{
	CLEANUP(leases_close_p) struct leases *l = calloc(1, sizeof(*l));
	int r;

	assert(options->take && options->takers <= TAKERS_MAX);
	if (!l)
		return err_nomem(err);
	l->opts = *options;
	l->opts.max = room_for_leases(options->max);
	if (!l->opts.takers)
		l->opts.takers = TAKERS;
	pthread_mutex_init(&l->lock, NULL);
	sys_cond_init(&l->work);
	pthread_cond_init(&l->known, NULL);
	l->by_key = MAP_INIT(map_hash_u64, map_equal_u64);
	l->by_fd = MAP_INIT(hash_fd, equal_fd);
	l->queue.end = &l->queue.first;
	l->later.end = &l->later.first;
	r = start_threads(l, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&l->lock);
	while (!l->receiver_tid)
		pthread_cond_wait(&l->known, &l->lock);
	pthread_mutex_unlock(&l->lock);
	*ret = TAKE_PTR(l);
	return 0;
}

static void stop_threads(struct leases *l)
{
	pthread_mutex_lock(&l->lock);
	l->ending = true;
	pthread_mutex_unlock(&l->lock);
	if (l->has_receiver) {
		pthread_kill(l->receiver, SIGIO); /* needs no room in a queue */
		pthread_join(l->receiver, NULL);
	}
	pthread_mutex_lock(&l->lock);
	sweep(l); /* signals that the receiver did not get to */
	l->drained = true;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < l->n_takers; i++)
		pthread_join(l->takers[i], NULL);
}

void leases_close(struct leases *l)
{
	if (!l)
		return;
	stop_threads(l);
	free_all(l);
	pthread_cond_destroy(&l->known);
	pthread_cond_destroy(&l->work);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* --- files ------------------------------------------------------------------------------ */

static int direct_signals(const struct leases *l, int fd)
{
	const struct f_owner_ex receiver = { .type = F_OWNER_TID, .pid = l->receiver_tid };

	if (fcntl(fd, F_SETOWN_EX, &receiver) < 0 || fcntl(fd, F_SETSIG, LEASE_SIGNAL) < 0)
		return -errno;
	return 0;
}

int leases_try(struct leases *l, int fd, bool likely, struct lease_trial *ret)
{
	int r = 0;

	assert(l || !likely);
	*ret = (struct lease_trial){ .signals = likely, .doubts = l ? l->doubts : 0 };
	if (likely)
		r = direct_signals(l, fd);
	if (r < 0)
		return r;
	ret->is_set = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
	if (ret->is_set)
		return 0;
	return errno == EINVAL ? -ENOTSUP : -errno;
}

void lease_give_up(int fd, struct lease_trial *t)
{
	if (t->is_set)
		IGNORE_RESULT(fcntl(fd, F_SETLEASE, F_UNLCK), "it ends with the descriptor");
	t->is_set = false;
}

static int enter(struct leases *l, struct lease *e)
{
	void *other;
	int r;

	if (l->count.held >= l->opts.max)
		return -EMFILE;
	r = map_add(&l->by_key, &e->key, e, &other);
	if (r != 0)
		return r < 0 ? r : -EEXIST;
	r = map_add(&l->by_fd, &e->fd, e, &other);
	assert(r <= 0); /* else somebody closed a descriptor of ours */
	if (r < 0)
		map_remove(&l->by_key, &e->key);
	l->count.held += r == 0;
	return r;
}

int leases_add(struct leases *l, uint64_t key, int fd, const struct lease_trial *t)
{
	AUTO_FREE struct lease *e = calloc(1, sizeof(*e));
	int r;

	assert(t->is_set);
	if (!e)
		return -ENOMEM;
	*e = (struct lease){ .key = key, .fd = fd, .state = LEASE_HELD };
	r = t->signals ? 0 : direct_signals(l, fd);
	if (r < 0)
		return r;
	LOCKED(&l->lock);
	r = enter(l, e);
	if (r < 0)
		return r;
	if (was_missed(l, fd) || !t->signals || t->doubts != l->doubts)
		serve_if_broken(l, e);
	TAKE_PTR(e);
	return 0;
}

int leases_drop(struct leases *l, uint64_t key)
{
	struct lease *e;
	LOCKED(&l->lock);

	e = map_get(&l->by_key, &key);
	if (!e)
		return -ENOENT;
	return e->state == LEASE_HELD ? free_lease(l, e) : -EBUSY;
}

int leases_dup(struct leases *l, uint64_t key)
{
	struct lease *e;
	int fd;
	LOCKED(&l->lock);

	e = map_get(&l->by_key, &key);
	if (!e)
		return -ENOENT;
	fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	e->copied |= fd >= 0;
	return fd < 0 ? -errno : fd;
}

struct leases_count leases_count(struct leases *l)
{
	LOCKED(&l->lock);

	return l->count;
}

size_t leases_room(const struct leases *l)
{
	return l->opts.max;
}

int lease_held(int fd)
{
	char path[40], text[4096];
	AUTO_CLOSE int info = -1;
	ssize_t n;

	if (fcntl(fd, F_GETLEASE) == F_RDLCK)
		return 1;
	/* While it is being broken the kernel answers as if there were none; its list has it still. */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -errno;
	n = fdio_read(info, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return strstr(text, ": LEASE ") != NULL;
}

bool lease_possible(int fd)
{
	static const unsigned long local[] = { EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC,
					       BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
					       F2FS_SUPER_MAGIC,  OVERLAYFS_SUPER_MAGIC };
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	return VEC_HAS(it, local, ARRAY_LEN(local), (unsigned long)st.f_type == *it);
}
