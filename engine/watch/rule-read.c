#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/map.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/config-i.h"
#include "engine/watch/rule-i.h"

#define RULES_MAX   200
#define RULE_NAME   32
#define WALL_MS     (UINT64_C(10) * 60 * 1000)
#define BACKOFF_MS  (UINT64_C(60) * 1000)
#define EVERY_MS    (UINT64_C(10) * 60 * 1000)
#define DEBOUNCE_MS 500

static void rule_done(struct engine_rule *r)
{
	char *const texts[] = {
		r->name,  r->project, r->schedule,   r->probe,   r->ref, r->file,
		r->match, r->run,     r->experiment, r->profile, r->to,  r->problem
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	texts_free(r->files, r->n_files);
	texts_free(r->subject, r->n_subject);
	free(r->quiet);
}

void engine_watch_rules_done(struct engine_rules_of_watch *w)
{
	VEC_FREE(it, w->list, w->n, rule_done(it));
	free(w->file);
	free(w->notify);
	free(w->notify_post);
	*w = (struct engine_rules_of_watch){ 0 };
}

static struct engine_rule *find(const struct engine_rules_of_watch *w, const char *name)
{
	return VEC_FIND(it, w->list, w->n, strcmp(it->name, name) == 0);
}

const struct engine_rule *rules_find(const struct engine_rules_of_watch *w, const char *name)
{
	return find(w, name);
}

/* --- budgets ------------------------------------------------------------------------------- */

static const struct {
	const char *key;
	size_t at;
	int (*read)(const struct reading *rd, struct yaml value, uint64_t *ret);
	bool larger; /* is narrower */
} budget_keys[] = {
	{ "runs_per_hour", offsetof(struct engine_budget, runs_per_hour), read_take_count, false },
	{ "cpu_per_day", offsetof(struct engine_budget, cpu_per_day_ms), read_take_duration,
	  false },
	{ "wall", offsetof(struct engine_budget, wall_ms), read_take_duration, false },
	{ "lines", offsetof(struct engine_budget, lines), read_take_count, false },
	{ "disk", offsetof(struct engine_budget, disk), read_take_size, false },
	{ "failures", offsetof(struct engine_budget, failures), read_take_count, false },
	{ "backoff", offsetof(struct engine_budget, backoff_ms), read_take_duration, true },
};

static int read_limit(struct reading *rd, struct yaml value, struct engine_budget *b)
{
	for (size_t i = 0; i < ARRAY_LEN(budget_keys); i++) {
		uint64_t *const limit = (uint64_t *)((char *)b + budget_keys[i].at), v;
		int r;

		if (strcmp(read_text(rd->key), budget_keys[i].key) != 0)
			continue;
		r = budget_keys[i].read(rd, value, &v);
		if (r < 0)
			return r;
		if (v == 0 && !budget_keys[i].larger)
			return read_complain(rd, "a limit of 0 would let nothing happen");
		if (!rd->narrows ||
		    (budget_keys[i].larger ? v > *limit : *limit == 0 || v < *limit))
			*limit = v;
		return 0;
	}
	return read_complain(
	    rd, "a budget has runs_per_hour, cpu_per_day, wall, lines, disk, failures, "
		"backoff");
}

static int read_budget(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	void *iter = NULL;
	struct yaml one;
	int r = 0;

	if (yaml_kind(value) != YAML_MAP)
		return read_complain(rd, "'budget' is a map of limits");
	while (r >= 0 && yaml_next_pair(value, &iter, &rd->key, &one))
		r = read_limit(rd, one, &rule->budget);
	return r;
}

/* --- a rule -------------------------------------------------------------------------------- */

static int read_name(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return 0;
}

static int read_project(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_path(rd, value, &rule->project);
}

static int read_run(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_text(rd, value, &rule->run);
}

static int read_experiment(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_text(rd, value, &rule->experiment);
}

static int read_profile(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_text(rd, value, &rule->profile);
}

static int read_then(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	for (enum engine_then t = ENGINE_THEN_REPORT; t <= ENGINE_THEN_SHIP; t++)
		if (strcmp(read_text(value), engine_then_name(t)) == 0) {
			/* A project can ask for less, never for more. */
			if (!rd->narrows || t < rule->then)
				rule->then = t;
			return 0;
		}
	return read_complain(rd, "'then' is not one of report, keep, ship");
}

static int read_to(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_text(rd, value, &rule->to);
}

static int read_subject(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_take_texts(rd, value, &rule->subject, &rule->n_subject);
}

static int read_quiet(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	CLEANUP(strlist_done) struct strlist spans = { 0 };
	int r = yaml_texts(rd->key, value, rd->name, &spans, rd->err);

	for (size_t i = 0; r >= 0 && i < spans.n; i++) {
		struct err why = { 0 };

		if (!VEC_ONE_MORE(rule->quiet, rule->n_quiet))
			return err_nomem(rd->err);
		if (day_span_parse(spans.list[i], &rule->quiet[rule->n_quiet], &why) < 0)
			return read_complain(rd, why.msg);
		rule->n_quiet++;
	}
	return r;
}

static int read_bool(const struct reading *rd, struct yaml value, bool *ret)
{
	*ret = strcmp(read_text(value), "true") == 0;
	return *ret || strcmp(read_text(value), "false") == 0 ? 0
							      : read_complain(rd, "true or false");
}

static int read_parallel(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	return read_bool(rd, value, &rule->parallel);
}

static int read_paths(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	rule->nul = strcmp(read_text(value), "nul") == 0;
	return rule->nul || strcmp(read_text(value), "lines") == 0
		   ? 0
		   : read_complain(rd, "'paths' is lines or nul");
}

static int read_off(struct reading *rd, struct yaml value, struct engine_rule *rule)
{
	bool off = false;
	int r = read_bool(rd, value, &off);

	rule->off |= off;
	return r;
}

static const struct key rule_keys[] = {
	{ "name", read_name, false },
	{ "project", read_project, false },
	{ "on", read_on, false },
	{ "run", read_run, false },
	{ "experiment", read_experiment, false },
	{ "profile", read_profile, false },
	{ "then", read_then, false },
	{ "to", read_to, false },
	{ "subject", read_subject, false },
	{ "budget", read_budget, false },
	{ "quiet", read_quiet, false },
	{ "parallel", read_parallel, false },
	{ "paths", read_paths, false },
	{ "off", read_off, false },
};

static const struct key narrow_keys[] = {
	{ "name", read_name, false },     { "then", read_then, false },
	{ "budget", read_budget, false }, { "quiet", read_quiet, false },
	{ "off", read_off, false },
};

static const char *name_of(struct yaml rule)
{
	struct yaml key, value;
	void *iter = NULL;

	if (yaml_kind(rule) != YAML_MAP)
		return "";
	while (yaml_next_pair(rule, &iter, &key, &value))
		if (strcmp(read_text(key), "name") == 0)
			return read_text(value);
	return "";
}

static int read_pairs(struct reading *rd, struct yaml at, struct engine_rule *rule)
{
	void *iter = NULL;
	struct yaml value;
	int r = 0;

	while (r >= 0 && yaml_next_pair(at, &iter, &rd->key, &value)) {
		const struct key *k =
		    rd->narrows ? read_key_of(narrow_keys, ARRAY_LEN(narrow_keys), rd->key)
				: read_key_of(rule_keys, ARRAY_LEN(rule_keys), rd->key);

		if (!k)
			return read_complain(rd, rd->narrows
						     ? "a project can only say then, budget, "
						       "quiet and off of a rule"
						     : "a rule has name, project, on, run or "
						       "experiment, and perhaps profile, then, "
						       "to, subject, budget, quiet, parallel, "
						       "paths, off");
		r = k->read(rd, value, rule);
	}
	rd->key = at;
	return r;
}

static bool is_name(const char *text)
{
	return *text != '\0' && strlen(text) <= RULE_NAME &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(text);
}

static int read_rule(struct reading *rd, struct yaml at)
{
	const char *name = name_of(at);
	struct engine_rule *rule;
	int r;

	rd->key = at;
	if (!is_name(name))
		return read_complain(
		    rd, "a rule has a name of lower-case letters, digits, '-' and '_'");
	if (find(rd->rules, name))
		return read_complain(rd, "there is a rule of this name");
	if (rd->rules->n == RULES_MAX)
		return read_complain(rd, "there are too many rules");
	if (!VEC_ONE_MORE(rd->rules->list, rd->rules->n))
		return err_nomem(rd->err);
	rule = &rd->rules->list[rd->rules->n++];
	*rule = (struct engine_rule){
		.name = strdup(name),
		.debounce_ms = DEBOUNCE_MS,
		.every_ms = EVERY_MS,
		.budget = { .runs_per_hour = 12,
			    .wall_ms = WALL_MS,
			    .failures = 5,
			    .backoff_ms = BACKOFF_MS },
	};
	r = rule->name ? read_pairs(rd, at, rule) : err_nomem(rd->err);
	if (r < 0)
		return r;
	if (!rule->project)
		return read_complain(rd, "the rule has no 'project'");
	if (!rule->run == !rule->experiment)
		return read_complain(rd, "a rule has one of 'run' and 'experiment'");
	return 0;
}

static int read_narrowed(struct reading *rd, const char *project, struct yaml at)
{
	struct engine_rule *rule = find(rd->rules, name_of(at));

	rd->key = at;
	/* A rule of somebody else's configuration, or of another project: it is not narrowed here. */
	if (!rule || strcmp(rule->project, project) != 0)
		return yaml_kind(at) == YAML_MAP ? 0
						 : read_complain(rd, "a rule is a map with a name");
	return read_pairs(rd, at, rule);
}

/* An address without a name and a password in it, and without what curl's configuration would escape. */
static int read_post(struct reading *rd, struct yaml value)
{
	const char *url = read_text(value);
	const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
			   : strncmp(url, "http://", 7) == 0 ? url + 7
							     : "";

	if (*host == '\0' || *host == '/' || strcspn(url, "@ \t\r\n\"\\") != strlen(url))
		return read_complain(rd, "'post' is an address as https://host/path");
	return read_take_text(rd, value, &rd->rules->notify_post);
}

static int read_notify(struct reading *rd, struct yaml value)
{
	const struct yaml at = rd->key;
	void *iter = NULL;
	struct yaml one;
	int r = 0;

	if (yaml_kind(value) != YAML_MAP)
		return read_take_text(rd, value, &rd->rules->notify);
	while (r >= 0 && yaml_next_pair(value, &iter, &rd->key, &one)) {
		const char *key = read_text(rd->key);

		if (strcmp(key, "run") == 0)
			r = read_take_text(rd, one, &rd->rules->notify);
		else if (strcmp(key, "post") == 0)
			r = read_post(rd, one);
		else if (strcmp(key, "desktop") == 0 && strcmp(read_text(one), "true") == 0)
			rd->rules->notify_desktop = true;
		else
			r = read_complain(rd, "'notify' is a command, or a map with some of run, "
					      "post, and desktop: true");
	}
	rd->key = at;
	return r;
}

/* --- files --------------------------------------------------------------------------------- */

static int read_top(struct reading *rd, struct yaml value)
{
	const char *key = read_text(rd->key);
	void *iter = NULL;
	struct yaml one;
	int r = 0;

	if (strcmp(key, "notify") == 0)
		return read_notify(rd, value);
	if (strcmp(key, "concurrent") == 0) {
		r = read_take_count(rd, value, &rd->rules->concurrent);
		return r >= 0 && rd->rules->concurrent == 0 ? read_complain(rd, "at least 1") : r;
	}
	if (strcmp(key, "rules") != 0)
		return read_complain(rd, "this file has rules, and perhaps notify and concurrent");
	if (yaml_kind(value) != YAML_LIST)
		return read_complain(rd, "this is a list of rules");
	while (r >= 0 && yaml_next_item(value, &iter, &one))
		r = read_rule(rd, one);
	return r;
}

/* The rules by the text of the user's file. */
static int rules_parse(const char *name, const struct buf *text, struct engine_rules_of_watch *ret,
		       struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { .concurrent = 2 };
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct reading rd = { .name = name, .rules = &rules, .err = err };
	struct yaml top, value;
	void *iter = NULL;
	int r = yaml_parse(&doc, name, (const char *)text->data, text->len, &top, err);

	rd.key = top;
	if (r >= 0 && yaml_kind(top) != YAML_NOTHING && yaml_kind(top) != YAML_MAP)
		return read_complain(&rd, "this is a map with 'rules'");
	while (r >= 0 && yaml_kind(top) == YAML_MAP && yaml_next_pair(top, &iter, &rd.key, &value))
		r = read_top(&rd, value);
	if (r < 0)
		return r;
	rules.file = strdup(name);
	if (!rules.file)
		return err_nomem(err);
	*ret = TAKE_STRUCT(rules);
	return 0;
}

/* Narrow the rules of a project by the text of its own file. */
static int rules_narrow(struct engine_rules_of_watch *w, const char *project, const char *name,
			const struct buf *text, struct err *err)
{
	CLEANUP(yaml_done) struct yaml_doc doc = { 0 };
	struct reading rd = { .name = name, .narrows = true, .rules = w, .err = err };
	struct yaml top, one;
	void *iter = NULL;
	int r = yaml_parse(&doc, name, (const char *)text->data, text->len, &top, err);

	if (r < 0 || yaml_kind(top) == YAML_NOTHING)
		return r;
	rd.key = top;
	if (yaml_kind(top) != YAML_LIST)
		return read_complain(&rd, "this is a list of rules to narrow");
	while (r >= 0 && yaml_next_item(top, &iter, &one))
		r = read_narrowed(&rd, project, one);
	return r;
}

/* --- all of them --------------------------------------------------------------------------- */

static bool is_first_of_project(const struct engine_rules_of_watch *w, size_t i)
{
	return VEC_ALL(it, w->list, i, strcmp(it->project, w->list[i].project) != 0);
}

static uint64_t print_of(const char *path)
{
	struct stat st;
	char text[128];

	if (!path || stat(path, &st) < 0)
		return 1;
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRId64 " %" PRId64 " %ld", (uint64_t)st.st_ino,
		 (int64_t)st.st_size, (int64_t)SYS_ST_MTIM(&st).tv_sec, SYS_ST_MTIM(&st).tv_nsec);
	return map_hash_str(text);
}

/* Of the projects' own files. */
static uint64_t print_of_projects(const struct engine_rules_of_watch *w)
{
	uint64_t print = 0;

	for (size_t i = 0; i < w->n; i++) {
		AUTO_FREE char *path = is_first_of_project(w, i) && !w->list[i].silent
					   ? path_join(w->list[i].project, ".snap/" WATCH_FILE)
					   : NULL;

		print = print * 31 + print_of(path);
	}
	return print;
}

uint64_t rules_print(struct engine *e, const struct engine_rules_of_watch *w)
{
	AUTO_FREE char *path = config_file(e->home, WATCH_FILE);

	return print_of(path) + print_of_projects(w);
}

int rules_turn_off(struct engine_rules_of_watch *w, const char *project, const struct err *problem,
		   struct err *err)
{
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->list[i].project, project) != 0)
			continue;
		w->list[i].off = true;
		w->list[i].problem = strdup(problem->msg);
		if (!w->list[i].problem)
			return err_nomem(err);
	}
	return 0;
}

static int narrow_by_project(struct engine_rules_of_watch *w, const char *project, struct err *err)
{
	CLEANUP(buf_done) struct buf own = BUF_INIT;
	AUTO_FREE char *path = path_join(project, ".snap/" WATCH_FILE);
	struct err problem = { 0 };
	int r = path ? config_read_project(project, WATCH_FILE, &own, &problem) : -ENOMEM;

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r >= 0)
		r = rules_narrow(w, project, path, &own, &problem);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? rules_turn_off(w, project, &problem, err) : 0;
}

int engine_watch_rules(struct engine *e, struct engine_rules_of_watch *ret, struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	CLEANUP(buf_done) struct buf user = BUF_INIT;
	AUTO_FREE char *path = config_file(e->home, WATCH_FILE);
	uint64_t print;
	int r;

	if (!path)
		return err_set(err, -ENOENT, "there is no home directory with a " WATCH_FILE);
	/* First: what changes after that is read again. */
	print = print_of(path);
	r = fdio_read_file(AT_FDCWD, path, YAML_MAX, &user, err);
	if (r == -ENOENT || r == -ENOTDIR)
		return err_set(err, -ENOENT, "there are no rules: there is no '%s'", path);
	if (r >= 0)
		r = rules_parse(path, &user, &rules, err);
	if (r >= 0)
		r = rules_turn_off_silent(&rules, err);
	rules.print = print + print_of_projects(&rules);
	for (size_t i = 0; r >= 0 && i < rules.n; i++)
		if (is_first_of_project(&rules, i) && !rules.list[i].silent)
			r = narrow_by_project(&rules, rules.list[i].project, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(rules);
	return 0;
}
