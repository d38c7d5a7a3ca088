#include "engine/find/growth-i.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "engine/find/engine-i.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define ROW_MAX        128
#define THINNED        (ENGINE_GROWTH_MAX * 3 / 4) /* rows that are left: not each note rewrites all */
#define APART          50 /* two rows lie apart by this part of their age, at least */

/* --- rows as text ------------------------------------------------------------------------- */

static int format_row(const struct engine_growth_row *row, char text[ROW_MAX])
{
	const int n = snprintf(text, ROW_MAX, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			       row->time, row->logical, row->disk, row->used);

	return n + (row->judged
			? snprintf(text + n, ROW_MAX - (size_t)n, " %" PRIu64 "\n", row->garbage)
			: snprintf(text + n, ROW_MAX - (size_t)n, " -\n"));
}

static bool parse_row(const char *line, struct engine_growth_row *ret)
{
	char garbage[24];

	*ret = (struct engine_growth_row){ 0 };
	if (sscanf(line, "%" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %23s", &ret->time,
		   &ret->logical, &ret->disk, &ret->used, garbage) != 5)
		return false;
	ret->judged = sscanf(garbage, "%" SCNu64, &ret->garbage) == 1;
	return true;
}

/* --- fewer of them ------------------------------------------------------------------------ */

/* Keep the first, the last, and between them each that is far enough from the one kept before it. */
static void drop_close(struct engine_growth *g, int64_t now, int64_t apart)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		const int64_t age = now - g->list[i].time;

		if (n == 0 || i == g->n - 1 || g->list[i].time - g->list[n - 1].time >= age / apart)
			g->list[n++] = g->list[i];
	}
	g->n = n;
}

/* Have at most `most` rows: of those that are old, only some that lie well apart. */
static void growth_thin(struct engine_growth *g, int64_t now, size_t most)
{
	for (int64_t apart = APART; g->n > most && apart > 0; apart /= 2)
		drop_close(g, now, apart);
	/* Rows of one moment, as a clock that stood still would make them. */
	if (g->n > most) {
		memmove(g->list, g->list + (g->n - most), most * sizeof(g->list[0]));
		g->n = most;
	}
}

/* --- the file ----------------------------------------------------------------------------- */

static void add_row(struct engine_growth *g, const struct engine_growth_row *row)
{
	if (g->n == ENGINE_GROWTH_MAX)
		growth_thin(g, row->time, THINNED);
	g->list[g->n++] = *row;
}

/* 1 if half a line follows the last row: the disk was full, or the machine failed. */
static int read_rows(const char *store, struct engine_growth *ret, struct err *err)
{
	AUTO_FREE char *path = path_join(store, GROWTH_FILE);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = path ? fdio_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &text, err) : err_nomem(err);
	const char *at, *end;

	ret->n = 0;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!buf_str(&text))
		return err_nomem(err);
	for (at = buf_str(&text); (end = strchr(at, '\n')); at = end + 1) {
		struct engine_growth_row row;

		/* The clock was set back: what it said before is no time of this history. */
		if (parse_row(at, &row)) {
			while (ret->n > 0 && ret->list[ret->n - 1].time > row.time)
				ret->n--;
			add_row(ret, &row);
		}
	}
	return at < buf_str(&text) + text.len;
}

int growth_read(const char *store, struct engine_growth *ret, struct err *err)
{
	const int r = read_rows(store, ret, err);

	return r < 0 ? r : 0;
}

static int append_row(const char *store, const struct engine_growth_row *row, struct err *err)
{
	AUTO_FREE char *path = path_join(store, GROWTH_FILE);
	AUTO_CLOSE int fd = -1;
	char text[ROW_MAX];
	const int n = format_row(row, text);

	if (!path)
		return err_nomem(err);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fdio_write(fd, text, (size_t)n) < 0)
		return err_sys(err, "noting the size of the store");
	return 0;
}

static int write_all(const char *store, const struct engine_growth *g, struct err *err)
{
	AUTO_CLOSE int dir = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char row[ROW_MAX];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < g->n; i++)
		r = buf_append(&text, row, (size_t)format_row(&g->list[i], row));
	if (r < 0)
		return err_nomem(err);
	return fdio_replace_file(dir, GROWTH_FILE, text.data, text.len, 0600, err);
}

int growth_add(const char *store, const struct engine_growth_row *row, struct err *err)
{
	AUTO_FREE struct engine_growth *g = calloc(1, sizeof(*g));
	const struct engine_growth_row *last;
	int r = g ? read_rows(store, g, err) : err_nomem(err);

	if (r < 0)
		return r;
	last = g->n > 0 ? &g->list[g->n - 1] : NULL;
	if (last && !row->judged && last->logical == row->logical && last->disk == row->disk &&
	    last->used == row->used)
		return 0;
	/* After half a line it would only make that line longer: then the whole file is written anew. */
	if (r == 0 && g->n < ENGINE_GROWTH_MAX)
		return append_row(store, row, err);
	add_row(g, row);
	return write_all(store, g, err);
}

int engine_growth(struct engine *e, struct engine_growth *ret, struct err *err)
{
	return growth_read(e->store_path, ret, err);
}
