/*
 * The process that follows the rules: one loop, which looks at triggers and forks an action for
 * each firing that may begin. It keeps nothing outside of the store, except the time of its next
 * look. Its children die with it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/loop-i.h"

#define DUE_MS \
	UINT64_C(1000) /* after which changes are tried again that are due and stay as they are */
#define UNASKED_MS UINT64_C(60000) /* how often a tree is looked at of which no event came */
#define STORM_FACTOR \
	UINT64_C(10)             /* debounces, after which a storm is looked at though it goes on */
#define SOON_MS     UINT64_C(50) /* between two rounds that only events are the reason for */
#define DAY_NS      (INT64_C(24) * 3600 * NS_PER_S)
#define SLEEP_MAX_S 3600
#define PAST_MS     1000

static void loop_done(struct loop *l)
{
	engine_watch_rules_done(&l->rules);
	watch_state_done(&l->state);
	watch_control_done(&l->control);
	engine_firings_done(&l->firings);
	engine_changes_done(&l->changes);
	files_view_done(&l->view);
	tree_free(l->tree);
	cleanup_close(&l->timer);
	cleanup_close(&l->signals);
	free(l->follows);
	free(l->children);
	free(l->failed);
}

static int probe_ended(struct loop *l, const struct child *c, int status, uint64_t cpu_ms,
		       struct err *err)
{
	const struct engine_rule *rule = rules_find(&l->rules, c->what);
	struct watch_cursor *cursor = rule ? watch_cursor(&l->state, rule, pipeline_now()) : NULL;
	int r;

	if (!cursor)
		return 0;
	cursor->checked = pipeline_now();
	if (cursor->probed_since <= cursor->checked - DAY_NS ||
	    cursor->probed_since > cursor->checked) {
		cursor->probed_since = cursor->checked;
		cursor->probed_ms = 0;
	}
	cursor->probed_ms += cpu_ms;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return 0;
	l->state.moved = true;
	r = trigger_probed(l->engine, rule, cursor, WEXITSTATUS(status) == 1, err);
	return r < 0 ? r : loop_save(l, err);
}

static int child_ended(struct loop *l, const struct child *c, int status, uint64_t cpu_ms,
		       struct err *err)
{
	const bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	if (c->kind == CHILD_PROBE)
		return probe_ended(l, c, status, cpu_ms, err);
	if (c->kind == CHILD_HEALTH)
		l->health_retry = engine_clock_ms() + DUE_MS;
	if (c->kind == CHILD_ADVANCE && !ok)
		l->print_tried = 0;
	if (!ok)
		loop_child_leave_alone(l, c->what,
				       WIFEXITED(status) && WEXITSTATUS(status) == CHILD_BUSY);
	return 0;
}

/* With all that it waited for: what ran in its sandbox, too. */
static uint64_t cpu_ms_of(const struct rusage *use)
{
	return (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000 +
	       (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1000;
}

static int reap(struct loop *l, struct err *err)
{
	struct rusage use;
	int status, r = 0;
	pid_t pid;

	while (r >= 0 && (pid = wait4(-1, &status, WNOHANG, &use)) > 0)
		for (size_t i = 0; i < l->n_children; i++) {
			const struct child c = l->children[i];

			if (c.pid != pid)
				continue;
			l->children[i] = l->children[--l->n_children];
			r = child_ended(l, &c, status, cpu_ms_of(&use), err);
			break;
		}
	return r;
}

/* --- triggers ------------------------------------------------------------------------------ */

static void on_event(unsigned place, void *ctx)
{
	struct loop *l = ctx;
	const uint64_t now = engine_clock_ms();

	l->only_files &= place >= PLACE_RULES;
	l->only_events &= place == PLACE_EVENTS;
	for (size_t i = 0; i < l->rules.n; i++) {
		struct follow *f = &l->follows[i];

		if (f->place != place || place < PLACE_RULES)
			continue;
		f->first = f->first ? f->first : now;
		f->last = now;
	}
}

/* Does nothing but an event say that there may be something new? */
static bool awaits_events(const struct engine_rule *rule)
{
	return rule->trigger == ENGINE_TRIGGER_FILES || rule->trigger == ENGINE_TRIGGER_LOG;
}

/* No event tells what is not watched, nor that another directory got the name of one that stays. */
static void look_unasked(struct loop *l, size_t i)
{
	struct follow *f = &l->follows[i];
	const uint64_t now = engine_clock_ms();

	if (now >= f->looked + UNASKED_MS) {
		f->looked = now;
		/* Of all rules that share the place: the first that looks finds it. */
		if (tree_is_partial(l->tree, f->place) || tree_is_other(l->tree, f->place))
			on_event(f->place, l);
	}
	loop_wake_in(l, f->looked + UNASKED_MS);
}

/* Left alone for long enough, or busy for too long. */
static bool is_ripe(struct loop *l, size_t i)
{
	const uint64_t wait = l->rules.list[i].debounce_ms, now = engine_clock_ms();
	struct follow *f = &l->follows[i];
	uint64_t at;

	if (f->first == 0 && awaits_events(&l->rules.list[i]))
		look_unasked(l, i);
	if (f->first == 0)
		return false;
	at = f->last + wait;
	if (at > f->first + wait * STORM_FACTOR)
		at = f->first + wait * STORM_FACTOR;
	if (now < at)
		loop_wake_in(l, at);
	return now >= at;
}

static int start_probe(struct loop *l, const struct engine_rule *rule, struct watch_cursor *c,
		       int64_t now, struct err *err)
{
	const int64_t due = c->checked + (int64_t)rule->every_ms * NS_PER_MS;

	char why[200];
	int64_t until = 0;

	if (loop_child_is_running(l, CHILD_PROBE, rule->name) || l->starts)
		return 0;
	if (!budget_allows_probe(rule, &l->firings, &l->control, now, why, &until)) {
		loop_wake_at(l, until);
		return 0;
	}
	if (c->checked > 0 && now < due) {
		loop_wake_at(l, due);
		return 0;
	}
	return loop_child_start(l, CHILD_PROBE, rule->name, err);
}

/* For who asks for the status.  True: it is another than before, or none. */
static bool note_problem(struct watch_cursor *c, const char *why)
{
	if (why ? c->problem && strcmp(c->problem, why) == 0 : !c->problem)
		return false;
	free(c->problem);
	c->problem = why ? strdup(why) : NULL;
	return true;
}

static int look_at_rule(struct loop *l, size_t i, int64_t now, bool *moved, struct err *err)
{
	struct engine_rule *rule = &l->rules.list[i];
	struct watch_cursor *c = watch_cursor(&l->state, rule, now);
	struct follow *f = &l->follows[i];
	const bool ripe = is_ripe(l, i);
	struct err problem = { 0 };
	int64_t next = 0;
	int r;

	if (!c)
		return err_nomem(err);
	/* Firings have its epoch in their names, and there must be one name for each. */
	r = l->state.moved ? loop_save(l, err) : 0;
	if (r < 0)
		return r;
	rule->probed_ms = c->probed_ms;
	rule->probed_since = c->probed_since;
	if (rule->trigger == ENGINE_TRIGGER_FAILS) {
		f->first = f->last = 0;
		return start_probe(l, rule, c, now, err);
	}
	if (f->retry > engine_clock_ms()) {
		loop_wake_in(l, f->retry);
		return 0;
	}
	if (ripe) {
		f->first = f->last = 0;
		f->looked = engine_clock_ms();
	}
	if (ripe && awaits_events(rule)) {
		loop_wake_in(l, f->looked + UNASKED_MS);
		/* What changes from here on is an event. */
		r = tree_find(l->tree, f->place, err);
	}
	if (r < 0)
		return r;
	r = trigger_look(l->engine, rule, c, ripe, now, &l->view, &next, &problem);
	loop_wake_at(l, next);
	*moved |= note_problem(c, r < 0 ? problem.msg : NULL) || r > 0;
	if (r >= 0) {
		f->failures = 0;
		return 0;
	}
	log_warn("rule '%s': %s", rule->name, problem.msg);
	f->retry = engine_clock_ms() + loop_patience(f->failures++);
	f->first = f->last = ripe ? 1 : f->first;
	loop_wake_in(l, f->retry);
	return r == -ENOMEM ? err_nomem(err) : 0;
}

static int look_at_rules(struct loop *l, int64_t now, struct err *err)
{
	bool moved = false;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < l->rules.n; i++)
		r = look_at_rule(l, i, now, &moved, err);
	files_view_done(&l->view);
	l->state.moved |= moved;
	return r;
}

/* --- changes ------------------------------------------------------------------------------- */

/* And take back what is sick, by a process of its own: another change's checks may take long. */
static int watch_health(struct loop *l, const struct advance_due *due, struct err *err)
{
	if (due->health == 0 || loop_child_is_running(l, CHILD_HEALTH, "health") ||
	    loop_child_is_left_alone(l, "health"))
		return 0;
	if (due->health == l->health_tried && engine_clock_ms() < l->health_retry) {
		loop_wake_in(l, l->health_retry);
		return 0;
	}
	l->health_tried = due->health;
	return loop_child_start(l, CHILD_HEALTH, "health", err);
}

static int advance(struct loop *l, int64_t now, struct err *err)
{
	const bool advances = loop_child_is_running(l, CHILD_ADVANCE, "changes");
	struct advance_due due;
	int r;

	advance_is_due(&l->changes, l->control.paused,
		       advances || loop_child_is_running(l, CHILD_HEALTH, "health"), now, &due);
	loop_wake_at(l, due.next);
	r = watch_health(l, &due, err);
	if (r < 0 || advances || due.others == 0 || due.others == l->print_tried ||
	    loop_child_is_left_alone(l, "changes"))
		return r;
	l->print_tried = due.others;
	return loop_child_start(l, CHILD_ADVANCE, "changes", err);
}

/* Without rules nobody knows whom to tell. */
static int tell(struct loop *l, struct err *err)
{
	int r = 0;

	if (!l->state.problem && !loop_child_is_running(l, CHILD_TELL, "news") &&
	    !loop_child_is_left_alone(l, "news"))
		r = news_is_due(&l->firings, &l->changes, err);
	return r > 0 ? loop_child_start(l, CHILD_TELL, "news", err) : r;
}

static int look_at_changes(struct loop *l, int64_t now, struct err *err)
{
	int r;

	engine_changes_done(&l->changes);
	r = changes_alone(l->engine, &l->changes, err);
	if (r < 0)
		return r;
	r = advance(l, now, err);
	return r < 0 ? r : tell(l, err);
}

/* --- the loop ------------------------------------------------------------------------------ */

static int look_at_all(struct loop *l, struct err *err)
{
	const int64_t now = pipeline_now();
	int r = watch_control_load(l->engine, &l->control, err);

	if (r < 0)
		return r;
	r = look_at_rules(l, now, err);
	if (r < 0)
		return r;
	/* Later than what was made just now. */
	r = loop_look_at_firings(l, pipeline_now(), err);
	return r < 0 ? r : look_at_changes(l, now, err);
}

static int round_of(struct loop *l, struct err *err)
{
	struct stat st;
	int r;

	l->next = 0;
	l->next_ms = 0;
	l->busy = false;
	r = loop_rules_moved(l) ? loop_load_rules(l, err) : 0;
	/* A rule that was paused just now begins nothing more. */
	watch_control_done(&l->control);
	if (r >= 0)
		r = look_at_all(l, err);
	l->round = engine_clock_ms();
	store_close(l->engine->store);
	l->engine->store = NULL;
	if (l->log_max > 0 && fstat(STDERR_FILENO, &st) == 0 && st.st_size > l->log_max)
		IGNORE_RESULT(ftruncate(STDERR_FILENO, 0), "it grows a little longer then");
	return r;
}

/* By the clock that people set: it is heard when it is set.  ECANCELED: it was set just now. */
static int try_timer(struct loop *l)
{
	const uint64_t ms = engine_clock_ms();
	const int64_t wait = (l->next - pipeline_now()) / NS_PER_MS + 1;
	int64_t left = INT64_C(1) * SLEEP_MAX_S * 1000;
	struct itimerspec spec = { 0 };
	struct timespec now;

	/* A moment that is past was looked at already: it must not keep us busy. */
	if (l->next > 0 && wait < left)
		left = wait > 0 ? wait : PAST_MS;
	if (l->next_ms > 0 && (int64_t)(l->next_ms - ms) < left)
		left = (int64_t)(l->next_ms - ms);
	left = left < 1 ? 1 : left;
	clock_gettime(CLOCK_REALTIME, &now);
	spec.it_value.tv_sec = now.tv_sec + left / 1000;
	spec.it_value.tv_nsec = now.tv_nsec + left % 1000 * NS_PER_MS;
	if (spec.it_value.tv_nsec >= NS_PER_S) {
		spec.it_value.tv_sec++;
		spec.it_value.tv_nsec -= NS_PER_S;
	}
	return timerfd_settime(l->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &spec, NULL);
}

static int set_timer(struct loop *l, struct err *err)
{
	int r = try_timer(l);

	while (r < 0 && errno == ECANCELED) {
		loop_wake_in(l, engine_clock_ms()); /* a round puts right what goes by that clock */
		r = try_timer(l);
	}
	return r < 0 ? err_sys(err, "setting a timer") : 0;
}

static void hear_signals(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof(info)) == sizeof(info)) {
		l->ends |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
		if (info.ssi_signo == SIGHUP)
			l->rules_print = 0;
	}
}

static int wait_for_more(struct loop *l, struct err *err)
{
	struct pollfd at[] = {
		{ .fd = l->tree ? tree_fd(l->tree) : -1, .events = POLLIN },
		{ .fd = l->timer, .events = POLLIN },
		{ .fd = l->signals, .events = POLLIN },
	};
	uint64_t ticks;
	int r = set_timer(l, err);

	if (r < 0)
		return r;
	if (poll(at, ARRAY_LEN(at), -1) < 0 && errno != EINTR)
		return err_sys(err, "waiting");
	l->only_files = at[0].revents != 0 && at[1].revents == 0 && at[2].revents == 0;
	l->only_events = l->only_files;
	if (at[1].revents)
		IGNORE_RESULT(read(l->timer, &ticks, sizeof(ticks)),
			      "a clock that was set says so");
	if (at[0].revents) {
		tree_read(l->tree, on_event, l);
		loop_tell_partial(l);
	}
	hear_signals(l);
	return 0;
}

/*
 * Files that change keep changing for a while.  Each time only the timer is set, as a round reads every firing and
 * change there is.  What the last round asked to be woken for still stands.
 */
static bool is_storm(struct loop *l)
{
	const uint64_t soon = l->round + SOON_MS, now = engine_clock_ms();

	/* What a round began tells of itself at once, and that needs its processor more than we do. */
	if (l->only_events && now < soon) {
		loop_wake_in(l, soon);
		return true;
	}
	if (!l->only_files || (l->next_ms > 0 && l->next_ms <= now))
		return false;
	for (size_t i = 0; i < l->rules.n; i++)
		if (l->follows[i].first != 0 && l->follows[i].retry <= now && is_ripe(l, i))
			return false;
	return true;
}

/* A round, unless one failed just now.  What may pass is said and tried again, ever more rarely. */
static int go_on(struct loop *l, struct err *err)
{
	struct err problem = { 0 };
	int r = reap(l, &problem);

	if (l->ends)
		return 0;
	if (r >= 0 && l->retry > engine_clock_ms()) {
		l->next = 0;
		l->next_ms = l->retry;
		return 0;
	}
	if (r >= 0)
		r = round_of(l, &problem);
	if (r >= 0) {
		l->failures = 0;
		l->retry = 0;
		return 0;
	}
	/* A timer of the system that ends once tells of it, and is started again. */
	if (r == -ENOMEM || l->once)
		return err_set(err, r, "%s", problem.msg);
	l->retry = engine_clock_ms() + loop_patience(l->failures++);
	log_warn("%s, trying again", problem.msg);
	l->next = 0;
	l->next_ms = l->retry;
	return 0;
}

static int open_descriptors(struct loop *l, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	/* Whoever started us may ignore it, and then nobody could learn how a child ended. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	l->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return l->signals < 0 || l->timer < 0 ? err_sys(err, "making a loop") : 0;
}

static bool is_dirty(const struct loop *l)
{
	for (size_t i = 0; i < l->rules.n; i++)
		if (l->follows[i].first != 0 && l->follows[i].retry == 0 &&
		    l->rules.list[i].trigger == ENGINE_TRIGGER_FILES)
			return true;
	return false;
}

/* All that comes before the first round. */
static int begin_loop(struct loop *l, int (*ready)(void *ctx, struct err *err), void *ctx,
		      struct err *err)
{
	int r = open_descriptors(l, err);

	if (r < 0)
		return r;
	r = loop_save(l, err);
	if (r < 0)
		return r;
	if (loop_rules_moved(l))
		r = loop_load_rules(l, err);
	if (r < 0)
		return r;
	/* Whatever is edited from then on is a change; and no child has what we have open. */
	l->starts = true;
	r = look_at_rules(l, pipeline_now(), err);
	if (r < 0)
		return r;
	if (l->state.moved)
		r = loop_save(l, err);
	l->starts = false;
	if (r < 0)
		return r;
	if (ready)
		r = ready(ctx, err);
	if (r < 0)
		return r;
	l->log_max = ready ? WATCH_LOG_MAX : 0;
	/* The first round looks at rules before firings, and what these used counts for those. */
	return engine_watch_log(l->engine, &l->firings, err);
}

int watch_loop(struct engine *e, struct docket_lock *lock, bool once,
	       int (*ready)(void *ctx, struct err *err), void *ctx, struct err *err)
{
	CLEANUP(loop_done)
	struct loop l = { .engine = e, .lock = lock, .once = once, .timer = -1, .signals = -1 };
	int r = watch_state_load(e, lock, &l.state, NULL, err);

	if (r < 0)
		return r;
	l.state.pid = getpid();
	l.state.started = pipeline_now();
	r = begin_loop(&l, ready, ctx, err);
	if (r >= 0)
		r = go_on(&l, err);
	while (r >= 0 && !l.ends && !(once && l.n_children == 0 && !l.busy && !is_dirty(&l))) {
		r = wait_for_more(&l, err);
		if (r >= 0 && !is_storm(&l))
			r = go_on(&l, err);
	}
	loop_child_end_all(&l);
	return r;
}
