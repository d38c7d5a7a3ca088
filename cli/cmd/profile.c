#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/out.h"
#include "engine/api/profile.h"

static const char *const origins[] = {
	[PROFILE_PROJECT] = "project",
	[PROFILE_USER] = "user",
	[PROFILE_BUILT_IN] = "built-in",
};

/* --- show --------------------------------------------------------------------------------- */

static void set_profile(struct json j, const struct engine_profile *p)
{
	struct json list;

	json_set_text(j, "name", p->name);
	json_set_text(j, "origin", origins[p->origin]);
	json_set_name(j, "file", p->file);
	json_set_text(j, "extends", p->extends);
	json_set_text(j, "description", p->description);
	if (p->cpus_milli > 0)
		json_set_double(j, "cpu", (double)p->cpus_milli / 1000, 3);
	else
		json_set_null(j, "cpu");
	out_json_limit(j, "mem", p->mem);
	out_json_limit(j, "pids", p->pids);
	out_json_limit(j, "time_ms", p->time_ms);
	out_json_limit(j, "disk", p->disk);
	out_json_limit(j, "inodes", p->inodes);
	out_json_limit(j, "fsize", p->fsize);
	out_json_limit(j, "nofile", p->nofile);
	out_json_limit(j, "lifetime_ms", p->lifetime_ms);
	json_set_text(j, "net", p->net);
	out_json_limit(j, "net_out", p->net_out);
	out_json_limit(j, "ask_ms", p->ask_ms);
	json_set_uint(j, "snapshots", p->snapshots);
	json_set_name(j, "seccomp", p->seccomp);
	json_set_array(j, "caps");
	list = json_set_array(j, "mounts");
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct json m = json_add_object(list);

		json_set_name(m, "host", p->mounts[i].host);
		json_set_name(m, "guest", p->mounts[i].guest);
		json_set_text(m, "mode", p->mounts[i].writable ? "rw" : "ro");
		json_set_bool(m, "optional", p->mounts[i].optional);
	}
	json_set_names(j, "hide", p->hide.list, p->hide.n);
	json_set_names(j, "env", p->env.list, p->env.n);
	json_set_names(j, "pass_env", p->pass_env.list, p->pass_env.n);
	json_set_names(j, "secret_for", p->secret_for.list, p->secret_for.n);
	json_set_names(j, "tls_inspect", p->tls_inspect.list, p->tls_inspect.n);
	json_set_names(j, "entrypoint", p->entrypoint.list, p->entrypoint.n);
	json_set_bool(j, "root", p->root);
}

static void print_row(const struct invocation *inv, const char *key, const char *value)
{
	fprintf(inv->out, "%s%-11s%s ", out_style(inv, OUT_DIM), key, out_style(inv, OUT_PLAIN));
	if (*value != '\0')
		out_name(inv->out, value);
	fputc('\n', inv->out);
}

static void print_words(const struct invocation *inv, const char *key, const struct strlist *w)
{
	for (size_t i = 0; i < w->n; i++)
		print_row(inv, i == 0 ? key : "", w->list[i]);
}

static void print_size(const struct invocation *inv, const char *key, uint64_t n)
{
	char size[SIZE_TEXT_MAX];

	if (n > 0)
		print_row(inv, key, size_format(n, size));
}

static void print_count(const struct invocation *inv, const char *key, uint64_t n)
{
	char count[OUT_COUNT_MAX];

	if (n > 0)
		print_row(inv, key, out_count(n, count));
}

static void print_duration(const struct invocation *inv, const char *key, uint64_t ms)
{
	char duration[DURATION_TEXT_MAX];

	if (ms > 0)
		print_row(inv, key, duration_format(ms, duration));
}

static void print_mounts(const struct invocation *inv, const struct engine_profile *p)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct engine_profile_mount *m = &p->mounts[i];

		fprintf(inv->out, "%s%-11s%s ", out_style(inv, OUT_DIM), i == 0 ? "mounts" : "",
			out_style(inv, OUT_PLAIN));
		out_name(inv->out, m->host);
		if (strcmp(m->host, m->guest) != 0) {
			fputs(" as ", inv->out);
			out_name(inv->out, m->guest);
		}
		fprintf(inv->out, " (%s%s)\n", m->writable ? "rw" : "ro",
			m->optional ? ", if it is there" : "");
	}
}

static void print_profile(const struct invocation *inv, const struct engine_profile *p)
{
	char cpus[32];

	print_row(inv, "profile", p->name);
	print_row(inv, "from", p->file ? p->file : origins[p->origin]);
	if (p->description)
		print_row(inv, "description", p->description);
	if (p->extends)
		print_row(inv, "extends", p->extends);
	snprintf(cpus, sizeof(cpus), "%g", (double)p->cpus_milli / 1000);
	if (p->cpus_milli > 0)
		print_row(inv, "cpu", cpus);
	print_size(inv, "mem", p->mem);
	print_count(inv, "pids", p->pids);
	print_duration(inv, "time", p->time_ms);
	print_size(inv, "disk", p->disk);
	print_count(inv, "inodes", p->inodes);
	print_size(inv, "fsize", p->fsize);
	print_count(inv, "nofile", p->nofile);
	print_duration(inv, "lifetime", p->lifetime_ms);
	print_row(inv, "net", p->net ? p->net : "none");
	print_size(inv, "net_out", p->net_out);
	print_duration(inv, "ask", p->ask_ms);
	print_count(inv, "snapshots", p->snapshots);
	if (p->seccomp)
		print_row(inv, "seccomp", p->seccomp);
	print_mounts(inv, p);
	print_words(inv, "hide", &p->hide);
	print_words(inv, "env", &p->env);
	print_words(inv, "pass_env", &p->pass_env);
	print_words(inv, "secret_for", &p->secret_for);
	print_words(inv, "tls_inspect", &p->tls_inspect);
	print_words(inv, "entrypoint", &p->entrypoint);
	if (p->root)
		print_row(inv, "root", "true");
}

static int show(struct invocation *inv, const char *name, struct err *err)
{
	CLEANUP(engine_profile_done) struct engine_profile p = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = engine_profile(inv->engine, name, &p, err);

	if (r == -ENOENT)
		cmd_hint(inv, "profile list");
	if (r < 0)
		return r;
	if (!inv->json) {
		print_profile(inv, &p);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	set_profile(json_set_object(j, "profile"), &p);
	return json_print(&doc, inv->out, err);
}

/* --- list and check ----------------------------------------------------------------------- */

static void set_entry(struct json j, const struct engine_profile_entry *e)
{
	json_set_text(j, "name", e->name);
	json_set_text(j, "origin", origins[e->origin]);
	json_set_name(j, "file", e->file);
	json_set_text(j, "description", e->description);
	json_set_bool(j, "ok", e->problem.code == 0);
	json_set_text(j, "problem", e->problem.code == 0 ? NULL : e->problem.msg);
}

static void print_entry(const struct invocation *inv, const struct engine_profile_entry *e,
			bool check)
{
	const bool ok = e->problem.code == 0;

	if (inv->quiet && !check)
		fprintf(inv->out, "%s\n", e->name);
	if (inv->quiet && (ok || !check))
		return;
	fprintf(inv->out, "%s%-16s%s %-8s  ", out_style(inv, OUT_ID), e->name,
		out_style(inv, OUT_PLAIN), origins[e->origin]);
	/* What a file of the project has in it must not drive the terminal. */
	if (!ok)
		out_name(inv->out, e->problem.msg);
	else if (check)
		fprintf(inv->out, "%sok%s", out_style(inv, OUT_GOOD), out_style(inv, OUT_PLAIN));
	else if (*e->description != '\0')
		out_name(inv->out, e->description);
	fputc('\n', inv->out);
}

/* All profiles, or one by name; for `check`, a problem is a result. */
static int list(struct invocation *inv, const char *name, bool check, struct err *err)
{
	CLEANUP(engine_profiles_done) struct engine_profiles p = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json all = json_set_array(out_json_begin(inv, &doc), "profiles");
	bool bad = false, any = false;
	int r = engine_profiles(inv->engine, &p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p.n; i++)
		any |= name && strcmp(p.list[i].name, name) == 0;
	if (name && !any) {
		cmd_hint(inv, "profile list");
		return err_set(err, -ENOENT, "there is no profile '%.100s'", name);
	}
	for (size_t i = 0; i < p.n; i++) {
		if (name && strcmp(p.list[i].name, name) != 0)
			continue;
		bad |= p.list[i].problem.code != 0;
		if (inv->json)
			set_entry(json_add_object(all), &p.list[i]);
		else
			print_entry(inv, &p.list[i], check);
	}
	r = inv->json ? json_print(&doc, inv->out, err) : 0;
	return r == 0 && check && bad ? CMD_CHECK_FAILED : r;
}

static int profile_run(struct invocation *inv, struct err *err)
{
	const char *what = inv->n_words > 0 ? inv->words[0] : "list";
	const char *name = inv->n_words > 1 ? inv->words[1] : NULL;

	if (strcmp(what, "show") == 0)
		return show(inv, name, err);
	if (strcmp(what, "check") == 0)
		return list(inv, name, true, err);
	if (strcmp(what, "list") != 0)
		return err_set(err, -EINVAL, "'profile' does list, show and check, not '%.60s'",
			       what);
	if (name)
		return err_set(err, -EINVAL, "'profile list' takes no name, not '%.60s'", name);
	return list(inv, NULL, false, err);
}

const struct command cmd_profile = {
	.name = "profile",
	.group = "Other",
	.rare = true,
	.summary = "list, show or check profiles: what runs may use and see",
	.words = "[list | show [NAME] | check [NAME]]",
	.max_words = 2,
	.details =
	    "Profiles are .snap/profiles/NAME.yaml in the project, files in\n"
	    "$XDG_CONFIG_HOME/snapcow/profiles, and built-in ones. 'show' prints a profile with\n"
	    "everything that it inherits; without NAME, the one that runs get by default. 'check'\n"
	    "reads all profiles, or one, and ends with 8 if something is wrong.\n",
	.examples = "profile show build\nprofile check\n",
	.run = profile_run,
};
