"""snap ui: the page, the questions it asks, and whom the server does not let in."""

import gzip
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from base64 import b64encode
from pathlib import Path

from npmtest import npm_install
from snaptest import SNAP, Skip, gone, main, needs_fuse, test
from uitest import Server

WEB = Path(__file__).resolve().parent.parent.parent / "web"
LIMIT = 80 * 1024


# --- the page -------------------------------------------------------------------------------------

@test
def the_page_is_one_file_that_runs_nothing_but_its_own_script(w):
    with Server(w) as server:
        response, link = server.open("/", method="GET", body=b"", Authorization=None)
        packed = response.read()
        link.close()
        headers = {k.lower(): v for k, v in response.getheaders()}
        assert response.status == 200 and headers["content-encoding"] == "gzip"
        assert headers["x-frame-options"] == "DENY" and headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer" and headers["x-content-type-options"] == "nosniff"
        assert len(packed) <= LIMIT
        page = gzip.decompress(packed).decode()
        assert server.token not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy, policy
    for tag in ("script", "style"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1]
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy, tag
    outside = [u for u in re.findall(r"https?://[\w./-]+", page) if "www.w3.org" not in u and "localhost" not in u]
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?!data:)', page), outside


@test
def the_page_is_what_its_sources_make(w):
    """Built again with the pinned packages; where npm is out of reach that is said."""
    del w
    at = npm_install(WEB / "package.json", "npm-page", fetch=bool(os.environ.get("SNAP_TESTS_LONG")))
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copytree(WEB, Path(tmp) / "web", ignore=shutil.ignore_patterns("node_modules"))
        (Path(tmp) / "web" / "node_modules").symlink_to(at / "node_modules")
        done = subprocess.run(["node", "build.mjs", tmp], cwd=f"{tmp}/web", check=False, timeout=120,
                              capture_output=True)
        assert done.returncode == 0, done
        made = gzip.decompress(Path(f"{tmp}/page.html.gz").read_bytes())
        assert made == gzip.decompress((WEB / "page.html.gz").read_bytes()), "run 'npm run build' in web/"
        assert Path(f"{tmp}/app.html").read_bytes() == (WEB / "app.html").read_bytes(), "likewise"


# --- whom it lets in ------------------------------------------------------------------------------

@test
def only_who_brings_the_token_under_the_name_of_this_machine_is_let_in(w):
    with Server(w) as server:
        def status(**more):
            return server.status("/api/clones", **more)

        assert status() == 200
        for authorization in (None, "Bearer ", "Bearer x", f"Basic {server.token}", f"Bearer {server.token}x",
                              f"Bearer {server.token[:-1]}"):
            assert status(Authorization=authorization) == 401, authorization
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "192.0.2.1", ""):
            assert status(Host=host) == 403, host
            assert server.status("/", method="GET", body=b"", Host=host) == 403, f"{host}: a rebound name"
        for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example", "file://"):
            assert status(Origin=origin) == 403, origin
        assert status(Origin=f"http://127.0.0.1:{server.port}") == 200
        for kind in (None, "text/plain", "application/x-www-form-urlencoded"):
            assert status(Content_Type=kind) == 415, kind
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            assert status(method=method) == 405, method
        for path in ("/api", "/api/", "/api/x", "/api/../", "/index.html", "//", "/api/" + "x" * 100):
            assert server.status(path) == 404, path


@test
def a_page_that_may_only_look_changes_nothing(w):
    needs_fuse()
    w.take()
    with Server(w, "--read-only") as server:
        assert server.told["read_only"] is True
        for question, values in (("clone", {"name": "x"}), ("snapshot", {}), ("remove", {"clone": "x"}), ("gc", {}),
                                 ("promote", {"clone": "x"}), ("promote", {"clone": "x", "dry_run": False}),
                                 ("rollback", {"to": "@"}), ("undo", {}), ("choose", {"name": "e", "arm": "a"}),
                                 ("approve", {"change": "1"}), ("reject", {"change": "1"}), ("cancel", {"run": "1"})):
            assert "--read-only" in server.ask(question, want=403, **values)["error"]["message"], question
        assert server.ask("clones")["clones"] == []
        assert server.ask("rollback", to="@", dry_run=True)["dry_run"] is True


# --- questions ------------------------------------------------------------------------------------

@test
def a_page_does_what_it_showed_or_nothing(w):
    needs_fuse()
    w.take()
    top = Path(w.ok("clone", "--json", "-n", "try").json("snap.clone/1", "path")["path"])
    (top / "README.md").write_text("shown\n")
    with Server(w) as server:
        shown = server.ask("conflicts", clone="try")["plan"]
        assert server.ask("promote", clone="try", dry_run=True)["plan"] == shown, "the same twice"
        assert "names what was shown" in server.ask("promote", want=400, clone="try")["error"]["message"]
        # Somebody works on: in the clone, or in the project.
        for path in (top / "README.md", top / "more", w.project / "README.md"):
            before = path.read_bytes() if path.exists() else None
            path.write_text("not shown\n")
            failed = server.ask("promote", clone="try", plan=shown)
            assert failed["schema"] != "snap.promote/1" or failed["conflicts"], failed
            if path != w.project / "README.md":
                assert failed["error"]["code"] == "E_STALE" and "not what was shown" in failed["error"]["message"], failed
            path.unlink() if before is None else path.write_bytes(before)
        assert (w.project / "README.md").read_text() != "shown\n"
        assert server.ask("promote", clone="try", plan=shown)["promotion"]
        # An arm of an experiment is a clone like any other.
        w.ok("experiment", "-n", "x", "--arm", "a=echo arm > arm")
        shown = server.ask("conflicts", clone="x-a")["plan"]
        assert "names what was shown" in server.ask("choose", want=400, name="x", arm="a")["error"]["message"]
        (w.project / "arm").write_text("arm\n")
        assert server.ask("choose", name="x", arm="a", plan=shown)["error"]["code"] == "E_STALE"
        (w.project / "arm").unlink()
        assert server.ask("choose", name="x", arm="a", plan=shown)["promoted"] == ["a"]
        assert (w.project / "arm").read_text() == "arm\n"
        assert "names what was shown" in server.ask("approve", want=400, change="1", stage="dev")["error"]["message"]


@test
def every_question_is_answered_by_its_command(w):
    needs_fuse()
    w.take("-t", "v1")
    with Server(w) as server:
        assert server.ask("clone", name="try", **{"from": "v1"})["schema"] == "snap.clone/1"
        (w.store / "clones" / "try" / "README.md").write_text("changed\n")
        assert server.ask("status", clone="try")["changed"]["modified"] == 1
        assert [c["clone"] for c in server.ask("clones")["clones"]] == ["try"]
        assert "+changed" in server.ask("diff", a="try")["patch"]
        assert server.ask("snapshot", clone="try", message="-m is a message")["message"] == "-m is a message"
        assert len(server.ask("timeline", count=1)["snapshots"]) == 1
        plan = server.ask("conflicts", clone="try")
        assert plan["dry_run"] is True
        landed = server.ask("promote", clone="try", plan=plan["plan"])
        assert landed["promotion"] and (w.project / "README.md").read_text() == "changed\n"
        assert server.ask("undo", id=landed["promotion"])["undone"]
        w.ok("run", "try", "--", "sh", "-c", "echo out; echo err >&2")
        run = server.ask("runs", count=5)["runs"][0]["run"]
        assert server.ask("output", run=run, since=4)["output"] == "err\n"
        for question, schema in (("experiments", "experiment"), ("changes", "pipeline"), ("stages", "pipeline"),
                                 ("store", "stats"), ("garbage", "gc"), ("projects", "projects"), ("steps", "log")):
            got = server.ask(question)
            assert got["schema"] in (f"snap.{schema}/1", "snap.error/1"), (question, got)
        assert server.ask("rollback", to="v1", dry_run=True)["paths"] is not None
        assert server.ask("gc")["schema"] == "snap.gc/1"
        assert server.ask("remove", clone="try")["schema"] == "snap.rm/1"
        failed = server.ask("status", clone="nobody")
        assert failed["schema"] == "snap.error/1" and "nobody" in failed["error"]["message"]


@test
def a_value_never_becomes_an_option_or_another_question(w):
    w.take()
    with Server(w) as server:
        for question, values in (("diff", {"a": "--exit-code"}), ("diff", {"a": "-x"}), ("diff", {"a": ""}),
                                 ("diff", {}), ("diff", {"a": 1}), ("diff", {"a": ["@"]}), ("diff", {"a": "@", "c": 1}),
                                 ("remove", {"clone": "-f"}), ("output", {"run": "--follow"}),
                                 ("rollback", {"to": "@", "dry_run": "yes"}), ("timeline", {"count": "x" * 10, "x": 1}),
                                 ("promote", {"clone": "x", "allow": "a"}), ("promote", {"clone": "x", "allow": [1]}),
                                 ("promote", {"clone": "x", "allow": ["a"] * 101})):
            got = server.ask(question, want=400, **values)
            assert got["error"]["message"], (question, got)
        for body in (b"[]", b"1", b"{", b"{}{}", b"\xff", b'{"a": "@"} x', b'{"a": "\x00"}'):
            assert server.status("/api/diff", body=body) == 400, body
        assert server.status("/api/diff", body=b" " * (1 << 20) + b"{}") == 413


# --- what happens, as it happens ------------------------------------------------------------------

@test
def what_happens_is_told_while_it_happens(w):
    needs_fuse()
    w.take()
    with Server(w) as server:
        response, link = server.open("/api/events")
        assert response.status == 200 and "since" in json.loads(response.readline())
        w.ok("clone", "-n", "try")
        kinds = set()
        while "clone-made" not in kinds and len(kinds) < 20:
            event = json.loads(response.readline())
            kinds.add(event["kind"])
            assert event["clone"] in ("try", None), event
            if event["clone"] == "try":
                break
        assert event["clone"] == "try", kinds
        link.close()


@test
def a_browser_that_goes_leaves_no_process(w):
    w.take()
    with Server(w) as server:
        links = [server.open("/api/events") for _ in range(5)]
        for response, _ in links:
            response.readline()
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        assert len(children) == 5, children
        for _, link in links:
            link.sock.shutdown(socket.SHUT_RDWR)
            link.close()
        for child in children:
            assert gone(int(child), 30), "a process stays after its connection"
        assert server.ask("clones")["clones"] == []


@test
def a_killed_server_leaves_no_process(w):
    w.take()
    server = Server(w)
    response, link = server.open("/api/events")
    response.readline()
    child, = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    server.process.kill()
    server.process.wait()
    assert gone(int(child), 30)
    link.close()
    for stream in (server.process.stdout, server.process.stderr):
        stream.close()


@test
def a_connection_that_sent_more_is_let_go_all_the_same(w):
    w.take()
    with Server(w) as server:
        response, link = server.open("/api/events")
        response.readline()
        child, = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        link.sock.sendall(b"G")
        link.sock.shutdown(socket.SHUT_RDWR)
        link.close()
        assert gone(int(child), 30)


@test
def a_page_that_is_closed_stops_nothing_that_changes_something(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    (w.store / "clones" / "try" / "new").write_text("new\n")
    with Server(w) as server:
        plan = server.ask("conflicts", clone="try")["plan"]
        link = socket.create_connection(("127.0.0.1", server.port))
        body = json.dumps({"clone": "try", "check": ["sleep 1"], "plan": plan}).encode()
        link.sendall(f"POST /api/promote HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     f"Authorization: Bearer {server.token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        while not children.read_text().split():
            pass
        child = int(children.read_text().split()[0])
        link.close()
        assert gone(child, 60)
    assert (w.project / "new").read_text() == "new\n"


@test
def an_answer_that_is_too_long_is_refused(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    with open(w.store / "clones" / "try" / "long", "w", encoding="utf-8") as out:
        for i in range(4 << 20):
            out.write(f"{i:08}\n")
    with Server(w) as server:
        assert "too long" in server.ask("diff", want=413, a="try")["error"]["message"]
        assert server.ask("clones")["clones"]


@test
def many_questions_at_once_are_answered_or_refused(w):
    w.take()
    with Server(w) as server:
        links = [server.open("/api/events") for _ in range(16)]
        for response, _ in links:
            assert response.readline()
        assert "too many" in server.ask("clones", want=503)["error"]["message"]
        links[0][1].sock.shutdown(socket.SHUT_RDWR)
        for response, link in links:
            link.close()
        # The server notices one after the other.
        for _ in range(200):
            if server.status("/api/clones") == 200:
                break
        assert server.ask("clones")["clones"] == []


@test
def the_server_ends_with_everything_it_started(w):
    w.take()
    server = Server(w)
    response, link = server.open("/api/events")
    response.readline()
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    server.end()
    link.close()
    assert all(gone(int(child), 30) for child in children)


# --- the command ----------------------------------------------------------------------------------

@test
def a_socket_serves_only_its_owner(w):
    path = w.home / "page.sock"
    with Server(w, "--socket", str(path)) as server:
        assert server.told["socket"] == str(path) and path.stat().st_mode & 0o777 == 0o600
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(path))
        link.sendall(b"POST /api/clones HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Connection: close\r\nAuthorization: Bearer " + server.token.encode() + b"\r\n"
                     b"Content-Length: 2\r\n\r\n{}")
        answer = b"".join(iter(lambda: link.recv(65536), b""))
        link.close()
        assert b" 200 " in answer.split(b"\r\n")[0] and b"snap.list/1" in answer, answer
    assert not path.exists()
    server = Server(w, "--socket", str(path))
    server.process.kill()
    server.process.wait()
    with Server(w, "--socket", str(path)):
        w.snap("ui", "--socket", str(path)).fails(1, "listen")
    assert not path.exists()


@test
def a_token_in_a_file_is_kept_and_must_be_the_owners(w):
    file = w.home / "token"
    with Server(w, "--token-file", str(file)) as server:
        first = server.token
    assert file.stat().st_mode & 0o777 == 0o600 and file.read_text().strip() == first
    with Server(w, "--token-file", str(file)) as server:
        assert server.token == first
    file.chmod(0o644)
    w.snap("ui", "--no-open", "--token-file", str(file)).fails(1, "others")


@test
def what_cannot_be_served_is_said(w):
    for where in ("0.0.0.0:0", "192.0.2.1:80", "[::]:0"):
        w.snap("ui", "--listen", where).fails(2, "127.0.0.1")
    w.snap("ui", "--listen", "nowhere").fails(2)
    w.snap("ui", "--listen", "127.0.0.1:0", "--socket", "x").fails(2, "contradicts")
    w.snap("ui", "--socket", str(w.home / "no" / "x")).fails(4, "no")
    with Server(w) as server:
        w.snap("ui", "--listen", f"127.0.0.1:{server.port}").fails(1, "listen")


@test
def what_it_prints_is_what_the_schema_says(w):
    try:
        from jsonschema import Draft202012Validator
    except ImportError as e:
        raise Skip("the Python package jsonschema is not installed") from e
    schema = json.loads((WEB.parent / "docs" / "schema" / "snap.ui.1.json").read_bytes())
    for options in ((), ("--read-only",), ("--socket", str(w.home / "page.sock"))):
        with Server(w, *options) as server:
            Draft202012Validator(schema).validate(server.told)


@test
def a_person_gets_the_address_to_open(w):
    process = subprocess.Popen([SNAP, "ui", "--no-open"], cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    line = process.stdout.readline().decode()
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#t=\w{32,}\n", line), line
    assert said == b"" and process.returncode == 0, said


@test
def a_browser_is_started_where_that_is_asked_for(w):
    """The test's own xdg-open, which tells what it was given; it gets the token in no argument."""
    told = w.home / "told"
    os.mkfifo(told)
    bin_dir = w.home / "bin"
    bin_dir.mkdir()
    (bin_dir / "xdg-open").write_text(f"#!/bin/sh\n{{ echo \"$@\"; cat \"$1\"; }} > {told}\n")
    (bin_dir / "xdg-open").chmod(0o755)
    with Server(w, "--open", env={"PATH": f"{bin_dir}:{w.env['PATH']}"}) as server:
        words, page = told.read_text().split("\n", 1)
        assert re.fullmatch(r"/tmp/snap-ui-\w{6}\.html", words), words
        assert f"url={server.url}" in page and server.token in page, page
        assert Path(words).stat().st_mode & 0o777 == 0o600
    assert not Path(words).exists()
    (bin_dir / "xdg-open").unlink()
    process = subprocess.Popen([SNAP, "ui", "--json", "--open"], cwd=w.project, env={**w.env, "PATH": str(bin_dir)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    said = process.stderr.readline()
    process.terminate()
    process.communicate(timeout=30)
    assert b"xdg-open" in said and b"open the address yourself" in said, said
    w.snap("ui", "--open", "--no-open").fails(2, "contradicts")
    w.snap("ui", "--open", "--socket", str(w.home / "x")).fails(2, "contradicts")


if __name__ == "__main__":
    sys.exit(main())
