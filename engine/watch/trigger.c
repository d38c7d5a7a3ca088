#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "engine/api/upkeep.h"
#include "engine/find/gitdir-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

#define LOOK_NS   (INT64_C(60) * NS_PER_S) /* how often limits are looked at */
#define LOG_PIECE ((size_t)1 << 20)        /* bytes of a log that are read at a time */
#define LOG_MAX   (64 * LOG_PIECE)         /* and in one look */
#define LINE_SHOW 400
#define REF_MAX   ((size_t)4 << 20)

/* One firing more of a rule whose triggers have no name of their own. */
static int fire_next(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		     const char *detail, struct err *err)
{
	char key[ENGINE_ID_SIZE + 32], id[ENGINE_ID_SIZE];
	int r;

	c->since++;
	snprintf(key, sizeof(key), "%s %" PRId64, c->epoch, c->since);
	r = firing_make(
	    e, rule,
	    &(struct firing_cause){ .trigger = rule->trigger, .key = key, .detail = detail }, id,
	    err);
	return r < 0 ? r : 1;
}

/* --- schedules ----------------------------------------------------------------------------- */

/* However often it was due while nobody looked, it fires once. */
static int look_schedule(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
			 bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
			 struct err *err)
{
	char key[32], id[ENGINE_ID_SIZE];
	int64_t due;
	int r = 0;

	if (!c->known) {
		c->known = true;
		c->since = now;
		r = 1;
	}
	if (calendar_next(&rule->calendar, c->since / NS_PER_S, &due) < 0)
		return r;
	if (due * NS_PER_S <= now) {
		snprintf(key, sizeof(key), "%" PRId64, due);
		r = firing_make(e, rule,
				&(struct firing_cause){ .trigger = rule->trigger, .key = key }, id,
				err);
		if (r < 0)
			return r;
		c->since = now;
		r = 1;
		if (calendar_next(&rule->calendar, now / NS_PER_S, &due) < 0)
			return r;
	}
	*ret_next = due * NS_PER_S;
	return r;
}

/* --- files --------------------------------------------------------------------------------- */

static int look_files(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		      bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		      struct err *err)
{
	CLEANUP(strlist_done) struct strlist paths = { 0 };
	char key[2 * ENGINE_ID_SIZE], id[ENGINE_ID_SIZE];
	const struct watch_cursor was = *c;
	uint64_t more = 0;
	int r;

	if (!dirty && c->known)
		return 0;
	r = files_look(e, rule, c, view, &paths, &more, err);
	if (r < 0)
		return r;
	if (paths.n > 0) {
		snprintf(key, sizeof(key), "%s-%s", was.seen, c->seen);
		r = firing_make(e, rule,
				&(struct firing_cause){ .trigger = rule->trigger,
							.key = key,
							.from = c->seen,
							.paths = &paths,
							.more_paths = more },
				id, err);
	}
	/* What is not written down is looked at again. */
	if (r < 0) {
		*c = was;
		return r;
	}
	return strcmp(was.seen, c->seen) != 0;
}

/* --- refs ---------------------------------------------------------------------------------- */

static int packed_value(const char *dir, const char *ref, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = path_join(dir, "packed-refs");
	char *line, *rest = NULL;
	int r = path ? fdio_read_file(AT_FDCWD, path, REF_MAX, &text, err) : err_nomem(err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	line = buf_str(&text) ? strtok_r((char *)text.data, "\n", &rest) : NULL;
	for (; line; line = strtok_r(NULL, "\n", &rest)) {
		char *name = strchr(line, ' ');

		if (!name || strcmp(name + 1, ref) != 0)
			continue;
		*name = '\0';
		*ret = strdup(line);
		return *ret ? 0 : err_nomem(err);
	}
	return 0;
}

/* The commit that a ref names, owned; NULL: there is no such ref. */
static int ref_value(struct engine *e, const struct engine_rule *rule, char **ret, struct err *err)
{
	CLEANUP(gitdir_done) struct gitdir git = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *plain = path_join(rule->project, ".git");
	AUTO_FREE char *path = NULL;
	const char *dir;
	int r = plain ? gitdir_find(e, rule->project, &git, err) : err_nomem(err);

	if (r < 0)
		return r;
	dir = r > 0 ? git.common : plain;
	path = path_join(dir, rule->ref);
	r = path ? fdio_read_file(AT_FDCWD, path, 256, &text, err) : err_nomem(err);
	if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR)
		return packed_value(dir, rule->ref, ret, err);
	if (r < 0)
		return r;
	*ret =
	    strndup((const char *)text.data, strcspn(buf_str(&text) ? buf_str(&text) : "", "\n"));
	return *ret ? 0 : err_nomem(err);
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* 1: an action of ours put it there, or took it back from there: what it did must not make it do more. */
static int is_own_commit(struct engine *e, const char *commit, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	int r = engine_changes(e, true, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct engine_change *c = &all.list[i];

		if (strncmp(c->who, "watch:", 6) != 0)
			continue;
		if (strcmp(c->landing_commit, commit) == 0)
			return 1;
		for (size_t k = 0; k < c->n_passed; k++)
			if (strcmp(c->passed[k].commit, commit) == 0 ||
			    strcmp(c->passed[k].undo_commit, commit) == 0)
				return 1;
	}
	return r;
}

static int look_ref(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		    bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		    struct err *err)
{
	AUTO_FREE char *value = NULL, *detail = NULL;
	int r;

	if (!dirty && c->known && now < c->checked + LOOK_NS) {
		*ret_next = c->checked + LOOK_NS;
		return 0;
	}
	r = ref_value(e, rule, &value, err);
	if (r < 0)
		return r;
	c->checked = now;
	*ret_next = now + LOOK_NS;
	if (c->known && is_same(value, c->value))
		return 0;
	if (asprintf(&detail, "%s %s %s", rule->ref, c->value ? c->value : "-",
		     value ? value : "-") < 0)
		return err_nomem(err);
	r = c->known && value ? is_own_commit(e, value, err) : 0;
	if (r < 0)
		return r;
	r = c->known && r == 0 ? fire_next(e, rule, c, detail, err) : 1;
	if (r < 0)
		return r;
	free(c->value);
	c->value = TAKE_PTR(value);
	c->known = true;
	return 1;
}

/* --- logs ---------------------------------------------------------------------------------- */

static int match_line(const regex_t *re, const char *text, size_t len, char **ret, struct err *err)
{
	AUTO_FREE char *line = strndup(text, len);

	if (!line)
		return err_nomem(err);
	return regexec(re, line, 0, NULL, 0) == 0 ? text_set(ret, err, "%.*s", LINE_SHOW, line) : 0;
}

/*
 * The last line that matches in what was added, owned; *used: bytes of whole lines.  Of a line that
 * fills a whole piece, that piece counts as the line.
 */
static int find_line(const struct engine_rule *rule, const char *text, size_t len, char **ret,
		     size_t *used, struct err *err)
{
	regex_t re;
	int r = 0;

	if (regcomp(&re, rule->match, REG_EXTENDED | REG_NOSUB) != 0)
		return err_set(err, -EINVAL, "'%s' is no regular expression", rule->match);
	for (const char *end; r >= 0 && (end = memchr(text + *used, '\n', len - *used));) {
		r = match_line(&re, text + *used, (size_t)(end - text) - *used, ret, err);
		*used = (size_t)(end - text) + 1;
	}
	if (r >= 0 && *used == 0 && len == LOG_PIECE) {
		r = match_line(&re, text, len, ret, err);
		*used = len;
	}
	regfree(&re);
	return r;
}

/* *ret: open at what was added, from c->offset to *ret_size; -1: there is no such file. */
static int open_log(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		    int *ret, uint64_t *ret_size, bool *ret_moved, struct err *err)
{
	AUTO_CLOSE int fd = open(rule->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	/* All that it holds once it is there is new, though it may get the number of one that was. */
	if (fd < 0 && errno == ENOENT) {
		*ret_moved = !c->known || c->inode != 0;
		c->known = true;
		c->inode = c->offset = 0;
		return 0;
	}
	if (fd < 0)
		return err_sys(err, "opening '%s'", rule->file);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "'%s' is no file of lines", rule->file);
	/* Another file, or one that was emptied, is read from its start; the first is read from its end. */
	if (!c->known || c->inode != st.st_ino || c->offset > (uint64_t)st.st_size) {
		c->offset = c->known ? 0 : (uint64_t)st.st_size;
		c->inode = st.st_ino;
		c->since++;
		c->known = *ret_moved = true;
	}
	if ((uint64_t)st.st_size - c->offset > LOG_MAX) {
		engine_warn(e, "rule '%s': '%s' became so long that only the end of it is read",
			    rule->name, rule->file);
		c->offset = (uint64_t)st.st_size - LOG_MAX;
	}
	*ret_size = (uint64_t)st.st_size;
	*ret = TAKE_FD(fd);
	return 0;
}

/* Is that within a line of which a piece was matched already? */
static bool is_within_line(int fd, char *piece, uint64_t at)
{
	return at >= LOG_PIECE &&
	       fdio_pread(fd, piece, LOG_PIECE, (off_t)(at - LOG_PIECE)) == (ssize_t)LOG_PIECE &&
	       !memchr(piece, '\n', LOG_PIECE);
}

static size_t rest_of_line(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);

	return end ? (size_t)(end - text) + 1 : len;
}

/* The last line that matches, owned, or as it was; *at moves behind the last whole line. */
static int find_last_line(const struct engine_rule *rule, int fd, uint64_t *at, uint64_t size,
			  char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	size_t used = 1;
	int r = 0;

	if (buf_reserve(&text, LOG_PIECE) < 0)
		return err_nomem(err);
	for (; r >= 0 && used > 0 && *at < size; *at += used) {
		const bool within = is_within_line(fd, (char *)text.data, *at);
		const ssize_t n = fdio_pread(fd, text.data, LOG_PIECE, (off_t)*at);

		if (n < 0)
			return err_set(err, (int)n, "reading '%s': %s", rule->file,
				       strerror((int)-n));
		used = within ? rest_of_line((const char *)text.data, (size_t)n) : 0;
		if (!within)
			r = find_line(rule, (const char *)text.data, (size_t)n, ret, &used, err);
	}
	return r;
}

static int look_log(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		    bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		    struct err *err)
{
	AUTO_FREE char *line = NULL;
	AUTO_CLOSE int fd = -1;
	char key[ENGINE_ID_SIZE + 96], id[ENGINE_ID_SIZE];
	bool moved = false;
	uint64_t size = 0, at;
	int r;

	if (!dirty && c->known)
		return 0;
	r = open_log(e, rule, c, &fd, &size, &moved, err);
	at = c->offset;
	if (r >= 0 && fd >= 0)
		r = find_last_line(rule, fd, &at, size, &line, err);
	if (r < 0)
		return r;
	/* A file that was emptied has its lines at the same places again. */
	snprintf(key, sizeof(key), "%s %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64, c->epoch,
		 c->since, c->inode, c->offset, at - c->offset);
	if (line)
		r = firing_make(
		    e, rule,
		    &(struct firing_cause){ .trigger = rule->trigger, .key = key, .detail = line },
		    id, err);
	if (r < 0)
		return r;
	moved |= at > c->offset;
	c->offset = at;
	return moved;
}

/* --- limits -------------------------------------------------------------------------------- */

static int is_over(struct engine *e, const struct engine_rule *rule, bool *ret, struct err *err)
{
	CLEANUP(engine_stats_done) struct engine_stats stats = { 0 };
	struct statvfs vfs;
	int r;

	if (rule->trigger == ENGINE_TRIGGER_DISK) {
		if (statvfs(rule->project, &vfs) < 0)
			return err_sys(err, "looking at '%s'", rule->project);
		*ret = (uint64_t)vfs.f_bavail * vfs.f_frsize < rule->limit;
		return 0;
	}
	r = engine_stats(e, &stats, err);
	*ret = r >= 0 && stats.disk > rule->limit;
	return r == -ENOENT ? 0 : r;
}

static int look_limit(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		      bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		      struct err *err)
{
	bool over = false;
	int r;

	if (c->known && now < c->checked + LOOK_NS) {
		*ret_next = c->checked + LOOK_NS;
		return 0;
	}
	r = is_over(e, rule, &over, err);
	if (r >= 0 && over && !c->failing)
		r = fire_next(e, rule, c, NULL, err);
	if (r < 0)
		return r;
	r = !c->known || over != c->failing;
	c->checked = now;
	c->failing = over;
	c->known = true;
	*ret_next = now + LOOK_NS;
	return r;
}

/* --- all of them --------------------------------------------------------------------------- */

typedef int (*look_fn)(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		       bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		       struct err *err);

int trigger_look(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		 bool dirty, int64_t now, struct files_view *view, int64_t *ret_next,
		 struct err *err)
{
	static const look_fn looks[] = {
		[ENGINE_TRIGGER_SCHEDULE] = look_schedule, [ENGINE_TRIGGER_FILES] = look_files,
		[ENGINE_TRIGGER_REF] = look_ref,           [ENGINE_TRIGGER_LOG] = look_log,
		[ENGINE_TRIGGER_DISK] = look_limit,        [ENGINE_TRIGGER_STORE] = look_limit,
	};

	*ret_next = 0;
	if (rule->off || rule->trigger >= ARRAY_LEN(looks) || !looks[rule->trigger])
		return 0;
	return looks[rule->trigger](e, rule, c, dirty, now, view, ret_next, err);
}

int trigger_probe(struct engine *e, const struct engine_rule *rule, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const char *const argv[] = { "/bin/sh", "-c", rule->probe, NULL };
	struct engine_run_options options = {
		.argv = argv,
		.profile = rule->profile,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	int r = pipeline_engine(e, rule->project, &there, err);

	engine_run_limits_init(&options.limits);
	options.limits.time_ms = rule->budget.wall_ms;
	if (r >= 0)
		r = engine_run(there, &options, &run, err);
	return r < 0 ? r : run.exit_code != 0;
}

int trigger_probed(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
		   bool failed, struct err *err)
{
	int r = 0;

	/* It begins to fail: one that never passed has nothing to begin. */
	if (failed && !c->failing && c->known)
		r = fire_next(e, rule, c, rule->probe, err);
	/* What is not written down begins to fail once more. */
	if (r < 0)
		return r;
	c->failing = failed;
	c->known = true;
	return 0;
}
