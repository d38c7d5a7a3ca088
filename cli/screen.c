#include "cli/screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void screen_begin(struct screen *s, const struct invocation *inv)
{
	*s = (struct screen){ .out = inv->out, .escapes = !inv->json && isatty(fileno(inv->out)) };
	if (inv->color) {
		s->text.on = "\033[7m";
		s->text.off = "\033[27m";
	}
}

static int print(const struct screen *s, const void *data, size_t len, struct err *err)
{
	if (len > 0 && fwrite(data, 1, len, s->out) != len)
		return err_sys(err, "writing to standard output");
	return 0;
}

int screen_write(struct screen *s, const void *data, size_t len, struct err *err)
{
	if (!s->escapes)
		return print(s, data, len, err);
	buf_reset(&s->buf);
	if (visible_append(&s->text, data, len, &s->buf) < 0)
		return err_nomem(err);
	return print(s, s->buf.data, s->buf.len, err);
}

int screen_flush(struct screen *s, struct err *err)
{
	buf_reset(&s->buf);
	if (visible_end(&s->text, &s->buf) < 0)
		return err_nomem(err);
	return print(s, s->buf.data, s->buf.len, err);
}

void screen_done(struct screen *s)
{
	buf_done(&s->buf);
}

void screen_reset_below(FILE *terminal)
{
	const char *kind = getenv("TERM");

	/* Not the second screen: a terminal that is not on it would go back to where the cursor was saved. */
	fputs(kind && strcmp(kind, "dumb") != 0 ? "\n\033[!p\033[0m\r" : "\n", terminal);
}

void screen_reset(const struct invocation *inv)
{
	if (isatty(fileno(inv->out)))
		fputs("\033[?1049l\033[!p\033[0m\r\033[K", inv->out);
}
