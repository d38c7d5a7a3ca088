#include "cli/show/diffstat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cquote.h"
#include "base/vec.h"
#include "base/visible.h"
#include "cli/out.h"

#define NAME_WIDTH_MAX 60
#define GRAPH_WIDTH    30

static void row_done(struct diffstat_row *row)
{
	free(row->name);
	free(row->folder);
}

void diffstat_done(struct diffstat *s)
{
	VEC_FREE(it, s->rows, s->n, row_done(it));
	*s = (struct diffstat){ 0 };
}

static int make_visible(struct buf *name)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	struct visible v = { 0 };

	if (visible_append(&v, name->data, name->len, &shown) < 0 || visible_end(&v, &shown) < 0)
		return -ENOMEM;
	buf_swap(name, &shown);
	return 0;
}

/* All that lies in one folder of git's own is one row. */
static int add_to_row(struct diffstat_row *row, const struct patch_counts *counts, struct err *err)
{
	char *name = NULL;

	if (asprintf(&name, "%s (%zu files)", row->folder, row->files + 1) < 0)
		return err_nomem(err);
	free(row->name);
	row->name = name;
	row->files++;
	row->counts.added += counts->added;
	row->counts.removed += counts->removed;
	row->counts.binary &= counts->binary;
	return 0;
}

static size_t top_folder(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

int diffstat_add(struct diffstat *s, const struct delta_file *f, const struct patch_counts *counts,
		 bool shows, bool by_top, struct err *err)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT;
	const size_t len = by_top ? top_folder(f->path) : f->old_path ? 0 : out_git_folder(f->path);
	struct diffstat_row *last = s->n > 0 ? &s->rows[s->n - 1] : NULL;

	if (len > 0 && last && last->folder && strlen(last->folder) == len &&
	    memcmp(last->folder, f->path, len) == 0)
		return add_to_row(last, counts, err);

	if (!VEC_ROOM(s->rows, s->n, s->cap))
		return err_nomem(err);
	if (f->old_path && !by_top &&
	    (cquote_append(&name, "", f->old_path) < 0 || buf_append_str(&name, " => ") < 0))
		return err_nomem(err);
	if (cquote_append(&name, "", f->path) < 0 || (shows && make_visible(&name) < 0) ||
	    !buf_str(&name))
		return err_nomem(err);
	last = &s->rows[s->n++];
	*last = (struct diffstat_row){
		.name = strdup(buf_str(&name)),
		.counts = *counts,
		.folder = len > 0 ? strndup(f->path, len) : NULL,
		.files = 1,
	};
	return last->name && (last->folder || len == 0) ? 0 : err_nomem(err);
}

static void print_many(FILE *out, char c, uint64_t n)
{
	for (; n > 0; n--)
		fputc(c, out);
}

/* What is there is shown by one sign at least. */
static uint64_t scaled(uint64_t n, uint64_t most)
{
	if (most <= GRAPH_WIDTH || n == 0)
		return n;
	return n * GRAPH_WIDTH / most > 0 ? n * GRAPH_WIDTH / most : 1;
}

static void print_row(const struct diffstat_row *row, const struct invocation *inv, int width,
		      uint64_t most)
{
	const struct patch_counts *c = &row->counts;

	fprintf(inv->out, " %-*s | ", width, row->name);
	if (c->binary) {
		fputs("Bin\n", inv->out);
		return;
	}
	fprintf(inv->out, "%" PRIu64, c->added + c->removed);
	if (c->added + c->removed > 0)
		fputc(' ', inv->out);
	fputs(out_style(inv, OUT_GOOD), inv->out);
	print_many(inv->out, '+', scaled(c->added, most));
	fputs(out_style(inv, OUT_OLD), inv->out);
	print_many(inv->out, '-', scaled(c->removed, most));
	fprintf(inv->out, "%s\n", out_style(inv, OUT_PLAIN));
}

void diffstat_print(const struct diffstat *s, const struct invocation *inv)
{
	uint64_t added = 0, removed = 0, most = 1;
	size_t files = 0;
	int width = 0;

	if (s->n == 0)
		return;
	for (size_t i = 0; i < s->n; i++) {
		const struct patch_counts *c = &s->rows[i].counts;
		const size_t len = strlen(s->rows[i].name);

		files += s->rows[i].files;
		added += c->added;
		removed += c->removed;
		most = c->added + c->removed > most ? c->added + c->removed : most;
		width = len <= NAME_WIDTH_MAX && (int)len > width ? (int)len : width;
	}
	for (size_t i = 0; i < s->n; i++)
		print_row(&s->rows[i], inv, width, most);
	fprintf(inv->out, " %zu %s changed", files, files == 1 ? "file" : "files");
	if (added > 0)
		fprintf(inv->out, ", %" PRIu64 " %s(+)", added,
			added == 1 ? "insertion" : "insertions");
	if (removed > 0)
		fprintf(inv->out, ", %" PRIu64 " %s(-)", removed,
			removed == 1 ? "deletion" : "deletions");
	fputc('\n', inv->out);
}
