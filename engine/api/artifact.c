#include "engine/api/artifact.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"

void engine_artifact_done(struct engine_artifact *a)
{
	texts_free(a->paths, a->n_paths);
	free(a->clone);
	free(a->meta);
	*a = (struct engine_artifact){ 0 };
}

void engine_artifacts_done(struct engine_artifacts *a)
{
	VEC_FREE(it, a->list, a->n, engine_artifact_done(it));
	free(a->project);
	*a = (struct engine_artifacts){ 0 };
}
