/*
 * choice.h - one key from the person at the terminal.
 */
#pragma once

#include "cli/cmd.h"

/* Is there somebody to be asked: are standard input and output a terminal, and is no JSON wanted? */
bool choice_possible(const struct invocation *inv);

/*
 * Ask, and wait for one of `keys`, without Enter.  What was typed before is not counted.  Enter, the end
 * of the input and a signal that means to end us, as ^C does, are `otherwise`; then *ret_signal is that
 * signal, else 0.  The terminal is left as it was.
 */
char choice_ask(const struct invocation *inv, const char *question, const char *keys,
		char otherwise, int *ret_signal);
