/*
 * screen.h - untrusted content, printed to standard output.
 *
 * On a terminal, and through a pager to one, content is shown and not obeyed (base/visible.h): a
 * file under review cannot hide a line of itself, move the cursor or speak to the terminal. Into
 * files and pipes it goes byte for byte. Our own colours are printed beside it, not through it.
 */
#pragma once

#include "base/visible.h"
#include "cli/cmd.h"

struct screen {
	FILE *out;
	bool escapes;
	struct visible text;
	struct buf buf; /* owned */
};

/* Before a pager begins: afterwards nobody can tell whether a person looks. */
void screen_begin(struct screen *s, const struct invocation *inv);

NODISCARD int screen_write(struct screen *s, const void *data, size_t len, struct err *err);

/* A character that was cut off is shown as its bytes; what is written next is another text. */
NODISCARD int screen_flush(struct screen *s, struct err *err);

void screen_done(struct screen *s);

/* What makes a terminal forget how a program left it: colours, cursor, margins, second screen. */
void screen_reset(const struct invocation *inv);

/* The same for a line below what stands there, which stays. */
void screen_reset_below(FILE *terminal);
