#include <stdio.h>
#include <string.h>

#include "cli/show/page.h"

/* Where we are in the lines of hunks. */
struct reader {
	const char *at, *end;
	unsigned long before, after; /* number of the next line on either side */
};

/* The next line without its end; false: there is none. */
static bool next_line(const struct reader *r, const char **ret, size_t *ret_len)
{
	const char *newline;

	if (r->at >= r->end)
		return false;
	newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	*ret = r->at;
	*ret_len = (size_t)((newline ? newline : r->end) - r->at);
	return true;
}

static void skip_line(struct reader *r, size_t len)
{
	r->at += len;
	r->at += r->at < r->end;
}

static void put_cell(struct page *p, const char *kind, unsigned long number, const char *line,
		     size_t len)
{
	if (!line) {
		page_put(p, "<td class=\"n\"></td><td class=\"none\"></td>");
		return;
	}
	page_printf(p, "<td class=\"n\">%lu</td><td class=\"%s\">", number, kind);
	page_text(p, line + 1, len - 1);
	page_put(p, "</td>");
}

/* "@@ -12,3 +14,4 @@ where" */
static void put_hunk(struct page *p, struct reader *r, const char *line, size_t len)
{
	char numbers[64];

	snprintf(numbers, sizeof(numbers), "%.*s", (int)len, line);
	r->before = r->after = 1;
	sscanf(numbers, "@@ -%lu", &r->before);
	if (strchr(numbers, '+'))
		sscanf(strchr(numbers, '+'), "+%lu", &r->after);
	page_put(p, "<tr class=\"hunk\"><td colspan=\"4\">");
	page_text(p, line, len);
	page_put(p, "</td></tr>\n");
}

/* How many lines from here begin with that letter; marks for a missing end do not count. */
static size_t count_run(const struct reader *from, char letter)
{
	struct reader r = *from;
	const char *line;
	size_t n = 0, len;

	while (next_line(&r, &line, &len) && len > 0 && (*line == letter || *line == '\\')) {
		n += *line == letter;
		skip_line(&r, len);
	}
	return n;
}

/* The next line that begins with the letter, of those that are left. */
static bool take_line(struct reader *r, char letter, const char **ret, size_t *ret_len)
{
	while (next_line(r, ret, ret_len) && *ret_len > 0 && **ret == '\\')
		skip_line(r, *ret_len);
	if (!next_line(r, ret, ret_len) || *ret_len == 0 || **ret != letter)
		return false;
	skip_line(r, *ret_len);
	return true;
}

static void put_change(struct page *p, struct reader *r)
{
	struct reader removed = *r, added;
	const size_t n_removed = count_run(r, '-');
	const char *line = NULL;
	size_t len = 0, n_added;

	for (size_t i = 0; i < n_removed; i++)
		if (!take_line(r, '-', &line, &len))
			break;
	while (next_line(r, &line, &len) && len > 0 && *line == '\\')
		skip_line(r, len);
	added = *r;
	n_added = count_run(r, '+');
	for (size_t i = 0; i < n_removed || i < n_added; i++) {
		page_put(p, "<tr>");
		if (i < n_removed && take_line(&removed, '-', &line, &len))
			put_cell(p, "del", r->before++, line, len);
		else
			put_cell(p, "del", 0, NULL, 0);
		if (i < n_added && take_line(&added, '+', &line, &len))
			put_cell(p, "add", r->after++, line, len);
		else
			put_cell(p, "add", 0, NULL, 0);
		page_put(p, "</tr>\n");
	}
	r->at = added.at > r->at ? added.at : r->at;
}

void page_sides(struct page *p, const char *before, const char *after, const struct buf *patch)
{
	struct reader r = { .at = (const char *)patch->data };
	const char *line;
	size_t len;

	r.end = r.at + patch->len;
	page_put(
	    p,
	    "<div class=\"wide\"><table class=\"sides\"><colgroup><col class=\"n\"><col><col class=\"n\"><col></colgroup><thead><tr><th colspan=\"2\">");
	page_name(p, before);
	page_put(p, "</th><th colspan=\"2\">");
	page_name(p, after);
	page_put(p, "</th></tr></thead><tbody>\n");
	while (next_line(&r, &line, &len)) {
		if (len > 0 && (*line == '-' || *line == '+')) {
			put_change(p, &r);
			continue;
		}
		if (len > 1 && strncmp(line, "@@", 2) == 0) {
			put_hunk(p, &r, line, len);
		} else if (len > 0 && *line == ' ') {
			page_put(p, "<tr>");
			put_cell(p, "ctx", r.before++, line, len);
			put_cell(p, "ctx", r.after++, line, len);
			page_put(p, "</tr>\n");
		}
		skip_line(&r, len);
	}
	page_put(p, "</tbody></table></div>\n");
}
