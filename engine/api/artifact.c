#include "engine/api/artifact.h"

#include <stdlib.h>

void engine_artifact_done(struct engine_artifact *a)
{
	for (size_t i = 0; i < a->n_paths; i++)
		free(a->paths[i]);
	free(a->paths);
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
