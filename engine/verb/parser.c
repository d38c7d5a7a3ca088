#include "engine/verb/parser-i.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "image/unpack.h"
#include "runner/confine.h"

#define READ_SIZE ((size_t)256 << 10)

/* Of processor time.  A MiB of the most packed archive that is still of use takes a tenth of a second. */
#define SECONDS_MIN     60
#define SECONDS_PER_MIB 1
#define SECONDS_PIPE    14400 /* whose length nobody knows */

void parser_plan_done(struct parser_plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		cleanup_close(&p->layers[i].fd);
		free(p->layers[i].digest);
		free(p->layers[i].plain);
	}
	free(p->layers);
	*p = (struct parser_plan){ 0 };
}

/* --- in the child ----------------------------------------------------------------------- */

/* A layer being read; its digest is that of all bytes, also behind the end of the archive. */
struct input {
	const struct parser_layer *layer;
	struct sha256 sum;
	char *block;
};

static ssize_t read_input(void *ctx, const void **ret, struct err *err)
{
	struct input *in = ctx;
	ssize_t n;

	do
		n = read(in->layer->fd, in->block, READ_SIZE);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "reading the archive");
	sha256_add(&in->sum, in->block, (size_t)n);
	*ret = in->block;
	return n;
}

/* It was verified before; this is what was parsed. */
static int check_digest(struct input *in, struct err *err)
{
	char hex[SHA256_HEX_SIZE];
	const void *rest;
	ssize_t n;

	do
		n = read_input(in, &rest, err);
	while (n > 0);
	if (n < 0)
		return (int)n;
	sha256_end_hex(&in->sum, hex);
	if (in->layer->digest && strcmp(hex, in->layer->digest) != 0)
		return err_set(err, -EBADMSG, "layer sha256:%s changed while it was read",
			       in->layer->digest);
	return 0;
}

static int parse_layer(const struct libarchive *lib, const struct parser_plan *plan, size_t i,
		       char *block, struct stream_writer *out, struct err *err)
{
	struct input in = { .layer = &plan->layers[i], .block = block };
	const struct unpack_options options = {
		.whiteouts = plan->whiteouts,
		.bytes = plan->max_bytes,
		.plain = plan->layers[i].plain,
	};
	int r = 0;

	sha256_begin(&in.sum);
	if (i > 0)
		r = stream_write(out, &(struct stream_record){ .kind = STREAM_LAYER }, err);
	if (r < 0)
		return r;
	r = unpack_archive(lib, read_input, &in, &options, out, err);
	return r < 0 ? r : check_digest(&in, err);
}

static void close_others(const struct parser_plan *plan, int out, int why)
{
	int keep[2] = { out < why ? out : why, out < why ? why : out };
	AUTO_FREE int *all = calloc(plan->n + 3, sizeof(*all));
	size_t n = 0;

	if (!all)
		_exit(1);
	all[n++] = STDERR_FILENO;
	for (size_t i = 0; i < plan->n; i++)
		all[n++] = plan->layers[i].fd;
	all[n++] = keep[0];
	all[n++] = keep[1];
	/* Few, and almost sorted. */
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && all[k - 1] > all[k]; k--) {
			const int swap = all[k];

			all[k] = all[k - 1];
			all[k - 1] = swap;
		}
	confine_close_others(all, (unsigned)n);
}

static uint64_t seconds_for(const struct parser_plan *plan)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < plan->n; i++) {
		if (fstat(plan->layers[i].fd, &st) < 0 || !S_ISREG(st.st_mode))
			return SECONDS_PIPE;
		bytes += (uint64_t)st.st_size;
	}
	return SECONDS_MIN + (bytes >> 20) * SECONDS_PER_MIB;
}

static int parse(const struct parser_plan *plan, int out_fd, struct err *err)
{
	struct stream_writer out = { .fd = out_fd };
	struct libarchive lib;
	AUTO_FREE char *block = malloc(READ_SIZE);
	int r = block ? libarchive_load(&lib, err) : err_nomem(err);

	if (r < 0)
		return r;
	/* Names of pax are UTF-8, which libarchive would translate to any other charset. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "C");
	r = confine_parser(seconds_for(plan), err);
	for (size_t i = 0; i < plan->n && r >= 0; i++)
		r = parse_layer(&lib, plan, i, block, &out, err);
	if (r >= 0)
		r = stream_write(&out, &(struct stream_record){ .kind = STREAM_END }, err);
	stream_writer_done(&out);
	return r;
}

NORETURN static void child(const struct parser_plan *plan, int out, int why)
{
	struct err err = { 0 };
	int r;

	signal(SIGPIPE, SIG_IGN);
	close_others(plan, out, why);
	r = parse(plan, out, &err);
	/* If cowfsd has stopped reading, it says why itself. */
	if (r < 0 && r != -EPIPE) {
		err.code = r;
		IGNORE_RESULT(fdio_write(why, &err, sizeof(err)), "then the exit status tells");
	}
	_exit(r < 0 ? 1 : 0);
}

/* --- in the parent ---------------------------------------------------------------------- */

int parser_start(const struct parser_plan *plan, struct parser *ret, struct err *err)
{
	int out[2], why[2];
	int r = sys_pipe(out);

	if (r < 0)
		return err_set(err, r, "a pipe for the archive: %s", strerror(-r));
	r = sys_pipe(why);
	if (r < 0) {
		cleanup_close(&out[0]);
		cleanup_close(&out[1]);
		return err_set(err, r, "a pipe for the archive: %s", strerror(-r));
	}
	ret->pid = fork();
	if (ret->pid == 0)
		child(plan, out[1], why[1]);
	r = ret->pid < 0 ? err_sys(err, "a process for the archive") : 0;
	cleanup_close(&out[1]);
	cleanup_close(&why[1]);
	ret->out = out[0];
	ret->why = why[0];
	if (r < 0)
		ret->pid = 0;
	return r;
}

static int wait_for(struct parser *p, int *ret_status)
{
	pid_t rc;

	do
		rc = waitpid(p->pid, ret_status, 0);
	while (rc < 0 && errno == EINTR);
	p->pid = 0;
	return rc < 0 ? -errno : 0;
}

int parser_end(struct parser *p, struct err *err)
{
	struct err why = { 0 };
	int status = 0, r;

	/* So that it does not wait for a reader that has gone. */
	cleanup_close(&p->out);
	if (fdio_read(p->why, &why, sizeof(why)) == (ssize_t)sizeof(why) && why.code < 0) {
		why.msg[sizeof(why.msg) - 1] = '\0';
		r = wait_for(p, &status);
		return err_set(err, why.code, "%s", why.msg);
	}
	r = wait_for(p, &status);
	if (r < 0)
		return err_set(err, r, "the process that parses archives: %s", strerror(-r));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return err_set(err, -EINVAL,
			       "reading the archive took more processor time than its size can "
			       "need: it is made to keep its reader busy");
	if (WIFSIGNALED(status))
		return err_set(err, -EINVAL,
			       "the process that parses archives was ended by signal %d: the "
			       "archive is damaged, or made to harm",
			       WTERMSIG(status));
	return 0;
}

void parser_done(struct parser *p)
{
	int status;

	cleanup_close(&p->out);
	cleanup_close(&p->why);
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		IGNORE_RESULT(wait_for(p, &status), "it is gone either way");
	}
}
