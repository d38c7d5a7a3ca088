#include <stdlib.h>

#include "engine/act/land-i.h"
#include "engine/api/promote.h"
#include "engine/find/conflicts-i.h"
#include "engine/verb/commits-i.h"

void engine_promotion_done(struct engine_promotion *p)
{
	landing_free_paths(p->paths, p->n_paths);
	landing_free_paths(p->held, p->n_held);
	landing_free_paths(p->meanwhile, p->n_meanwhile);
	landing_free_paths(p->left, p->n_left);
	conflicts_free(p->conflicts, p->n_conflicts);
	for (size_t i = 0; i < p->n_checks; i++)
		free(p->checks[i].command);
	free(p->checks);
	engine_commits_done(&p->commits);
	free(p->clone);
	free(p->project);
	*p = (struct engine_promotion){ 0 };
}
