#include "cli/show/experiment-page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/show/experiments.h"
#include "cli/show/machines.h"
#include "cli/show/page.h"

/* --- scores ------------------------------------------------------------------------------- */

/* One unit for all bars, in which the largest is a short number. */
struct unit {
	const char *name;
	double is;
};

static struct unit unit_of(const struct engine_experiment *x, double most)
{
	static const struct unit times[] = { { "s", 1000 }, { "ms", 1 } }, sizes[] = {
		{ "GiB", 1 << 30 }, { "MiB", 1 << 20 }, { "KiB", 1 << 10 }, { "B", 1 }
	};
	const bool timed = x->score == ENGINE_SCORE_TIME || x->score == ENGINE_SCORE_CPU;
	const struct unit *list = timed ? times : sizes;
	size_t i = 0;

	if (!timed && x->score != ENGINE_SCORE_MEM && x->score != ENGINE_SCORE_SIZE)
		return (struct unit){ x->score == ENGINE_SCORE_LINES ? "lines" : NULL, 1 };
	while (list[i].is > 1 && most < 10 * list[i].is)
		i++;
	return list[i];
}

static double largest(const struct engine_experiment *x)
{
	double most = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		if (x->arms[i].scored && x->arms[i].score > most)
			most = x->arms[i].score;
	return most;
}

static size_t take_scores(const struct engine_experiment *x, struct unit unit,
			  struct page_score *list)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		if (x->arms[i].scored)
			list[n++] = (struct page_score){ .name = x->arms[i].name,
							 .median = x->arms[i].score / unit.is,
							 .spread = x->arms[i].spread / unit.is };
	return n;
}

/* --- arms --------------------------------------------------------------------------------- */

static void put_cell(struct page *p, const char *text)
{
	page_put(p, "</td><td>");
	page_name(p, text);
}

static void put_score(struct page *p, const struct engine_experiment *x,
		      const struct engine_arm *arm)
{
	char text[ENGINE_VALUE_MAX];

	page_put(p, "</td><td>");
	if (!arm->scored)
		return;
	page_name(p, engine_experiment_value(x, arm->score, text));
	if (arm->n_rounds > 1) {
		page_put(p, " &#177; ");
		page_name(p, engine_experiment_value(x, arm->spread, text));
	}
}

static void put_checks(struct page *p, const struct engine_experiment *x,
		       const struct engine_arm *arm)
{
	size_t passed = 0;

	for (size_t i = 0; i < arm->n_checks; i++)
		passed += arm->checks[i].exit_code == 0;
	page_printf(p, "</td><td>%zu/%zu", passed, x->n_checks);
}

static void put_lines(struct page *p, const struct engine_arm *arm)
{
	page_put(p, "</td><td>");
	if (experiments_has_lines(arm))
		page_printf(p,
			    "<span class=\"A\">+%" PRIu64 "</span> <span class=\"D\">-%" PRIu64
			    "</span>",
			    arm->lines_added, arm->lines_removed);
}

static bool wins(const struct engine_experiment *x, const struct engine_arm *arm)
{
	return x->winner && strcmp(x->winner, arm->name) == 0;
}

static void put_why(struct page *p, const struct engine_experiment *x, const struct engine_arm *arm)
{
	page_put(p, "</td><td class=\"why\">");
	if (arm->why)
		page_name(p, arm->why);
	else if (*arm->promotion != '\0')
		page_put(p, "promoted");
	else if (wins(x, arm))
		page_put(p, "wins");
}

/* The arm at hand of a walk; the risk is known of those of the experiment itself. */
static void put_arm(struct page *p, const struct standings *s, const struct engine_arms_walk *walk,
		    const struct engine_arm *arm)
{
	const struct engine_experiment *x = walk->in[walk->level];
	const struct standing *own = walk->level == 0 ? &s->list[walk->next[0] - 1] : NULL;
	const bool passed = arm->state == ENGINE_ARM_PASSED, ran = experiments_has_time(arm);
	char duration[DURATION_TEXT_MAX], mem[SIZE_TEXT_MAX];

	page_printf(p, "<tr%s><td>", wins(x, arm) ? " class=\"wins\"" : "");
	for (size_t i = 0; i < walk->level; i++)
		page_put(p, "&emsp;");
	page_name(p, arm->name);
	page_printf(p, "</td><td class=\"%s\">", passed ? "clean" : "conflict");
	page_put(p, engine_arm_state_name(arm->state));
	if (s->x->on.queue)
		put_cell(p, machines_name(arm));
	put_cell(p, ran ? duration_format(arm->duration_ms, duration) : "");
	put_cell(p, ran ? duration_format(arm->cpu_ms, duration) : "");
	put_cell(p, ran ? size_format(arm->max_mem, mem) : "");
	put_checks(p, x, arm);
	put_score(p, x, arm);
	put_lines(p, arm);
	put_cell(p, own && own->judged ? engine_risk_name(own->facts.risk) : "");
	put_why(p, x, arm);
	page_put(p, "</td></tr>\n");
}

static void put_table(struct page *p, const struct standings *s)
{
	struct engine_arms_walk walk = engine_arms_walk(s->x);
	const struct engine_arm *arm;

	page_printf(
	    p, "<h2>Arms</h2>\n<div class=\"wide\"><table><thead><tr><th>arm</th><th>state</th>%s",
	    s->x->on.queue ? "<th>machine</th>" : "");
	page_put(p, "<th>time</th><th>cpu</th><th>memory</th><th>checks</th><th>score</th>"
		    "<th>lines</th><th>risk</th><th></th></tr></thead><tbody>\n");
	while ((arm = engine_arms_next(&walk)))
		put_arm(p, s, &walk, arm);
	page_put(p, "</tbody></table></div>\n");
}

static void put_command(struct page *p, const char *path, const char *what, const char *command)
{
	page_put(p, "<tr><td>");
	page_name(p, path);
	page_printf(p, "%s<span class=\"dim\">%s</span></td><td class=\"why path\">",
		    *path != '\0' && *what != '\0' ? " " : "", what);
	page_name(p, command);
	page_put(p, "</td></tr>\n");
}

static void put_commands(struct page *p, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char path[ENGINE_ARM_PATH_SIZE];

	page_put(p, "<details><summary>Commands</summary><div class=\"wide\"><table><tbody>\n");
	while ((arm = engine_arms_next(&walk))) {
		engine_arms_path(&walk, path);
		if (arm->command)
			put_command(p, path, "", arm->command);
		for (size_t i = 0; arm->n_inner > 0 && i < arm->inner->n_checks; i++)
			put_command(p, path, "check inside", arm->inner->checks[i]);
	}
	for (size_t i = 0; i < x->n_checks; i++)
		put_command(p, "", "check", x->checks[i]);
	page_put(p, "</tbody></table></div></details>\n");
}

static void put_inside(struct page *p, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char path[ENGINE_ARM_PATH_SIZE];

	while ((arm = engine_arms_next(&walk)))
		if (arm->n_inner > 0 && arm->inner->verdict) {
			page_put(p, "<p>inside of ");
			page_name(p, engine_arms_path(&walk, path));
			page_put(p, ": ");
			page_name(p, arm->inner->verdict);
			page_put(p, "</p>\n");
		}
}

/* --- what a person should know ------------------------------------------------------------ */

static void put_notice(struct page *p, const char *arm, const char *path, const char *why)
{
	page_put(p, "<tr><td>");
	page_name(p, arm);
	put_cell(p, path ? path : "");
	page_put(p, "</td><td class=\"why path\">");
	page_name(p, why);
	page_put(p, "</td></tr>\n");
}

static void put_notices(struct page *p, const struct standings *s)
{
	bool any = false;

	for (size_t i = 0; i < s->x->n_arms; i++)
		any |= s->x->arms[i].n_warnings + s->list[i].facts.n_reasons > 0;
	if (!any)
		return;
	page_put(p, "<h2>Warnings and risks</h2>\n<div class=\"wide\"><table><tbody>\n");
	for (size_t i = 0; i < s->x->n_arms; i++) {
		const struct engine_arm *arm = &s->x->arms[i];
		const struct engine_facts *f = &s->list[i].facts;

		for (size_t k = 0; k < arm->n_warnings; k++)
			put_notice(p, arm->name, arm->warnings[k].path, arm->warnings[k].detail);
		for (size_t k = 0; k < f->n_reasons; k++)
			put_notice(p, arm->name, f->reasons[k].path, f->reasons[k].why);
	}
	page_put(p, "</tbody></table></div>\n");
}

static void put_rates(struct page *p, const struct engine_experiment *x)
{
	struct engine_rate rate;

	for (size_t i = 0; engine_experiment_rate(x, i, &rate); i++) {
		page_put(p, "<p>");
		page_name(p, rate.arm);
		page_printf(p,
			    " passed %" PRIu64 " of %" PRIu64
			    " times: %.1f %% (with 95 %% confidence %.1f to %.1f %%)</p>\n",
			    rate.passed, rate.runs, rate.rate * 100, rate.low * 100,
			    rate.high * 100);
	}
}

struct parts {
	const struct standings *standings;
	const struct failures *failures;
};

static void begin(struct page *p, const void *ctx)
{
	const struct parts *parts = ctx;
	const struct standings *s = parts->standings;

	if (s->x->verdict) {
		page_put(p, "<p class=\"verdict\">");
		page_name(p, s->x->verdict);
		page_put(p, "</p>\n");
	}
	put_table(p, s);
	put_rates(p, s->x);
	put_inside(p, s->x);
	put_commands(p, s->x);
	failures_put(p, parts->failures);
	put_notices(p, s);
}

int experiment_page_write(const char *file, const struct standings *s,
			  const struct failures *failures, struct err *err)
{
	const struct parts parts = { s, failures };
	AUTO_FREE struct page_score *scores = calloc(s->x->n_arms + 1, sizeof(*scores));
	const struct unit unit = unit_of(s->x, largest(s->x));
	AUTO_FREE char *title = NULL;
	struct page_options options = { .begin = begin, .ctx = &parts, .unit = unit.name };

	if (!scores || asprintf(&title, "experiment %s", s->x->name) < 0) {
		title = NULL;
		return err_nomem(err);
	}
	options.title = title;
	options.scores = scores;
	options.n_scores = take_scores(s->x, unit, scores);
	return page_write(file, &s->compare, &options, err);
}

int experiment_page_check(const char *file, struct err *err)
{
	const char *slash = strrchr(file, '/');
	AUTO_FREE char *dir = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");

	if (page_is_stdout(file))
		return 0;
	if (!dir)
		return err_nomem(err);
	if (*file == '\0' || (slash && slash[1] == '\0'))
		return err_set(err, -EINVAL, "option '--html': '%s' is no name of a file", file);
	if (access(dir, W_OK) < 0)
		return err_set(err, -EINVAL, "option '--html': '%s': %s", file, strerror(errno));
	return 0;
}
