/*
 * The rules that the loop follows, and the sources that announce their triggers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/find/config-i.h"
#include "engine/find/event-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/loop-i.h"

#define SILENT_MS UINT64_C(60000) /* how often one that hangs is tried */

static int watch_dir_of(struct loop *l, const char *path, unsigned place, struct err *err)
{
	AUTO_FREE char *dir = path ? strdup(path) : NULL;
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!slash)
		return 0;
	*slash = '\0';
	return tree_add(l->tree, *dir ? dir : "/", false, place, err);
}

static int watch_refs(struct loop *l, const struct engine_rule *rule, unsigned place,
		      struct err *err)
{
	AUTO_FREE char *git = path_join(rule->project, ".git");
	AUTO_FREE char *refs = git ? path_join(git, rule->ref) : NULL;
	int r = refs ? tree_add(l->tree, git, false, place, err) : err_nomem(err);

	return r < 0 ? r : watch_dir_of(l, refs, place, err);
}

/* Rules of one project share its watches. */
static int watch_rule(struct loop *l, size_t i, struct err *err)
{
	const struct engine_rule *rule = &l->rules.list[i];
	struct follow *f = &l->follows[i];

	f->place = PLACE_RULES + (unsigned)i;
	if (rule->silent)
		return 0;
	switch (rule->trigger) {
	case ENGINE_TRIGGER_FILES:
		for (size_t k = 0; k < i; k++)
			if (l->rules.list[k].trigger == ENGINE_TRIGGER_FILES &&
			    strcmp(l->rules.list[k].project, rule->project) == 0) {
				f->place = l->follows[k].place;
				return 0;
			}
		return tree_add(l->tree, rule->project, true, f->place, err);
	case ENGINE_TRIGGER_LOG:
		return watch_dir_of(l, rule->file, f->place, err);
	case ENGINE_TRIGGER_REF:
		return watch_refs(l, rule, f->place, err);
	default:
		return 0;
	}
}

/* By which its project narrows it. */
static int watch_own_file(struct loop *l, const struct engine_rule *rule, struct err *err)
{
	AUTO_FREE char *path = path_join(rule->project, ".snap/" WATCH_FILE);

	if (rule->silent)
		return 0;
	return path ? watch_dir_of(l, path, PLACE_CONFIG, err) : err_nomem(err);
}

static int watch_all(struct loop *l, struct err *err)
{
	AUTO_FREE char *events = path_join(l->engine->store_path, EVENTS_DIR);
	AUTO_FREE char *config = config_file(l->engine->home, WATCH_FILE);
	const char *clock = getenv("SNAPCOW_CLOCK");
	int r;

	if (!events)
		return err_nomem(err);
	tree_free(l->tree);
	l->tree = NULL;
	r = tree_open(l->engine->store_path, &l->tree, err);
	if (r < 0)
		return r;
	r = path_make_dirs(events, 0700, err);
	if (r < 0)
		return r;
	r = tree_add(l->tree, events, false, PLACE_EVENTS, err);
	if (r < 0)
		return r;
	r = watch_dir_of(l, config, PLACE_CONFIG, err);
	if (r < 0)
		return r;
	r = watch_dir_of(l, clock, PLACE_CLOCK, err);
	for (size_t i = 0; r >= 0 && i < l->rules.n; i++)
		r = watch_own_file(l, &l->rules.list[i], err);
	for (size_t i = 0; r >= 0 && i < l->rules.n; i++)
		r = watch_rule(l, i, err);
	return r;
}

/* Once a minute. */
static bool is_awaited(struct loop *l)
{
	const bool due = engine_clock_ms() >= l->silent + SILENT_MS;

	if (!VEC_HAS(it, l->rules.list, l->rules.n, it->silent))
		return false;
	if (due)
		l->silent = engine_clock_ms();
	loop_wake_in(l, l->silent + SILENT_MS);
	return due && rules_speak_again(&l->rules);
}

/* Also if one hangs that did not, or the reverse. */
bool loop_rules_moved(struct loop *l)
{
	uint64_t print;

	return !l->tree || !rules_look(l->engine, &l->rules, &print) || l->rules_print != print ||
	       is_awaited(l);
}

static void note_problems(struct loop *l, int r, const struct err *problem)
{
	free(l->state.problem);
	l->state.problem = r < 0 ? strdup(problem->msg) : NULL;
	if (r < 0)
		log_warn("%s", problem->msg);
	for (size_t i = 0; i < l->rules.n; i++)
		if (l->rules.list[i].problem)
			log_warn("rule '%s' is off: %s", l->rules.list[i].name,
				 l->rules.list[i].problem);
}

void loop_tell_partial(struct loop *l)
{
	for (size_t i = 0; i < l->rules.n; i++) {
		const struct engine_rule *rule = &l->rules.list[i];
		struct watch_cursor *c;

		/* That one is not there is said by whoever looks at it. */
		if (rule->trigger != ENGINE_TRIGGER_FILES || l->follows[i].told ||
		    !tree_is_partial(l->tree, l->follows[i].place) ||
		    tree_is_lost(l->tree, l->follows[i].place))
			continue;
		l->follows[i].told = true;
		log_warn("rule '%s': not all directories of '%s' can be watched, so it is looked "
			 "at once a minute: more are allowed by the setting "
			 "fs.inotify.max_user_watches",
			 rule->name, rule->project);
		c = watch_cursor(&l->state, rule, pipeline_now());
		if (c && !c->partial)
			l->state.moved = c->partial = true;
	}
}

/* What was reported of rules that were there before may be over. */
static void forget_partial(struct loop *l)
{
	for (size_t i = 0; i < l->state.n_cursors; i++) {
		l->state.moved |= l->state.cursors[i].partial;
		l->state.cursors[i].partial = false;
	}
}

/* Rules that cannot be understood fire nothing. */
int loop_load_rules(struct loop *l, struct err *err)
{
	struct engine_rules_of_watch rules = { 0 };
	const uint64_t print = rules_print(l->engine, &rules);
	struct err problem = { 0 };
	int r = engine_watch_rules(l->engine, &rules, &problem);

	if (r == -ENOMEM)
		return err_nomem(err);
	engine_watch_rules_done(&l->rules);
	l->rules = rules;
	l->rules_print = r < 0 ? print : rules.print;
	note_problems(l, r, &problem);
	forget_partial(l);
	free(l->follows);
	l->follows = calloc(l->rules.n + 1, sizeof(*l->follows));
	if (!l->follows)
		return err_nomem(err);
	/* What happened while nobody looked is looked at now. */
	for (size_t i = 0; i < l->rules.n; i++)
		l->follows[i].first = l->follows[i].last = 1;
	r = watch_all(l, err);
	if (r >= 0)
		loop_tell_partial(l);
	/* Half of the watches would be none: they are made again. */
	if (r < 0) {
		tree_free(l->tree);
		l->tree = NULL;
	}
	return r < 0 ? r : loop_save(l, err);
}
