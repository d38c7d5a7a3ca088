#include "cli/show/refusals.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"

#define LINES_MAX 5
#define NET_FLAG  "--net "
#define ANY_PORT  ":PORT"

void refusals_set_json(struct json j, const struct engine_refusals *r)
{
	const struct json list = json_set_array(j, "refusals");

	for (size_t i = 0; i < r->n; i++) {
		const struct engine_refusal *one = &r->list[i];
		const struct json at = json_add_object(list);

		json_set_text(at, "kind", one->kind);
		json_set_text(at, "what", one->what);
		json_set_text(at, "rule", one->rule);
		json_set_text(at, "flag", *one->flag != '\0' ? one->flag : NULL);
		json_set_text(at, "message", one->message);
		json_set_uint(at, "count", one->count);
	}
	json_set_uint(j, "refusals_more", r->more);
}

/* Programs ask for a name before they ask for a port of it: the second says all that is needed. */
static bool is_said_better(const struct engine_refusals *r, const char *rule)
{
	const size_t host = strlen(rule) - strlen(ANY_PORT);

	if (strlen(rule) < strlen(ANY_PORT) || strcmp(rule + host, ANY_PORT) != 0)
		return false;
	for (size_t i = 0; i < r->n; i++) {
		const char *other = r->list[i].flag;

		if (strncmp(other, NET_FLAG, strlen(NET_FLAG)) == 0 &&
		    strncmp(other + strlen(NET_FLAG), rule, host + 1) == 0 &&
		    strcmp(other + strlen(NET_FLAG), rule) != 0)
			return true;
	}
	return false;
}

/* Programs try system calls that they can do without: of one that went well there is no word. */
static bool is_worth_it(const struct engine_run *run, const struct engine_refusal *refusal)
{
	return run->exit_code != 0 || strcmp(refusal->kind, "call") != 0;
}

void refusals_print_hint(const struct invocation *inv, const struct engine_run *run,
			 const struct hint_again *again)
{
	AUTO_FREE char *line = NULL;
	AUTO_FREE char *option = NULL;

	/* A secret in the command is printed nowhere. */
	if (!run->asked.scrubbed)
		line = cmd_line_again(inv, again);
	if (!line && asprintf(&option, "--%s", again->option) >= 0)
		line = cmd_line(inv, inv->command->name,
				(const char *[]){ option, again->value, "--", "COMMAND...", NULL });
	if (line)
		fprintf(stderr, "hint: %s\n", line);
}

/* The list as it was, and what was refused. */
static void hint_net(const struct invocation *inv, const struct engine_run *run)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const struct engine_refusals *r = &run->refusals;
	const bool none = strcmp(run->net, "none") == 0 || strcmp(run->net, "loopback") == 0;
	int x = none ? 0 : buf_append_str(&b, run->net);
	bool any = false;
	size_t quoted;

	/* What nobody has read nobody should allow: it is for the lines above, and no more. */
	for (size_t i = 0, lines = 0; i < r->n && lines < LINES_MAX && x >= 0; i++) {
		const char *rule = r->list[i].flag + strlen(NET_FLAG);

		if (!is_worth_it(run, &r->list[i]))
			continue;
		lines++;
		if (strncmp(r->list[i].flag, NET_FLAG, strlen(NET_FLAG)) != 0 ||
		    is_said_better(r, rule))
			continue;
		x = b.len > 0 ? buf_append_u8(&b, ',') : 0;
		any = true;
		/* A rule with a blank in it has quotes of its own; here one pair holds all. */
		quoted = *rule == '\'';
		if (x >= 0)
			x = buf_append(&b, rule + quoted, strlen(rule) - 2 * quoted);
	}
	if (any && x >= 0 && buf_str(&b))
		refusals_print_hint(inv, run,
				    &(struct hint_again){
					.option = "net", .value = buf_str(&b), .without = "net" });
}

/* Of the options that are no list of hosts, the first is enough. */
static void hint_other(const struct invocation *inv, const struct engine_run *run)
{
	const struct engine_refusals *r = &run->refusals;

	for (size_t i = 0; i < r->n; i++) {
		const char *flag = r->list[i].flag;
		AUTO_FREE char *option = NULL;
		size_t name;

		if (strncmp(flag, "--", 2) != 0 || strncmp(flag, NET_FLAG, strlen(NET_FLAG)) == 0)
			continue;
		name = strcspn(flag + 2, " ");
		option = strndup(flag + 2, name);
		flag += 2 + name;
		if (option)
			refusals_print_hint(inv, run,
					    &(struct hint_again){ .option = option,
								  .value = flag + (*flag == ' ') });
		return;
	}
}

void refusals_print(const struct invocation *inv, const struct engine_run *run)
{
	const struct engine_refusals *r = &run->refusals;
	uint64_t more = r->more, lines = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (!is_worth_it(run, &r->list[i]))
			continue;
		if (++lines > LINES_MAX)
			more++;
		else if (r->list[i].count > 1)
			log_warn("%s (%llu times)", r->list[i].message,
				 (unsigned long long)r->list[i].count);
		else
			log_warn("%s", r->list[i].message);
	}
	if (more > 0)
		log_warn("and %llu more that were refused (--json has them)",
			 (unsigned long long)more);
	hint_net(inv, run);
	hint_other(inv, run);
}
