#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/out.h"

#define QUIET_MS  1000 /* an act shorter than this needs no line */
#define REDRAW_MS 100

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void progress_init(struct progress *p, FILE *to, bool wanted)
{
	const char *term = getenv("TERM");

	*p = (struct progress){ .start_ms = clock_ms() };
	if (wanted && isatty(fileno(to)) && term && strcmp(term, "dumb") != 0)
		p->to = to;
}

void progress_done(struct progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", p->to);
	p->drawn = false;
}

static void draw_amount(const struct progress *p, const struct engine_progress *now,
			uint64_t elapsed)
{
	char count[OUT_COUNT_MAX], size[SIZE_TEXT_MAX], rate[SIZE_TEXT_MAX];

	if (now->files > 0)
		fprintf(p->to, "  %s files", out_count(now->files, count));
	if (now->bytes > 0)
		fprintf(p->to, "  %s  %s/s", size_format(now->bytes, size),
			size_format(now->bytes * 1000 / elapsed, rate));
}

#define BAR_WIDTH 24

static void draw_bar(const struct progress *p, const struct engine_progress *now)
{
	const double share = now->done < now->total ? (double)now->done / now->total : 1;
	const int full = (int)(share * BAR_WIDTH);

	fputs("  [", p->to);
	for (int i = 0; i < BAR_WIDTH; i++)
		fputc(i < full ? '=' : i == full ? '>' : ' ', p->to);
	fprintf(p->to, "] %3d%%", (int)(share * 100));
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

static void on_progress(const struct engine_progress *now, void *progress)
{
	struct progress *p = progress;
	uint64_t t, elapsed;

	if (!p->to)
		return;
	t = clock_ms();
	elapsed = t - p->start_ms;
	if (elapsed < QUIET_MS || t - p->drawn_ms < REDRAW_MS)
		return;
	p->drawn_ms = t;
	p->drawn = true;
	fprintf(p->to, "\r%s", now->doing);
	draw_share(p, now, elapsed);
	draw_amount(p, now, elapsed);
	fputs("\033[K", p->to);
	fflush(p->to);
}

struct engine_watch progress_watch(struct progress *p)
{
	return (struct engine_watch){ .fn = on_progress, .ctx = p };
}
