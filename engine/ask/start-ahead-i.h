/*
 * start-ahead-i.h - cowfsd starts while the command does something else.
 */
#pragma once

struct engine;

/*
 * Unless it runs.  The store is made if there is none, so only for what will need it.  Whoever asks cowfsd
 * next waits until it is there, and reports why if it could not be started.  A store that is open is closed.
 */
void start_ahead(struct engine *e);
