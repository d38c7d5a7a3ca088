/*
 * start-ahead-i.h - cowfsd starts while the command does something else.
 */
#pragma once

struct engine;

/*
 * Start cowfsd unless it runs.  This makes the store if there is none, so it is only for commands that need one,
 * and closes a store that is open.  The next question to cowfsd waits for it, or reports why it did not start.
 */
void start_ahead(struct engine *e);
