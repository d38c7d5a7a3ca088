#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/api/receipts.h"
#include "engine/pipeline/pipeline-i.h"

#define HEALTH_MS 60000 /* that one command may take */

extern char **environ;

/* --- health -------------------------------------------------------------------------------- */

static int spawn(const char *command, const char *dir, pid_t *ret)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	AUTO_FREE char *line = strdup(command);
	char *const argv[] = { shell, option, line, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc;

	if (!line)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	posix_spawn_file_actions_addchdir_np(&actions, dir);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(ret, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* 0: it ended, and `status` is set; -ETIME; or a negative errno, and nobody knows how it ended. */
static int await_end(pid_t pid, int *status)
{
	const uint64_t until = engine_clock_ms() + HEALTH_MS;
	pid_t r;

	for (;;) {
		const uint64_t now = engine_clock_ms();

		r = waitpid(pid, status, WNOHANG);
		if (r == pid)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (now >= until)
			return -ETIME;
		sys_wait_process(pid, (int)(until - now));
	}
}

/* True if it ended with 0 in time; else `why` says what it did. */
static bool is_healthy(const char *command, const char *dir, char *why, size_t size)
{
	pid_t pid;
	int status = 0, r;

	/* Whoever started us may ignore it, and then nobody could learn how a child ended. */
	signal(SIGCHLD, SIG_DFL);
	r = spawn(command, dir, &pid);
	if (r < 0) {
		snprintf(why, size, "'%.100s' cannot be started: %s", command, strerror(-r));
		return false;
	}
	r = await_end(pid, &status);
	if (r == -ETIME) {
		IGNORE_RESULT(kill(-pid, SIGKILL), "it ended just now");
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		snprintf(why, size, "'%.100s' did not end within %d s", command, HEALTH_MS / 1000);
	} else if (r < 0) {
		snprintf(why, size, "how '%.100s' ended is not known: %s", command, strerror(-r));
	} else if (WIFSIGNALED(status)) {
		snprintf(why, size, "'%.100s' was killed by signal %d", command, WTERMSIG(status));
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(why, size, "'%.100s' ended with %d", command, WEXITSTATUS(status));
	} else {
		return true;
	}
	return false;
}

static int fall_sick(struct shipping *s, const char *stage, const char *why, struct err *err)
{
	int r = text_set(&s->change->why, err, "not healthy on '%s': %s", stage, why);

	if (r < 0)
		return r;
	s->change->state = ENGINE_CHANGE_UNDOING;
	r = shipping_save(s, "change-sick", err);
	return r < 0 ? r : soak_undo(s, err);
}

static int check_health(struct shipping *s, const struct engine_stage *stage,
			struct engine_passed *p, struct err *err)
{
	char why[300];

	p->health_runs++;
	for (size_t i = 0; i < stage->n_health; i++)
		if (!is_healthy(stage->health[i], p->target, why, sizeof(why)))
			return fall_sick(s, stage->name, why, err);
	p->health_next = pipeline_now() + (int64_t)stage->every_ms * 1000000;
	return shipping_save(s, NULL, err);
}

/* The last round is taken when the time is up, so that no soak ends unseen. */
int soak_watch(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	struct engine_passed *p = &s->change->passed[s->change->n_passed - 1];
	const int64_t now = pipeline_now();
	const bool over = now >= p->soak_until;
	int r = 0;

	if (stage && stage->n_health > 0 && (over || now >= p->health_next))
		r = check_health(s, stage, p, err);
	if (r < 0 || s->change->state != ENGINE_CHANGE_SOAKING || !over)
		return r < 0 ? r : 0;
	p->soak_until = p->health_next = 0;
	s->change->state = ENGINE_CHANGE_READY;
	r = shipping_save(s, "change-healthy", err);
	return r < 0 ? r : 1;
}

/* --- taking back --------------------------------------------------------------------------- */

static int is_undone(struct engine *there, const char *receipt, struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	int r = engine_receipts(there, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (strcmp(all.list[i].id, receipt) == 0)
			return all.list[i].undone;
	return r;
}

/* 1: it is taken back; 0: it cannot be; 2: it changed nothing there. */
static int take_back(struct shipping *s, struct engine_passed *p, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(engine_promotion_done) struct engine_promotion undo = { 0 };
	const struct engine_undo_options options = { .what = p->receipt,
						     .watch = s->options->watch };
	int r;

	if (*p->receipt == '\0')
		return 2;
	r = pipeline_engine(s->engine, p->target, &there, err);
	if (r >= 0)
		r = is_undone(there, p->receipt, err);
	if (r != 0)
		return r;
	r = engine_undo(there, &options, &undo, err);
	return r < 0 ? r : undo.end == ENGINE_PROMOTED;
}

static int give_up(struct shipping *s, const struct engine_passed *p, struct err *err)
{
	AUTO_FREE char *why = TAKE_PTR(s->change->why);

	return text_set(&s->change->why, err,
			"%s; its landing in '%s' could not be taken back: later edits conflict "
			"with that (snap -C %s undo %s)",
			why ? why : "", p->target, p->target, p->receipt);
}

int soak_undo(struct shipping *s, struct err *err)
{
	struct engine_change *c = s->change;
	const struct engine_stage *last =
	    c->n_passed > 0 ? pipeline_stage(&s->pipeline, c->passed[c->n_passed - 1].stage) : NULL;
	int r = 0;

	for (size_t i = c->n_passed; i-- > 0 && r >= 0;) {
		struct engine_passed *p = &c->passed[i];

		if (p->undone)
			continue;
		r = take_back(s, p, err);
		if (r == 0)
			r = give_up(s, p, err);
		else if (r == 1)
			p->undone = true;
		if (r >= 0)
			r = shipping_save(s, NULL, err);
		if (!last || !last->undo_all)
			break;
	}
	if (r < 0)
		return r;
	c->state = ENGINE_CHANGE_SICK;
	return shipping_save(s, "change-undone", err);
}
