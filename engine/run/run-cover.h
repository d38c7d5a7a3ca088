/*
 * run-cover.h - what is covered in any case of what a run is granted.
 *
 * A folder of the host may hold stores, with the code of other projects, and sockets of programs
 * that do what they are asked: an agent of keys, a container engine, a cowfsd.  That the folder is
 * granted read-only does not keep anybody from connecting to these.  So every socket that a program
 * has open under a name at the start of the run is covered, every store whose cowfsd lives, and the
 * one where stores usually are.  One that is granted by its own name is meant.
 */
#pragma once

#include "engine/find/engine-i.h"
#include "runner/layout.h"

/*
 * Cover what lies below the folders of the host that `l` has by now; `clone` is the path of the
 * clone outside, `project` the one inside.  -ECANCELED with a sentence if one of them lies in a
 * store of somebody's.
 */
NODISCARD int run_cover(struct layout *l, const char *clone, const char *project, struct err *err);
