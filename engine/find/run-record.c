#include "engine/find/run-record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/le.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/find/answers-i.h"
#include "engine/find/refusals-i.h"
#include "runner/sandbox.h"

#define VERSION    1
#define RECORD_MAX ((size_t)16 << 20) /* bytes; our records are always smaller */

static const char *const state_names[] = {
	[ENGINE_RUN_RUNNING] = "running",     [ENGINE_RUN_ENDED] = "ended",
	[ENGINE_RUN_REFUSED] = "refused",     [ENGINE_RUN_LOST] = "lost",
	[ENGINE_RUN_CANCELLED] = "cancelled",
};

const char *run_record_state_name(enum engine_run_state state)
{
	return state_names[state];
}

/* Old versions had a file per stream; those are removed with the rest. */
static const char *const endings[] = { ".out", ".err", ".log", ".json" };
enum { LOG = 2, RECORD };

struct name {
	char text[ENGINE_RUN_ID_SIZE + 8];
};

static struct name name_of(const char *id, int ending)
{
	struct name n;

	snprintf(n.text, sizeof(n.text), "%.12s%s", id, endings[ending]);
	return n;
}

/* --- as JSON ---------------------------------------------------------------------------- */

static void set_strings(struct json j, const char *key, const struct strlist *s)
{
	const struct json list = json_set_array(j, key);

	for (size_t i = 0; i < s->n; i++)
		json_add_name(list, s->list[i]);
}

static int get_strings(struct json j, const char *key, struct strlist *ret)
{
	const struct json list = json_get_array(j, key);
	const size_t n = json_length(list);

	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		char *text = json_at_name(list, i);

		/* json_end() reports what is no text. */
		r = text ? strlist_take(ret, text) : 0;
	}
	return r;
}

/* The lists of what was asked for, by their keys. */
static struct strlist *asked_list(struct engine_asked *a, size_t i, const char **ret_key)
{
	static const char *const keys[] = { "passed", "secrets", "set", "hide", "ro", "rw" };
	struct strlist *const lists[] = {
		&a->passed, &a->secrets, &a->set, &a->hide, &a->ro, &a->rw
	};

	if (i >= ARRAY_LEN(lists))
		return NULL;
	*ret_key = keys[i];
	return lists[i];
}

static void set_asked(struct json j, const struct engine_asked *asked)
{
	struct engine_asked a = *asked;
	const struct strlist *list;
	const char *key;

	json_set_bool(j, "scrubbed", a.scrubbed);
	for (size_t i = 0; (list = asked_list(&a, i, &key)); i++)
		set_strings(j, key, list);
}

static int get_asked(struct json j, struct engine_asked *a)
{
	struct strlist *list;
	const char *key;
	int r = 0;

	a->known = true;
	a->scrubbed = json_get_bool(j, "scrubbed");
	for (size_t i = 0; r >= 0 && (list = asked_list(a, i, &key)); i++)
		r = get_strings(j, key, list);
	return r;
}

static void set_limits(struct json j, const struct engine_run_limits *l)
{
	json_set_uint(j, "mem", l->mem);
	json_set_uint(j, "cpus_milli", l->cpus_milli);
	json_set_uint(j, "pids", l->pids);
	json_set_uint(j, "time_ms", l->time_ms);
	json_set_uint(j, "disk", l->disk);
	json_set_uint(j, "inodes", l->inodes);
	json_set_uint(j, "fsize", l->fsize);
	json_set_uint(j, "nofile", l->nofile);
	json_set_uint(j, "output", l->output);
	json_set_uint(j, "net_out", l->net_out);
}

static void get_limits(struct json j, struct engine_run_limits *l)
{
	l->mem = json_get_uint(j, "mem");
	l->cpus_milli = json_get_uint(j, "cpus_milli");
	l->pids = json_get_uint(j, "pids");
	l->time_ms = json_get_uint(j, "time_ms");
	l->disk = json_get_uint(j, "disk");
	if (json_has(j, "inodes")) /* older records lack this limit */
		l->inodes = json_get_uint(j, "inodes");
	l->fsize = json_get_uint(j, "fsize");
	l->nofile = json_get_uint(j, "nofile");
	l->output = json_get_uint(j, "output");
	if (json_has(j, "net_out")) /* the same */
		l->net_out = json_get_uint(j, "net_out");
}

static void set_published(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "published");

	for (size_t i = 0; i < r->n_published; i++) {
		const struct json one = json_add_object(list);

		json_set_uint(one, "port", r->published[i].port);
		json_set_uint(one, "host_port", r->published[i].host_port);
	}
}

/* Records of earlier versions have none of it. */
static void get_published(struct json j, struct engine_run *r)
{
	const struct json list =
	    json_has(j, "published") ? json_get_array(j, "published") : (struct json){ 0 };

	for (size_t i = 0; json_has(j, "published") && i < json_length(list) &&
			   r->n_published < ENGINE_PUBLISHED_MAX;
	     i++) {
		const struct json one = json_at_object(list, i);

		r->published[r->n_published++] = (struct engine_published){
			.port = (uint16_t)json_get_uint(one, "port"),
			.host_port = (uint16_t)json_get_uint(one, "host_port"),
		};
	}
}

static void set_artifacts(struct json j, const struct engine_run *r)
{
	const struct json list = json_set_array(j, "artifacts");

	for (size_t i = 0; i < r->n_artifacts; i++) {
		const struct json one = json_add_object(list);

		json_set_name(one, "path", r->artifacts[i].path);
		json_set_text(one, "artifact", r->artifacts[i].id);
		json_set_text(one, "problem", r->artifacts[i].problem);
	}
}

/* Records of earlier versions have none of it. */
static int get_artifacts(struct json j, struct engine_run *r)
{
	const struct json list =
	    json_has(j, "artifacts") ? json_get_array(j, "artifacts") : (struct json){ 0 };

	for (size_t i = 0; json_has(j, "artifacts") && i < json_length(list); i++) {
		const struct json one = json_at_object(list, i);
		const char *id = json_get_text(one, "artifact");
		const char *problem = json_get_text_or_null(one, "problem");
		struct engine_run_artifact *a;

		if (!VEC_ONE_MORE(r->artifacts, r->n_artifacts))
			return -ENOMEM;
		a = &r->artifacts[r->n_artifacts++];
		*a = (struct engine_run_artifact){ .path = json_get_name(one, "path"),
						   .problem = problem ? strdup(problem) : NULL };
		snprintf(a->id, sizeof(a->id), "%s", id ? id : "");
	}
	return 0;
}

static void set_result(struct json j, const struct engine_run *r)
{
	struct json walls;

	json_set_int(j, "exit_code", r->exit_code);
	json_set_int(j, "signal", r->signal);
	json_set_bool(j, "timed_out", r->timed_out);
	json_set_bool(j, "oom_killed", r->oom_killed);
	json_set_text(j, "limit", r->limit);
	walls = json_set_array(j, "walls");
	for (size_t i = 0; i < r->n_walls; i++)
		json_add_text(walls, r->walls[i]);
	json_set_int(j, "landlock", r->landlock);
	json_set_text(j, "cgroup", r->cgroup);
	walls = json_set_array(j, "missing");
	for (size_t i = 0; i < r->missing.n; i++) {
		struct json one = json_add_object(walls);

		json_set_text(one, "wall", r->missing.list[i].wall);
		json_set_name(one, "reason", r->missing.list[i].reason);
	}
	json_set_uint(j, "duration_ms", r->duration_ms);
	json_set_uint(j, "cpu_ms", r->cpu_ms);
	json_set_uint(j, "max_rss", r->max_rss);
	json_set_uint(j, "max_mem", r->max_mem);
	json_set_text(j, "problem", r->problem);
	refusals_set(j, &r->refusals);
	answers_set(j, &r->answers);
	json_set_uint(j, "net_sent", r->net_sent);
	set_artifacts(j, r);
	json_set_bool(j, "compared", r->compared);
	json_set_uint(j, "added", r->added);
	json_set_uint(j, "modified", r->modified);
	json_set_uint(j, "deleted", r->deleted);
	json_set_bool(j, "truncated", r->truncated);
	json_set_uint(j, "logged_out", r->logged[0]);
	json_set_uint(j, "logged_err", r->logged[1]);
	json_set_bool(j, "log_truncated", r->log_truncated);
}

static void get_walls(struct json j, struct engine_run *r)
{
	const struct json walls = json_get_array(j, "walls");

	for (size_t i = 0; i < json_length(walls) && r->n_walls < ENGINE_WALLS_MAX; i++) {
		AUTO_FREE char *name = json_at_name(walls, i);
		const int wall = name ? sandbox_wall_find(name) : -1;

		if (wall >= 0)
			r->walls[r->n_walls++] = sandbox_wall_name((enum sandbox_wall)wall);
	}
}

/* Older records have none of this. */
static void get_isolation(struct json j, struct engine_run *r)
{
	struct engine_missing *m = &r->missing;
	const char *cgroup;
	struct json list;

	if (!json_has(j, "missing"))
		return;
	cgroup = json_get_text(j, "cgroup");
	snprintf(r->cgroup, sizeof(r->cgroup), "%s", cgroup ? cgroup : "");
	r->landlock = (int)json_get_int(j, "landlock");
	list = json_get_array(j, "missing");
	for (size_t i = 0; i < json_length(list) && m->n < ARRAY_LEN(m->list); i++) {
		const struct json one = json_at_object(list, i);
		AUTO_FREE char *reason = json_get_name(one, "reason");
		const char *name = json_get_text(one, "wall");
		const int wall = name ? sandbox_wall_find(name) : -1;

		if (wall < 0)
			continue;
		m->list[m->n].wall = sandbox_wall_name((enum sandbox_wall)wall);
		snprintf(m->list[m->n++].reason, sizeof(m->list[0].reason), "%s",
			 reason ? reason : "");
	}
}

static int get_result(struct json j, struct engine_run *r)
{
	const char *problem = json_get_text_or_null(j, "problem");
	const char *limit = json_get_text(j, "limit");

	r->exit_code = (int)json_get_int(j, "exit_code");
	r->signal = (int)json_get_int(j, "signal");
	r->timed_out = json_get_bool(j, "timed_out");
	r->oom_killed = json_get_bool(j, "oom_killed");
	snprintf(r->limit, sizeof(r->limit), "%s", limit ? limit : "");
	get_walls(j, r);
	get_isolation(j, r);
	r->duration_ms = json_get_uint(j, "duration_ms");
	r->cpu_ms = json_get_uint(j, "cpu_ms");
	r->max_rss = json_get_uint(j, "max_rss");
	r->max_mem = json_get_uint(j, "max_mem");
	r->problem = problem ? strdup(problem) : NULL;
	r->compared = json_get_bool(j, "compared");
	r->added = json_get_uint(j, "added");
	r->modified = json_get_uint(j, "modified");
	r->deleted = json_get_uint(j, "deleted");
	r->truncated = json_get_bool(j, "truncated");
	r->logged[0] = json_get_uint(j, "logged_out");
	r->logged[1] = json_get_uint(j, "logged_err");
	r->log_truncated = json_get_bool(j, "log_truncated");
	if (json_has(j, "net_sent"))
		r->net_sent = json_get_uint(j, "net_sent");
	if (answers_get(j, &r->answers) < 0 || get_artifacts(j, r) < 0)
		return -ENOMEM;
	return refusals_get(j, &r->refusals);
}

static void set_record(struct json j, const struct engine_run *r)
{
	json_set_uint(j, "version", VERSION);
	json_set_text(j, "state", state_names[r->state]);
	json_set_name(j, "clone", r->clone);
	json_set_name(j, "project", r->project);
	json_set_name(j, "cwd", r->cwd);
	json_set_bool(j, "made", r->made);
	json_set_bool(j, "removed", r->removed);
	json_set_text(j, "before", r->before);
	json_set_text(j, "profile", r->profile);
	json_set_text(j, "net", r->net);
	set_published(j, r);
	set_strings(j, "argv", &r->argv);
	set_strings(j, "env", &r->env);
	if (r->asked.known)
		set_asked(json_set_object(j, "asked"), &r->asked);
	set_strings(j, "secret_for", &r->secret_for);
	set_strings(j, "tls_inspect", &r->tls_inspect);
	set_limits(json_set_object(j, "limits"), &r->limits);
	json_set_int(j, "pid", r->pid);
	json_set_bool(j, "detached", r->detached);
	json_set_int(j, "started", r->started);
	json_set_int(j, "ended", r->ended);
	set_result(json_set_object(j, "result"), r);
}

static int get_state(struct json j, struct engine_run *r)
{
	const char *text = json_get_text(j, "state");

	for (size_t i = 0; text && i < ARRAY_LEN(state_names); i++) {
		if (strcmp(text, state_names[i]) != 0)
			continue;
		r->state = (enum engine_run_state)i;
		return 0;
	}
	return -EPROTO;
}

static int get_record(struct json j, struct engine_run *r)
{
	const char *before = json_get_text(j, "before"), *net = json_get_text(j, "net");
	int x = json_get_uint(j, "version") == VERSION ? get_state(j, r) : -EPROTO;

	if (x < 0)
		return x;
	r->clone = json_get_name(j, "clone");
	r->project = json_get_name(j, "project");
	r->cwd = json_get_name(j, "cwd");
	r->made = json_get_bool(j, "made");
	r->removed = json_get_bool(j, "removed");
	snprintf(r->before, sizeof(r->before), "%s", before ? before : "");
	r->profile = json_has(j, "profile") ? json_get_name_or_null(j, "profile") : NULL;
	r->net = strdup(net ? net : "");
	get_published(j, r);
	r->pid = (pid_t)json_get_int(j, "pid");
	r->detached = json_has(j, "detached") && json_get_bool(j, "detached");
	r->started = json_get_int(j, "started");
	r->ended = json_get_int(j, "ended");
	get_limits(json_get_object(j, "limits"), &r->limits);
	x = get_result(json_get_object(j, "result"), r);
	if (x < 0)
		return x;
	x = get_strings(j, "argv", &r->argv);
	if (x < 0)
		return x;
	if (json_has(j, "secret_for")) /* else it is older than these */
		x = get_strings(j, "secret_for", &r->secret_for);
	if (x >= 0 && json_has(j, "tls_inspect"))
		x = get_strings(j, "tls_inspect", &r->tls_inspect);
	if (x >= 0 && json_has(j, "asked")) /* the same */
		x = get_asked(json_get_object(j, "asked"), &r->asked);
	return x < 0 ? x : get_strings(j, "env", &r->env);
}

/* --- writing ---------------------------------------------------------------------------- */

void run_record_done(struct run_record *r)
{
	cleanup_close(&r->log_fd);
	cleanup_close(&r->fd);
	cleanup_close(&r->dir_fd);
	*r = RUN_RECORD_INIT;
}

int run_record_pick(char id[ENGINE_RUN_ID_SIZE], struct err *err)
{
	unsigned char bytes[(ENGINE_RUN_ID_SIZE - 1) / 2];
	int r = sys_random(bytes, sizeof(bytes));

	if (r < 0)
		return err_set(err, r, "no random bytes for the id of a run");
	hex_encode(bytes, sizeof(bytes), id);
	return 0;
}

static int open_dir(const char *store, bool make, struct err *err)
{
	AUTO_FREE char *path = path_join(store, RUN_RECORD_DIR);
	int fd;

	if (!path)
		return err_nomem(err);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "making '%s'", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, "opening '%s'", path) : fd;
}

/* Append a line.  Only the last complete line counts, so a truncated one does no harm. */
static int put(const struct run_record *r, const struct engine_run *run, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int x;

	set_record(json_begin(&doc), run);
	x = json_append(&doc, &text, err);
	x = x < 0 ? x : fdio_write(r->fd, text.data, text.len);
	return x < 0 ? err_wrap(err, x, "keeping the record of run %s", run->id) : 0;
}

static int make(int dir_fd, const char *id, int ending)
{
	return openat(dir_fd, name_of(id, ending).text,
		      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

int run_record_begin(const char *store, const struct engine_run *run, struct run_record *ret,
		     struct err *err)
{
	CLEANUP(run_record_done) struct run_record r = RUN_RECORD_INIT;
	int x;

	r.dir_fd = open_dir(store, true, err);
	if (r.dir_fd < 0)
		return r.dir_fd;
	memcpy(r.id, run->id, sizeof(r.id));
	r.fd = make(r.dir_fd, r.id, RECORD);
	if (r.fd < 0)
		return err_sys(err, "making the record of run %s", run->id);
	if (flock(r.fd, LOCK_EX) < 0)
		return err_sys(err, "locking the record of run %s", run->id);
	x = put(&r, run, err);
	if (x < 0)
		return x;
	*ret = r;
	r = RUN_RECORD_INIT;
	return 0;
}

static int put_piece(struct run_record *r, int stream, const void *data, size_t n)
{
	unsigned char head[RUN_RECORD_HEAD] = { (unsigned char)stream };
	int x;

	le32_store(head + 1, (uint32_t)n);
	if (r->log_fd < 0)
		r->log_fd = make(r->dir_fd, r->id, LOG);
	x = r->log_fd < 0 ? -errno : fdio_write(r->log_fd, head, sizeof(head));
	return x < 0 ? x : fdio_write(r->log_fd, data, n);
}

void run_record_log(struct run_record *r, int stream, const void *data, size_t len)
{
	const uint64_t room = r->full ? 0 : RUN_RECORD_LOG_MAX - r->logged[stream];
	const size_t n = len < room ? len : (size_t)room;

	if (n < len)
		r->truncated = true;
	if (n == 0)
		return;
	/* A full disk must end only the log, not the run. */
	if (put_piece(r, stream, data, n) < 0) {
		log_warn("the output of the run cannot be kept any more, continuing");
		r->truncated = true;
		r->full = true;
		return;
	}
	r->logged[stream] += n;
}

int run_record_end(struct run_record *r, struct engine_run *run, struct err *err)
{
	memcpy(run->logged, r->logged, sizeof(run->logged));
	run->log_truncated = r->truncated;
	return put(r, run, err);
}

int run_record_amend(const char *store, const struct engine_run *run, struct err *err)
{
	CLEANUP(run_record_done) struct run_record r = RUN_RECORD_INIT;

	r.dir_fd = open_dir(store, false, err);
	if (r.dir_fd < 0)
		return r.dir_fd;
	r.fd = openat(r.dir_fd, name_of(run->id, RECORD).text,
		      O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (r.fd < 0 || flock(r.fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, "the record of run %s", run->id);
	return put(&r, run, err);
}

/* --- reading ---------------------------------------------------------------------------- */

static bool is_locked(int dir_fd, const char *id)
{
	AUTO_CLOSE int fd =
	    openat(dir_fd, name_of(id, RECORD).text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

char *run_record_path(const char *store, const char *id, const char *ending)
{
	char *path = NULL;

	return asprintf(&path, "%s/" RUN_RECORD_DIR "/%s%s", store, id, ending) < 0 ? NULL : path;
}

void run_record_settle(const char *store, const char *id)
{
	AUTO_FREE char *path = run_record_path(store, id, endings[RECORD]);
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

	while (fd >= 0 && flock(fd, LOCK_SH) < 0 && errno == EINTR)
		continue;
}

uint64_t run_record_number(const char *id)
{
	return strtoull(id, NULL, 16);
}

void run_record_id(uint64_t number, char ret[ENGINE_RUN_ID_SIZE])
{
	snprintf(ret, ENGINE_RUN_ID_SIZE, "%0*llx", ENGINE_RUN_ID_SIZE - 1,
		 (unsigned long long)number);
}

bool run_record_is_live(const char *store, const char *id)
{
	struct err ignored = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &ignored);

	return dir_fd >= 0 && is_locked(dir_fd, id);
}

/* The last complete line; all of a file without a line feed. */
static const char *last_line(const struct buf *text, size_t *ret_len)
{
	const char *data = (const char *)text->data;
	size_t end = text->len, begin;

	while (end > 0 && data[end - 1] != '\n')
		end--;
	if (end == 0) {
		*ret_len = text->len;
		return data;
	}
	begin = end - 1;
	while (begin > 0 && data[begin - 1] != '\n')
		begin--;
	*ret_len = end - 1 - begin;
	return data + begin;
}

static int parse_record(const struct buf *text, struct engine_run *run)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err ignored = { 0 };
	const char *line;
	struct json j;
	size_t len;
	int r;

	line = last_line(text, &len);
	r = json_parse(&doc, line, len, &j, &ignored);
	if (r < 0)
		return r;
	r = get_record(j, run);
	return r < 0 ? r : json_end(&doc, &ignored);
}

int run_record_read(const char *store, const char *id, struct engine_run *ret, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_CLOSE int dir_fd = open_dir(store, false, err);
	bool live;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	/* Before reading: a run that ends in between has then ended, and is not lost. */
	live = is_locked(dir_fd, id);
	r = fdio_read_file(dir_fd, name_of(id, RECORD).text, RECORD_MAX, &text, err);
	if (r < 0)
		return r;
	if (text.len == 0)
		return -ENOENT; /* it is just beginning, or never began */
	snprintf(run.id, sizeof(run.id), "%s", id);
	if (parse_record(&text, &run) < 0)
		return err_set(err, -EBADMSG, "the record of run %s cannot be read", id);
	if (run.state == ENGINE_RUN_RUNNING && !live) {
		run.state = ENGINE_RUN_LOST;
		run.problem = strdup("the process that ran it was killed or the machine stopped, "
				     "and the run ended with it");
	}
	*ret = run;
	run = (struct engine_run){ 0 };
	return 0;
}

struct walk {
	run_record_fn fn;
	void *ctx;
};

static int visit(const char *name, unsigned char type, void *ctx)
{
	const size_t len = ENGINE_RUN_ID_SIZE - 1;
	struct walk *w = ctx;
	char id[ENGINE_RUN_ID_SIZE];

	(void)type;
	if (strlen(name) != len + strlen(endings[RECORD]) ||
	    strcmp(name + len, endings[RECORD]) != 0 || strspn(name, "0123456789abcdef") != len)
		return 0;
	memcpy(id, name, len);
	id[len] = '\0';
	return w->fn(id, w->ctx);
}

int run_record_each(const char *store, run_record_fn fn, void *ctx, struct err *err)
{
	struct err why = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &why);
	struct walk w = { fn, ctx };
	int r;

	if (dir_fd == -ENOENT)
		return 0;
	if (dir_fd < 0)
		return err_set(err, dir_fd, "%s", why.msg);
	r = sys_each_name(dir_fd, visit, &w);
	return r < 0 ? err_wrap(err, r, "reading '%s/" RUN_RECORD_DIR "'", store) : r;
}

void run_record_remove(const char *store, const char *id)
{
	struct err ignored = { 0 };
	AUTO_CLOSE int dir_fd = open_dir(store, false, &ignored);

	/* The record goes last, so that an interrupted removal can be repeated. */
	for (int i = 0; dir_fd >= 0 && i <= RECORD; i++)
		unlinkat(dir_fd, name_of(id, i).text, 0);
}
