/*
 * The work of a Slurm job: one ticket of a tray shared with the submitting machine.
 *
 * Slurm ends all processes of a job with it, a cowfsd that it started as well. So jobs that run
 * here at once do not share a store: each takes the first that no other has. The store stays for
 * later jobs, which fetch only what it lacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/api/service.h"
#include "engine/find/engine-i.h"
#include "engine/worker/serve-i.h"

#define STORE_VARIABLE "SNAPCOW_SLURM_STORE"
#define STORES_MAX     1024 /* jobs of one user at once on one node */
#define FILE_END       ".ticket"

/* --- a store ------------------------------------------------------------------------------ */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value == '/' ? value : NULL;
}

/* A directory that others can write to is no place for a store: in /tmp anybody can be first. */
static int open_stores(char **ret, struct err *err)
{
	const char *named = variable(STORE_VARIABLE), *temp = variable("TMPDIR");
	struct stat st;
	int r = named ? text_set(ret, err, "%s", named)
		      : text_set(ret, err, "%s/snapcow-slurm-%u", temp ? temp : "/tmp",
				 (unsigned)geteuid());

	if (r < 0)
		return r;
	if (mkdir(*ret, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s' for stores of jobs", *ret);
	if (lstat(*ret, &st) < 0)
		return err_sys(err, "'%s'", *ret);
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0
		   ? 0
		   : err_set(
			 err, -EACCES,
			 "'%s' is not a directory that only you can write to: name another in " STORE_VARIABLE,
			 *ret);
}

/* The lock is held until it is closed. */
static int choose_store(struct serve *v, int *ret_lock, struct err *err)
{
	AUTO_FREE char *stores = NULL;
	int r = open_stores(&stores, err);

	for (unsigned i = 0; r == 0 && i < STORES_MAX; i++) {
		AUTO_FREE char *path = NULL;
		AUTO_CLOSE int fd = -1;

		r = text_set(&path, err, "%s/%u.lock", stores, i);
		if (r < 0)
			return r;
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return err_sys(err, "'%s'", path);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			*ret_lock = TAKE_FD(fd);
			return text_set(&v->store, err, "%s/%u", stores, i);
		}
		if (errno != EWOULDBLOCK)
			return err_sys(err, "'%s'", path);
	}
	return r < 0 ? r : err_set(err, -EBUSY, "%d stores in '%s' are in use", STORES_MAX, stores);
}

/* Before the lock goes: Slurm would end it anyway, beside whoever has the store next. */
static void stop_daemon(const struct serve *v)
{
	const struct engine_options options = { .dir = v->dir, .store = v->store };
	CLEANUP(engine_close_p) struct engine *e = NULL;
	struct engine_service ignored = { 0 };
	struct err err = { 0 };
	int r = engine_open(&options, &e, &err);

	if (r == 0)
		r = engine_stop(e, true, &ignored, &err);
	if (r < 0 && r != -ESRCH)
		log_warn("%s, continuing", err.msg);
}

/* --- the ticket --------------------------------------------------------------------------- */

/* DIR/ID.ticket */
static int read_ticket(struct serve *v, struct asked *a, struct ticket_question *q,
		       const char *file, struct err *err)
{
	const char *name = path_base(file);
	const size_t len = strlen(name);
	AUTO_FREE char *dir = NULL;
	int r;

	if (file[0] != '/' || len != QUEUE_ID_SIZE - 1 + strlen(FILE_END) ||
	    strcmp(name + QUEUE_ID_SIZE - 1, FILE_END) != 0)
		return err_set(err, -EINVAL, "'%.200s' is no ticket: /DIR/ID" FILE_END, file);
	dir = strndup(file, (size_t)(name - file));
	if (!dir)
		return err_nomem(err);
	snprintf(a->id, sizeof(a->id), "%.64s", name);
	r = tray_open_shared(dir, &v->tray, err);
	if (r == 0)
		r = tray_get(&v->tray, a->id, TRAY_TICKET, QUEUE_TICKET_MAX, &q->text, err);
	if (r == 0)
		return err_set(err, -ENOENT, "there is no '%s'", file);
	if (r > 0)
		r = ticket_decode(&q->text, &a->ticket, err);
	return r;
}

static int check_id(const struct asked *a, struct err *err)
{
	char id[QUEUE_ID_SIZE];

	return strcmp(ticket_id(&a->question->text, id), a->id) == 0
		   ? 0
		   : err_set(err, -EBADMSG, "ticket %.12s has the text of another", a->id);
}

static struct {
	volatile sig_atomic_t *ended; /* that the child sees, too */
	volatile sig_atomic_t child;
} job;

static void on_end(int sig)
{
	*job.ended = 1;
	if (job.child > 0)
		kill(job.child, sig);
}

/*
 * A run passes SIGTERM on, and a command that it ended looks like any other.  So the signal is caught beside it: what
 * comes of the command then is not stored.
 */
static int watch_over(struct asked *a, const int fds[2], uint64_t attempt, struct err *err)
{
	const struct sigaction end = { .sa_handler = on_end, .sa_flags = SA_RESTART };
	int status = 0;
	pid_t pid;

	job.ended = mmap(NULL, sizeof(*job.ended), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job.ended == MAP_FAILED)
		return err_sys(err, "memory for a job");
	a->serve->ended = job.ended;
	pid = fork();
	if (pid == 0) {
		serve_do(a, fds, attempt);
		_exit(0);
	}
	if (pid < 0)
		return err_sys(err, "making a process for a ticket");
	job.child = pid;
	sigaction(SIGTERM, &end, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return *job.ended ? err_set(err, -EINTR, "the job was ended") : 0;
}

static int do_it(struct asked *a, struct err *err)
{
	struct serve *v = a->serve;
	int fds[2] = { -1, -1 };
	AUTO_CLOSE int lock = -1;
	struct tray_holder mine;
	int r = tray_claim(&v->tray, a->id, fds, &mine, err);

	/* Somebody else has it, or it has a result: of a job that Slurm began twice. */
	if (r <= 0)
		return r;
	r = tray_put(&v->tray, a->id, TRAY_HOST, v->host, strlen(v->host), err);
	if (r == 0)
		r = serve_decline(a, &mine, err);
	if (r == 0)
		r = choose_store(v, &lock, err);
	if (r == 0)
		r = text_set(&v->dir, err, "%s-worker", v->store);
	if (r == 0)
		r = path_make_dirs(v->dir, 0700, err);
	if (r == 0) {
		r = watch_over(a, fds, mine.attempt, err);
		stop_daemon(v);
	}
	cleanup_close(&fds[0]);
	cleanup_close(&fds[1]);
	return r < 0 ? r : 0;
}

int engine_worker_job(const struct engine_worker_job_options *options, struct err *err)
{
	const struct engine_serve_ssh_options rules = { .profiles = options->profiles,
							.pass_env = options->pass_env,
							.keys = options->keys };
	CLEANUP(serve_done) struct serve v = { .options = &rules, .tray = TRAY_INIT };
	CLEANUP(ticket_question_done) struct ticket_question q = { .mode = TICKET_RUN };
	struct asked a = { .serve = &v, .question = &q };
	int r;

	if (gethostname(v.host, sizeof(v.host) - 1) < 0)
		return err_sys(err, "the name of this machine");
	r = read_ticket(&v, &a, &q, options->file, err);
	if (r == 0)
		r = check_id(&a, err);
	if (r == 0)
		r = do_it(&a, err);
	ticket_done(&a.ticket);
	return r;
}
