#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/watch/action-i.h"

#define SIGNED_MAX ((size_t)4096) /* bytes at the end of what a run wrote */
#define NOTIFY_MS  30000

/* --- failures ------------------------------------------------------------------------------ */

/* Numbers differ from run to run: times, ids, addresses. */
static void add_plain(struct sha256 *sum, const char *text, size_t len)
{
	const size_t from = len > SIGNED_MAX ? len - SIGNED_MAX : 0;

	for (size_t i = from; i < len; i++) {
		const bool digit = text[i] >= '0' && text[i] <= '9';

		if (!digit)
			sha256_add(sum, &text[i], 1);
		else if (i == from || text[i - 1] < '0' || text[i - 1] > '9')
			sha256_add(sum, "0", 1);
	}
}

void action_sign(struct engine_firing *f, const struct engine_run *run)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 sum;
	char code[24];

	sha256_begin(&sum);
	snprintf(code, sizeof(code), "%lld\n", (long long)f->exit_code);
	sha256_add(&sum, code, strlen(code));
	if (run) {
		add_plain(&sum, (const char *)run->out.data, run->out.len);
		add_plain(&sum, (const char *)run->err.data, run->err.len);
	} else if (f->why) {
		add_plain(&sum, f->why, strlen(f->why));
	}
	sha256_end(&sum, digest);
	hex_encode(digest, (sizeof(f->signature) - 1) / 2, f->signature);
}

/* --- telling the user ---------------------------------------------------------------------- */

static void set_env(const struct engine_firing *f, const struct news *n)
{
	const char *const facts[][2] = {
		{ "SNAPCOW_WATCH_RULE", f->rule },     { "SNAPCOW_WATCH_PROJECT", f->project },
		{ "SNAPCOW_WATCH_RESULT", n->result }, { "SNAPCOW_WATCH_WHY", n->why },
		{ "SNAPCOW_WATCH_CHANGE", f->change }, { "SNAPCOW_WATCH_CLONE", f->clone },
		{ "SNAPCOW_WATCH_STAGE", n->stage },   { "SNAPCOW_WATCH_FIRING", f->id },
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (facts[i][1])
			setenv(facts[i][0], facts[i][1], 1);
		else
			unsetenv(facts[i][0]);
}

/* Its exit code; 128 if a signal ended it. */
static int await_end(pid_t pid)
{
	const uint64_t until = engine_clock_ms() + NOTIFY_MS;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		const uint64_t now = engine_clock_ms();

		if (now >= until)
			kill(-pid, SIGKILL);
		sys_wait_process(pid, now < until ? (int)(until - now) : 1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/*
 * It must not hold the firing's lock, nor the terminal, and it dies with us: the next process tells nobody again.
 * What `in` has, or nothing, is its standard input.
 */
NORETURN static void become_notifier(const char *const argv[], int in, pid_t parent)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sys_end_with(parent);
	setpgid(0, 0);
	if (null < 0 || dup2(in < 0 ? null : in, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Wait for its end, and say what that was: 127 if there is no such program. */
static int run_notifier(const char *const argv[], int in, struct err *err)
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return err_sys(err, "'%.100s' cannot be started", argv[0]);
	if (pid == 0)
		become_notifier(argv, in, parent);
	/* Both do it: neither waits for the other. */
	setpgid(pid, pid);
	return await_end(pid);
}

static void warn(const struct engine_firing *f, const char *what, int status)
{
	if (status == 0)
		return;
	log_warn("firing %s: %s %s, so it notified nobody", f->id, what,
		 status == 127 ? "is not installed" : "failed");
}

static int run_command(const char *command, struct err *err)
{
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	const int r = run_notifier(argv, -1, err);

	return r < 0 ? r : 0;
}

/* A line of curl's configuration. */
static int add_option(struct buf *out, const char *name, const void *value, size_t len)
{
	const char *p = value;
	int r = buf_printf(out, "%s = \"", name);

	for (size_t i = 0; r == 0 && i < len; i++) {
		if (p[i] == '"' || p[i] == '\\')
			r = buf_append_u8(out, '\\');
		if (r == 0)
			r = buf_append_u8(out, (uint8_t)p[i]);
	}
	return r < 0 ? r : buf_append_str(out, "\"\n");
}

/*
 * What curl is to send, as JSON, and where, in a file without a name.  The address is often the only
 * secret that there is, and everybody can read the words of a command.
 */
static int message_file(const struct engine_firing *f, const struct news *n, const char *url,
			int *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT, lines = BUF_INIT;
	const struct json j = json_begin(&doc);
	FILE *file;
	int r;

	json_set_text(j, "firing", f->id);
	json_set_name(j, "rule", f->rule);
	json_set_name(j, "project", f->project);
	json_set_text(j, "result", n->result);
	json_set_text(j, "why", n->why);
	json_set_name(j, "stage", n->stage);
	json_set_text(j, "change", *f->change ? f->change : NULL);
	json_set_name(j, "clone", f->clone);
	r = json_append(&doc, &text, err);
	if (r < 0)
		return r;
	if (add_option(&lines, "url", url, strlen(url)) < 0 ||
	    add_option(&lines, "data-binary", text.data, text.len) < 0)
		return err_nomem(err);
	file = tmpfile();
	if (!file)
		return err_sys(err, "making a file for a message");
	fwrite(lines.data, 1, lines.len, file);
	rewind(file);
	*ret = ferror(file) ? -1 : dup(fileno(file));
	fclose(file);
	return *ret < 0 ? err_sys(err, "writing a message") : 0;
}

/* To the host that the user's file names and no other: where it is sent on to, it does not go. */
static int post(const struct engine_firing *f, const struct news *n, const char *url,
		struct err *err)
{
	const char *const argv[] = { "curl",
				     "--disable",
				     "--silent",
				     "--fail",
				     "--globoff",
				     "--proto",
				     "=http,https",
				     "--max-redirs",
				     "0",
				     "--max-time",
				     "20",
				     "--header",
				     "Content-Type: application/json",
				     "--config",
				     "-",
				     NULL };
	AUTO_CLOSE int in = -1;
	int r = message_file(f, n, url, &in, err);

	if (r >= 0)
		r = run_notifier(argv, in, err);
	if (r >= 0)
		warn(f, "curl", r);
	return r < 0 ? r : 0;
}

static int show(const struct engine_firing *f, const struct news *n, struct err *err)
{
	AUTO_FREE char *title = NULL, *body = NULL;
	int r;

	title = text_format("%s: %s", f->rule, n->result);
	body = text_format("%s%s%s", f->project, n->why ? "\n" : "", n->why ? n->why : "");
	if (!title || !body)
		return err_nomem(err);
	{
		const char *const argv[] = { "notify-send", "--app-name=snap", "--", title, body,
					     NULL };

		r = run_notifier(argv, -1, err);
	}
	if (r >= 0)
		warn(f, "notify-send", r);
	return r < 0 ? r : 0;
}

int notify(const struct engine_firing *f, const struct news *n,
	   const struct engine_rules_of_watch *rules, struct err *err)
{
	int r = 0;

	set_env(f, n);
	signal(SIGCHLD, SIG_DFL);
	if (rules->notify)
		r = run_command(rules->notify, err);
	if (r >= 0 && rules->notify_post)
		r = post(f, n, rules->notify_post, err);
	return r < 0 || !rules->notify_desktop ? r : show(f, n, err);
}
