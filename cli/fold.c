#include "cli/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define ROOM_MIN 20 /* columns that are enough for the rest of a row */
#define LEFT     4  /* where it stands otherwise */

/* Columns of the character at `s`, and its bytes.  A style takes none. */
static size_t columns_of(const char *s, size_t rest, size_t *len)
{
	uint32_t c = 0;

	if (*s == '\033') {
		const char *end = memchr(s, 'm', rest);

		*len = end ? (size_t)(end - s) + 1 : 1;
		return 0;
	}
	*len = utf8_decode(s, rest, &c);
	if (*len == 0)
		*len = 1;
	/* Nearly all from here on are wide: rather fold too early than in the terminal's way. */
	return c >= 0x2e80 || (c >= 0x1100 && c < 0x1160) ? 2 : 1;
}

static size_t blanks(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (s[i] == ' ' || s[i] == '\t'))
		i++;
	return i;
}

/* The bytes of the word at `s`, and its columns.  "2 minutes ago" is one unless in `text`. */
static size_t word(const char *s, size_t n, bool text, size_t *columns)
{
	size_t i = 0, len, gap;

	for (*columns = 0; i < n; i += len) {
		gap = blanks(s + i, n - i);
		if (gap > 1 || (gap == 1 && text))
			break;
		*columns += columns_of(s + i, n - i, &len);
	}
	return i;
}

static void print_row(const struct fold *f, const char *s, size_t n)
{
	size_t at = 0, from = 0, gap, columns, len; /* `from`: the column, were nothing folded */

	for (size_t i = 0; i < n; i += gap + len) {
		gap = blanks(s + i, n - i);
		if (i + gap == n)
			break;
		from += gap;
		len = word(s + i + gap, n - i - gap, from >= f->last, &columns);
		if (columns > f->columns - LEFT)
			len = word(s + i + gap, n - i - gap, true, &columns);
		if (at > 0 && at + gap + columns > f->columns) {
			at = f->indent + columns <= f->columns ? f->indent : LEFT;
			fprintf(f->out, "\n%*s", (int)at, "");
		} else {
			at += gap;
			fprintf(f->out, "%*s", (int)gap, "");
		}
		fwrite(s + i + gap, 1, len, f->out);
		at += columns;
		from += columns;
	}
	fputc('\n', f->out);
}

void fold_begin(struct fold *f, const struct invocation *inv, size_t columns, size_t last)
{
	FILE *rows;

	*f = (struct fold){ .to = *inv, .columns = columns, .last = last };
	f->indent = last + ROOM_MIN <= columns ? last : LEFT;
	rows = columns > 0 ? open_memstream(&f->text, &f->len) : NULL;
	if (!rows)
		return;
	f->out = inv->out;
	f->to.out = rows;
}

void fold_end(struct fold *f)
{
	const char *end, *s;

	if (!f->out)
		return;
	if (fclose(f->to.out) != 0)
		fputs("(out of memory)\n", f->out);
	for (s = f->text; s && (end = memchr(s, '\n', f->len - (size_t)(s - f->text))); s = end + 1)
		print_row(f, s, (size_t)(end - s));
	free(f->text);
	*f = (struct fold){ 0 };
}
