#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "engine/find/run-record-i.h"

#define TICKET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TRACE  "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

/* The record that `run` makes, as text. */
static void write_record(const struct engine_run *run, struct buf *out)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };

	run_record_encode(json_begin(&doc), run);
	CHECK_OK(json_append(&doc, out, &err), &err);
}

static int read_record(const char *text, struct engine_run *ret)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err err = { 0 };
	struct json j;
	int r;

	CHECK_OK(json_parse(&doc, text, strlen(text), &j, &err), &err);
	r = run_record_decode(j, ret);
	return r < 0 ? r : json_end(&doc, &err);
}

static void add(struct strlist *l, const char *text)
{
	CHECK_EQ(strlist_add(l, text), 0);
}

static void fill_asked(struct engine_asked *a)
{
	a->known = a->scrubbed = true;
	add(&a->passed, "HOME");
	add(&a->secrets, "TOKEN");
	add(&a->set, "A");
	add(&a->hide, "/a");
	add(&a->ro, "/b");
	add(&a->rw, "/c\xff");
}

/* What becomes of it: each list has something in it. */
static void fill_result(struct engine_run *r)
{
	r->walls[0] = "seccomp";
	r->n_walls = 1;
	r->missing.list[0].wall = "landlock";
	strcpy(r->missing.list[0].reason, "an old \\ kernel");
	r->missing.n = 1;
	r->problem = strdup("it ended");
	r->curve = strdup("1,2,3");
	r->refusals.list = calloc(1, sizeof(*r->refusals.list));
	r->refusals.list[0] =
	    (struct engine_refusal){ strdup("connection"), strdup("evil.org:443"), strdup("list"),
				     strdup("--net x"),    strdup("refused"),      2 };
	r->refusals.n = 1;
	r->refusals.more = 3;
	r->answers.list = calloc(1, sizeof(*r->answers.list));
	r->answers.list[0] = (struct engine_answered){ .id = "1",
						       .kind = strdup("connection"),
						       .what = strdup("a.org:1"),
						       .allowed = true,
						       .by = "person",
						       .waited_ms = 4 };
	r->answers.n = 1;
	r->answers.unasked = 5;
	r->artifacts = calloc(2, sizeof(*r->artifacts));
	r->artifacts[0] = (struct engine_run_artifact){ .path = strdup("out"), .id = "77" };
	r->artifacts[1] =
	    (struct engine_run_artifact){ .path = strdup("no"), .problem = strdup("is missing") };
	r->n_artifacts = 2;
}

static struct engine_run make_run(void)
{
	struct engine_run r = {
		.state = ENGINE_RUN_CANCELLED,
		.clone = strdup("try"),
		.project = strdup("/p"),
		.cwd = strdup("/p/x"),
		.project_id = "11",
		.made = true,
		.removed = true,
		.before = "22",
		.profile = strdup("tests"),
		.net = strdup("a.org:443"),
		.published = { { 80, 8080 }, { 443, 65535 } },
		.n_published = 2,
		.limits = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 },
		.pid = 77,
		.detached = true,
		.started = 11,
		.ended = 12,
		.trace = TRACE,
		.exit_code = -1,
		.signal = 9,
		.timed_out = true,
		.limit = "time",
		.root = true,
		.ids = "range",
		.as = "101:105",
		.landlock = 4,
		.cgroup = "v2",
		.owners_lost = true,
		.duration_ms = 13,
		.cpu_ms = 14,
		.max_rss = 15,
		.max_mem = 16,
		.net_sent = 17,
		.machine = { .ticket = TICKET,
			     .worker = strdup("w"),
			     .attempt = 2,
			     .lost = true,
			     .distrusted = true },
		.compared = true,
		.added = 18,
		.modified = 19,
		.deleted = 20,
		.logged = { 21, 22 },
		.log_truncated = true,
	};

	add(&r.argv, "make");
	add(&r.argv, "all\n");
	add(&r.env, "HOME");
	add(&r.secret_for, "https://a.org");
	add(&r.tls_inspect, "a.org:443");
	fill_asked(&r.asked);
	fill_result(&r);
	return r;
}

/* What make_run() becomes: the form on the disk, which later versions must read. */
static const char record[] =
    "{\"version\":1,\"state\":\"cancelled\",\"clone\":\"try\",\"project\":\"/p\","
    "\"project_id\":\"11\",\"cwd\":\"/p/x\",\"made\":true,\"removed\":true,\"before\":"
    "\"22\",\"profile\":\"tests\",\"net\":\"a.org:443\",\"published\":[{\"port\":80,"
    "\"host_port\":8080},{\"port\":443,\"host_port\":65535}],\"argv\":[\"make\","
    "\"all\\\\x0a\"],\"env\":[\"HOME\"],\"asked\":{\"scrubbed\":true,\"passed\":[\"HOME\""
    "],\"secrets\":[\"TOKEN\"],\"set\":[\"A\"],\"hide\":[\"/a\"],\"ro\":[\"/b\"],\"rw\":["
    "\"/c\\\\xff\"]},\"secret_for\":[\"https://a.org\"],\"tls_inspect\":[\"a.org:443\"],"
    "\"limits\":{\"mem\":1,\"cpus_milli\":2,\"pids\":3,\"time_ms\":4,\"disk\":5,"
    "\"inodes\":6,\"fsize\":7,\"nofile\":8,\"output\":9,\"net_out\":10},\"pid\":77,"
    "\"detached\":true,\"root\":true,\"as\":\"101:105\",\"started\":11,\"ended\":12,\"traceparent\":"
    "\"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\",\"machine\":{\"ticket\":"
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"worker\":"
    "\"w\",\"host\":null,\"attempt\":2,\"lost\":true,\"received\":0,\"worker_received\":0"
    ",\"worker_sent\":0,\"distrusted\":true},\"result\":{\"exit_code\":-1,\"signal\":9,\"timed_out\":true,"
    "\"oom_killed\":false,\"limit\":\"time\",\"walls\":[\"seccomp\"],\"landlock\":4,"
    "\"cgroup\":\"v2\",\"ids\":\"range\",\"owners_lost\":true,\"missing\":[{\"wall\":"
    "\"landlock\",\"reason\":\"an old \\\\x5c kernel\"}],\"duration_ms\":13,\"cpu_ms\":14"
    ",\"max_rss\":15,\"max_mem\":16,\"problem\":\"it ended\",\"curve\":\"1,2,3\","
    "\"refusals\":[{\"kind\":\"connection\",\"what\":\"evil.org:443\",\"rule\":\"list\","
    "\"flag\":\"--net x\",\"message\":\"refused\",\"count\":2}],\"refusals_more\":3,"
    "\"answers\":[{\"id\":\"1\",\"kind\":\"connection\",\"what\":\"a.org:1\",\"allowed\":"
    "true,\"remembered\":false,\"by\":\"person\",\"waited_ms\":4}],\"unasked\":5,"
    "\"net_sent\":17,\"artifacts\":[{\"path\":\"out\",\"artifact\":\"77\",\"problem\":nul"
    "l},{\"path\":\"no\",\"artifact\":\"\",\"problem\":\"is missing\"}],\"compared\":true"
    ",\"added\":18,\"modified\":19,\"deleted\":20,\"truncated\":false,\"logged_out\":21,"
    "\"logged_err\":22,\"log_truncated\":true}}"
    "\n";

TEST(all_that_a_record_holds_comes_back)
{
	CLEANUP(engine_run_done) struct engine_run run = make_run(), got = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT, again = BUF_INIT;

	write_record(&run, &text);
	CHECK_STR(buf_str(&text), record);
	CHECK_EQ(read_record(buf_str(&text), &got), 0);
	write_record(&got, &again);
	CHECK_STR(buf_str(&again), record);
	CHECK_EQ(got.state, ENGINE_RUN_CANCELLED);
	CHECK_EQ(got.exit_code, -1);
	CHECK_EQ(got.published[1].host_port, 65535);
	CHECK_STR(got.argv.list[1], "all\n");
	CHECK_STR(got.asked.rw.list[0], "/c\xff");
	CHECK_STR(got.missing.list[0].reason, "an old \\ kernel");
	CHECK_STR(got.refusals.list[0].what, "evil.org:443");
	CHECK_STR(got.answers.list[0].by, "person");
	CHECK_STR(got.artifacts[1].problem, "is missing");
	CHECK_STR(got.machine.ticket, TICKET);
	CHECK_STR(got.trace, TRACE);
	CHECK_EQ(got.logged[1], 22);
}

/* As the first version wrote it, but for its state and its walls. */
#define OLD(state, walls)                                                                         \
	"{\"version\":1,\"state\":\"" state                                                       \
	"\",\"clone\":\"c\",\"project\":\"/p\",\"cwd\":\"/p\","                                   \
	"\"made\":true,\"removed\":false,\"before\":\"\",\"net\":\"none\",\"argv\":[\"true\"],"   \
	"\"env\":[],\"limits\":{\"mem\":1,\"cpus_milli\":2,\"pids\":3,\"time_ms\":4,\"disk\":5,"  \
	"\"fsize\":6,\"nofile\":7,\"output\":8},\"pid\":1,\"started\":1,\"ended\":2,\"result\":{" \
	"\"exit_code\":0,\"signal\":0,\"timed_out\":false,\"oom_killed\":false,\"limit\":\"\","   \
	"\"walls\":[" walls "],\"duration_ms\":1,\"cpu_ms\":1,\"max_rss\":1,\"max_mem\":1,"       \
	"\"problem\":null,\"compared\":false,\"added\":0,\"modified\":0,\"deleted\":0,"           \
	"\"truncated\":false,\"logged_out\":0,\"logged_err\":0,\"log_truncated\":false}}"

TEST(a_record_of_the_first_version_is_read)
{
	CLEANUP(engine_run_done) struct engine_run got = { 0 };

	CHECK_EQ(read_record(OLD("ended", "\"seccomp\""), &got), 0);
	CHECK_EQ(got.state, ENGINE_RUN_ENDED);
	CHECK_EQ(got.n_walls, 1);
	CHECK(got.limits.output == 8 && got.limits.inodes == 0 && got.limits.net_out == 0);
	CHECK(!got.profile && !got.asked.known && !got.detached && !got.root && !got.curve);
	CHECK(got.n_published == 0 && got.n_artifacts == 0 && got.missing.n == 0);
	CHECK(got.refusals.n == 0 && got.answers.n == 0 && got.secret_for.n == 0);
	CHECK(*got.project_id == '\0' && *got.machine.ticket == '\0' && *got.trace == '\0');
}

TEST(walls_of_another_version_are_left_out)
{
	CLEANUP(engine_run_done) struct engine_run got = { 0 };

	CHECK_EQ(read_record(OLD("ended", "\"moat\",\"seccomp\""), &got), 0);
	CHECK_EQ(got.n_walls, 1);
	CHECK_STR(got.walls[0], "seccomp");
}

TEST(an_unknown_state_or_version_is_refused)
{
	CLEANUP(engine_run_done) struct engine_run one = { 0 }, two = { 0 }, three = { 0 };

	CHECK_EQ(read_record(OLD("asleep", ""), &one), -EINVAL);
	CHECK_EQ(read_record("{\"version\":2}", &two), -EPROTO);
	CHECK_EQ(read_record("{\"version\":1,\"state\":\"ended\"}", &three), -EINVAL);
}

TEST_MAIN("run-record")
