/*
 * Large files that are still promised are read piece by piece, each verified as the whole would be.
 * Nothing is stored: the threads of the capture read the file in its turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"
#include "engine/host/stash-i.h"

/* What is needed to read a file without the lock; the capture may end meanwhile. */
struct peeked_file {
	char *path; /* owned; NULL: not known, or it is not open any more */
	int top;    /* owned, or -1 */
	uint64_t size;
	dev_t home;
	struct catalog_id capture;
	bool stashed;
};

static void peeked_file_done(struct peeked_file *f)
{
	free(f->path);
	cleanup_close(&f->top);
}

/* False if it is not promised any more. */
static bool find(struct promises *p, const struct object_id *id, struct peeked_file *ret)
{
	const struct object_ref key = { .id = *id, .kind = OBJECT_CHUNK };
	const struct promise *one = NULL;
	const struct promising *c;

	pthread_mutex_lock(&p->lock);
	for (c = p->first; c && !one; c = one ? c : c->after)
		one = c->indexed ? map_get(&c->by_id, &key) : NULL;
	if (one && (one->state == PROMISE_KEPT || one->state == PROMISE_LOST))
		one = NULL;
	if (one) {
		ret->size = one->size;
		ret->home = c->home;
		ret->capture = c->record.id;
		ret->stashed = one->stashed;
		ret->top = c->top < 0 ? -1 : fcntl(c->top, F_DUPFD_CLOEXEC, 0);
		ret->path = one->path ? strdup(one->path) : NULL;
	}
	pthread_mutex_unlock(&p->lock);
	return one != NULL;
}

static ssize_t read_by_path(struct promises *p, const struct peeked_file *f,
			    const struct object_id *promise, uint64_t off, void *data, size_t len)
{
	AUTO_CLOSE int fd = -1;
	struct err ignored = { 0 };

	if (f->top < 0 || !f->path || keep_open(f->top, f->path, &fd, &ignored) != 0)
		return 0;
	return keep_peek(store_key(p->host->store), fd, f->home, &f->capture, promise, off, data,
			 len);
}

static ssize_t read_stashed(struct promises *p, const struct peeked_file *f,
			    const struct object_id *promise, uint64_t off, void *data, size_t len)
{
	const struct stash_key key = { p->host->dir, f->capture, *promise };
	AUTO_CLOSE int fd = f->stashed ? stash_open(&key, f->size) : -1;
	const ssize_t n = fd < 0 ? 0 : fdio_pread(fd, data, len, (off_t)off);

	return n > 0 ? n : 0;
}

/* 0: no remote has it.  If the bytes do not come, promises_keep() says why to whoever needs the file. */
static ssize_t peek_remote(struct promises *p, const struct object_id *id, uint64_t off, void *data,
			   size_t len)
{
	const struct object_ref key = { .id = *id, .kind = OBJECT_CHUNK };
	struct promise *one = NULL;
	struct err ignored = { 0 };
	struct promising *c;
	ssize_t n = 0;

	pthread_mutex_lock(&p->lock);
	for (c = p->first; c && !one; c = one ? c : c->after)
		if (c->record.remote && c->indexed && promising_is_open(c))
			one = map_get(&c->by_id, &key);
	if (one && (one->state == PROMISE_KEPT || !c->supply))
		n = -EAGAIN;
	if (one && n == 0) {
		c->in_use++;
		c->in_hand++;
		pthread_mutex_unlock(&p->lock);
		n = supply_read(c->supply, promise_file(c, one), off, data, len, &ignored);
		pthread_mutex_lock(&p->lock);
		c->in_use--;
		c->in_hand--;
		one->unread |= n < 0;
		n = n > 0 ? n : -EAGAIN;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

ssize_t promises_peek(const struct object_id *promise, uint64_t off, void *data, size_t len,
		      void *ctx)
{
	CLEANUP(peeked_file_done) struct peeked_file f = { .top = -1 };
	struct promises *p = ctx;
	AUTO_CLOSE int held = -1;
	ssize_t n = 0;

	n = peek_remote(p, promise, off, data, len);
	if (n != 0)
		return n;
	if (!find(p, promise, &f))
		return -EAGAIN;
	held = promises_open_held(p, promise);
	if (held >= 0)
		n = keep_peek_held(held, f.size, off, data, len);
	if (n == 0)
		n = read_stashed(p, &f, promise, off, data, len);
	if (n == 0)
		n = read_by_path(p, &f, promise, off, data, len);
	return n > 0 ? n : -EAGAIN;
}
