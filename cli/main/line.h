/*
 * line.h - from the words of a command line to an exit code.
 */
#pragma once

#include "cli/cmd.h"

/*
 * Run the command that argv[0..argc) holds, the program's own name left out, and report what
 * failed.  `inv` says where output goes and by which name the program was called.  Returns the
 * exit code, or a negative errno with a sentence where inv->out could not be written.
 */
int line_run(struct invocation *inv, int argc, char **argv, struct err *err);
