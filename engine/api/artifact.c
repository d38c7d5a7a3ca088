#include "engine/api/artifact.h"

#include <stdlib.h>

#include "base/text.h"

void engine_artifact_done(struct engine_artifact *a)
{
	texts_free(a->paths, a->n_paths);
	free(a->clone);
	free(a->meta);
	*a = (struct engine_artifact){ 0 };
}

void engine_artifacts_done(struct engine_artifacts *a)
{
	for (size_t i = 0; i < a->n; i++)
		engine_artifact_done(&a->list[i]);
	free(a->list);
	free(a->project);
	*a = (struct engine_artifacts){ 0 };
}
