#include "cli/show/held.h"

#include <errno.h>
#include <string.h>

#include "cli/out.h"
#include "snapshot/text/guard.h"

const char *held_why(const char *rule)
{
	size_t n, n_system;
	const struct guard_rule *rules = guard_rules(&n);
	const struct guard_rule *system = guard_system_rules(&n_system);

	for (size_t i = 0; i < n; i++)
		if (strcmp(rules[i].name, rule) == 0)
			return rules[i].why;
	for (size_t i = 0; i < n_system; i++)
		if (strcmp(system[i].name, rule) == 0)
			return system[i].why;
	return "a rule of yours holds it";
}

bool held_by_system(const struct engine_rolled_path *list, size_t n)
{
	size_t n_system;
	const struct guard_rule *system = guard_system_rules(&n_system);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n_system; k++)
			if (strcmp(system[k].name, list[i].why) == 0)
				return true;
	return false;
}

static size_t count_below(const struct engine_rolled_path *list, size_t n)
{
	const char *top = list[0].path;
	const size_t len = strlen(top);
	size_t below = 0;

	for (size_t i = 1; i < n; i++)
		below += strncmp(list[i].path, top, len) == 0 && list[i].path[len] == '/';
	return below;
}

void held_say(const char *act, const struct engine_rolled_path *list, size_t n, struct err *err)
{
	const struct engine_rolled_path *h = &list[0];
	const size_t below = count_below(list, n), others = n - 1 - below;
	char inside[64] = "", besides[64] = "";

	if (below > 0)
		snprintf(inside, sizeof(inside), " with %zu path%s below it", below,
			 below > 1 ? "s" : "");
	if (others > 0)
		snprintf(besides, sizeof(besides), "; %zu other path%s held, too", others,
			 others > 1 ? "s are" : " is");
	err_set(err, -ECANCELED, "%s '%s'%s%.60s%s%s is held by rule '%s': %s%s", act, h->path,
		h->detail ? " -> '" : "", h->detail ? h->detail : "", h->detail ? "'" : "", inside,
		h->why, held_why(h->why), besides);
}

void held_print(const struct invocation *inv, FILE *out, const struct engine_rolled_path *list,
		size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "  %sheld:%s ", out_style(inv, OUT_BAD), out_style(inv, OUT_PLAIN));
		out_name(out, list[i].path);
		if (list[i].detail) {
			fputs(" -> ", out);
			out_name(out, list[i].detail);
		}
		fprintf(out, " (%s)\n", list[i].why);
	}
}
