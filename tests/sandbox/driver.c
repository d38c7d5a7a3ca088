/*
 * driver.c - sandbox_run() from the command line, for tests: every field of a spec is an option.
 *
 *   driver [OPTION...] [--result FILE] -- COMMAND...
 *
 * What the run wrote goes to stdout and stderr; the result is written to FILE as JSON; the exit
 * status is as `snap run` has it.  --lack CALL makes a system call fail with ENOSYS
 * (CALL=ERRNO: with that; CALL=heard: with a listener) before anything is done, as on a machine
 * that has it not.  The result lists what the filter refuses, unless --untold is given.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/size.h"
#include "runner/layout.h"
#include "runner/oci.h"
#include "runner/sandbox.h"

#define ENV_MAX 64

struct driver {
	struct sandbox_spec spec;
	struct layout *layout;
	const char *env[ENV_MAX];
	size_t n_env;
	const char *result;
	scmp_filter_ctx lacks;
	char told[4096]; /* calls that were refused, a word each */
	struct buf filter;
};

NORETURN static void die(const char *what, const char *why)
{
	fprintf(stderr, "driver: %s: %s\n", what, why);
	exit(2);
}

static uint64_t number(const char *text)
{
	uint64_t v;

	if (size_parse(text, &v) < 0)
		die(text, "no number");
	return v;
}

static void add_lack(struct driver *d, char *text)
{
	char *equals = strchr(text, '=');
	uint32_t code = equals ? (uint32_t)atoi(equals + 1) : ENOSYS;
	bool heard = equals && strcmp(equals + 1, "heard") == 0;

	if (equals)
		*equals = '\0';
	if (!d->lacks)
		d->lacks = seccomp_init(SCMP_ACT_ALLOW);
	if (seccomp_rule_add(d->lacks, heard ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(code),
			     seccomp_syscall_resolve_name(text), 0) != 0)
		die(text, "cannot be made to lack");
}

static void read_profile(struct driver *d, const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };

	if (fdio_read_file(AT_FDCWD, path, 1 << 20, &text, &err) < 0 ||
	    oci_compile((const char *)text.data, text.len, &d->filter, &err) < 0)
		die(path, err.msg);
	d->spec.filter = d->filter.data;
	d->spec.filter_len = d->filter.len;
}

/* PATH, or HOST:GUEST. */
static void add_mount(struct driver *d, struct sandbox_mount m, char *text)
{
	struct err err = { 0 };
	char *colon = strchr(text, ':');

	m.host_fd = -1;
	m.host = m.guest = text;
	if (colon) {
		*colon = '\0';
		m.guest = colon + 1;
	}
	if (layout_add(d->layout, &m, &err) < 0)
		die(text, err.msg);
}

static bool mount_option(struct driver *d, const char *name, char *value)
{
	static const struct {
		const char *name;
		struct sandbox_mount mount;
	} kinds[] = {
		{ "--project", { .kind = SANDBOX_BIND, .writable = true, .owned = true } },
		{ "--rw", { .kind = SANDBOX_BIND, .writable = true } },
		{ "--ro", { .kind = SANDBOX_BIND } },
		{ "--hide", { .kind = SANDBOX_HIDE } },
		{ "--fresh", { .kind = SANDBOX_FRESH } },
		{ "--link", { .kind = SANDBOX_LINK } },
		{ "--text", { .kind = SANDBOX_TEXT } },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(name, kinds[i].name) == 0) {
			add_mount(d, kinds[i].mount, value);
			return true;
		}
	}
	return false;
}

static bool limit_option(struct driver *d, const char *name, const char *value)
{
	struct sandbox_limits *l = &d->spec.limits;
	const struct {
		const char *name;
		uint64_t *at;
	} all[] = {
		{ "--mem", &l->mem },        { "--cpus-milli", &l->cpus_milli },
		{ "--pids", &l->pids },      { "--wall", &l->wall_ms },
		{ "--grace", &l->grace_ms }, { "--cpu", &l->cpu_ms },
		{ "--fsize", &l->fsize },    { "--nofile", &l->nofile },
		{ "--output", &l->output },  { "--tmp", &l->tmp },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(name, all[i].name) == 0) {
			*all[i].at = number(value);
			return true;
		}
	}
	return false;
}

static bool other_option(struct driver *d, const char *name, char *value)
{
	if (strcmp(name, "--cwd") == 0)
		d->spec.cwd = value;
	else if (strcmp(name, "--uid") == 0)
		d->spec.uid = (uid_t)number(value);
	else if (strcmp(name, "--gid") == 0)
		d->spec.gid = (gid_t)number(value);
	else if (strcmp(name, "--hostname") == 0)
		d->spec.hostname = value;
	else if (strcmp(name, "--result") == 0)
		d->result = value;
	else if (strcmp(name, "--profile") == 0)
		read_profile(d, value);
	else if (strcmp(name, "--lack") == 0)
		add_lack(d, value);
	else if (strcmp(name, "--allow-missing") == 0)
		d->spec.may_miss |= WALL_BIT(sandbox_wall_find(value));
	else if (strcmp(name, "--env") == 0 && d->n_env + 1 < ENV_MAX)
		d->env[d->n_env++] = value;
	else
		return false;
	return true;
}

static bool flag(struct driver *d, const char *name)
{
	struct err err = { 0 };

	if (strcmp(name, "--system") == 0 && layout_add_system(d->layout, &err) < 0)
		die(name, err.msg);
	if (strcmp(name, "--system") == 0)
		return true;
	if (strcmp(name, "--net-host") == 0)
		return d->spec.net = SANDBOX_NET_HOST, true;
	if (strcmp(name, "--net-helper") == 0)
		return d->spec.net = SANDBOX_NET_HELPER, true;
	if (strcmp(name, "--strict") == 0)
		return d->spec.strict_calls = true, true;
	if (strcmp(name, "--untold") == 0)
		return d->spec.refused = NULL, true;
	if (strcmp(name, "--stdin") == 0)
		return d->spec.in_fd = 0, true;
	if (strcmp(name, "--tty") == 0)
		return d->spec.tty = true;
	if (strcmp(name, "--mem-is-default") == 0)
		return d->spec.limits.mem_is_default = true;
	return false;
}

static void tell(void *ctx, const char *call, const uint64_t args[6])
{
	struct driver *d = ctx;
	size_t len = strlen(d->told);

	snprintf(d->told + len, sizeof(d->told) - len, "%s%s(%llu)", len > 0 ? " " : "", call,
		 (unsigned long long)args[0]);
}

static int pass_on(void *ctx, enum sandbox_stream stream, const void *data, size_t len)
{
	(void)ctx;
	return fdio_write(stream == SANDBOX_OUT ? 1 : 2, data, len);
}

static void write_result(const struct driver *d, const struct sandbox_result *res, int r,
			 const struct err *why)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), walls = json_set_array(j, "walls");
	FILE *f = fopen(d->result, "we");

	for (int w = 0; w < SANDBOX_N_WALLS; w++) {
		if (res->walls & WALL_BIT(w))
			json_add_text(walls, sandbox_wall_name((enum sandbox_wall)w));
	}
	json_set_int(j, "code", r);
	json_set_int(j, "landlock", res->landlock);
	json_set_text(j, "cgroup", res->cgroup);
	json_set_text(j, "unbounded", res->unbounded.code < 0 ? res->unbounded.msg : NULL);
	json_set_text(j, "error", r < 0 ? why->msg : NULL);
	json_set_bool(j, "exec_failed", res->exec_failed);
	json_set_int(j, "exit_code", res->exit_code);
	json_set_int(j, "signal", res->signal);
	json_set_bool(j, "timed_out", res->timed_out);
	json_set_bool(j, "oom_killed", res->oom_killed);
	json_set_bool(j, "truncated", res->truncated);
	json_set_text(j, "limit", res->limit);
	json_set_text(j, "refused", d->told);
	json_set_uint(j, "duration_ms", res->duration_ms);
	json_set_uint(j, "cpu_ms", res->cpu_ms);
	json_set_uint(j, "max_rss", res->max_rss);
	json_set_uint(j, "max_mem", res->max_mem);
	if (!f || json_print(&doc, f, NULL) < 0 || fclose(f) != 0)
		die(d->result, "cannot be written");
}

static int status_of(int r, const struct sandbox_result *res, const struct err *why)
{
	if (r < 0) {
		fprintf(stderr, "error: %s\n", why->msg);
		return !res->exec_failed ? 125 : r == -ENOENT ? 127 : 126;
	}
	return res->timed_out ? 124 : res->exit_code;
}

static char **parse(struct driver *d, char **word)
{
	for (; *word && strcmp(*word, "--") != 0; word++) {
		if (flag(d, *word))
			continue;
		if (!word[1])
			die(*word, "needs a value");
		if (!mount_option(d, *word, word[1]) && !limit_option(d, *word, word[1]) &&
		    !other_option(d, *word, word[1]))
			die(*word, "no such option");
		word++;
	}
	return *word ? word + 1 : word;
}

int main(int argc, char **argv)
{
	CLEANUP(layout_free_p) struct layout *layout = layout_new();
	struct driver d = { .layout = layout };
	struct sandbox_result res = { 0 };
	struct err err = { 0 };
	int r;

	(void)argc;
	sandbox_spec_init(&d.spec);
	d.spec.refused = tell;
	d.spec.refused_ctx = &d;
	d.spec.argv = (const char *const *)(const void *)parse(&d, argv + 1);
	d.spec.env = d.env;
	d.spec.mounts = layout->mounts;
	d.spec.n_mounts = layout->n;
	d.spec.output = pass_on;
	if (d.lacks && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(d.lacks) != 0))
		die("--lack", "cannot be had");
	seccomp_release(d.lacks);
	r = sandbox_run(&d.spec, &res, &err);
	if (d.result)
		write_result(&d, &res, r, &err);
	buf_done(&d.filter);
	return status_of(r, &res, &err);
}
