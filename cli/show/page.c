#include "cli/show/page.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/vec.h"
#include "cli/out.h"
#include "cli/show/comparisons.h"

/* The policy lets the page load and run nothing, should an escape ever be wrong. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

static const char style[] =
    "<style>\n"
    ":root{--bg:#fff;--fg:#1f2328;--dim:#656d76;--line:#d1d9e0;--soft:#f6f8fa;--add:#dafbe1;"
    "--del:#ffebe9;--good:#1a7f37;--bad:#cf222e;--mod:#9a6700;--bar:#0969da}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#8d96a0;"
    "--line:#30363d;--soft:#161b22;--add:#12361f;--del:#471a1d;--good:#3fb950;--bad:#f85149;"
    "--mod:#d29922;--bar:#4493f8}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:1200px;padding:24px 20px 64px;background:var(--bg);"
    "color:var(--fg);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}\n"
    "h2{font-size:17px;margin:36px 0 10px}\n"
    "p{margin:0 0 8px}.dim{color:var(--dim)}\n"
    "code,td,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
    "font-size:13px}\n"
    ".wide{overflow-x:auto;margin:0 0 16px;border:1px solid var(--line);border-radius:6px}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;padding:5px 12px;border-bottom:1px solid var(--line);"
    "white-space:nowrap;unicode-bidi:isolate}\n"
    "tbody tr:last-child td{border-bottom:0}\n"
    "th{background:var(--soft);font-size:13px;font-weight:600}\n"
    "td.path{width:100%}\n"
    ".A{color:var(--good)}.D{color:var(--bad)}.M,.T,.m{color:var(--mod)}\n"
    "td.why{white-space:normal;min-width:200px}tr.wins td{background:var(--add)}\n"
    ".verdict{font-size:17px;margin:12px 0 0}\n"
    ".conflict{color:var(--bad);font-weight:600}.clean{color:var(--good);font-weight:600}\n"
    ".chart{display:block;width:100%;max-width:760px;font:14px system-ui,sans-serif;"
    "fill:var(--fg)}\n"
    ".chart .bar{fill:var(--bar);opacity:.75}.chart .axis{stroke:var(--dim);fill:none}\n"
    ".chart .spread{stroke:var(--fg);stroke-width:1.5;fill:none}.chart .value{fill:var(--dim)}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 10px}\n"
    "details{margin:0 0 10px}summary{cursor:pointer;padding:6px 0}\n"
    ".sides{table-layout:fixed}.sides td{border:0;padding:0 10px;white-space:pre-wrap;"
    "overflow-wrap:anywhere;vertical-align:top}\n"
    ".sides th{border-bottom:1px solid var(--line)}\n"
    "col.n{width:56px}.sides td{tab-size:4}.three td{tab-size:4}\n"
    ".sides td.n{color:var(--dim);text-align:right;user-select:none}\n"
    ".sides .add{background:var(--add)}.sides .del{background:var(--del)}\n"
    ".sides .none{background:var(--soft)}.hunk td{color:var(--dim);background:var(--soft)}\n"
    ".three td{white-space:pre-wrap;overflow-wrap:anywhere;vertical-align:top;width:33.3%}\n"
    ".three{table-layout:fixed}\n"
    "@media print{details{break-inside:avoid}}\n"
    "</style></head><body>\n";

/* An id is shown short. */
static void put_state(struct page *p, const char *name)
{
	const size_t len = strlen(name);
	const bool is_id = len == ENGINE_ID_SIZE - 1 && strspn(name, "0123456789abcdef") == len;

	page_text(p, name, is_id ? OUT_SHORT_ID : len);
}

static void put_title(struct page *p, const struct engine_compare *c, const char *title)
{
	if (title) {
		page_name(p, title);
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		page_put(p, i > 0 ? ", " : "");
		put_state(p, c->sides[i].name);
	}
}

static void put_head(struct page *p, const struct engine_compare *c, const char *title)
{
	char when[OUT_TIME_MAX];

	page_put(p, head);
	page_put(p, "<title>");
	put_title(p, c, title);
	page_put(p, "</title>\n");
	page_put(p, style);
	page_put(p, "<h1>");
	put_title(p, c, title);
	page_put(p, "</h1>\n");
	if (c->n == 0)
		return;
	out_rfc3339(c->base_time / 1000000000, 0, when);
	page_put(p, "<p class=\"dim\">changed since <code>");
	put_state(p, c->base_name);
	/* "2025-03-01T13:05:00.000Z" */
	page_printf(p, "</code>, %.10s %.5s UTC</p>\n", when, when + 11);
}

/* --- tables ----------------------------------------------------------------------------- */

static void put_summary(struct page *p, const struct engine_compare *c)
{
	page_put(p, "<h2>States</h2>\n<div class=\"wide\"><table><thead><tr><th>state</th>"
		    "<th>added</th><th>modified</th><th>deleted</th><th>lines</th>"
		    "<th></th></tr></thead><tbody>\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct engine_compare_side *s = &c->sides[i];

		page_put(p, "<tr><td>");
		put_state(p, s->name);
		page_printf(p,
			    "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64
			    "</td><td><span class=\"A\">+%" PRIu64
			    "</span> <span class=\"D\">-%" PRIu64
			    "</span></td><td class=\"path dim\">",
			    s->added, s->modified, s->deleted, s->lines_added, s->lines_removed);
		if (s->git > 0)
			page_printf(p, "%" PRIu64 " paths in .git, not listed ", s->git);
		if (s->base_differs)
			page_put(p, "has a later base");
		page_put(p, "</td></tr>\n");
	}
	page_put(p, "</tbody></table></div>\n");
}

static void put_change(struct page *p, const struct engine_compare_change *change)
{
	if (change->status == '\0') {
		page_put(p, "<td class=\"dim\">&#183;</td>");
		return;
	}
	page_printf(p, "<td><span class=\"%c\">%c</span>", change->status, change->status);
	if (change->binary)
		page_put(p, " binary");
	if (change->added > 0)
		page_printf(p, " +%" PRIu64, change->added);
	if (change->removed > 0)
		page_printf(p, " -%" PRIu64, change->removed);
	page_put(p, "</td>");
}

static void put_files(struct page *p, const struct engine_compare *c)
{
	page_put(p, "<h2>Files</h2>\n");
	if (c->n_files == 0) {
		page_put(p, "<p>No state changed a file.</p>\n");
		return;
	}
	page_put(p, "<div class=\"wide\"><table><thead><tr>");
	for (size_t i = 0; i < c->n; i++) {
		page_put(p, "<th>");
		put_state(p, c->sides[i].name);
		page_put(p, "</th>");
	}
	page_put(p, "<th></th><th>path</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < c->n_files; i++) {
		const struct engine_compare_file *f = &c->files[i];
		const char *overlap =
		    f->overlap == ENGINE_COMPARE_ONE ? "" : comparisons_overlap(f->overlap);

		page_put(p, "<tr>");
		for (size_t k = 0; k < c->n; k++)
			put_change(p, &f->changes[k]);
		page_printf(p, "<td class=\"%s\">%s</td><td class=\"path\">", overlap, overlap);
		page_name(p, f->path);
		page_put(p, "</td></tr>\n");
	}
	page_put(p, "</tbody></table></div>\n");
}

static void put_pairs(struct page *p, const struct engine_compare *c)
{
	page_put(p, "<h2>Would they merge?</h2>\n<div class=\"wide\"><table><tbody>\n");
	for (size_t i = 0; i < c->n_pairs; i++) {
		const struct engine_compare_pair *pair = &c->pairs[i];

		page_put(p, "<tr><td>");
		put_state(p, c->sides[pair->a].name);
		page_put(p, " and ");
		put_state(p, c->sides[pair->b].name);
		if (pair->n_conflicts == 0)
			page_put(p, "</td><td class=\"clean path\">merge cleanly</td></tr>\n");
		else
			page_printf(p, "</td><td class=\"conflict path\">%zu %s</td></tr>\n",
				    pair->n_conflicts,
				    pair->n_conflicts == 1 ? "conflict" : "conflicts");
	}
	page_put(p, "</tbody></table></div>\n");
}

static void put_warnings(struct page *p, const struct engine_compare *c)
{
	if (c->n_warnings == 0)
		return;
	page_put(p, "<h2>Look at these first</h2>\n<div class=\"wide\"><table><tbody>\n");
	for (size_t i = 0; i < c->n_warnings; i++) {
		const struct engine_compare_warning *w = &c->warnings[i];

		page_put(p, "<tr><td>");
		put_state(p, c->sides[w->side].name);
		page_put(p, "</td><td>");
		page_name(p, w->path);
		page_put(p, "</td><td class=\"path\">");
		page_name(p, w->why);
		page_put(p, " (");
		page_name(p, w->rule);
		page_put(p, ")</td></tr>\n");
	}
	page_put(p, "</tbody></table></div>\n");
}

/* --- texts ------------------------------------------------------------------------------ */

static void put_conflict(struct page *p, const struct engine_compare *c,
			 const struct engine_compare_pair *pair, const struct engine_conflict *x)
{
	page_put(p, "<p><code>");
	page_name(p, out_path(x->path));
	page_put(p, "</code> <span class=\"dim\">");
	put_state(p, c->sides[pair->a].name);
	page_put(p, " and ");
	put_state(p, c->sides[pair->b].name);
	page_printf(p, " (%s)</span></p>\n", x->kind);
	if (x->n_places == 0)
		return;
	page_put(p, "<div class=\"wide\"><table class=\"three\"><thead><tr><th>base</th><th>");
	put_state(p, c->sides[pair->a].name);
	page_put(p, "</th><th>");
	put_state(p, c->sides[pair->b].name);
	page_put(p, "</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < x->n_places; i++) {
		page_put(p, "<tr>");
		for (size_t k = 0; k < ENGINE_CONFLICT_SIDES; k++) {
			page_put(p, "<td>");
			page_name(p, x->places[i].text[k]);
			page_put(p, "</td>");
		}
		page_put(p, "</tr>\n");
	}
	page_put(p, "</tbody></table></div>\n");
}

static void put_conflicts(struct page *p, const struct engine_compare *c)
{
	if (c->clean)
		return;
	page_put(p, "<h2>Conflicts</h2>\n");
	for (size_t i = 0; i < c->n_pairs; i++)
		for (size_t k = 0; k < c->pairs[i].n_conflicts; k++)
			put_conflict(p, c, &c->pairs[i], &c->pairs[i].conflicts[k]);
}

static bool has_patch(const struct engine_compare *c, const struct engine_compare_file *f)
{
	return VEC_HAS(it, f->changes, c->n, it->patch.len > 0 || it->cut);
}

static void put_diff(struct page *p, const struct engine_compare *c,
		     const struct engine_compare_file *f)
{
	page_printf(p, "<details%s><summary class=\"mono\">",
		    f->overlap == ENGINE_COMPARE_CONFLICT ? " open" : "");
	page_name(p, f->path);
	page_put(p, "</summary>\n");
	for (size_t i = 0; i < c->n; i++) {
		if (f->changes[i].patch.len > 0)
			page_sides(p, "base", c->sides[i].name, &f->changes[i].patch);
		if (f->changes[i].cut)
			page_put(p, "<p class=\"dim\">There is more, which is left out.</p>\n");
	}
	page_put(p, "</details>\n");
}

static void put_diffs(struct page *p, const struct engine_compare *c)
{
	bool any = false;

	for (size_t i = 0; i < c->n_files; i++) {
		if (!has_patch(c, &c->files[i]))
			continue;
		if (!any)
			page_put(p, "<h2>Side by side</h2>\n");
		any = true;
		put_diff(p, c, &c->files[i]);
	}
}

static void put_comparison(struct page *p, const struct engine_compare *c)
{
	put_summary(p, c);
	put_files(p, c);
	put_pairs(p, c);
	put_warnings(p, c);
	put_conflicts(p, c);
	put_diffs(p, c);
}

bool page_is_stdout(const char *file)
{
	return strcmp(file, "-") == 0;
}

int page_take_stdout(struct invocation *inv, const char *file, struct err *err)
{
	if (!file || !page_is_stdout(file))
		return 0;
	if (inv->json)
		return err_set(err, -EINVAL,
			       "option '--html': standard output has the JSON; name a file");
	inv->out = stderr;
	return 0;
}

static int write_stdout(const struct buf *text, struct err *err)
{
	int r;

	fflush(stdout);
	r = fdio_write(STDOUT_FILENO, text->data, text->len);
	return r < 0 ? err_set(err, r, "writing the page: %s", strerror(-r)) : 0;
}

int page_write(const char *file, const struct engine_compare *c, const struct page_options *options,
	       struct err *err)
{
	struct page p = { .text = BUF_INIT };
	int r;

	put_head(&p, c, options->title);
	if (options->begin)
		options->begin(&p, options->ctx);
	if (options->n_scores > 0) {
		page_put(&p, "<h2>Scores</h2>\n");
		page_chart(&p, options->scores, options->n_scores, options->unit);
	}
	if (c->n > 0)
		put_comparison(&p, c);
	page_put(&p, "</body></html>\n");
	r = p.r < 0 ? err_nomem(err)
	    : page_is_stdout(file)
		? write_stdout(&p.text, err)
		: fdio_replace_file(AT_FDCWD, file, p.text.data, p.text.len, 0666, err);
	buf_done(&p.text);
	return r;
}
