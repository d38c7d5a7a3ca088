/*
 * All numbers come from workers, and a worker may send nonsense: none of them is trusted.
 */
#include "cli/show/worker-chart.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/size.h"

#define BAR_MAX   10
#define BAR_MIN   3 /* a shorter one tells nothing */
#define NAME_MIN  6
#define NAME_MAX  24
#define NOW_WIDTH 7 /* tickets at hand and slots, with what is before them */

enum measure { DONE, FAILED, BUSY, MOVED, N_MEASURES };

static const struct {
	const char *head;
	int wide; /* of the number */
} measures[N_MEASURES] = {
	[DONE] = { "DONE", 6 },
	[FAILED] = { "FAILED", 6 },
	[BUSY] = { "BUSY", 5 },
	[MOVED] = { "MOVED", OUT_SIZE_WIDTH },
};

struct chart {
	int name, bar;           /* columns; without bars 0 */
	double most[N_MEASURES]; /* what a whole bar stands for */
};

double worker_chart_share(const struct engine_worker_state *w)
{
	const double all = (double)w->up_ms * (double)w->jobs;

	if (all <= 0)
		return -1;
	return (double)w->busy_ms < all ? (double)w->busy_ms / all : 1;
}

static double value_of(const struct engine_worker_state *w, enum measure m)
{
	switch (m) {
	case DONE:
		return (double)w->done;
	case FAILED:
		return (double)w->failed;
	case BUSY:
		return worker_chart_share(w);
	case MOVED:
	case N_MEASURES:
		break;
	}
	return (double)w->fetched + (double)w->pushed;
}

static void print_value(FILE *out, const struct engine_worker_state *w, enum measure m)
{
	const uint64_t moved =
	    w->fetched + w->pushed < w->fetched ? UINT64_MAX : w->fetched + w->pushed;
	const double share = worker_chart_share(w);
	char text[SIZE_TEXT_MAX > 24 ? SIZE_TEXT_MAX : 24];

	if (m == MOVED)
		size_format(moved, text);
	else if (m == BUSY && share < 0)
		snprintf(text, sizeof(text), "-");
	else if (m == BUSY)
		snprintf(text, sizeof(text), "%.0f %%", share * 100);
	else
		snprintf(text, sizeof(text), "%" PRIu64, m == DONE ? w->done : w->failed);
	fprintf(out, "  %*s", measures[m].wide, text);
}

static struct chart chart_of(const struct engine_worker_status *s, size_t columns)
{
	struct chart c = { .name = NAME_MIN, .most = { [BUSY] = 1 } };
	int used = NOW_WIDTH, left;

	for (size_t i = 0; i < s->n_workers; i++) {
		const size_t len = strlen(s->workers[i].name);

		if (len > (size_t)c.name)
			c.name = len < NAME_MAX ? (int)len : NAME_MAX;
		for (enum measure m = 0; m < N_MEASURES; m++)
			if (m != BUSY && value_of(&s->workers[i], m) > c.most[m])
				c.most[m] = value_of(&s->workers[i], m);
	}
	for (enum measure m = 0; m < N_MEASURES; m++)
		used += 2 + measures[m].wide;
	left = ((int)(columns < 1000 ? columns : 1000) - c.name - used) / N_MEASURES - 1;
	c.bar = left > BAR_MAX ? BAR_MAX : left < BAR_MIN ? 0 : left;
	return c;
}

/* What is longer than the column ends with "..", and never within a character. */
static void print_name(FILE *out, const char *name, int wide)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	int len;

	if (path_append_shown(&shown, name, strlen(name)) < 0 || shown.len <= (size_t)wide) {
		fprintf(out, "%-*s", wide, shown.len > 0 ? buf_str(&shown) : "");
		return;
	}
	for (len = wide - 2; len > 0 && (shown.data[len] & 0xc0) == 0x80; len--)
		continue;
	fprintf(out, "%.*s%-*s", len, buf_str(&shown), wide - len, "..");
}

static void print_bar(FILE *out, const struct chart *c, const struct engine_worker_state *w,
		      enum measure m)
{
	char bar[BAR_MAX + 1];

	if (c->bar == 0)
		return;
	out_bar(c->most[m] > 0 ? value_of(w, m) / c->most[m] : 0, (size_t)c->bar, bar);
	if (*bar != '\0' || m + 1 < N_MEASURES)
		fprintf(out, " %-*s", m + 1 < N_MEASURES ? c->bar : 0, bar);
}

static void print_worker(const struct invocation *inv, const struct chart *c,
			 const struct engine_worker_state *w)
{
	char now[48];

	snprintf(now, sizeof(now), "%zu/%" PRIu64, w->n_running, w->jobs);
	print_name(inv->out, w->name, c->name);
	fprintf(inv->out, "  %*s", NOW_WIDTH - 2, now);
	for (enum measure m = 0; m < N_MEASURES; m++) {
		fputs(out_style(inv, m == FAILED && w->failed > 0 ? OUT_BAD : OUT_PLAIN), inv->out);
		print_value(inv->out, w, m);
		print_bar(inv->out, c, w, m);
	}
	fprintf(inv->out, "%s%s\n", out_style(inv, OUT_PLAIN), w->draining ? "  draining" : "");
}

void worker_chart_print(const struct invocation *inv, const struct engine_worker_status *s,
			size_t columns)
{
	const struct chart c = chart_of(s, columns);

	if (s->n_workers == 0)
		return;
	fprintf(inv->out, "%s%-*s  %*s", out_style(inv, OUT_DIM), c.name, "WORKER", NOW_WIDTH - 2,
		"NOW");
	for (enum measure m = 0; m < N_MEASURES; m++)
		fprintf(inv->out, "  %*s%*s", measures[m].wide, measures[m].head,
			c.bar > 0 && m + 1 < N_MEASURES ? c.bar + 1 : 0, "");
	fprintf(inv->out, "%s\n", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < s->n_workers; i++)
		print_worker(inv, &c, &s->workers[i]);
}
