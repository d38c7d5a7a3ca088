#include "cli/show/experiments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/show/machines.h"
#include "cli/show/standings.h"

#define BAR_MAX   10
#define LIVE_ROWS 30 /* of a table that is drawn again and again */
#define NAMED_MAX 20 /* warnings that are printed one by one */
#define WIDE_MAX  40 /* columns of a name */
#define NAME_MIN  8
#define INDENT    2 /* columns of an arm inside of another */

/* --- a table ------------------------------------------------------------------------------- */

static enum out_style style_of(const struct engine_experiment *x, const struct engine_arm *arm)
{
	if (x->winner && strcmp(x->winner, arm->name) == 0)
		return OUT_GOOD;
	return arm->state > ENGINE_ARM_PASSED ? OUT_BAD : OUT_PLAIN;
}

static uint64_t time_of(const struct engine_arm *arm)
{
	return arm->state == ENGINE_ARM_RUNNING ? (uint64_t)(clock_wall_ns() - arm->begun) / 1000000
						: arm->duration_ms;
}

/* A longer bar is a larger score. */
static void make_bar(const struct engine_experiment *x, const struct engine_arm *arm,
		     char text[BAR_MAX + 1])
{
	double most = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		if (x->arms[i].scored && x->arms[i].score > most)
			most = x->arms[i].score;
	out_bar(arm->scored && most > 0 ? arm->score / most : 0, BAR_MAX, text);
}

static void make_score(const struct engine_experiment *x, const struct engine_arm *arm, char *text,
		       size_t size)
{
	char score[ENGINE_VALUE_MAX], spread[ENGINE_VALUE_MAX];

	if (!arm->scored)
		snprintf(text, size, "-");
	else if (arm->n_rounds > 1)
		snprintf(text, size, "%s +-%s", engine_experiment_value(x, arm->score, score),
			 engine_experiment_value(x, arm->spread, spread));
	else
		snprintf(text, size, "%s", engine_experiment_value(x, arm->score, score));
}

bool experiments_has_time(const struct engine_arm *arm)
{
	return arm->state == ENGINE_ARM_RUNNING || (arm->command && *arm->run != '\0');
}

/* Paths that are counted but not named were not looked at. */
bool experiments_has_lines(const struct engine_arm *arm)
{
	if (arm->changed.n > 0 || *arm->result != '\0')
		return true;
	return *arm->run != '\0' && arm->added + arm->modified + arm->deleted == 0;
}

static void make_lines(const struct engine_arm *arm, char *text, size_t size)
{
	if (!experiments_has_lines(arm)) {
		snprintf(text, size, "-");
		return;
	}
	snprintf(text, size, "+%" PRIu64 " -%" PRIu64, arm->lines_added, arm->lines_removed);
}

/* How wide the columns are; of a narrow terminal some are left out. */
struct layout {
	size_t columns;                  /* of the terminal; 0: any number */
	int name, machine, score, lines; /* machine 0: none is shown */
	bool checks, changes, bar, warnings;
};

#define FIXED_WIDTH  24 /* state and time, with what is before them */
#define CHECKS_WIDTH 8
#define WARN_WIDTH   4
#define SCORE_MAX    (2 * ENGINE_VALUE_MAX + 4)
#define LINES_MAX    48

static size_t max_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Take so many columns for one more, if there are that many. */
static bool take_columns(size_t *left, size_t n)
{
	if (*left < n)
		return false;
	*left -= n;
	return true;
}

static struct layout layout_of(const struct engine_experiment *x, size_t columns)
{
	size_t name = 3, score = 5, lines = 5, left = columns > 0 ? columns : SIZE_MAX;
	const size_t machine = machines_width(x);
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char text[SCORE_MAX];
	struct layout l = { .columns = columns };
	bool scored = false, warned = false;

	while ((arm = engine_arms_next(&walk))) {
		name = max_of(name, INDENT * walk.level + strlen(arm->name));
		make_score(walk.in[walk.level], arm, text, sizeof(text));
		score = max_of(score, strlen(text));
		make_lines(arm, text, sizeof(text));
		lines = max_of(lines, strlen(text));
		scored |= walk.in[walk.level]->score != ENGINE_SCORE_NONE;
		warned |= arm->n_warnings > 0;
	}
	name = name < WIDE_MAX ? name : WIDE_MAX;
	if (left < name + FIXED_WIDTH + 2 + score)
		name = max_of(NAME_MIN,
			      left > FIXED_WIDTH + 2 + score ? left - FIXED_WIDTH - 2 - score : 0);
	l.name = (int)name;
	l.score = (int)score;
	l.lines = (int)lines;
	IGNORE_RESULT(take_columns(&left, name + FIXED_WIDTH + 2 + score),
		      "it is shown in any case");
	if (machine > 0 && take_columns(&left, 2 + machine))
		l.machine = (int)machine;
	l.checks = take_columns(&left, CHECKS_WIDTH);
	l.changes = take_columns(&left, 2 + lines);
	l.warnings = warned && take_columns(&left, 2 + WARN_WIDTH);
	l.bar = scored && take_columns(&left, 2 + BAR_MAX);
	return l;
}

/* What is longer than the column ends with "..". */
static void print_name(FILE *out, const char *name, int indent, int wide)
{
	fprintf(out, "%*s", indent, "");
	wide -= indent;
	if (strlen(name) > (size_t)wide)
		fprintf(out, "%.*s..", wide - 2, name);
	else
		fprintf(out, "%-*s", wide, name);
}

/* Why it did not pass, or what became of it; NULL: nothing to say. */
static const char *note_of(const struct engine_experiment *x, const struct engine_arm *arm)
{
	if (arm->why)
		return arm->why;
	if (*arm->promotion != '\0')
		return "promoted";
	return x->winner && strcmp(x->winner, arm->name) == 0 ? "wins" : NULL;
}

/* Behind the columns, or, where there is no room, below them. */
static void print_note(FILE *out, const struct engine_experiment *x, const struct engine_arm *arm,
		       const struct layout *l, size_t used)
{
	const char *note = note_of(x, arm);
	const size_t len = note ? strcspn(note, "\n") : 0;
	char warnings[24] = "";

	if (arm->n_warnings > 0)
		snprintf(warnings, sizeof(warnings), "%zu!", arm->n_warnings);
	if (l->warnings && (note || arm->n_warnings > 0))
		used += (size_t)fprintf(out, "  %*s", WARN_WIDTH, warnings);
	if (!note)
		return;
	fputs(l->columns > 0 && used + 2 + len > l->columns ? "\n    " : "  ", out);
	out_line(out, note);
}

/* The arm at hand of a walk. */
static void print_arm(const struct invocation *inv, FILE *out, const struct engine_arms_walk *walk,
		      const struct engine_arm *arm, const struct layout *l)
{
	const struct engine_experiment *x = walk->in[walk->level];
	char duration[DURATION_TEXT_MAX], score[SCORE_MAX], lines[LINES_MAX], bar[BAR_MAX + 1];
	size_t passed = 0, used = (size_t)l->name + FIXED_WIDTH + 2 + (size_t)l->score;

	for (size_t i = 0; i < arm->n_checks; i++)
		passed += arm->checks[i].exit_code == 0;
	make_lines(arm, lines, sizeof(lines));
	make_score(x, arm, score, sizeof(score));
	make_bar(x, arm, bar);
	fputs(out_style(inv, style_of(x, arm)), out);
	print_name(out, arm->name, INDENT * (int)walk->level, l->name);
	fprintf(out, "  %-12s%s  %8s", engine_arm_state_name(arm->state), out_style(inv, OUT_PLAIN),
		experiments_has_time(arm) ? duration_format(time_of(arm), duration) : "-");
	if (l->machine > 0) {
		fputs("  ", out);
		print_name(out, machines_name(arm), 0, l->machine);
		used += 2 + (size_t)l->machine;
	}
	if (l->checks)
		used += (size_t)fprintf(out, "  %3zu/%-2zu", passed, x->n_checks);
	fprintf(out, "  %-*s", l->score, score);
	if (l->changes)
		used += (size_t)fprintf(out, "  %-*s", l->lines, lines);
	if (l->bar)
		used += (size_t)fprintf(out, "  %-*s", BAR_MAX, bar);
	print_note(out, x, arm, l, used);
	fputc('\n', out);
}

static void print_head(const struct invocation *inv, FILE *out, const struct layout *l)
{
	fprintf(out, "%s%-*s  %-12s  %8s", out_style(inv, OUT_DIM), l->name, "ARM", "STATE",
		"TIME");
	if (l->machine > 0)
		fprintf(out, "  %-*s", l->machine, "MACHINE");
	if (l->checks)
		fputs("  CHECKS", out);
	fprintf(out, "  %-*s", l->score, "SCORE");
	if (l->changes)
		fprintf(out, "  %-*s", l->lines, "LINES");
	if (l->warnings)
		fprintf(out, "%*s  %*s", l->bar ? 2 + BAR_MAX : 0, "", WARN_WIDTH, "WARN");
	fprintf(out, "%s\n", out_style(inv, OUT_PLAIN));
}

static void print_rates(FILE *out, const struct engine_experiment *x)
{
	struct engine_rate rate;

	for (size_t i = 0; engine_experiment_rate(x, i, &rate); i++)
		fprintf(out,
			"%s passed %" PRIu64 " of %" PRIu64
			" times: %.1f %% (with 95 %% confidence %.1f to %.1f %%)\n",
			rate.arm, rate.passed, rate.runs, rate.rate * 100, rate.low * 100,
			rate.high * 100);
}

/*
 * Paths of an inner arm are left out: the outer arm names them, if it has come so far.  What is said of a whole arm is
 * said however many paths there are.
 */
static void print_warnings(const struct invocation *inv, FILE *out,
			   const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char path[ENGINE_ARM_PATH_SIZE];
	size_t told = 0;

	while ((arm = engine_arms_next(&walk)))
		for (size_t k = 0; k < arm->n_warnings; k++) {
			const struct engine_arm_warning *one = &arm->warnings[k];

			if (one->path && (walk.level > 0 || told++ >= NAMED_MAX))
				continue;
			fprintf(out, "%s!%s %s: ", out_style(inv, OUT_BAD),
				out_style(inv, OUT_PLAIN), engine_arms_path(&walk, path));
			if (one->path)
				out_name(out, one->path);
			fprintf(out, "%s%s\n", one->path ? ": " : "", one->detail);
		}
}

/* Its name and how far it is. */
static void print_title(const struct invocation *inv, FILE *out, const struct engine_experiment *x)
{
	const char *waits_for = experiments_waits_for(x);

	fprintf(out, "experiment %s%s%s  %s", out_style(inv, OUT_BOLD), x->name,
		out_style(inv, OUT_PLAIN), experiments_state(x));
	if (waits_for)
		fprintf(out, ", waits until experiment %s has measured", waits_for);
	fputc('\n', out);
}

/* Who won inside of which arm. */
static void print_inside(FILE *out, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	char path[ENGINE_ARM_PATH_SIZE];

	while ((arm = engine_arms_next(&walk)))
		if (arm->n_inner > 0 && arm->inner->verdict) {
			fprintf(out, "inside of %s: ", engine_arms_path(&walk, path));
			out_line(out, arm->inner->verdict);
			fputc('\n', out);
		}
}

void experiments_print(const struct invocation *inv, FILE *out, const struct engine_experiment *x)
{
	const struct layout l = layout_of(x, out_columns(fileno(out), 0));
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;

	print_title(inv, out, x);
	print_head(inv, out, &l);
	/* Of many repetitions, print only those that did not pass. */
	while ((arm = engine_arms_next(&walk)))
		if (!(arm->group && x->n_arms > LIVE_ROWS && arm->state == ENGINE_ARM_PASSED))
			print_arm(inv, out, &walk, arm, &l);
	print_warnings(inv, out, x);
	print_rates(out, x);
	machines_print_cost(out, x);
	print_inside(out, x);
	if (x->verdict)
		fprintf(out, "%s\n", x->verdict);
	if (x->problem) {
		fprintf(out, "%sstopped:%s ", out_style(inv, OUT_BAD), out_style(inv, OUT_PLAIN));
		out_line(out, x->problem);
		fputc('\n', out);
	}
}

void experiments_print_list(const struct invocation *inv, const struct engine_experiments *l)
{
	char when[OUT_TIME_MAX];

	if (l->n == 0) {
		fputs("no experiments yet\n", inv->out);
		return;
	}
	fprintf(inv->out, "%s%-24s  %-12s  %5s  %-16s  %s%s\n", out_style(inv, OUT_DIM),
		"EXPERIMENT", "STATE", "ARMS", "BEGAN", "VERDICT", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < l->n; i++) {
		const struct engine_experiment *x = &l->list[i];

		fprintf(inv->out, "%-24s  %-12s  %5zu  %-16s  ", x->name, experiments_state(x),
			x->n_arms, out_when(x->created, when));
		out_line(inv->out, x->verdict ? x->verdict : "-");
		fputc('\n', inv->out);
	}
}

/* --- while it goes on ---------------------------------------------------------------------- */

void experiments_view_begin(struct experiments_view *v, const struct invocation *inv, bool steps)
{
	const char *term = getenv("TERM");

	*v = (struct experiments_view){
		.inv = inv,
		.live = !inv->json && !inv->quiet && isatty(STDERR_FILENO) && term &&
			strcmp(term, "dumb") != 0,
		.steps = steps,
	};
}

static void clear(struct experiments_view *v)
{
	if (v->lines > 0)
		fprintf(stderr, "\033[%dA\r\033[J", v->lines);
	v->lines = 0;
}

void experiments_view_done(struct experiments_view *v)
{
	clear(v);
	free(v->seen);
	free(v->waits_for);
	v->seen = NULL;
	v->waits_for = NULL;
}

/* A line that wrapped could not be taken back; so lines are cut, and have no colour. */
static void draw(struct experiments_view *v, const struct engine_experiment *x)
{
	struct invocation plain = *v->inv;
	const size_t most = out_columns(STDERR_FILENO, 80) - 1;
	const struct layout l = layout_of(x, most);
	struct engine_arms_walk walk;
	const struct engine_arm *arm;
	size_t size = 0, rows = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return;
	plain.color = false;
	print_title(&plain, to, x);
	print_head(&plain, to, &l);
	/* Those that are under way first, then the others, as far as there is room. */
	for (int under_way = 1; under_way >= 0; under_way--)
		for (walk = engine_arms_walk(x);
		     (arm = engine_arms_next(&walk)) && rows < LIVE_ROWS;) {
			const bool is =
			    arm->state == ENGINE_ARM_RUNNING || arm->state == ENGINE_ARM_CHECKING;

			if (engine_arms_count(x) > LIVE_ROWS ? is != (under_way == 1)
							     : under_way == 0)
				continue;
			print_arm(&plain, to, &walk, arm, &l);
			rows++;
		}
	fclose(to);
	clear(v);
	for (const char *at = text; *at != '\0'; v->lines++) {
		const size_t len = strcspn(at, "\n");

		fprintf(stderr, "%.*s\n", (int)(len < most ? len : most), at);
		at += len + (at[len] == '\n');
	}
	free(text);
}

/* `walk` is at that arm. */
static void print_step(struct experiments_view *v, const struct engine_arms_walk *walk,
		       const struct engine_arm *arm)
{
	char duration[DURATION_TEXT_MAX], path[ENGINE_ARM_PATH_SIZE];

	if (v->steps) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j = json_begin(&doc);
		struct err err = { 0 };

		json_set_text(j, "schema", "snap.experiment/1");
		json_set_text(j, "act", "step");
		json_set_name(j, "experiment", walk->in[0]->name);
		json_set_name(j, "path", engine_arms_path(walk, path));
		experiments_set_arm(json_set_object(j, "step"), arm);
		IGNORE_RESULT(json_print(&doc, v->inv->out, &err), "the result reports it");
		fflush(v->inv->out);
		return;
	}
	fprintf(stderr, "%s: %s", engine_arms_path(walk, path), engine_arm_state_name(arm->state));
	if (engine_arm_is_over(arm->state) && arm->state != ENGINE_ARM_STOPPED)
		fprintf(stderr, " after %s", duration_format(arm->duration_ms, duration));
	if (arm->why) {
		fputs(": ", stderr);
		out_line(stderr, arm->why);
	}
	fputc('\n', stderr);
}

/* Has the i-th arm another state than the one printed last? */
static bool is_news(struct experiments_view *v, const struct engine_experiment *x, size_t i,
		    const struct engine_arm *arm)
{
	const size_t n = engine_arms_count(x);

	if (v->n_seen != n) {
		free(v->seen);
		v->seen = calloc(n, sizeof(*v->seen));
		v->n_seen = v->seen ? n : 0;
	}
	if (!v->seen || v->seen[i] == (uint64_t)arm->state + 1)
		return false;
	v->seen[i] = (uint64_t)arm->state + 1;
	return true;
}

/* Once for each that it waits for. */
static void print_wait(struct experiments_view *v, const struct engine_experiment *x)
{
	const char *name = experiments_waits_for(x);

	if (!name || (v->waits_for && strcmp(v->waits_for, name) == 0))
		return;
	free(v->waits_for);
	v->waits_for = strdup(name);
	fprintf(stderr, "%s waits until experiment %s has measured\n", x->name, name);
}

void experiments_tell(const struct engine_experiment *x, const struct engine_arm *arm, void *ctx)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	struct experiments_view *v = ctx;
	const struct engine_arm *at;
	size_t i = 0;

	if (v->live) {
		draw(v, x);
		return;
	}
	if (v->inv->quiet || (v->inv->json && (!arm || !v->steps)))
		return;
	if (!arm) {
		print_wait(v, x);
		return;
	}
	while ((at = engine_arms_next(&walk)) && at != arm)
		i++;
	if (at && is_news(v, x, i, arm))
		print_step(v, &walk, arm);
}
