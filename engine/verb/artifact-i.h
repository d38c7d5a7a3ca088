/*
 * artifact-i.h - the guard's verdict on an artifact that is to be written into a project.
 */
#pragma once

#include "engine/find/engine-i.h"

/*
 * Nothing stands between an artifact and the files of a project, so a path that the guard holds is not
 * written there, nor a link that leads out of the artifact: -EPERM with a sentence.  Anywhere else all is
 * well.  `to` is clean and absolute; it need not exist.
 */
NODISCARD int artifact_judge(struct engine *e, struct store *s, const struct object_id *tree,
			     const char *to, struct err *err);
