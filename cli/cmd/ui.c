#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"
#include "cli/cmd/inner.h"
#include "cli/http/token.h"
#include "cli/out.h"
#include "cli/ui/ui.h"

extern char **environ;

struct ui_args {
	const char *listen, *socket, *token_file;
	bool read_only, open, no_open;
};

static const struct opt ui_opts[] = {
	OPT_STR(0, "listen", "ADDRESS:PORT", struct ui_args, listen,
		"serve there; port 0 picks a free port"),
	OPT_STR(0, "socket", "PATH", struct ui_args, socket, "serve on a unix socket instead"),
	OPT_STR(0, "token-file", "FILE", struct ui_args, token_file,
		"read the token from FILE, or create it there"),
	OPT_FLAG(0, "read-only", struct ui_args, read_only, "let the page change nothing"),
	OPT_FLAG(0, "open", struct ui_args, open, "start a browser in any case"),
	OPT_FLAG(0, "no-open", struct ui_args, no_open, "start no browser"),
	OPT_END,
};
_Static_assert(sizeof(struct ui_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

struct server {
	struct inner inner;
	const struct ui_args *args;
	char token[TOKEN_SIZE];
	char door[32]; /* the file that a browser was given; "": none */
};

static void server_done(struct server *s)
{
	inner_done(&s->inner);
	if (s->door[0] != '\0')
		unlink(s->door);
}

static int run_line(int argc, char **argv, FILE *out, void *ctx)
{
	return inner_run(&((const struct server *)ctx)->inner, argc, argv, out);
}

static int print_metrics(FILE *out, void *ctx)
{
	char name[] = "metrics";
	char *line[] = { name };

	return inner_print(&((const struct server *)ctx)->inner, 1, line, out);
}

static void follow(uint64_t since, int stop_fd, FILE *out, void *ctx)
{
	inner_follow(&((const struct server *)ctx)->inner, since, stop_fd, out);
}

static uint64_t find_newest(void *ctx)
{
	return inner_newest(&((struct server *)ctx)->inner);
}

/* A browser of its own session, so that ^C here does not end it; negative errno. */
static int spawn_browser(char *file)
{
	char program[] = "xdg-open";
	char *argv[] = { program, file, NULL };
	posix_spawn_file_actions_t quiet;
	posix_spawnattr_t how;
	sigset_t usual;
	int r = ENOMEM;
	pid_t pid;

	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	if (posix_spawn_file_actions_init(&quiet) != 0)
		return -r;
	if (posix_spawnattr_init(&how) == 0) {
		if (posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0) == 0 &&
		    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) == 0 &&
		    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0) == 0 &&
		    posix_spawnattr_setsigdefault(&how, &usual) == 0 &&
		    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID) == 0)
			r = posix_spawnp(&pid, program, &quiet, &how, argv, environ);
		posix_spawnattr_destroy(&how);
	}
	posix_spawn_file_actions_destroy(&quiet);
	return -r;
}

/*
 * The arguments of a process can be read by everybody, and those of a browser stay for as long as it
 * runs.  So it gets a file that leads to the address, which only its user can read.
 */
static int open_browser(struct server *s, const char *url)
{
	char text[512];
	AUTO_CLOSE int fd = -1;
	int n, r;

	snprintf(s->door, sizeof(s->door), "/tmp/snap-ui-XXXXXX.html");
	fd = mkostemps(s->door, 5, O_CLOEXEC);
	if (fd < 0) {
		r = -errno;
		s->door[0] = '\0';
		return r;
	}
	n = snprintf(text, sizeof(text),
		     "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", url);
	r = fdio_write(fd, text, (size_t)n);
	return r < 0 ? r : spawn_browser(s->door);
}

/* Asked for it is done or said; else where somebody sits at a desktop, and the printed address serves. */
static void offer_browser(struct server *s, const char *url)
{
	const bool has_desktop =
	    isatty(STDERR_FILENO) && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"));
	int r;

	if (!s->args->open && (s->args->no_open || s->inner.inv->json || !has_desktop))
		return;
	r = open_browser(s, url);
	if (r < 0 && s->args->open)
		fprintf(stderr,
			"cannot start a browser by 'xdg-open' (%s): open the address yourself\n",
			strerror(-r));
}

static void print_ready(const char *url, void *ctx)
{
	struct server *s = ctx;
	const struct invocation *inv = s->inner.inv;
	char whole[256];

	snprintf(whole, sizeof(whole), "%s#t=%s", url ? url : "http://localhost/", s->token);
	if (inv->json) {
		CLEANUP(json_done) struct json_doc doc = { 0 };
		struct json j = out_json_begin(inv, &doc);
		struct err err = { 0 };

		json_set_text(j, "url", whole);
		json_set_name(j, "socket", s->args->socket);
		json_set_text(j, "token", s->token);
		json_set_bool(j, "read_only", s->args->read_only);
		IGNORE_RESULT(json_print(&doc, inv->out, &err), "the server serves all the same");
	} else if (url) {
		fprintf(inv->out, "%s\n", whole);
	} else {
		fprintf(inv->out, "%s\n", s->args->socket);
		fprintf(stderr, "token  %s\n", s->token);
	}
	fflush(inv->out);
	if (url)
		offer_browser(s, whole);
}

static int ui_run(struct invocation *inv, struct err *err)
{
	CLEANUP(server_done)
	struct server server = { .inner = { .inv = inv }, .args = inv->args };
	const struct ui_args *args = inv->args;
	const struct ui_options options = {
		.token = server.token,
		.listen = args->listen ? args->listen : "127.0.0.1:0",
		.socket = args->socket,
		.read_only = args->read_only,
		.on_ready = print_ready,
		.run_line = run_line,
		.print_metrics = print_metrics,
		.follow = follow,
		.newest = find_newest,
		.ctx = &server,
	};
	int r;

	if (args->listen && args->socket)
		return err_set(err, -EINVAL, "'--listen' contradicts '--socket'");
	if (args->open && (args->no_open || args->socket))
		return err_set(err, -EINVAL, "'--open' contradicts '--%s'",
			       args->no_open ? "no-open" : "socket");
	r = args->token_file ? token_from_file(args->token_file, server.token, err)
			     : token_make(server.token, err);
	return r < 0 ? r : ui_serve(&options, err);
}

const struct command cmd_ui = {
	.name = "ui",
	.group = "Other",
	.rare = true,
	.summary = "show this project in a browser",
	.opts = ui_opts,
	.details =
	    "Serves one page on this machine until ^C: snapshots, clones, runs, experiments, changes "
	    "on their way and the store, live.  Prints the address; the token behind '#' lets the "
	    "page in, and anyone who has it can do what you can.  Buttons that change something "
	    "first show what would happen.  GET /metrics answers as 'metrics' does.\n",
	.examples = "ui --read-only\nui --socket ~/.cache/snap-ui.sock\n",
	.no_engine = true,
	.run = ui_run,
};
