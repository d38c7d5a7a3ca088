#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/out.h"

#define QUIET_MS  1000 /* an act shorter than this needs no line */
#define REDRAW_MS 100
#define PLAIN_MS  5000 /* between two lines that stay */

void progress_init_way(struct progress *p, FILE *to, enum progress_way way, uint64_t (*clock)(void))
{
	const uint64_t now = clock();

	*p = (struct progress){ .to = to, .way = way, .clock_ms = clock, .start_ms = now };
	p->part_ms = now;
	/* The first plain line comes after as long as each other one. */
	p->shown_ms = way == PROGRESS_PLAIN ? now : 0;
}

void progress_init(struct progress *p, FILE *to, bool wanted)
{
	const char *term = getenv("TERM");
	const bool redraws = isatty(fileno(to)) && term && strcmp(term, "dumb") != 0;

	progress_init_way(p, to,
			  !wanted   ? PROGRESS_NONE
			  : redraws ? PROGRESS_LINE
				    : PROGRESS_PLAIN,
			  clock_ms);
}

void progress_done(struct progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", p->to);
	p->drawn = false;
}

/* Only one line is taken back, so a long command stays out of it. */
#define CHECK_MAX 60

void progress_show_check(struct progress *p, const char *command)
{
	if (p->way != PROGRESS_LINE)
		return;
	fputs("\rchecking", p->to);
	if (strlen(command) <= CHECK_MAX) {
		fputs("  ", p->to);
		out_name(p->to, command);
	}
	fputs("\033[K", p->to);
	fflush(p->to);
	p->drawn = true;
}

static void draw_amount(const struct progress *p, const struct engine_progress *now,
			uint64_t elapsed)
{
	char count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX], rate[SIZE_TEXT_MAX];

	if (now->files > 0)
		fprintf(p->to, "  %s files", out_count(now->files, count));
	if (now->bytes > 0 && elapsed > 0)
		fprintf(p->to, "  %s  %s/s", size_format(now->bytes, size),
			size_format(now->bytes * 1000 / elapsed, rate));
}

#define BAR_WIDTH 24

static void draw_bar(const struct progress *p, const struct engine_progress *now)
{
	const double share = now->done < now->total ? (double)now->done / now->total : 1;
	const int full = (int)(share * BAR_WIDTH);

	if (p->way == PROGRESS_LINE) {
		fputs("  [", p->to);
		for (int i = 0; i < BAR_WIDTH; i++)
			fputc(i < full ? '=' : i == full ? '>' : ' ', p->to);
		fputc(']', p->to);
	} else {
		fputc(' ', p->to);
	}
	fprintf(p->to, " %3d%%", (int)(share * 100));
}

static void draw_share(const struct progress *p, const struct engine_progress *now,
		       uint64_t elapsed)
{
	char done[OUT_COUNT_MAX], total[OUT_COUNT_MAX], left[DURATION_TEXT_MAX];
	uint64_t ms;

	if (now->total == 0) {
		if (now->done > 0)
			fprintf(p->to, "  %s objects", out_count(now->done, done));
		return;
	}
	draw_bar(p, now);
	if (now->files == 0)
		fprintf(p->to, "  %s of %s objects", out_count(now->done, done),
			out_count(now->total, total));
	if (now->done > 0 && now->done <= now->total) {
		ms = (uint64_t)((double)elapsed / now->done * (now->total - now->done));
		fprintf(p->to, "  %s left", duration_format(ms / 1000 * 1000, left));
	}
}

static void begin_part(struct progress *p, const char *doing, uint64_t now)
{
	snprintf(p->doing, sizeof(p->doing), "%s", doing);
	p->part_ms = now;
}

static bool is_due(const struct progress *p, uint64_t now)
{
	switch (p->way) {
	case PROGRESS_NONE:
		break;
	case PROGRESS_LINE:
		return now - p->start_ms >= QUIET_MS && now - p->shown_ms >= REDRAW_MS;
	case PROGRESS_PLAIN:
		return now - p->shown_ms >= PLAIN_MS;
	}
	return false;
}

static void on_progress(const struct engine_progress *now, void *progress)
{
	struct progress *p = progress;
	const uint64_t t = p->clock_ms();

	/* The first part has what came before its first word, too. */
	if (strcmp(p->doing, now->doing) != 0)
		begin_part(p, now->doing, p->doing[0] != '\0' ? t : p->start_ms);
	if (!is_due(p, t))
		return;
	p->shown_ms = t;
	p->drawn = p->way == PROGRESS_LINE;
	fprintf(p->to, "%s%s", p->drawn ? "\r" : "", now->doing);
	draw_share(p, now, t - p->part_ms);
	draw_amount(p, now, t - p->part_ms);
	fputs(p->drawn ? "\033[K" : "\n", p->to);
	fflush(p->to);
}

struct engine_watch progress_watch(struct progress *p)
{
	return (struct engine_watch){ .fn = on_progress, .ctx = p };
}
