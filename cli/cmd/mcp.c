#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/hex.h"
#include "base/sys.h"
#include "cli/cmd/inner.h"
#include "cli/http/token.h"
#include "cli/mcp/mcp.h"
#include "cli/out.h"
#include "engine/api/events.h"
#include "engine/api/file.h"

struct mcp_args {
	bool read_only, no_promote, allow_promote;
	const char *http, *token_file;
	bool http_remote;
};

static const struct opt mcp_opts[] = {
	OPT_FLAG(0, "read-only", struct mcp_args, read_only,
		 "offer only tools that look and change nothing"),
	OPT_FLAG(0, "no-promote", struct mcp_args, no_promote,
		 "offer no tool that changes the project itself"),
	OPT_FLAG(0, "allow-promote", struct mcp_args, allow_promote,
		 "let agents change the project without asking a person"),
	OPT_STR(0, "http", "ADDRESS:PORT", struct mcp_args, http,
		"serve over HTTP instead; port 0 picks a free port"),
	OPT_STR(0, "token-file", "FILE", struct mcp_args, token_file,
		"with --http: read the token from FILE, or create it there"),
	OPT_FLAG(0, "http-remote", struct mcp_args, http_remote,
		 "with --http: let other machines connect too"),
	OPT_END,
};
_Static_assert(sizeof(struct mcp_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

struct server {
	struct inner inner;
	char *project; /* owned; NULL: not known yet */
	char project_id[ENGINE_ID_SIZE];
	char session
	    [ENGINE_ID_SIZE]; /* random: what agents keep through this server is counted by it */
};

static void server_done(struct server *s)
{
	inner_done(&s->inner);
	free(s->project);
}

static int run_line(int argc, char **argv, FILE *out, void *ctx)
{
	return inner_run(&((const struct server *)ctx)->inner, argc, argv, out);
}

static int check_state(const char *text, bool is_clone, void *ctx, struct err *err)
{
	const struct invocation *server = ((const struct server *)ctx)->inner.inv;
	const struct engine_options options = { .dir = server->dir, .store = server->store };
	CLEANUP(engine_close_p) struct engine *engine = NULL;
	int r = engine_open(&options, &engine, err);

	return r < 0 ? r : engine_is_of_project(engine, text, is_clone, err);
}

/* In a child: SQLite's locks do not survive a fork, so a process that forks must not open a store. */
NORETURN static void send_project(const struct server *s, int fd)
{
	char id[ENGINE_ID_SIZE];
	AUTO_FREE char *path = engine_project_here(s->inner.engine, id), *both = NULL;

	if (path && asprintf(&both, "%s%s", id, path) >= 0)
		IGNORE_RESULT(fdio_write(fd, both, strlen(both)), "then it is not known yet");
	_exit(0);
}

/* Its path stays unknown as long as the store does not know the project. */
static void find_project(struct server *s)
{
	char said[PATH_MAX + ENGINE_ID_SIZE];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	if (sys_pipe(fds) < 0)
		return;
	pid = fork();
	if (pid == 0)
		send_project(s, fds[1]);
	close(fds[1]);
	n = pid > 0 ? fdio_read(fds[0], said, sizeof(said)) : 0;
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (n < ENGINE_ID_SIZE || n >= (ssize_t)sizeof(said))
		return;
	said[n] = '\0';
	snprintf(s->project_id, sizeof(s->project_id), "%.*s", ENGINE_ID_SIZE - 1, said);
	s->project = strdup(said + ENGINE_ID_SIZE - 1);
}

static void record(const char *data, const char *clone, const char *run, void *ctx)
{
	struct server *s = ctx;
	const struct engine_options options = { .dir = s->inner.inv->dir,
						.store = s->inner.inv->store };
	struct engine_call call = { .clone = clone, .run = run, .data = data };
	struct err err = { 0 };

	if (!data || (!s->inner.engine && engine_open(&options, &s->inner.engine, &err) < 0))
		return;
	if (!s->project)
		find_project(s);
	call.project = s->project;
	call.project_id = s->project ? s->project_id : NULL;
	engine_record_call(s->inner.engine, &call);
}

static uint64_t find_newest(void *ctx)
{
	return inner_newest(&((struct server *)ctx)->inner);
}

static void follow(uint64_t since, int stop_fd, FILE *out, void *ctx)
{
	inner_follow(&((const struct server *)ctx)->inner, since, stop_fd, out);
}

struct ready {
	const char *program;
	const char *token; /* to print; NULL: it stands in a file */
};

static void print_ready(const char *url, void *ctx)
{
	const struct ready *r = ctx;

	fprintf(stderr, "%s mcp: listening at %s\n", r->program, url);
	if (r->token)
		fprintf(stderr, "%s mcp: clients must send the header 'Authorization: Bearer %s'\n",
			r->program, r->token);
	fflush(stderr);
}

static int serve_http(const struct mcp_options *options, const struct mcp_args *args,
		      struct err *err)
{
	struct ready ready = { .program = options->program };
	char token[TOKEN_SIZE];
	const struct mcp_http how = {
		MCP_HTTP_DEFAULTS,           .listen = args->http,    .token = token,
		.remote = args->http_remote, .on_ready = print_ready, .ctx = &ready,
	};
	int r = args->token_file ? token_from_file(args->token_file, token, err)
				 : token_make(token, err);

	if (r < 0)
		return r;
	if (!args->token_file)
		ready.token = token;
	return mcp_serve_http(options, &how, err);
}

static int begin_session(struct server *s, struct err *err)
{
	uint8_t bytes[(ENGINE_ID_SIZE - 1) / 2];
	int r = sys_random(bytes, sizeof(bytes));

	if (r < 0)
		return err_wrap(err, r, "drawing a random number");
	hex_encode(bytes, sizeof(bytes), s->session);
	s->inner.session = s->session;
	return 0;
}

static int mcp_run(struct invocation *inv, struct err *err)
{
	CLEANUP(server_done) struct server server = { .inner = { .inv = inv, .by_agent = true } };
	const struct mcp_args *args = inv->args;
	const struct mcp_options options = {
		.program = inv->program,
		.version = engine_version(),
		.read_only = args->read_only,
		.no_promote = args->no_promote,
		.allow_promote = args->allow_promote,
		.run_line = run_line,
		.check_state = check_state,
		.newest = find_newest,
		.follow = follow,
		.record = record,
		.ctx = &server,
	};
	int r;

	if (args->allow_promote && (args->read_only || args->no_promote))
		return err_set(err, -EINVAL,
			       "'--allow-promote' contradicts '--read-only' and '--no-promote'");
	if (!args->http && (args->token_file || args->http_remote))
		return err_set(err, -EINVAL, "'--token-file' and '--http-remote' need '--http'");
	if (inv->json) {
		CLEANUP(json_done) struct json_doc doc = { 0 };

		mcp_list_tools(&options, json_set_array(out_json_begin(inv, &doc), "tools"));
		return json_print(&doc, inv->out, err);
	}
	r = begin_session(&server, err);
	if (r < 0)
		return r;
	return args->http ? serve_http(&options, args, err) : mcp_serve_stdio(&options, err);
}

const struct command cmd_mcp = {
	.name = "mcp",
	.group = "Other",
	.rare = true,
	.summary = "serve agents over the Model Context Protocol",
	.opts = mcp_opts,
	.details =
	    "Each command that an agent needs is a tool, in this project alone.  Both the revision "
	    "2026-07-28 of the protocol and clients that begin with a handshake are served.  A call "
	    "that would change the project asks a person through the client; where the client "
	    "cannot ask, the answer is the command for a person to type.  With --json the tools are "
	    "listed instead.  One client is served on stdin and stdout, or with --http any number "
	    "of them; each must send 'Authorization: Bearer TOKEN', with the token that is printed "
	    "on stderr or stands in a file.\n",
	.examples =
	    "mcp\nmcp --read-only\nmcp --http 127.0.0.1:8848 --token-file ~/.config/snap-token\n",
	.no_engine = true,
	.run = mcp_run,
};
