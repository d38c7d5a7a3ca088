#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "cli/agents/agents.h"
#include "cli/agents/hooks.h"
#include "cli/fold.h"
#include "cli/out.h"
#include "engine/api/doctor.h"

#define NAME_WIDTH 13

struct doctor_args {
	const char *remote;
};

static const struct opt doctor_opts[] = {
	OPT_STR(0, "remote", "REMOTE", struct doctor_args, remote,
		"check this remote instead, by name or address"),
	OPT_END,
};
_Static_assert(sizeof(struct doctor_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_diagnosis *d,
		      struct err *err)
{
	static const char *const level[] = {
		[ENGINE_WELL] = "ok",
		[ENGINE_WEAK] = "warning",
		[ENGINE_ILL] = "error",
	};
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_bool(j, "ok", d->worst < ENGINE_ILL);
	list = json_set_array(j, "checks");
	for (size_t i = 0; i < d->n; i++) {
		const struct engine_finding *f = &d->list[i];

		one = json_add_object(list);
		json_set_text(one, "name", f->name);
		json_set_bool(one, "ok", f->health == ENGINE_WELL);
		json_set_text(one, "level", level[f->health]);
		json_set_name(one, "detail", f->detail);
		json_set_name(one, "fix", *f->fix != '\0' ? f->fix : NULL);
	}
	return json_print(&doc, inv->out, err);
}

/* Can the reader be shown more than ASCII? */
static bool utf8_wanted(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0), before;
	bool wanted;

	if (locale == (locale_t)0)
		return false;
	before = uselocale(locale);
	wanted = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	uselocale(before);
	freelocale(locale);
	return wanted;
}

static void print_finding(const struct invocation *inv, const struct engine_finding *f, bool utf8)
{
	static const struct {
		enum out_style style;
		const char *plain, *mark;
	} looks[] = {
		[ENGINE_WELL] = { OUT_GOOD, "ok", "✓" },
		[ENGINE_WEAK] = { OUT_ID, "!!", "!" },
		[ENGINE_ILL] = { OUT_BAD, "no", "✗" },
	};
	const char *mark = utf8 ? looks[f->health].mark : looks[f->health].plain;
	const int width = utf8 ? 1 : 2;

	fprintf(inv->out, "%s%s%s  %-*s", out_style(inv, looks[f->health].style), mark,
		out_style(inv, OUT_PLAIN), NAME_WIDTH, f->name);
	out_name_line(inv->out, f->detail);
	if (*f->fix != '\0') {
		fprintf(inv->out, "%*sfix: ", width + 2 + NAME_WIDTH, "");
		out_name_line(inv->out, f->fix);
	}
}

static void print_human(const struct invocation *inv, const struct engine_diagnosis *d)
{
	const bool utf8 = utf8_wanted();
	CLEANUP(fold_end) struct fold fold = { 0 };

	fold_begin(&fold, inv, out_columns(fileno(inv->out), 0), (utf8 ? 1U : 2U) + 2 + NAME_WIDTH);
	/* With -q only what is not as it should be. */
	for (size_t i = 0; i < d->n; i++)
		if (!inv->quiet || d->list[i].health != ENGINE_WELL)
			print_finding(&fold.to, &d->list[i], utf8);
}

/* Which of them use snap, and whether what they start is still where it was. */
static void look_at_agents(const struct invocation *inv, struct engine_diagnosis *d)
{
	const char *const args[] = { "mcp", NULL };
	struct engine_finding *f = &d->list[d->n];
	size_t used = 0, len = 0;
	const char *stale = NULL, *idle = NULL;

	if (d->n == ENGINE_FINDINGS_MAX)
		return;
	*f = (struct engine_finding){ .name = "agents" };
	for (const struct agent *a = agents; a->name; a++) {
		CLEANUP(agent_state_done) struct agent_state s = { 0 };
		struct err why = { 0 };

		if (agent_look(a, args, &s, &why) < 0)
			continue;
		if (s.set_up && !s.starts)
			stale = a->name;
		if (s.set_up)
			len += (size_t)snprintf(f->detail + len, sizeof(f->detail) - len, "%s%s%s",
						used++ > 0 ? ", " : "", a->name,
						hooks_there(a) ? " (hooks)" : "");
		else if (s.found)
			idle = a->name;
		if (len >= sizeof(f->detail))
			len = sizeof(f->detail) - 1;
	}
	if (stale) {
		f->health = ENGINE_WEAK;
		snprintf(f->detail, sizeof(f->detail), "%s starts a snapcow that is not there",
			 stale);
		snprintf(f->fix, sizeof(f->fix), "%s agents add %s", inv->program, stale);
	} else if (used == 0 && !idle) {
		return;
	} else if (used == 0) {
		snprintf(f->detail, sizeof(f->detail), "%s is here and does not use snap", idle);
	}
	if (f->health > d->worst)
		d->worst = f->health;
	d->n++;
}

static int doctor_run(struct invocation *inv, struct err *err)
{
	const struct engine_options options = { .dir = inv->dir, .store = inv->store };
	const struct doctor_args *args = inv->args;
	struct engine_diagnosis diagnosis;
	int r = 0;

	if (args->remote) {
		engine_doctor_remote(&options, args->remote, &diagnosis);
	} else {
		engine_doctor(&options, &diagnosis);
		look_at_agents(inv, &diagnosis);
	}
	if (inv->json)
		r = print_json(inv, &diagnosis, err);
	else
		print_human(inv, &diagnosis);
	if (r < 0)
		return r;
	return diagnosis.worst == ENGINE_ILL ? CMD_LACKING : CMD_OK;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.group = "Other",
	.summary = "say what this machine can and cannot do, and how to fix it",
	.details =
	    "Checks FUSE, what sandboxes need, the store and whether its disk is encrypted, the\n"
	    "daemon and its mounts, and runs one command that does nothing in a sandbox. Changes\n"
	    "nothing. Exits with 13 if something is missing that everybody needs, or if no run can\n"
	    "start; -q prints only problems. With --remote it tries that remote as a push and a\n"
	    "fetch would: whether it answers, its certificate, the login, permission to read and\n"
	    "write, its clock and latency. It removes what it made there for the test.\n",
	.examples = "doctor\ndoctor --json\ndoctor --remote origin\n",
	.opts = doctor_opts,
	.no_engine = true,
	.run = doctor_run,
};
