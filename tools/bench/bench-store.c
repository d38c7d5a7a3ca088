/*
 * bench-store - what the store itself costs: read every regular file below a
 * directory and put its bytes, with some worker threads, into a fresh store.
 *
 *   bench-store put TREE STORE [--threads N]
 *
 * Prints one line of JSON.  No trees, no snapshot: those are measured elsewhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fdio.h"
#include "base/opt.h"
#include "base/path.h"
#include "cowfs/store/content.h"

#define THREADS_MAX 64

struct bench_args {
	uint64_t threads;
};

static const struct opt bench_opts[] = {
	OPT_U64('t', "threads", "N", struct bench_args, threads, "worker threads (default: 2)"),
	OPT_END,
};

/* Directories still to be read; a worker that finds none waits until nobody can add one. */
struct work {
	struct batch *batch;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t more;
	char **dirs;
	size_t n, cap;
	unsigned busy;
	bool failed;
	struct err err;
	atomic_uint_fast64_t files, bytes;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int add_dir(struct work *w, char *path)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 256;
		char **p = reallocarray(w->dirs, cap, sizeof(*p));

		if (p) {
			w->dirs = p;
			w->cap = cap;
		} else {
			r = -ENOMEM;
		}
	}
	if (r == 0) {
		w->dirs[w->n++] = path;
		pthread_cond_signal(&w->more);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

static int put_file(struct work *w, struct content_writer *cw, int dirfd, const char *name,
		    char *mem, struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct content c;
	ssize_t n;
	int r;

	if (fd < 0)
		return err_sys(err, "opening '%s'", name);
	do {
		n = fdio_read(fd, mem, CHUNK_SIZE_MAX);
		if (n < 0)
			return err_wrap(err, (int)n, "reading '%s'", name);
		r = content_writer_add(cw, mem, (size_t)n, err);
		if (r < 0)
			return r;
	} while (n == (ssize_t)CHUNK_SIZE_MAX);
	r = content_writer_finish(cw, &c, err);
	if (r < 0)
		return r;
	atomic_fetch_add(&w->files, 1);
	atomic_fetch_add(&w->bytes, c.size);
	return 0;
}

static int put_dir(struct work *w, struct content_writer *cw, const char *path, char *mem,
		   struct err *err)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!d)
		return err_sys(err, "opening '%s'", path);
	while (r >= 0 && (e = readdir(d))) {
		if (e->d_type == DT_REG) {
			r = put_file(w, cw, dirfd(d), e->d_name, mem, err);
		} else if (e->d_type == DT_DIR && path_name_valid(e->d_name, strlen(e->d_name))) {
			char *child = path_join(path, e->d_name);

			r = child ? add_dir(w, child) : err_nomem(err);
		}
	}
	closedir(d);
	return r;
}

/* The next directory, or NULL when all is done or something failed. */
static char *next_dir(struct work *w)
{
	char *path = NULL;

	pthread_mutex_lock(&w->lock);
	w->busy--;
	while (w->n == 0 && w->busy > 0 && !w->failed)
		pthread_cond_wait(&w->more, &w->lock);
	if (w->n > 0 && !w->failed) {
		path = w->dirs[--w->n];
		w->busy++;
	} else {
		pthread_cond_broadcast(&w->more);
	}
	pthread_mutex_unlock(&w->lock);
	return path;
}

static void *worker(void *arg)
{
	CLEANUP(content_writer_free_p) struct content_writer *cw = NULL;
	AUTO_FREE char *mem = malloc(CHUNK_SIZE_MAX);
	struct work *w = arg;
	struct err err = { 0 };
	char *path;
	int r;

	r = mem ? content_writer_new(w->batch, &cw, &err) : err_nomem(&err);
	while (r >= 0 && (path = next_dir(w))) {
		r = put_dir(w, cw, path, mem, &err);
		free(path);
	}
	if (r < 0) {
		pthread_mutex_lock(&w->lock);
		w->failed = true;
		w->err = err;
		pthread_cond_broadcast(&w->more);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static int put_tree(struct store *s, const char *tree, unsigned threads, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct work w = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };
	pthread_t t[THREADS_MAX];
	struct store_sizes sizes;
	double start = now_ms(), put, done;
	int r;

	r = batch_begin(s, &b, err);
	if (r < 0)
		return r;
	w.batch = b;
	w.busy = threads;
	r = add_dir(&w, strdup(tree));
	if (r < 0)
		return err_nomem(err);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, worker, &w) != 0)
			return err_set(err, -EAGAIN, "cannot start a thread");
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	free(w.dirs);
	if (w.failed) {
		*err = w.err;
		return err->code;
	}
	put = now_ms();
	r = batch_commit(b, BATCH_DURABLE, err);
	if (r < 0)
		return r;
	done = now_ms();
	r = store_sizes(s, &sizes, err);
	if (r < 0)
		return r;
	printf("{\"files\":%llu,\"bytes\":%llu,\"chunks\":%llu,\"put_ms\":%.1f,\"commit_ms\":%.1f,"
	       "\"stored_bytes\":%llu}\n",
	       (unsigned long long)w.files, (unsigned long long)w.bytes,
	       (unsigned long long)sizes.chunks, put - start, done - put,
	       (unsigned long long)(sizes.chunk_bytes + sizes.object_bytes));
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(store_close_p) struct store *s = NULL;
	struct bench_args args = { .threads = 2 };
	struct err err = { 0 };
	struct opt_words words = { 0 };
	int r;

	r = opt_parse(bench_opts, OPT_PERMUTE, argc - 1, argv + 1, &args, &words, &err);
	if (r >= 0 && (words.n != 3 || strcmp(argv[1], "put") != 0 || args.threads < 1 ||
		       args.threads > THREADS_MAX))
		r = err_set(&err, -EINVAL, "usage: bench-store put TREE STORE [--threads N]");
	if (r >= 0)
		r = store_open(argv[3], STORE_CREATE, &s, &err);
	if (r >= 0)
		r = put_tree(s, argv[2], (unsigned)args.threads, &err);
	if (r < 0)
		fprintf(stderr, "error: %s\n", err.msg);
	return r < 0;
}
