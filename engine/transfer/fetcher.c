/*
 * The process that fetches the promised bytes of a lazy fetch. cowfsd says which
 * (engine/host/supply-i.h): one connection is for frames that a reader waits for, the others fetch
 * the rest. It ends with the fetch, or when cowfsd has been gone for a while; every command looks
 * whether one is missing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/spread.h"
#include "base/sys.h"
#include "engine/ask/ask-i.h"
#include "engine/ask/detach-i.h"
#include "engine/transfer/lazy-i.h"
#include "remote/pack/pack.h"

#define MOST      ((uint64_t)4 << 20) /* bytes at once that nobody waits for */
#define MOST_ONE  ((uint64_t)1 << 20) /* the same over a single connection */
#define GONE_MS   15000
#define STEP_MS   100
#define LOCK_MS   5000
#define PAUSE_MIN 100
#define PAUSE_MAX 3000 /* between two attempts at what fails */

struct fetcher {
	struct engine *e;
	struct lazy_dir dir;
	struct lazy_source source;
	struct connections lines;
	uint64_t number; /* no other process of this fetch has it */
	atomic_bool over;
	atomic_bool ended; /* the fetch, or the command that began it died */
};

static void sleep_ms(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* --- one connection ----------------------------------------------------------------------- */

struct member {
	struct fetcher *f;
	unsigned number;
	struct spread thread;
	bool started;
	struct control control;
	struct engine_supply_options options;
	char *why;         /* owned */
	unsigned pause;    /* ms, after what failed */
	uint64_t heard_ms; /* cowfsd, last */
};

static int ask_once(struct member *m, struct engine_supply *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, m->f->e, VERB_SUPPLY);
	fields_set(a.options, &wire_supply_options, &m->options);
	r = m->control.fd < 0
		? ask_keeping(&a, m->f->e, ASK_RUNNING, NULL, &m->control, &answer, err)
		: ask_again(&a, m->f->e, &m->control, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_supply, ret, err);
}

/* cowfsd may end and start again; the next one learns what was brought meanwhile. */
static int ask_supply(struct member *m, struct engine_supply *ret)
{
	while (!m->f->over) {
		struct err err = { 0 };

		if (ask_once(m, ret, &err) >= 0) {
			m->heard_ms = engine_clock_ms();
			if (ret->over)
				m->f->over = true;
			if (ret->ended)
				m->f->ended = true;
			return 0;
		}
		control_done(&m->control);
		m->control = CONTROL_INIT;
		if (engine_clock_ms() - m->heard_ms > GONE_MS || access(m->f->dir.path, F_OK) < 0) {
			log_info("cowfsd is gone: %s", err.msg);
			m->f->over = true;
		}
		sleep_ms(STEP_MS);
	}
	return -ESHUTDOWN;
}

/* cowfsd learns of a failure at once; the next attempt comes after a while. */
static void report_failure(struct member *m, const struct err *err)
{
	struct engine_supply unused = { 0 };

	log_warn("%s", err->msg);
	free(m->why);
	m->why = strdup(err->msg);
	m->options.why = m->why ? m->why : "it failed";
	m->options.idle = true;
	IGNORE_RESULT(ask_supply(m, &unused), "then all is over");
	m->options.idle = false;
	m->options.why = NULL;
	m->options.done = (struct engine_range){ 0 };
	m->pause = m->pause == 0 ? PAUSE_MIN : m->pause * 2 > PAUSE_MAX ? PAUSE_MAX : m->pause * 2;
	for (unsigned ms = 0; ms < m->pause && !m->f->over; ms += STEP_MS)
		sleep_ms(STEP_MS);
}

static void bring(struct member *m, const struct engine_range *range)
{
	struct err err = { 0 };
	struct depot *d;
	int r = connections_get(&m->f->lines, m->number, &d, &err);

	r = r < 0 ? r : lazy_bring_range(&m->f->dir, d, range, NULL, &err);
	m->options.done = *range;
	if (r < 0)
		report_failure(m, &err);
	else
		m->pause = 0;
}

static void *work(void *arg)
{
	struct member *m = arg;

	while (!m->f->over) {
		struct engine_supply got = { 0 };

		if (ask_supply(m, &got) < 0)
			break;
		m->options.done = (struct engine_range){ 0 };
		m->options.first = false;
		if (!got.over && got.range.pack[0])
			bring(m, &got.range);
	}
	return NULL;
}

/* --- the process -------------------------------------------------------------------------- */

/* What frames have come before this process is known; who brought some and died has told nobody. */
static int say_first(struct member *m)
{
	struct engine_supply got = { 0 };
	int r;

	m->options.first = m->options.idle = true;
	r = ask_supply(m, &got);
	m->options.first = m->options.idle = false;
	return r;
}

static void work_all(struct fetcher *f)
{
	struct member list[CREW_MAX];

	for (unsigned i = 0; i < f->lines.n; i++) {
		list[i] = (struct member){
			.f = f, .number = i, .control = CONTROL_INIT, .heard_ms = engine_clock_ms()
		};
		list[i].options.process = f->number;
		snprintf(list[i].options.id, sizeof(list[i].options.id), "%s", f->dir.id);
		list[i].options.wanted_only = i == 0 && f->lines.n > 1;
		list[i].options.most = f->lines.n > 1 ? MOST : MOST_ONE;
	}
	if (say_first(&list[0]) == 0)
		for (unsigned i = 1; i < f->lines.n; i++)
			list[i].started = spread_start(&list[i].thread, 0, work, &list[i]) == 0;
	if (f->lines.n > 1 && !list[1].started)
		list[0].options.wanted_only = false;
	work(&list[0]);
	for (unsigned i = 0; i < f->lines.n; i++) {
		if (list[i].started)
			spread_join(&list[i].thread);
		control_done(&list[i].control);
		free(list[i].why);
	}
}

/* Is the index there, and whole?  One of just before a power loss may be empty. */
static bool has_index(const struct fetcher *f, const char *name, const struct digest *digest)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct err ignored = { 0 };
	struct digest have;

	if (fdio_read_file(f->dir.fd, name, PACK_INDEX_MAX, &index, &ignored) < 0)
		return false;
	have = digest_of(index.data, index.len);
	return digest_equal(&have, digest);
}

/* Indexes are there, unless somebody removed STORE/remote. */
static int bring_index(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct fetcher *f = ctx;
	const struct manifest_pack *p = &f->source.packs[i];
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	char hex[SHA256_HEX_SIZE], name[PACK_NAME_SIZE];
	struct depot *d;
	int r;

	pack_file_name(hex_encode(p->pack.digest.b, SHA256_SIZE, hex), "index", name);
	if (has_index(f, name, &p->index.digest))
		return 0;
	r = connections_get(&f->lines, member, &d, err);
	return r < 0 ? r : lazy_bring_index(&f->dir, d, p, NULL, &index, err);
}

static int bring_indexes(struct fetcher *f)
{
	unsigned pause = PAUSE_MIN;

	for (;;) {
		struct err err = { 0 };

		if (crew_each(1, f->source.n, bring_index, f, &err) == 0)
			return 0;
		log_warn("%s", err.msg);
		if (access(f->dir.path, F_OK) < 0)
			return -ENOENT;
		sleep_ms(pause);
		pause = pause * 2 > PAUSE_MAX ? PAUSE_MAX : pause * 2;
	}
}

/* The command that started us may still have the lock, for a moment. */
static int take_lock(struct fetcher *f, struct err *err)
{
	int r = lazy_dir_lock(&f->dir, err);

	for (unsigned ms = 0; r == -EBUSY && ms < LOCK_MS; ms += STEP_MS) {
		sleep_ms(STEP_MS);
		r = lazy_dir_lock(&f->dir, err);
	}
	return r;
}

static int run(struct fetcher *f, const char *id, struct err *err)
{
	int r = lazy_dir_open(f->e, id, false, &f->dir, err);

	r = r < 0 ? r : take_lock(f, err);
	if (r < 0)
		return r;
	r = lazy_source_read(&f->dir, &f->source, err);
	/* The fetch ended while we were starting: only our own lock and log are left in its directory. */
	if (r == -ENOENT)
		lazy_dir_remove(&f->dir);
	if (r < 0)
		return r;
	r = connections_open(f->e, &f->lines, f->source.url, f->source.rate, f->source.jobs, err);
	if (r < 0)
		return r;
	f->number = (uint64_t)engine_now() | 1;
	if (bring_indexes(f) == 0)
		work_all(f);
	/* cowfsd removed it, too, while we may have been writing. */
	if (f->ended)
		lazy_dir_remove(&f->dir);
	return 0;
}

int fetcher_main(int argc, char **argv)
{
	struct fetcher f = { .dir = LAZY_DIR_INIT };
	struct engine_options options = { .dir = "/" };
	struct err err = { 0 };
	int r;

	if (argc < 3) {
		log_error("the process that fetches is started by the commands that need it");
		return 2;
	}
	sys_name_process(FETCHER_NAME);
	log_set_stamps(true);
	signal(SIGPIPE, SIG_IGN);
	options.store = argv[1];
	r = engine_open(&options, &f.e, &err);
	r = r < 0 ? r : run(&f, argv[2], &err);
	if (r < 0 && r != -EBUSY && r != -ENOENT)
		log_warn("%s", err.msg);
	connections_done(&f.lines);
	lazy_source_done(&f.source);
	lazy_dir_done(&f.dir);
	engine_close(f.e);
	return r < 0;
}

/* --- starting ----------------------------------------------------------------------------- */

struct starting {
	const char *self;
	char *const *argv;
	const char *log;
};

NORETURN static void become(void *ctx)
{
	const struct starting *s = ctx;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int log = open(s->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(log < 0 ? null : log, STDERR_FILENO) < 0 || chdir("/") < 0)
		_exit(1);
	sys_close_from(STDERR_FILENO + 1);
	execv(s->self, s->argv);
	_exit(1);
}

int fetcher_start(struct engine *e, const struct lazy_dir *d, struct err *err)
{
	char path[PATH_MAX], name[] = FETCHER_NAME, id[ENGINE_ID_SIZE];
	AUTO_FREE char *log = path_join(d->path, LAZY_LOG), *store = strdup(e->store_path);
	char *argv[] = { name, store, id, NULL };
	struct starting s = { .self = sys_self_path(path, sizeof(path)), .argv = argv, .log = log };

	if (!log || !store)
		return err_nomem(err);
	if (!s.self)
		return err_set(err, -ENOTSUP,
			       "cannot start the process that fetches: this program does not find "
			       "its own file (is /proc mounted?)");
	memcpy(id, d->id, sizeof(id));
	return detach_process(e, "the fetch", become, &s, err);
}

/* If nobody works there. */
static void resume(struct engine *e, const char *id)
{
	CLEANUP(lazy_dir_done) struct lazy_dir d = LAZY_DIR_INIT;
	struct err err = { 0 };
	struct stat st;

	if (lazy_dir_open(e, id, false, &d, &err) < 0 ||
	    fstatat(d.fd, ENGINE_LAZY_SOURCE, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    lazy_dir_lock(&d, &err) < 0)
		return;
	cleanup_close(&d.lock);
	if (fetcher_start(e, &d, &err) < 0)
		engine_warn(e, "%s", err.msg);
}

void engine_fetch_resume(struct engine *e)
{
	AUTO_FREE char *all = path_join(e->store_path, ENGINE_LAZY_DIR);
	DIR *dir = all ? opendir(all) : NULL;
	const struct dirent *one;

	while (dir && (one = readdir(dir)))
		if (strlen(one->d_name) == ENGINE_ID_SIZE - 1)
			resume(e, one->d_name);
	if (dir)
		closedir(dir);
}
