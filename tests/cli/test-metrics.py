"""Numbers for a monitoring system: their form, and that they count what was done."""

import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from mcptest import VERSION, Client
from runtest import until
from snaptest import SNAP, World, main, needs_fuse, test
from uitest import Server

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'^({NAME})(?:\{{((?:[a-z_]+="[^"\\\n]*",?)+)\}})? ([0-9]+(?:\.[0-9]+)?)$')
DASHBOARD = Path(__file__).resolve().parents[2] / "docs/grafana/snapcow.json"


def parse(text):
    """The families, by the rules of the text format; what breaks one is an error."""
    families, current = {}, None
    assert text.endswith("\n") and "\n\n" not in text
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert re.fullmatch(NAME, name) and name not in families and words.endswith("."), line
            current = families[name] = {"type": None, "samples": {}}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert families[name] is current and current["type"] is None, line
            assert kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
            current["type"] = kind
        else:
            found = SAMPLE.match(line)
            assert found and current and current["type"], line
            name, labels, value = found.groups()
            base = re.sub("_(bucket|sum|count)$", "", name) if current["type"] == "histogram" else name
            assert families.get(base) is current, line
            key = (name, labels or "")
            assert key not in current["samples"], f"twice: {line}"
            current["samples"][key] = float(value)
    return families


def histograms(families):
    """Operation -> (buckets, count), after a look whether they rise and agree."""
    family = families.get("snapcow_fuse_operation_seconds")
    got = {}
    for (name, labels), value in (family or {"samples": {}})["samples"].items():
        parts = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
        one = got.setdefault(parts["op"], {"buckets": []})
        if name.endswith("_bucket"):
            one["buckets"].append((parts["le"], value))
        else:
            one[name.rsplit("_", 1)[1]] = value
    for op, one in got.items():
        values = [v for _, v in one["buckets"]]
        assert values == sorted(values) and one["buckets"][-1] == ("+Inf", one["count"]), (op, one)
        assert one["sum"] > 0, (op, one)
    return {op: one["count"] for op, one in got.items()}


def metrics(w):
    return parse(w.ok("metrics").out.decode())


def value(families, name, labels=""):
    return families[f"snapcow_{name}"]["samples"][(f"snapcow_{name}", labels)]


def promtool_accepts(text):
    if not shutil.which("promtool"):
        print("# promtool is not here (package prometheus): only our own parser looked")
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def listening(w, *words):
    """`metrics --listen` on any port: its address and the token that it prints."""
    process = subprocess.Popen([SNAP, "metrics", "--listen", "127.0.0.1:0", *words], cwd=w.project, env=w.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        url = process.stdout.readline().decode().strip()
        assert url.endswith("/metrics"), (url, process.stderr.read() if not url else "")
        yield url, process.stderr.readline().decode().split()[1]
    finally:
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and b"Sanitizer" not in said, (process.returncode, said)


def get(url, token=None, method="GET", **headers):
    """Status, type and body of an answer."""
    host, path = url.removeprefix("http://").split("/", 1)
    link = http.client.HTTPConnection(host, timeout=60)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    link.request(method, f"/{path}", headers=headers)
    got = link.getresponse()
    body = got.read()
    link.close()
    return got.status, got.getheader("Content-Type"), body


def answers_as_metrics(w, url, token):
    status, kind, body = get(url, token)
    assert status == 200 and kind.startswith("text/plain; version=0.0.4"), (status, kind, body)
    assert set(parse(body.decode())) == set(metrics(w)), "another page than the command prints"
    promtool_accepts(body)
    for want, more in ((401, {}), (401, {"token": "wrong"}), (403, {"token": token, "Host": "evil.example"}),
                       (403, {"token": token, "Origin": "http://evil.example"}),
                       (405, {"token": token, "method": "POST"})):
        status, _, body = get(url, **more)
        assert status == want and b"snapcow_" not in body, (more, status, body)


@test
def a_server_answers_prometheus_and_nobody_else(w: World):
    w.ok("init")
    secret = w.home / "token"
    with listening(w, "--token-file", str(secret)) as (url, token):
        assert secret.read_text().strip() == token and secret.stat().st_mode & 0o77 == 0
        answers_as_metrics(w, url, token)
        base = url.removesuffix("/metrics")
        for path in ("/", "/api/status", "/metrics/", "/metrics?x=1"):
            status, _, body = get(base + path, token, method="GET")
            assert (status == 200) == path.startswith("/metrics?"), (path, status, body)
    w.snap("metrics", "--listen", "0.0.0.0:0").fails(2, "other machines could reach", "use 127.0.0.1")
    w.snap("metrics", "--listen", "here").fails(2, "is no address")
    w.snap("metrics", "--listen", "127.0.0.1:0", "--otlp", "-").fails(2, "contradicts")
    w.snap("metrics", "--token-file", "x").fails(2, "needs '--listen'")


@test
def numbers_that_cannot_be_had_are_no_numbers(w: World):
    with listening(w) as (url, token):
        status, _, body = get(url, token)
        assert status == 503 and b"snapcow_" not in body, (status, body)
        w.ok("init")
        assert get(url, token)[0] == 200, "the store is there now"


@test
def the_page_has_them_too(w: World):
    w.ok("init")
    with Server(w) as ui:
        answers_as_metrics(w, f"http://127.0.0.1:{ui.port}/metrics", ui.token)


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def spans(w, *words):
    got = json.loads(w.ok("metrics", "--otlp", *(words or ("-",))).out)
    (resource,) = got["resourceSpans"]
    assert {"key": "service.name", "value": {"stringValue": "snapcow"}} in resource["resource"]["attributes"]
    (scope,) = resource["scopeSpans"]
    return scope["spans"]


@test
def a_run_belongs_to_the_trace_of_its_caller(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    said = f"00-{TRACE}-{SPAN}-01"
    traced = {**w.env, "TRACEPARENT": said}
    got = w.ok("run", "--json", "try", "--", "sh", "-c", "echo $TRACEPARENT", env=traced).json("snap.run/1")
    own = got["run"] + "0000"
    assert got["traceparent"] == said and got["stdout"] == f"00-{TRACE}-{own}-01\n", got["stdout"]
    other = w.snap("run", "--json", "try", "--", "sh", "-c", "echo $TRACEPARENT; false",
                   env={**w.env, "TRACEPARENT": "x"}).json("snap.run/1", status=1)
    assert other["traceparent"] is None and other["stdout"] == "\n", other
    events = [json.loads(line) for line in w.ok("events", "--json").out.splitlines()]
    of = {(e["kind"], e["run"]): e["data"].get("traceparent") for e in events if e["run"]}
    assert of[("run-started", got["run"])] == of[("run-ended", got["run"])] == said, of
    assert of[("run-started", other["run"])] is None, of
    rows = {r["run"]: r for r in w.ok("runs", "--json").json("snap.runs/1")["runs"]}
    assert rows[got["run"]]["traceparent"] == said
    first, second = spans(w)
    assert (first["traceId"], first["spanId"], first["parentSpanId"]) == (TRACE, own, SPAN), first
    assert second["spanId"] == other["run"] + "0000" and "parentSpanId" not in second, second
    assert re.fullmatch("[0-9a-f]{32}", second["traceId"]) and second["traceId"] != TRACE, second
    assert first["status"] == {"code": 1} and second["status"] == {"code": 2, "message": "exit code 1"}
    assert int(first["startTimeUnixNano"]) < int(first["endTimeUnixNano"]) <= int(second["endTimeUnixNano"])
    values = {a["key"]: a["value"] for a in second["attributes"]}
    assert values["process.exit.code"] == {"intValue": "1"} and values["snapcow.clone"] == {"stringValue": "try"}
    words = [v["stringValue"] for v in values["process.command_args"]["arrayValue"]["values"]]
    assert words == ["sh", "-c", "echo $TRACEPARENT; false"], words
    # Into a file, whole.
    w.ok("metrics", "--otlp", "spans.json")
    assert json.loads((w.project / "spans.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"] == spans(w)
    w.snap("metrics", "--otlp", "no/such/dir").fails(4, "no/such")
    # Command lines are nobody else's business, also where the umask is wide open.
    assert (w.project / "spans.json").stat().st_mode & 0o7777 == 0o600


class Collector:
    """Takes OTLP over HTTP, remembers the spans, and answers what it is set to."""

    def __init__(self, port=0):
        self.port = port

    def __enter__(self):
        self.batches, self.answers, self.headers = [], [], []
        self.gate = threading.Event()
        self.gate.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                (resource,) = body["resourceSpans"]
                outer.headers.append(dict(self.headers))
                assert outer.gate.wait(60)
                status = outer.answers.pop(0) if outer.answers else 200
                if status == 200:
                    outer.batches.append([s["spanId"][:12] for s in resource["scopeSpans"][0]["spans"]])
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@test
def a_collector_gets_each_run_once(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    run = lambda: w.ok("run", "--json", "try", "--", "true").json("snap.run/1")["run"]  # noqa: E731
    first, second = run(), run()
    with Collector() as c:
        assert b"sent 2 spans" in w.ok("metrics", "--otlp", c.url).out
        assert c.batches == [[first, second]], c.batches
        assert b"sent 0 spans" in w.ok("metrics", "--otlp", c.url + "/").out, "nothing is new"
        third = run()
        # It cannot now, and says so more often than we try: nothing is lost.
        c.answers = [503, 429, 503, 503, 503, 503]
        got = w.snap("metrics", "--otlp", c.url)
        assert got.status != 0 and b"answers 503" in got.err and b"is kept" in got.err, got
        c.answers = [503]
        assert b"sent 1 span " in w.ok("metrics", "--otlp", c.url).out, "the second try does"
        assert c.batches[1:] == [[third]], c.batches
        # What it will never understand does not stand in the way of what follows.
        run()
        c.answers = [400]
        got = w.ok("metrics", "--otlp", c.url)
        assert b"refused 1 spans" in got.err and b"sent 0 spans" in got.out, got
        fifth = run()
        w.ok("metrics", "-q", "--otlp", c.url)
        assert c.batches[2:] == [[fifth]], c.batches
        # Another address has its own place in the queue.
        w.ok("metrics", "--otlp", c.url.replace("127.0.0.1", "localhost"))
        assert len(c.batches[3]) == 5 and c.batches[3][:2] == [first, second], c.batches
        sixth, url = run(), c.url
    # Nobody listens: runs go on, and the next collector there gets what was left.
    assert w.snap("metrics", "--otlp", url).status != 0
    with Collector(int(url.rsplit(":", 1)[1])) as c:
        w.ok("metrics", "--otlp", c.url)
        assert c.batches == [[sixth]], c.batches
    w.snap("metrics", "--otlp", "http://example.org").fails(2, "https")
    w.snap("metrics", "--otlp", "http://").fails(2, "is no URL")


@test
def a_configured_collector_gets_its_headers(w: World):
    needs_fuse()
    w.snap("metrics", "--send").fails(4, "metrics: {otlp: URL}")
    w.ok("clone", "-n", "try")
    run = w.ok("run", "--json", "try", "--", "true").json("snap.run/1")["run"]
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    with Collector() as c:
        config.write_text(f"metrics: {{otlp: '{c.url}', otlp_headers: {{X-Api-Key: abc def, X-Scope: team}}}}\n")
        assert f"sent 1 span to {c.url}".encode() in w.ok("metrics", "--send").out
        assert c.batches == [[run]] and c.headers[-1]["X-Api-Key"] == "abc def" and c.headers[-1]["X-Scope"] == "team"
        # They are for that collector, not for any other that is named by hand.
        with Collector() as other:
            w.ok("metrics", "--otlp", other.url)
            assert other.batches == [[run]] and "X-Api-Key" not in other.headers[-1]
        w.ok("metrics", "--otlp", c.url)
        assert len(c.batches) == 1, "one queue for one address"
    for text, word in (("otlp_headers: {X-Key: \"a\\nHost: b\"}", "is no header"), ("otlp_headers: {'X: y': z}", "is no header"),
                       ("otlp_headers: [a]", "names and values"), ("otlp: collector", "expects an address"),
                       ("oltp: http://127.0.0.1", "metrics.oltp")):
        config.write_text(f"metrics:\n  {text}\n")
        got = w.snap("metrics", "--send")
        assert got.status == 2 and word.encode() in got.err and b"config.yaml:2:" in got.err, (text, got)
    config.unlink()
    w.snap("metrics", "--send", "--otlp", "-").fails(2, "contradicts")


@test
def a_run_that_ends_is_sent_by_itself_and_waits_for_nobody(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    run = lambda: w.ok("run", "--json", "try", "--", "true").json("snap.run/1")["run"]  # noqa: E731
    with Collector() as c:
        config.write_text(f"metrics: {{otlp: '{c.url}'}}\n")
        first = run()
        until(lambda: c.batches == [[first]])
        # It answers nobody until all of these are over; one process sends, one waits, and none of them is lost.
        c.gate.clear()
        more = [run() for _ in range(5)]
        assert len(c.batches) == 1, "no run waited for the collector"
        c.gate.set()
        until(lambda: sorted(sum(c.batches[1:], [])) == sorted(more))
        assert len(c.batches) <= 4, c.batches
    # Nobody listens there any more: the run has its result, and the log says why.
    log = w.store / "cowfsd.log"
    before = log.read_bytes().count(c.url.encode())
    last = run()
    until(lambda: log.read_bytes().count(c.url.encode()) > before)
    with Collector(int(c.url.rsplit(":", 1)[1])) as c:
        w.ok("metrics", "--send", "--wait")
        until(lambda: c.batches == [[last]])
    w.snap("metrics", "--wait").fails(2, "--send")


@test
def a_call_of_an_agent_brings_its_own_trace(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    arguments, found = {"clone": "try", "command": ["true"]}, []
    for era in (VERSION, "2025-11-25"):
        with Client(w, era=era) as client:
            for said in (f"00-{TRACE}-{SPAN}-00", "00-nonsense"):
                done = client.ask("tools/call", name="snap_run", arguments=arguments, _meta={"traceparent": said})
                found.append(done["result"]["structuredContent"]["run"])
    rows = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    of = {r["run"]: r["traceparent"] for r in rows}
    assert [of[run] for run in found] == [f"00-{TRACE}-{SPAN}-00", None] * 2, of


@test
def the_text_is_what_prometheus_takes(w: World):
    w.snap("metrics").fails(4, "no store")
    w.ok("init")
    w.stop()
    got = metrics(w)
    assert value(got, "up") == 0 and value(got, "snapshots") == 1 and value(got, "projects") == 1
    assert "snapcow_dirty_bytes" not in got, "the daemon does not run, and is not started"
    assert not w.daemons()
    needs_fuse()
    w.ok("clone", "-n", "try")
    got = metrics(w)
    assert value(got, "up") == 1 and value(got, "clones_mounted") == 1 and value(got, "clones") == 1
    rows = w.ok("metrics", "--json").json("snap.metrics/1", "families")["families"]
    assert {row["name"] for row in rows} <= {name.removeprefix("snapcow_") for name in metrics(w)}
    promtool_accepts(w.ok("metrics").out)


@test
def operations_are_counted_one_by_one(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    top = w.store / "clones" / "try"
    before = histograms(metrics(w))
    for i in range(20):
        (top / f"dir{i}").mkdir()
    for i in range(7):
        os.rmdir(top / f"dir{i}")
    fd = os.open(top / "file", os.O_RDWR | os.O_CREAT, 0o644)
    for i in range(30):
        assert os.pwrite(fd, b"x" * 10, i * 100) == 10
    for _ in range(3):
        os.fsync(fd)
    os.close(fd)
    after = histograms(metrics(w))
    grown = {op: after[op] - before.get(op, 0) for op in after}
    want = {"mkdir": 20, "rmdir": 7, "write": 30, "fsync": 3}
    assert {op: grown.get(op) for op in want} == want, grown


@test
def acts_and_runs_are_counted(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("run", "try", "--", "sh", "-c", "echo 1 > new")
    w.snap("run", "try", "--", "false")
    w.ok("promote", "try", "--yes")
    w.ok("undo", "--yes")
    got = metrics(w)
    assert value(got, "receipts", 'kind="promotion"') == 1 and value(got, "receipts", 'kind="undo"') == 1
    assert value(got, "runs", 'state="ended"') == 2 and value(got, "runs_failed") == 1
    assert value(got, "events_total") > 5 and value(got, "store_disk_bytes") > 0


@test
def the_dashboard_shows_what_there_is(w: World):
    board = json.loads(DASHBOARD.read_text())
    needs_fuse()
    w.ok("clone", "-n", "try")
    list((w.store / "clones" / "try").iterdir())
    there = metrics(w)
    asked = set(re.findall(r"snapcow_[a-z_]+", json.dumps([p["targets"] for p in board["panels"]])))
    asked = {name for name in asked if not name.startswith("snapcow_worker_")}  # by remote/worker-status
    assert asked, "no panel asks for anything"
    for name in asked:
        base = re.sub("_(bucket|sum|count)$", "", name)
        assert name in there or base in there, f"the dashboard asks for {name}, which there is not"


if __name__ == "__main__":
    sys.exit(main())
