#include <string.h>

#include "base/utf8.h"
#include "cli/show/page.h"

#define ROW        34
#define WIDTH      680
#define NAMES      180
#define NAME_CHARS 20
#define VALUES     150
#define PLOT       (WIDTH - NAMES - VALUES)

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

struct scale {
	double low, high;
};

static double place(const struct scale *s, double v)
{
	return NAMES + PLOT * (v - s->low) / (s->high - s->low);
}

/* From zero, so that lengths can be compared, to the end of the longest spread. */
static struct scale scale_of(const struct page_score *scores, size_t n)
{
	struct scale s = { 0, 0 };

	for (size_t i = 0; i < n; i++) {
		s.low = lesser(s.low, scores[i].median - scores[i].spread);
		s.high = greater(s.high, scores[i].median + scores[i].spread);
	}
	if (!(s.high > s.low))
		s.high = s.low + 1;
	return s;
}

static void draw_spread(struct page *p, const struct scale *s, const struct page_score *score,
			int y)
{
	const double a = place(s, score->median - score->spread);
	const double b = place(s, score->median + score->spread);

	if (!(score->spread > 0))
		return;
	page_printf(p, "<path class=\"spread\" d=\"M%.1f %dH%.1fM%.1f %dv10M%.1f %dv10\"/>", a, y,
		    b, a, y - 5, b, y - 5);
}

/* What fits beside the bars. */
static void put_short(struct page *p, const char *name)
{
	const size_t len = strlen(name);
	size_t at = 0, n;

	for (size_t chars = 0; at < len && chars < NAME_CHARS; chars++, at += n) {
		n = utf8_valid(name + at, len - at);
		n = n > 0 ? n : 1;
	}
	page_text(p, name, at);
	if (at < len)
		page_put(p, "&#8230;");
}

static void draw_row(struct page *p, const struct scale *s, const struct page_score *score,
		     const char *unit, int y)
{
	const double zero = place(s, 0), at = place(s, score->median);

	page_printf(p, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", NAMES - 12, y + 4);
	put_short(p, score->name);
	page_printf(
	    p,
	    "</text><rect class=\"bar\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"2\"/>",
	    lesser(zero, at), y - 8, greater(at, zero) - lesser(at, zero));
	draw_spread(p, s, score, y);
	page_printf(p, "<text class=\"value\" x=\"%d\" y=\"%d\">%.4g", WIDTH - VALUES + 14, y + 4,
		    score->median);
	if (score->spread > 0)
		page_printf(p, " &#177; %.2g", score->spread);
	if (unit) {
		page_put(p, " ");
		page_name(p, unit);
	}
	page_put(p, "</text>\n");
}

void page_chart(struct page *p, const struct page_score *scores, size_t n, const char *unit)
{
	const struct scale s = scale_of(scores, n);
	const int height = (int)n * ROW + 12;

	page_printf(
	    p, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"scores\">\n",
	    WIDTH, height);
	page_printf(p, "<path class=\"axis\" d=\"M%.1f 4V%d\"/>\n", place(&s, 0), height - 4);
	for (size_t i = 0; i < n; i++)
		draw_row(p, &s, &scores[i], unit, (int)i * ROW + ROW / 2 + 6);
	page_put(p, "</svg>\n");
}
