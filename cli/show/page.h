/*
 * page.h - a comparison as one page of HTML that needs nothing else: no network, no script.
 *
 * Names and content are untrusted: invisible characters are shown as in base/visible.h, and none of
 * it is markup.
 */
#pragma once

#include "base/buf.h"
#include "cli/cmd.h"
#include "engine/api/compare.h"

/* A measured value, with how far the values lay apart. */
struct page_score {
	char *name;
	double median, spread; /* from the median to either side */
};

struct page;

struct page_options {
	const struct page_score *scores; /* NULL: no chart */
	size_t n_scores;
	const char *unit;  /* of the scores; NULL: none */
	const char *title; /* NULL: the names of the states */
	/* Puts what comes first, below the title; NULL: nothing does. */
	void (*begin)(struct page *p, const void *ctx);
	const void *ctx;
};

/* "-" */
bool page_is_stdout(const char *file);

/* If a page goes there, all else goes to standard error; -EINVAL with a sentence if JSON does.  `file` may be NULL. */
NODISCARD int page_take_stdout(struct invocation *inv, const char *file, struct err *err);

/*
 * Replaces the file in one step, or writes to standard output.  The comparison has patches, or the page has none; of one without sides there is
 * nothing but what the options give.
 */
NODISCARD int page_write(const char *file, const struct engine_compare *c,
			 const struct page_options *options, struct err *err);

/* --- what the files behind it share --------------------------------------------------------- */

/* A page that is being made; a failure is remembered until the end. */
struct page {
	struct buf text;
	int r;
};

void page_put(struct page *p, const char *html);                          /* markup of ours */
void page_text(struct page *p, const char *text, size_t len);             /* anybody's text */
void page_name(struct page *p, const char *text);                         /* the same, whole */
void page_printf(struct page *p, const char *fmt, ...) PRINTF_LIKE(2, 3); /* numbers of ours */

/* Bars with their spread, as SVG. */
void page_chart(struct page *p, const struct page_score *scores, size_t n, const char *unit);

/* Lines of hunks as two columns. */
void page_sides(struct page *p, const char *before, const char *after, const struct buf *patch);
