#include "cli/show/clones.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"

static void set_allow(struct json to, const char *rules)
{
	for (size_t n; rules && *rules != '\0'; rules += n + (rules[n] == ',')) {
		n = strcspn(rules, ",");
		json_add_text_len(to, rules, n);
	}
}

void clones_set_json(struct json j, const struct engine_clone *c)
{
	json_set_name(j, "clone", c->name);
	json_set_name(j, "path", c->path);
	json_set_name(j, "project", c->project);
	json_set_name(j, "part", c->part);
	out_json_id(j, "base", c->base);
	json_set_text(j, "who", c->who);
	json_set_text(j, "via", c->via);
	out_json_time(j, "created", c->created);
	out_json_time_or_null(j, "expires", c->expires);
	json_set_uint_if(j, "quota", c->quota > 0, c->quota);
	json_set_text(j, "durability", c->strict ? "full" : "fast");
	json_set_bool(j, "private", c->private);
	json_set_bool(j, "xattrs", !c->no_xattrs);
	set_allow(json_set_array(j, "allow"), c->allow);
	json_set_bool(j, "mounted", c->mounted);
	json_set_bool(j, "complete", !c->capturing.open);
	json_set_bool(j, "fetching", c->capturing.open && c->capturing.remote);
	json_set_uint(j, "captured", engine_captured_percent(&c->capturing));
	json_set_uint(j, "lost", c->capturing.lost);
}

void clones_set_own(struct json j, const struct engine_clone *c)
{
	json_set_uint_if(j, "own", c->compared, c->own);
}

void clones_print_maker(FILE *out, const struct engine_clone *c)
{
	if (c->who) {
		fputs(" by ", out);
		out_name(out, c->who);
	}
	if (c->via) {
		fputs(" (", out);
		out_name(out, c->via);
		fputc(')', out);
	}
}

void clones_print_reading(FILE *out, const char *clone, uint64_t bytes, const char *end)
{
	char size[SIZE_TEXT_MAX];

	if (bytes == 0)
		return;
	fprintf(out, "reading %s in the background; 'status%s", size_format(bytes, size),
		clone ? " " : "");
	if (clone)
		out_name(out, clone);
	fprintf(out, "' shows how far%s", end);
}

void clones_print_changes(FILE *out, const struct engine_clone *c)
{
	const struct {
		uint64_t n;
		const char *name;
	} parts[] = {
		{ c->added, "added" },
		{ c->modified, "modified" },
		{ c->deleted, "deleted" },
	};
	const char *between = "";
	char count[OUT_COUNT_MAX];

	if (!c->compared) {
		fputs("not known", out);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].n == 0)
			continue;
		fprintf(out, "%s%s %s", between, out_count(parts[i].n, count), parts[i].name);
		between = ", ";
	}
	if (*between == '\0')
		fputs("nothing", out);
}

char *clones_expiry(const struct engine_clone *c, char text[CLONES_EXPIRY_MAX])
{
	char left[DURATION_TEXT_MAX];
	const int64_t ms = c->expires / 1000000 - clock_wall_ns() / 1000000;

	if (c->expires == 0)
		snprintf(text, CLONES_EXPIRY_MAX, "never");
	else if (ms <= 0)
		snprintf(text, CLONES_EXPIRY_MAX, "now, once nobody uses it");
	else
		snprintf(text, CLONES_EXPIRY_MAX, "in %s",
			 duration_format((uint64_t)ms / 1000 * 1000, left));
	return text;
}

int clones_durability(const char *given, bool preset, struct err *err)
{
	if (!given)
		return preset;
	if (strcmp(given, "full") == 0)
		return 1;
	if (strcmp(given, "fast") == 0)
		return 0;
	return err_set(err, -EINVAL, "option '--durability': '%s' is neither full nor fast", given);
}

void clones_hint(struct invocation *inv, int r, const char *forced, const char *clone)
{
	if (r == -EBUSY && forced)
		cmd_hint(inv, "%s %s", forced, clone);
	else if (r == -ENOENT)
		cmd_hint(inv, "list --all");
}
