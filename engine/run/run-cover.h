/*
 * run-cover.h - what is always hidden in granted folders.
 *
 * A folder of the host may hold stores, with the code of other projects, and sockets of programs
 * that obey requests: a key agent, a container engine, a cowfsd. Granting the folder read-only does
 * not keep a run from connecting to these. So we hide every socket that is open under a name when
 * the run starts, every store whose cowfsd is alive, and the usual place of stores. A socket that
 * is granted by its own name is not hidden. The project is, where its path is not the one that the clone
 * is mounted at.
 */
#pragma once

#include "engine/find/engine-i.h"
#include "runner/layout.h"

/*
 * Hide these below the host's folders that `l` has by now.  `clone` is the clone's path outside,
 * `project` the one inside; NULL: it is the run's root.  -ECANCELED with a sentence if a granted folder
 * is in a store.
 */
NODISCARD int run_cover(struct layout *l, const char *clone, const char *project, struct err *err);
