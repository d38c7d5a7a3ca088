#include <stdio.h>

#include "engine/experiment/experiment-i.h"

struct engine_arms_walk engine_arms_walk(const struct engine_experiment *x)
{
	return (struct engine_arms_walk){ .in = { x } };
}

struct engine_arm *engine_arms_next(struct engine_arms_walk *walk)
{
	for (;;) {
		const struct engine_experiment *x = walk->in[walk->level];
		size_t *next = &walk->next[walk->level];

		if (walk->enter && walk->level + 1 < ENGINE_LEVELS_MAX &&
		    x->arms[*next - 1].n_inner > 0) {
			walk->level++;
			walk->in[walk->level] = x->arms[*next - 1].inner;
			walk->next[walk->level] = 0;
			walk->enter = false;
			continue;
		}
		walk->enter = *next < x->n_arms;
		if (walk->enter)
			return &x->arms[(*next)++];
		if (walk->level == 0)
			return NULL;
		walk->level--;
	}
}

size_t engine_arms_count(const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	size_t n = 0;

	while (engine_arms_next(&walk))
		n++;
	return n;
}

const char *engine_arms_path(const struct engine_arms_walk *walk, char text[ENGINE_ARM_PATH_SIZE])
{
	size_t len = 0;

	for (size_t i = 0; i <= walk->level && len < ENGINE_ARM_PATH_SIZE; i++)
		len +=
		    (size_t)snprintf(text + len, ENGINE_ARM_PATH_SIZE - len, "%s%s",
				     i > 0 ? "/" : "", walk->in[i]->arms[walk->next[i] - 1].name);
	return text;
}
