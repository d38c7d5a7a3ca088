/*
 * Each experiment has a directory in the store's, with one file: its state, replaced as a whole.  The lock on
 * the directory says that a process works on it; it goes with the process, however that ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/wire/fields.h"

#define STATE_FILE "state.json"
#define VERSION    1
#define LOOK_MS    100
#define STATE_MAX  ((size_t)64 << 20)

/* --- as JSON ------------------------------------------------------------------------------- */

#define W(kind, member) FIELD(FIELD_##kind, struct engine_arm_warning, member)
static const struct field warning_list[] = { W(TEXT, kind), W(NAME, path), W(TEXT, detail) };
static const struct fields warning_fields = FIELDS(struct engine_arm_warning, warning_list);
#undef W

#define C(kind, member) FIELD(FIELD_##kind, struct engine_checked, member)
static const struct field check_list[] = { C(NAME, command), C(UINT, exit_code), C(ID, run),
					   C(UINT, duration_ms) };
static const struct fields check_fields = FIELDS(struct engine_checked, check_list);
#undef C

static const struct field round_list[] = { FIELD(FIELD_DOUBLE, struct engine_round, value) };
static const struct fields round_fields = FIELDS(struct engine_round, round_list);

#define A(kind, member) FIELD(FIELD_##kind, struct engine_arm, member)
#define A_LIST(member, count, of) \
	FIELD_LIST_OF(FIELD_LIST, struct engine_arm, #member, member, count, of)
static const struct field arm_list[] = {
	A(NAME, name),
	A(NAME, command),
	A(NAME_OR_NULL, group),
	A(NAME_OR_NULL, profile),
	A(NAME_OR_NULL, from),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_arm, "env", env, n_env, NULL),
	A(NAME_OR_NULL, clone),
	A(BOOL, has_clone),
	A(NAME_OR_NULL, judge),
	A(UINT, state),
	A(UINT, attempts),
	A(INT, cowfsd),
	A(INT, begun),
	A(ID, now),
	A(ID, run),
	A(INT, exit_code),
	A(ID, limit),
	A(TEXT_OR_NULL, why),
	A(UINT, duration_ms),
	A(UINT, cpu_ms),
	A(UINT, max_mem),
	A(ID, result),
	A(UINT, added),
	A(UINT, modified),
	A(UINT, deleted),
	A(UINT, lines_added),
	A(UINT, lines_removed),
	A(PATHS, changed),
	A_LIST(checks, n_checks, &check_fields),
	A_LIST(rounds, n_rounds, &round_fields),
	A(BOOL, warmed),
	A(BOOL, scored),
	A(DOUBLE, score),
	A(DOUBLE, spread),
	A_LIST(warnings, n_warnings, &warning_fields),
	A(ID, promotion),
};
static const struct fields arm_fields = FIELDS(struct engine_arm, arm_list);
#undef A
#undef A_LIST

#define L(member) FIELD(FIELD_UINT, struct engine_run_limits, member)
static const struct field limit_list[] = { L(mem),    L(cpus_milli), L(pids),  L(time_ms),
					   L(disk),   L(inodes),     L(fsize), L(nofile),
					   L(output), L(net_out) };
static const struct fields limit_fields = FIELDS(struct engine_run_limits, limit_list);
#undef L

#define X(kind, member) FIELD(FIELD_##kind, struct engine_experiment, member)
#define X_NAMES(member) \
	FIELD_LIST_OF(FIELD_NAMES, struct engine_experiment, #member, member, n_##member, NULL)
static const struct field experiment_list[] = {
	X(NAME, name),
	X(NAME_OR_NULL, file),
	X(NAME, project),
	X(NAME, cwd),
	X(NAME_OR_NULL, from),
	X(ID, base),
	X(INT, created),
	X(INT, ended),
	X(UINT, owner),
	X(UINT, state),
	FIELD_LIST_OF(FIELD_LIST, struct engine_experiment, "arms", arms, n_arms, &arm_fields),
	X_NAMES(checks),
	X(UINT, score),
	X(NAME_OR_NULL, score_of),
	X(BOOL, higher),
	X(UINT, repeat),
	X(UINT, rounds),
	X(UINT, jobs),
	X(UINT, stop_after),
	X(BOOL, stop_losers),
	FIELD_OF(struct engine_experiment, "limits", limits, &limit_fields),
	X(NAME_OR_NULL, profile),
	X(NAME_OR_NULL, net),
	X_NAMES(env),
	X_NAMES(pass_env),
	X_NAMES(ro),
	X_NAMES(within),
	X_NAMES(allow),
	X_NAMES(allow_missing),
	X(UINT, all_time_ms),
	X(UINT, all_mem),
	X(UINT, all_disk),
	X(UINT, spent_ms),
	X(UINT, keep),
	X(UINT, promote),
	X(NAME_OR_NULL, winner),
	X_NAMES(tie),
	X(NAME_OR_NULL, promoting),
	X(ID, receipt),
	X_NAMES(promoted),
	X(UINT, outcome),
	X(INT, pid),
	X(TEXT_OR_NULL, problem),
	X(TEXT_OR_NULL, verdict),
};
static const struct fields experiment_fields = FIELDS(struct engine_experiment, experiment_list);
#undef X
#undef X_NAMES

void engine_experiment_done(struct engine_experiment *x)
{
	fields_done(&experiment_fields, x);
	*x = (struct engine_experiment){ 0 };
}

/* --- places -------------------------------------------------------------------------------- */

void experiment_lock_done(struct experiment_lock *l)
{
	cleanup_close(&l->fd);
	l->fd = -1;
}

char *experiment_path(struct engine *e, const char *name)
{
	AUTO_FREE char *all = path_join(e->store_path, EXPERIMENTS_DIR);

	return all && name ? path_join(all, name) : TAKE_PTR(all);
}

static int no_such(const char *name, struct err *err)
{
	return err_set(err, -ENOENT, "there is no experiment '%.100s'", name);
}

/* A directory that holds no state was begun by a process that died at once. */
static int open_dir(struct engine *e, const char *name, int *ret, struct err *err)
{
	AUTO_FREE char *path = experiment_path(e, name);

	if (!path)
		return err_nomem(err);
	if (clone_check_name(name, NULL) < 0)
		return no_such(name, err);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret < 0 && errno == ENOENT)
		return no_such(name, err);
	return *ret < 0 ? err_sys(err, "opening '%s'", path) : 0;
}

static int lock(int fd, const char *name, struct err *err)
{
	/* A process that only looks has the lock for a moment. */
	for (int i = 0; i < LOOK_MS / 10; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			break;
		IGNORE_RESULT(usleep(10000), "then it is tried sooner");
	}
	if (errno == EWOULDBLOCK)
		return err_set(err, -EBUSY, "another process works on experiment '%s'", name);
	return err_sys(err, "locking experiment '%s'", name);
}

int experiment_take(struct engine *e, const char *name, struct experiment_lock *ret,
		    struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = open_dir(e, name, &fd, err);

	if (r < 0)
		return r;
	r = lock(fd, name, err);
	if (r < 0)
		return r;
	ret->fd = TAKE_FD(fd);
	return 0;
}

int experiment_create(struct engine *e, const char *name, struct experiment_lock *ret,
		      struct err *err)
{
	AUTO_FREE char *path = experiment_path(e, name);
	int r;

	if (!path)
		return err_nomem(err);
	r = path_make_dirs(path, 0700, err);
	if (r < 0)
		return r;
	r = experiment_take(e, name, ret, err);
	if (r < 0)
		return r == -EBUSY ? err_set(err, -EEXIST, "there is an experiment '%s'", name) : r;
	if (faccessat(ret->fd, STATE_FILE, F_OK, 0) == 0)
		return err_set(err, -EEXIST, "there is an experiment '%s'", name);
	return 0;
}

static int remove_name(const char *name, unsigned char type, void *ctx)
{
	(void)type;
	return unlinkat(*(const int *)ctx, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int experiment_forget(struct engine *e, const char *name, struct experiment_lock *l,
		      struct err *err)
{
	AUTO_FREE char *path = experiment_path(e, name);
	int r;

	if (!path)
		return err_nomem(err);
	/* A process that was killed may have left a file beside the state. */
	r = sys_each_name(l->fd, remove_name, &l->fd);
	if (r < 0)
		return err_set(err, r, "removing experiment '%s': %s", name, strerror(-r));
	if (rmdir(path) < 0)
		return err_sys(err, "removing experiment '%s'", name);
	return 0;
}

/* --- reading and writing ------------------------------------------------------------------- */

int experiment_save(const struct experiment_lock *l, const struct engine_experiment *x,
		    struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j = json_begin(&doc);
	int r;

	json_set_uint(j, "version", VERSION);
	fields_set(j, &experiment_fields, x);
	r = json_append(&doc, &text, err);
	if (r < 0)
		return r;
	r = fdio_replace_file(l->fd, STATE_FILE, text.data, text.len, 0600, err);
	return r < 0 ? err_wrap(err, r, "the state of experiment '%s'", x->name) : 0;
}

static int check_enums(const struct engine_experiment *x)
{
	bool ok = x->state <= ENGINE_EXPERIMENT_ENDED && x->score <= ENGINE_SCORE_SIZE &&
		  x->keep <= ENGINE_KEEP_NONE && x->promote <= ENGINE_PROMOTE_COMPATIBLE &&
		  x->outcome <= ENGINE_MOVED && x->owner != 0;

	for (size_t i = 0; i < x->n_arms && ok; i++)
		ok = x->arms[i].state <= ENGINE_ARM_LOST && x->arms[i].clone;
	return ok ? 0 : -EBADMSG;
}

static int read_state(int dir_fd, const char *name, struct engine_experiment *ret, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json j;
	int r = fdio_read_file(dir_fd, STATE_FILE, STATE_MAX, &text, err);

	if (r == -ENOENT)
		return no_such(name, err);
	if (r >= 0)
		r = json_parse(&doc, (const char *)text.data, text.len, &j, err);
	if (r >= 0 && json_get_uint(j, "version") > VERSION)
		return err_set(err, -EPROTO, "experiment '%s' is of a later version of snap", name);
	if (r >= 0)
		r = fields_read(j, &experiment_fields, &x, err);
	if (r >= 0)
		r = check_enums(&x);
	if (r < 0 && r != -ENOMEM)
		return err_set(err, -EBADMSG, "the state of experiment '%s' is damaged", name);
	if (r < 0)
		return r;
	*ret = x;
	x = (struct engine_experiment){ 0 };
	return 0;
}

int experiment_read(struct engine *e, const char *name, struct engine_experiment *ret,
		    struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = open_dir(e, name, &fd, err);

	return r < 0 ? r : read_state(fd, name, ret, err);
}

int experiment_read_taken(const struct experiment_lock *l, const char *name,
			  struct engine_experiment *ret, struct err *err)
{
	return read_state(l->fd, name, ret, err);
}

static int load(int fd, const char *name, struct engine_experiment *ret, struct err *err)
{
	int r = read_state(fd, name, ret, err);

	if (r < 0)
		return r;
	ret->alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
	if (!ret->alive)
		flock(fd, LOCK_UN);
	return 0;
}

int experiment_signal(struct engine *e, const struct engine_experiment *x, int sig, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = open_dir(e, x->name, &fd, err);

	if (r < 0)
		return r;
	r = sys_signal_holder((pid_t)x->pid, fd, sig);
	if (r == -ESRCH)
		return err_set(err, r,
			       "process %d, which works on it, is not to be found here: was "
			       "experiment '%s' started in a container?",
			       (int)x->pid, x->name);
	return r < 0 ? err_set(err, r, "experiment '%s' cannot be ended", x->name) : 0;
}

int engine_experiment_load(struct engine *e, const char *name, struct engine_experiment *ret,
			   struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = open_dir(e, name, &fd, err);

	return r < 0 ? r : load(fd, name, ret, err);
}

/* --- listing ------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct engine_experiment *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

static int list_one(struct engine *e, const char *name, const char *project,
		    struct engine_experiments *l)
{
	struct engine_experiment *x;
	struct err err = { 0 };
	int r;

	if (!VEC_ONE_MORE(l->list, l->n))
		return -ENOMEM;
	x = &l->list[l->n];
	*x = (struct engine_experiment){ 0 };
	r = engine_experiment_load(e, name, x, &err);
	if (r < 0 && r != -ENOENT)
		log_warn("%s, continuing", err.msg);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (project && strcmp(project, x->project) != 0)
		engine_experiment_done(x);
	else
		l->n++;
	return 0;
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

int engine_experiments(struct engine *e, bool all, struct engine_experiments *ret, struct err *err)
{
	CLEANUP(engine_experiments_done) struct engine_experiments l = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *path = experiment_path(e, NULL);
	CLEANUP(close_dir) DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *d;
	struct store *s;
	int r = 0;

	if (!path)
		return err_nomem(err);
	if (!all)
		r = engine_project(e, &s, &project, err);
	/* Without a store there are no experiments. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while (dir && r == 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			r = list_one(e, d->d_name, project.path, &l);
	if (r < 0)
		return err_nomem(err);
	if (l.n > 0)
		qsort(l.list, l.n, sizeof(*l.list), by_age);
	*ret = l;
	l = (struct engine_experiments){ 0 };
	return 0;
}
