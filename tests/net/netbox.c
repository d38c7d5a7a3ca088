/*
 * netbox - runs a command in a network namespace with nothing but a bridge in it, and the
 * proxy outside: the network of a run, without its other walls.
 *
 *   netbox --net LIST [--events FILE] [--no-dns] [--hello-ms N] ... -- COMMAND...
 *
 * Every refusal becomes a line of JSON in FILE.  The exit code is the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fdio.h"
#include "base/json.h"
#include "base/opt.h"
#include "runner/net/bridge.h"
#include "runner/net/proxy.h"

struct box_args {
	const char *net, *events, *resolv, *inspect, *roots;
	uint64_t hello_ms, lookup_ms, head_ms, net_out;
	int connections;
	bool raw; /* the command gets the socket to the proxy as descriptor 3, and no bridge */
};

static const struct opt box_opts[] = {
	OPT_STR(0, "net", "LIST", struct box_args, net, "what is allowed"),
	OPT_STR(0, "events", "FILE", struct box_args, events, "where refusals go"),
	OPT_STR(0, "resolv", "FILE", struct box_args, resolv, "to be seen as /etc/resolv.conf"),
	OPT_DURATION(0, "hello", "TIME", struct box_args, hello_ms, "for a hello"),
	OPT_DURATION(0, "lookup", "TIME", struct box_args, lookup_ms, "for a name"),
	OPT_DURATION(0, "head", "TIME", struct box_args, head_ms, "for a request"),
	OPT_SIZE(0, "net-out", "SIZE", struct box_args, net_out, "to be sent at most"),
	OPT_INT(0, "connections", "N", struct box_args, connections, "at once"),
	OPT_STR(0, "tls-inspect", "LIST", struct box_args, inspect, "hosts whose TLS is ended"),
	OPT_STR(0, "roots", "FILE", struct box_args, roots, "by which their servers are judged"),
	OPT_FLAG(0, "raw", struct box_args, raw, "no bridge"),
	OPT_END,
};

NORETURN static void die(const char *what)
{
	fprintf(stderr, "netbox: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || fdio_write(fd, text, strlen(text)) < 0)
		die(path);
}

static void raise_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		die("raising loopback");
}

static void start_bridge(const struct box_args *args, const struct allow *allow, int inside)
{
	const struct bridge_options options = { .port = BRIDGE_PORT,
						.dns_port = BRIDGE_DNS_PORT,
						.allow = allow,
						.head_ms = args->head_ms };
	struct err err = { 0 };
	int ready[2];
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	if (fork() == 0) {
		close(ready[0]);
		if (bridge_main(&options, inside, ready[1], &err) < 0)
			fprintf(stderr, "netbox: %s\n", err.msg);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		_exit(125);
	close(ready[0]);
	close(inside);
}

NORETURN static void be_inside(const struct box_args *args, const struct allow *allow, int inside,
			       char **command)
{
	static const char proxy[] = "http://127.0.0.1:3128";

	if (unshare(CLONE_NEWNET | CLONE_NEWNS | (geteuid() != 0 ? CLONE_NEWUSER : 0)) < 0)
		die("unshare");
	raise_loopback();
	put("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	if (args->resolv && (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			     mount(args->resolv, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0))
		die("resolv.conf");
	if (args->raw) {
		if (dup2(inside, 3) < 0)
			die("dup2");
	} else {
		start_bridge(args, allow, inside);
	}
	setenv("http_proxy", proxy, 1);
	setenv("https_proxy", proxy, 1);
	execvp(command[0], command);
	die(command[0]);
}

static void on_refusal(void *ctx, const struct net_refusal *refusal)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	char sentence[512];

	json_set_text(j, "host", refusal->host);
	json_set_uint(j, "port", refusal->port);
	json_set_text(j, "rule", net_rule_name(refusal->rule));
	json_set_text(j, "flag", refusal->flag);
	json_set_text(j, "sentence", net_refusal_explain(refusal, sentence, sizeof(sentence)));
	IGNORE_RESULT(json_print(&doc, ctx, NULL), "the test looks at what arrived");
}

static int watch(struct proxy **proxy, pid_t pid)
{
	struct pollfd fds[2] = { { .fd = proxy_fd(*proxy), .events = POLLIN },
				 { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	struct err err = { 0 };
	int status;

	while (!fds[1].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (fds[0].fd < 0 || !fds[0].revents || proxy_step(*proxy, &err) == 0)
			continue;
		/* Nobody is left to ask. */
		proxy_close(TAKE_PTR(*proxy));
		fds[0].fd = -1;
	}
	close(fds[1].fd);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What is to be inspected; programs must believe any certificate. */
struct box_tls {
	struct allow hosts;
	struct tls_keys keys;
	struct buf roots;
	struct tls_plan plan;
};

static void box_tls_done(struct box_tls *t)
{
	allow_done(&t->hosts);
	tls_keys_done(&t->keys);
	buf_done(&t->roots);
}

static int box_tls_open(struct box_tls *t, const struct box_args *args, const struct allow *net,
			struct err *err)
{
	int r = inspect_parse(args->inspect, &t->hosts, err);

	if (r >= 0)
		r = inspect_check(&t->hosts, net, err);
	if (r >= 0)
		r = tls_keys_make(&t->hosts, &t->keys, err);
	if (r >= 0)
		r = fdio_read_file(AT_FDCWD, args->roots, 1 << 20, &t->roots, err);
	if (r < 0)
		return r;
	t->plan =
	    (struct tls_plan){ &t->hosts, &t->keys, (const char *)t->roots.data, t->roots.len };
	return 0;
}

int main(int argc, char **argv)
{
	struct box_args args = { .net = "none" };
	CLEANUP(box_tls_done) struct box_tls tls = { .hosts = ALLOW_INIT };
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	CLEANUP(proxy_close_p) struct proxy *proxy = NULL;
	struct proxy_options options = { .allow = &allow, .refused = on_refusal };
	struct err err = { 0 };
	struct opt_words words;
	int inside, outside, status;
	FILE *events;
	pid_t pid;

	if (opt_parse(box_opts, OPT_STOP_AT_WORD, argc - 1, argv + 1, &args, &words, &err) < 0 ||
	    allow_parse(args.net, &allow, &err) < 0 ||
	    (args.inspect && box_tls_open(&tls, &args, &allow, &err) < 0) ||
	    proxy_socketpair(&outside, &inside, &err) < 0) {
		fprintf(stderr, "netbox: %s\n", err.msg);
		return 2;
	}
	argv[1 + words.n] = NULL;
	pid = fork();
	if (pid == 0) {
		close(outside);
		be_inside(&args, &allow, inside, argv + 1);
	}
	close(inside);
	events = fopen(args.events ? args.events : "/dev/null", "ae");
	if (!events)
		die(args.events);
	setvbuf(events, NULL, _IOLBF, 0);
	options.refused_ctx = events;
	options.hello_ms = args.hello_ms;
	options.lookup_ms = args.lookup_ms;
	options.connections = (unsigned)args.connections;
	options.max_out = args.net_out;
	options.tls = args.inspect ? &tls.plan : NULL;
	if (proxy_open(&options, outside, &proxy, &err) < 0) {
		fprintf(stderr, "netbox: %s\n", err.msg);
		return 125;
	}
	status = watch(&proxy, pid);
	fclose(events);
	return status;
}
