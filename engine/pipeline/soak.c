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
#include "base/vec.h"
#include "engine/api/receipts.h"
#include "engine/pipeline/checkout-i.h"
#include "engine/pipeline/clock-i.h"
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

	/* The process that started us may ignore it, and then nobody could learn how a child ended. */
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
		snprintf(why, size, "cannot wait for '%.100s': %s", command, strerror(-r));
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

/* --- time ---------------------------------------------------------------------------------- */

/* How much of the soak is over at that moment. */
static uint64_t soaked_until(const struct engine_passed *p, const struct moment *now)
{
	struct moment seen = { .wall = p->seen, .ms = p->seen_ms };

	snprintf(seen.boot, sizeof(seen.boot), "%s", p->boot);
	return p->soaked_ms + clock_between(&seen, now);
}

/* From now on the record counts from this moment; what people read follows the clock as it is set now. */
static void note_moment(struct engine_passed *p, const struct moment *now)
{
	const uint64_t soaked = soaked_until(p, now);

	p->soaked_ms = soaked;
	p->seen = now->wall;
	p->seen_ms = now->ms;
	snprintf(p->boot, sizeof(p->boot), "%s", now->boot);
	p->soak_until = now->wall + ((int64_t)p->soak_ms - (int64_t)soaked) * 1000000;
	p->health_next = now->wall + ((int64_t)p->health_ms - (int64_t)soaked) * 1000000;
}

int soak_begin(struct engine_passed *p, const struct engine_stage *stage, struct err *err)
{
	struct moment now;

	p->soak_ms = stage->soak_ms;
	p->every_ms = stage->every_ms;
	p->undo_all = stage->undo_all;
	if (stage->soak_ms == 0)
		return 0;
	clock_look(&now);
	p->seen = now.wall;
	p->seen_ms = now.ms;
	snprintf(p->boot, sizeof(p->boot), "%s", now.boot);
	p->health = calloc(vec_room(stage->n_health), sizeof(*p->health));
	if (!p->health)
		return err_nomem(err);
	for (size_t i = 0; i < stage->n_health; i++) {
		p->health[i] = strdup(stage->health[i]);
		if (!p->health[i])
			return err_nomem(err);
		p->n_health++;
	}
	p->health_ms = p->n_health > 0 ? 0 : p->soak_ms;
	note_moment(p, &now);
	return 0;
}

int64_t engine_change_due_ms(const struct engine_change *c)
{
	const struct engine_passed *p = c->n_passed > 0 ? &c->passed[c->n_passed - 1] : NULL;
	struct moment now;
	uint64_t soaked, due;

	if (c->state != ENGINE_CHANGE_SOAKING || !p)
		return -1;
	clock_look(&now);
	soaked = soaked_until(p, &now);
	due = p->health_ms < p->soak_ms ? p->health_ms : p->soak_ms;
	return due > soaked ? (int64_t)(due - soaked) : 0;
}

static int check_health(struct shipping *s, struct engine_passed *p, struct err *err)
{
	AUTO_FREE char *repository =
	    target_is_branch(p->target) ? target_repository(p->target) : strdup(p->target);
	struct moment now;
	char why[300];

	if (!repository)
		return err_nomem(err);
	p->health_runs++;
	for (size_t i = 0; i < p->n_health; i++)
		if (!is_healthy(p->health[i], repository, why, sizeof(why)))
			return fall_sick(s, p->stage, why, err);
	clock_look(&now);
	p->health_ms = soaked_until(p, &now) + p->every_ms;
	note_moment(p, &now);
	return shipping_save(s, NULL, err);
}

/* The last round is taken when the time is up, so that no soak ends unseen. */
int soak_watch(struct shipping *s, struct err *err)
{
	struct engine_passed *p = &s->change->passed[s->change->n_passed - 1];
	struct moment now;
	uint64_t soaked;
	bool over;
	int r = 0;

	clock_look(&now);
	soaked = soaked_until(p, &now);
	over = soaked >= p->soak_ms;
	if (p->n_health > 0 && (over || soaked >= p->health_ms)) {
		r = check_health(s, p, err);
	} else if (strcmp(p->boot, now.boot) != 0) {
		/* From here on the clock counts that nobody sets. */
		note_moment(p, &now);
		r = shipping_save(s, NULL, err);
	}
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

	if (*p->receipt == '\0' || (target_is_branch(p->target) && *p->commit == '\0'))
		return 2;
	if (target_is_branch(p->target))
		return checkout_take_back(s, p, err);
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

	if (*p->commit != '\0')
		return text_set(
		    &s->change->why, err,
		    "%s; its commit in '%s' could not be taken back: later ones conflict "
		    "with that (git revert %s)",
		    why ? why : "", p->target, p->commit);
	return text_set(&s->change->why, err,
			"%s; its landing in '%s' could not be taken back: later edits conflict "
			"with that (snap -C %s undo %s)",
			why ? why : "", p->target, p->target, p->receipt);
}

int soak_undo(struct shipping *s, struct err *err)
{
	struct engine_change *c = s->change;
	const bool all = c->n_passed > 0 && c->passed[c->n_passed - 1].undo_all;
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
		if (!all)
			break;
	}
	if (r < 0)
		return r;
	c->state = ENGINE_CHANGE_SICK;
	return shipping_save(s, "change-undone", err);
}
