#include "engine/api/bisect.h"

#include <stdlib.h>

void engine_bisect_done(struct engine_bisect *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->list[i].id);
		free(b->list[i].title);
	}
	free(b->list);
	*b = (struct engine_bisect){ 0 };
}
