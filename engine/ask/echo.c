#include "engine/ask/echo-i.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sys.h"
#include "engine/ask/watchers-i.h"

#define FEW 200 /* names: as fast to echo as to find out whether anybody watches */

struct echo_maker {
	int top;       /* owned; the mount, or -1 */
	uint64_t done; /* names */
	uint64_t failed;
};

static void echo_maker_done(struct echo_maker *m)
{
	cleanup_close(&m->top);
}

/* To inotify, a new modification time alone is a modification, like a write. */
static void touch(int fd, bool is_file)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 0 } };

	if (is_file)
		IGNORE_RESULT(futimens(fd, times), "watchers have seen that it was made");
}

static bool make_name(int top, const struct echo_path *n)
{
	AUTO_CLOSE int fd = -1;

	if (n->is == ECHO_DIR)
		return mkdirat(top, n->path, 0700) == 0;
	fd = openat(top, n->path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		touch(fd, n->is == ECHO_FILE);
	return fd >= 0;
}

/* As git does when it checks out another version of a file. */
static bool echo_name(int top, const struct echo_path *n)
{
	bool ok = true;

	if (n->was != ECHO_NONE)
		ok = unlinkat(top, n->path, n->was == ECHO_DIR ? AT_REMOVEDIR : 0) == 0;
	if (n->is != ECHO_NONE)
		ok &= make_name(top, n);
	return ok;
}

/* Unless cowfsd knows that we echo, we would remove real files. */
static bool greet(struct echo_maker *m, const struct echo_page *page)
{
	struct stat st;

	if (m->top >= 0)
		return true;
	if (!page->path || !page->token)
		return false;
	m->top =
	    sys_open_node(AT_FDCWD, page->path); /* a real open would be reported to watchers */
	if (m->top >= 0 && fstatat(m->top, page->token, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	log_debug("no echoes in '%s': %s", page->path, strerror(errno));
	cleanup_close(&m->top);
	return false;
}

static int ask_page(struct engine *e, struct control *c, uint64_t from, struct echo_page *ret,
		    struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_ECHO);
	json_set_uint(a.options, "from", from);
	r = ask_again(&a, e, c, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_echo_page, ret, err);
}

/* All there is to do, if nobody watches: asking beyond the end ends the echo. */
static bool skip_all(struct echo_maker *m, uint64_t total)
{
	if (m->done > 0 || total <= FEW || watchers_possible(m->top))
		return false;
	log_debug("nobody watches files here: %llu names are not echoed",
		  (unsigned long long)total);
	m->done = total;
	return true;
}

void echo_perform(struct engine *e, struct control *c, struct json answer)
{
	CLEANUP(echo_maker_done) struct echo_maker m = { .top = -1 };
	const uint64_t total = json_has(answer, "echo") ? json_get_uint(answer, "echo") : 0;
	uint64_t left = total;
	struct err err = { 0 };
	int r = 0;

	/* The last question asks beyond the end, which ends the echo. */
	while (left > 0 && r >= 0) {
		CLEANUP(echo_page_done) struct echo_page page = { 0 };

		r = ask_page(e, c, m.done, &page, &err);
		left = r < 0 ? 0 : page.n_names;
		if (left > 0 && !greet(&m, &page))
			break;
		if (left > 0 && skip_all(&m, total))
			continue;
		for (size_t i = 0; i < page.n_names; i++)
			m.failed += !echo_name(m.top, &page.names[i]);
		m.done += page.n_names;
	}
	if (r < 0)
		log_debug("programs that watch files are not told: %s", err.msg);
	else if (m.failed > 0)
		log_debug("%llu of %llu names were not echoed", (unsigned long long)m.failed,
			  (unsigned long long)m.done);
}
