"""snap mcp --http: agents over HTTP, in both eras of the protocol, and whom it does not let in."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

from mcphttp import HttpClient, Server, events, modern
from mcptest import VERSION
from snaptest import SNAP, main, needs_fuse, test

ERAS = (VERSION, "2025-11-25", "2025-03-26")
CONFORMANCE = os.environ["SNAP_CONFORMANCE_SERVER"]
FIXTURES = Path(__file__).resolve().parent.parent / "mcp" / "fixtures.json"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}


@test
def a_whole_story_works_in_both_eras(w):
    needs_fuse()
    with Server(w) as server:
        for era in ERAS:
            name = f"fix-{era}"
            with HttpClient(server, era, can_ask=True) as c:
                path = c.ok("snap_clone", name=name)["path"]
                c.ok("snap_edit", clone=name, path="README.md", old="first", new=era)
                assert c.ok("snap_run", clone=name, command="cat README.md")["output"] == f"{era}\n"
                assert c.ok("snap_promote", clone=name, dry_run=True)["promotion"] is None
                assert not c.asked, "nobody is asked about a dry run"
                assert c.ok("snap_promote", clone=name)["promotion"]
                assert "README.md" in c.asked[0], c.asked
                assert (w.project / "README.md").read_text() == f"{era}\n"
                c.ok("snap_undo")
                c.says_yes = False
                c.fails("snap_promote", "did not agree", clone=name)
                assert json.loads(c.ask("resources/read", uri="snap://clones")["result"]["contents"][0]["text"])
                c.fails("snap_edit", "No such file", clone=name, path="no\u00e9", old="a", new="b")
                c.ok("snap_destroy", clone=name)
                assert not os.path.exists(path)


@test
def only_who_brings_the_token_under_the_name_of_this_machine_is_let_in(w):
    body, headers = modern("server/discover")
    with Server(w) as server:
        port = server.port

        def status(**more):
            got = server.ask(body, **{**headers, **more})
            if got.status != 200:
                assert json.loads(got.content)["error"]["message"], got.content
            return got.status

        for host in (f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", "[::1]:1", "127.8.9.10"):
            assert status(Host=host) == 200, host
            assert status(Host=host, Origin=f"http://{host}") == 200, host
        for host in ("evil.example.com", f"evil.example.com:{port}", "127.0.0.1.evil.example.com", "", "127.0.0.1:x",
                     "localhost.evil.example.com", "127.0.0.", "1270.0.0.1", "[::1].evil.example.com", "0.0.0.0"):
            assert status(Host=host) == 403, host
            assert status(Origin=f"http://{host}") == 403, host
        for origin in ("null", "file://", "ftp://localhost", "localhost", "https://evil.example.com"):
            assert status(Origin=origin) == 403, origin
        assert status(Origin="https://localhost:6274") == 200
        for token in (None, "", "Bearer", "Bearer ", f"Bearer {server.token}x", f"Bearer {server.token[:-1]}",
                      f"Basic {server.token}", server.token, f"Bearer {server.token[:-1]}!"):
            got = server.ask(body, **{**headers, "Authorization": token})
            assert got.status == 401 and got.headers["WWW-Authenticate"] == "Bearer", token
        # Nobody without the token gets to know what is there.
        assert server.ask(body, path="/x", Authorization=None).status == 401
        assert server.ask(method="GET", Authorization=None).status == 401


@test
def a_token_may_stand_in_a_file_of_its_owner_alone(w):
    file = w.home / "token"
    body, headers = modern("server/discover")
    for _ in range(2):
        with Server(w, "--token-file", str(file)) as server:
            token = file.read_text().strip()
            assert len(token) == 64 and stat.S_IMODE(file.stat().st_mode) == 0o600
            assert server.ask(body, **headers).status == 401
            assert server.ask(body, **headers, Authorization=f"Bearer {token}").status == 200
    for mode in (0o640, 0o604, 0o622):
        file.chmod(mode)
        w.snap("mcp", "--http", "127.0.0.1:0", "--token-file", str(file)).fails(1, "chmod 600")
    file.chmod(0o600)
    file.write_text("short\n")
    w.snap("mcp", "--http", "127.0.0.1:0", "--token-file", str(file)).fails(2, "no token")


@test
def addresses_that_others_can_reach_need_to_be_asked_for(w):
    for where in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        w.snap("mcp", "--http", where).fails(2, "other machines", "--http-remote")
    for where in ("", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "example.org:80", "[::1", "[::1]", "-1"):
        w.snap("mcp", "--http", where).fails(2, "no address")
    w.snap("mcp", "--token-file", "x").fails(2, "--http")
    w.snap("mcp", "--http-remote").fails(2, "--http")
    body, headers = modern("server/discover")
    with Server(w) as server:
        w.snap("mcp", "--http", f"127.0.0.1:{server.port}").fails(1, "cannot listen")
    command = [SNAP, "mcp", "--http", "0.0.0.0:0", "--http-remote", "--token-file", w.home / "t"]
    with Server(w, command=command) as server:
        server.token = (w.home / "t").read_text().strip()
        server.host = "127.0.0.1"
        assert server.ask(body, **headers, Host="any.name").status == 200
        assert server.ask(body, **headers, Host="any.name", Origin="http://any.name").status == 200
        assert server.ask(body, **headers, Host="any.name", Origin="http://other.name").status == 403
        assert server.ask(body, **headers, Host="any.name", Authorization=None).status == 401


def code(got):
    return json.loads(got.content)["error"]["code"]


@test
def a_request_of_the_newer_era_says_the_same_in_its_headers(w):
    with Server(w) as server:
        def refused(status, number, method="tools/list", body=None, more=None, **params):
            made, headers = modern(method, 7, **params)
            got = server.ask(made if body is None else body, **{**headers, **(more or {})})
            assert (got.status, code(got)) == (status, number), (got.status, got.content)
            return json.loads(got.content)

        assert refused(400, -32020, more={"MCP_Protocol_Version": None})["id"] == 7
        refused(400, -32020, more={"MCP_Protocol_Version": "2025-11-25"})
        refused(400, -32020, more={"Mcp_Method": None})
        refused(400, -32020, more={"Mcp_Method": "TOOLS/LIST"})
        call = {"method": "tools/call", "name": "snap_list", "arguments": {}}
        for name in (None, "snap_clone", "=?base64?!?=", "=?base64?c25hcF9saXN0?", "SNAP_LIST"):
            refused(400, -32020, more={"Mcp_Name": name}, **call)
        body, headers = modern(**call)
        for name in ("snap_list", "  snap_list ", "=?base64?c25hcF9saXN0?="):
            got = server.ask(body, **{**headers, "Mcp_Name": name})
            assert got.status == 200, (name, got.content)
        refused(404, -32601, "no/such")
        refused(404, -32601, "ping")
        refused(404, -32601, "initialize")
        refused(400, -32602, body={"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}})
        error = refused(400, -32022, more={"MCP_Protocol_Version": "2099-01-01"},
                        meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"})["error"]
        assert error["data"] == {"supported": [VERSION], "requested": "2099-01-01"}, error
        refused(400, -32700, body=b"{")
        refused(400, -32600, body=b"[]")
        # A failure of the call itself is an answer like any other.
        body, headers = modern("resources/read", uri="snap://no\u00e9")
        got = server.ask(body, **headers)
        assert (got.status, code(got)) == (200, -32602), got.content


@test
def what_is_no_message_is_refused_by_http(w):
    body, headers = modern("tools/list")
    with Server(w) as server:
        for status, more in ((404, {"path": "/"}), (404, {"path": "/mcp/x"}), (405, {"method": "PUT"}),
                             (405, {"method": "GET"}), (405, {"method": "DELETE"}), (405, {"method": "OPTIONS"}),
                             (415, {"Content_Type": "text/plain"}), (415, {"Content_Type": None}),
                             (406, {"Accept": "text/html"})):
            got = server.ask(body, **{**headers, **more})
            assert got.status == status, (more, got.status)
        got = server.ask(body, **headers, Accept="application/json")
        assert got.status == 200 and got.headers["Content-Type"] == "application/json"
        assert server.ask(body, **{**headers, "Content_Type": "application/json; charset=utf-8"}).status == 200
        listen, more = modern("subscriptions/listen", notifications={})
        assert server.ask(listen, **more, Accept="application/json").status == 406
        notice = {"jsonrpc": "2.0", "method": "notifications/x"}
        assert server.ask(notice, MCP_Protocol_Version=VERSION).status == 202
        assert server.ask(notice).status == 400
        answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert server.ask(answer, MCP_Protocol_Version=VERSION).status == 400
        # One that is too long is not read at all; one that does not say how long it is, not to its end.
        with server.socket() as s:
            s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Authorization: Bearer %s\r\nContent-Length: 99999999999\r\n\r\n" % server.token.encode())
            assert s.recv(100).startswith(b"HTTP/1.1 413")
        link = server.connect()
        link.request("POST", "/mcp", iter([b" " * (1 << 20)] * 17), server.headers(**headers), encode_chunked=True)
        assert link.getresponse().status == 413
        link.close()
        assert server.ask(body, **headers).status == 200


@test
def what_is_no_http_is_refused_or_never_answered(w):
    """By a server that closes a silent connection after a second, and needs no token."""
    body, headers = modern("tools/list")
    with Server(w, command=[CONFORMANCE, FIXTURES, "timeout_s=1"]) as server:
        for raw in (b"\r\n\r\n", b"GET\r\n\r\n", b"POST /mcp HTTP/9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 20,
                    b"POST /mcp HTTP/1.1\r\n" + b"X: " + b"y" * 200000 + b"\r\n\r\n"):
            with server.socket() as s:
                try:
                    s.sendall(raw)
                    s.shutdown(socket.SHUT_WR)
                    got = s.recv(100)
                except OSError:
                    got = b""
                assert not got.startswith(b"HTTP/1.1 2"), (raw[:40], got)
        assert server.ask(body, **headers).status == 200


@test
def a_session_begins_with_the_handshake_and_ends_when_it_is_deleted(w):
    with Server(w) as server:
        got = server.ask(INITIALIZE)
        one = {"Mcp_Session_Id": got.headers["Mcp-Session-Id"], "MCP_Protocol_Version": "2025-11-25"}
        assert got.status == 200 and one["Mcp_Session_Id"].isalnum(), got.content
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert json.loads(server.ask(ping, **one).content)["result"] == {}
        assert server.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, **one).status == 202
        assert server.ask(ping).status == 400
        assert server.ask(ping, Mcp_Session_Id="0" * 32).status == 404
        assert server.ask(ping, **{**one, "MCP_Protocol_Version": "1999-01-01"}).status in (400, 404)
        unknown = json.loads(server.ask({**ping, "method": "no/such"}, **one).content)
        assert unknown["error"]["code"] == -32601, unknown
        # Its own stream: one, which ends with it.
        link = server.connect()
        link.request("GET", "/mcp", headers=server.headers(**one))
        stream = link.getresponse()
        assert stream.status == 200 and stream.headers["Content-Type"] == "text/event-stream"
        assert server.ask(method="GET", **one).status == 409
        assert server.ask(method="GET", **one, Accept="application/json").status == 406
        assert server.ask(method="DELETE", **one).status == 200
        assert stream.read() == b"", "the stream went on"
        link.close()
        assert server.ask(ping, **one).status == 404
        assert server.ask(method="DELETE", **one).status == 404
        # Any number may begin: who was not heard of for longest makes room.
        ids = [server.ask(INITIALIZE).headers["Mcp-Session-Id"] for _ in range(65)]
        assert server.ask(ping, Mcp_Session_Id=ids[0]).status == 404
        assert server.ask(ping, Mcp_Session_Id=ids[1]).status == 200
        assert server.ask(ping, Mcp_Session_Id=ids[-1]).status == 200


@test
def whoever_keeps_silent_for_too_long_is_forgotten(w):
    command = [CONFORMANCE, FIXTURES, "sessions=2", "idle_ms=1500", "timeout_s=1"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    with Server(w, command=command) as server:
        one, two = ({"Mcp_Session_Id": server.ask(INITIALIZE).headers["Mcp-Session-Id"]} for _ in range(2))
        links = []
        for session in (one, two):
            link = server.connect()
            link.request("GET", "/mcp", headers=server.headers(**session))
            assert link.getresponse().status == 200
            links.append(link)
        # Both are in use, so that there is no room for a third.
        assert server.ask(INITIALIZE).status == 503
        links.pop().close()
        wait_until(lambda: server.ask(ping, **two).status == 200 and server.ask(INITIALIZE).status == 200, "no room")
        with server.socket() as s:
            s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n"
                      b"Content-Type: application/json\r\n\r\n{")
            assert s.recv(100) == b"", "half a request was answered"
        wait_until(lambda: server.ask(INITIALIZE).status == 200, "the one that nobody used is still there")
        assert server.ask(ping, **one).status == 200, "one that listens was forgotten"


def running(w):
    return w.ok("ps", "--json").json("snap.ps/1")["runs"]


def wait_until(ready, what):
    end = time.monotonic() + 60
    while not (got := ready()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return got


@test
def a_run_ends_with_its_connection_in_the_newer_era_and_by_a_notification_in_the_older(w):
    needs_fuse()
    with Server(w) as server:
        for era in ERAS[:2]:
            c = HttpClient(server, era)
            c.ok("snap_clone", name=f"long-{era}")
            number = c.start("tools/call", name="snap_run", arguments={
                "clone": f"long-{era}", "command": "echo begun; sleep 600"})
            run = wait_until(lambda: running(w), "no run")[0]["run"]
            c.hang_up(number)
            if era != VERSION:
                assert c.ask("ping")["result"] == {}
                assert running(w), "a lost connection ended the run"
                c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            got = w.snap("wait", "--json", "--timeout", "60s", run)
            assert got.json("snap.wait/1", status=143)["runs"][0]["state"] == "cancelled", got


@test
def a_call_that_takes_long_says_so_if_it_is_asked_to(w):
    needs_fuse()
    w.ok("clone", "-n", "slow")
    with Server(w) as server:
        for era in ERAS[:2]:
            for token in ("t", 5, None):
                with HttpClient(server, era) as c:
                    meta = {} if token is None else {"_meta": {"progressToken": token}}
                    number = c.start("tools/call", name="snap_run", **meta, arguments={
                        "clone": "slow", "command": "mkfifo go; cat go; rm go"})
                    if token is not None:
                        seen = [c.read() for _ in range(2)]
                        assert {m["method"] for m in seen} == {"notifications/progress"}, seen
                        assert [m["params"]["progressToken"] for m in seen] == [token] * 2, seen
                        assert seen[0]["params"]["progress"] < seen[1]["params"]["progress"], seen
                        assert "Run" in seen[0]["params"]["message"], seen
                    go = w.store / "clones" / "slow" / "go"
                    wait_until(go.exists, "it did not begin")
                    go.write_text("on\n")
                    while "method" in (last := c.read()):
                        assert token is not None, last
                    assert last["id"] == number and last["result"]["structuredContent"]["status"] == "ended", last


@test
def whoever_is_slow_or_silent_keeps_nobody_waiting(w):
    body, headers = modern("tools/list")
    with Server(w) as server:
        links = [server.socket() for _ in range(100)]
        for i, s in enumerate(links):
            s.sendall((b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                       b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
                       % server.token.encode())[:1 + i * 3])
        for _ in range(10):
            assert server.ask(body, **headers).status == 200
        for s in links:
            s.close()
        # More at once than it takes: those that wait get their turn when others have gone.
        links = [server.socket() for _ in range(140)]
        for s in links:
            s.close()
        assert server.ask(body, **headers).status == 200


@test
def it_ends_with_a_word_to_those_who_listen_and_leaves_nothing(w):
    needs_fuse()
    for signo in (signal.SIGTERM, signal.SIGINT):
        server = Server(w)
        listen, headers = modern("subscriptions/listen", 9, notifications={"toolsListChanged": True})
        link = server.connect()
        link.request("POST", "/mcp", json.dumps(listen).encode(), server.headers(**headers))
        stream = events(link.getresponse())
        first = next(stream)
        assert first["method"] == "notifications/subscriptions/acknowledged", first
        c = HttpClient(server, VERSION)
        c.ok("snap_clone", name=f"n{int(signo)}")
        c.start("tools/call", name="snap_run", arguments={
            "clone": f"n{int(signo)}", "command": "echo begun; sleep 600"})
        run = wait_until(lambda: running(w), "no run")[0]["run"]
        server.process.send_signal(signo)
        last = next(stream)
        assert last["id"] == 9 and last["result"]["resultType"] == "complete", last
        assert list(stream) == []
        assert server.process.wait(30) == 0
        assert not subprocess.run(["pgrep", "-P", str(server.process.pid)], stdout=subprocess.PIPE, check=False).stdout
        server.process.stderr.close()
        w.snap("cancel", run)
        w.snap("wait", "--timeout", "60s", run)


if __name__ == "__main__":
    sys.exit(main())
