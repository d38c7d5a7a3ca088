"""snap mcp: what agents can do, in both eras of the protocol, and what they cannot."""

import json
import os
import signal
import subprocess
import sys
import time

try:
    import jsonschema
except ImportError:
    jsonschema = None

from mcptest import VERSION, Client
from snaptest import SNAP, dice, gone, main, needs_fuse, test, until

ERAS = (VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


@test
def a_client_of_either_era_is_answered_in_its_own(w):
    with Client(w) as c:
        got = c.ask("server/discover")["result"]
        assert got["resultType"] == "complete" and got["supportedVersions"] == [VERSION], got
        assert got["ttlMs"] >= 0 and got["cacheScope"] in ("public", "private"), got
        assert "tools" in got["capabilities"] and got["instructions"], got
        assert got["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "snap", got
        assert c.ask("ping")["error"]["code"] == -32601
    for era in ERAS[1:]:
        with Client(w, era=era) as c:
            assert c.opened["protocolVersion"] == era, c.opened
            assert c.opened["serverInfo"]["name"] == "snap", c.opened
            assert c.ask("ping")["result"] == {}
            got = c.ask("tools/list")["result"]
            assert "resultType" not in got and "ttlMs" not in got, got
            assert c.ask("server/discover")["error"]["code"] == -32601
    with Client(w, era="1999-01-01") as c:
        assert c.opened["protocolVersion"] == ERAS[1], c.opened


@test
def a_request_that_is_malformed_gets_the_error_of_the_specification(w):
    meta = {"io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {}}
    with Client(w) as c:
        for line, code in ((b"{", -32700), (b"nonsense", -32700), (b"[]", -32600), (b"\"x\"", -32600),
                           (b'{"id":1}', -32600), (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32602)):
            c.raw(line + b"\n")
            assert c.read()["error"]["code"] == code, line
        c.send({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {
            "_meta": {**meta, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}}})
        error = c.read()["error"]
        assert error["code"] == -32022, error
        assert error["data"] == {"supported": [VERSION], "requested": "1900-01-01"}, error
        del meta["io.modelcontextprotocol/clientCapabilities"]
        c.send({"jsonrpc": "2.0", "id": "b", "method": "tools/list", "params": {"_meta": meta}})
        assert c.read()["error"]["code"] == -32602
        assert c.ask("no/such")["error"]["code"] == -32601
        assert c.ask("tools/call", name="no_such")["error"]["code"] == -32602
        assert c.ask("tools/call", name="snap_list", arguments=[])["error"]["code"] == -32602
        # A notification is never answered, known or not.
        c.send({"jsonrpc": "2.0", "method": "notifications/no_such"})
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
        assert c.ask("tools/list")["result"]


@test
def every_tool_has_schemas_and_says_what_it_may_destroy(w):
    with Client(w) as c:
        tools = {t["name"]: t for t in c.ask("tools/list")["result"]["tools"]}
    listed = w.ok("mcp", "--json").json("snap.mcp/1")["tools"]
    assert [t["name"] for t in listed] == list(tools), "the list of --json is another"
    for tool in tools.values():
        assert tool["inputSchema"]["type"] == "object", tool
        assert tool["inputSchema"]["additionalProperties"] is False, tool
        assert tool["outputSchema"]["type"] == "object", tool
        assert "$schema" not in tool["outputSchema"] and "$id" not in tool["outputSchema"], tool
        if jsonschema:
            jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
            jsonschema.Draft7Validator.check_schema(tool["outputSchema"])
    destroys = {n for n, t in tools.items() if t["annotations"]["destructiveHint"]}
    assert destroys == {"snap_promote", "snap_rollback", "snap_undo", "snap_destroy", "snap_ship", "snap_approve"}, destroys
    reads = {n for n, t in tools.items() if t["annotations"]["readOnlyHint"]}
    assert {"snap_status", "snap_read", "snap_diff", "snap_compare", "snap_wait"} <= reads, reads
    world = {n for n, t in tools.items() if t["annotations"]["openWorldHint"]}
    assert world == {"snap_run", "snap_experiment"}, world
    assert not reads & destroys


@test
def a_whole_story_works_without_a_shell_in_every_era(w):
    needs_fuse()
    for era in ERAS:
        name = f"fix-{era}"
        with Client(w, era=era, can_ask=True) as c:
            schemas = {t["name"]: t["outputSchema"] for t in c.ask("tools/list")["result"]["tools"]}

            def ok(tool, /, **arguments):
                got = c.ok(tool, **arguments)
                if jsonschema:
                    jsonschema.validate(got, schemas[tool])
                return got

            path = ok("snap_clone", name=name)["path"]
            assert name in [x["clone"] for x in ok("snap_list")["clones"]]
            assert "int main" in ok("snap_read", clone=name, path="src/main.c")["content"]
            ok("snap_edit", clone=name, path="src/main.c", old="{\n}", new="{ return 0; }")
            saved = ok("snap_snapshot", clone=name, message="it returns")["snapshot"]
            ok("snap_write", clone=name, path="deep/er/new.txt", content="h\u00e9llo\n")
            assert open(f"{path}/deep/er/new.txt", encoding="utf-8").read() == "h\u00e9llo\n"
            assert "return 0" in ok("snap_diff", **{"from": name})["patch"]
            got = ok("snap_compare", states=[name, "."])
            assert {f["path"]: f["overlap"] for f in got["files"]}["src/main.c"] == "one" and got["clean"], got
            ok("snap_edit", clone=name, path="src/main.c", old="return 0", new="return 1")
            for hunks in (True, False):
                got = ok("snap_compare", states=[name, saved], base=".", hunks=hunks)["files"]
                texts = [x["hunks"] or "" for f in got if f["path"] == "src/main.c" for x in f["changes"]]
                assert any("return 1" in text for text in texts) == hunks, got
            assert c.call("snap_compare", states=[name, "--html=x"])["isError"]
            assert c.call("snap_compare", states=[name])["isError"]
            ok("snap_rollback", clone=name, snapshot=saved)
            assert not os.path.exists(f"{path}/deep")
            assert saved in [x["snapshot"] for x in ok("snap_log", clone=name)["snapshots"]]
            assert ok("snap_status", clone=name)["changed"]["modified"] == 1
            assert not c.asked, "nobody is asked about a clone"
            assert ok("snap_promote", clone=name, dry_run=True)["promotion"] is None
            assert not c.asked, "nobody is asked about a dry run"
            assert ok("snap_promote", clone=name)["promotion"]
            assert "src/main.c" in c.asked[0], c.asked
            assert "return 0" in (w.project / "src" / "main.c").read_text()
            ok("snap_undo")
            assert len(c.asked) == 2, c.asked
            assert "return 0" not in (w.project / "src" / "main.c").read_text()
            ok("snap_rebase", clone=name)
            c.fails("snap_edit", clone=name, path="README.md", old="no such text", new="")
            for tool, failure in c.failures if jsonschema else ():
                jsonschema.validate(failure, schemas[tool])
            ok("snap_destroy", clone=name)
            assert not os.path.exists(path)


@test
def a_run_that_takes_longer_than_the_call_is_waited_for_by_its_id(w):
    needs_fuse()
    for era in (VERSION, "2025-11-25"):
        with Client(w, era=era) as c:
            name = f"job-{era}"
            c.ok("snap_clone", name=name)
            got = c.ok("snap_run", clone=name, command="echo out; echo err >&2; echo new > made; exit 3")
            assert got["status"] == "ended" and got["exit_code"] == 3, got
            assert got["output"] == "out\nerr\n" and not got["cut"], got
            assert c.ok("snap_read", clone=name, path="made")["content"] == "new\n"
            got = c.ok("snap_run", clone=name, command=["printf", "%s", "a b"])
            assert got["exit_code"] == 0 and got["output"] == "a b", got
            got = c.ok("snap_run", clone=name, wait_s=0, command="mkfifo go; echo begun; cat go; seq 20000")
            assert got["status"] == "running" and got["exit_code"] is None, got
            run = got["run"]
            while "begun" not in (log := c.ok("snap_logs", run=run))["output"]:
                assert log["status"] == "running", log
            with open(f"{w.store}/clones/{name}/go", "w") as go:
                go.write("on\n")
            last = c.ok("snap_wait", run=run, since=log["next"])
            assert last["status"] == "ended" and last["exit_code"] == 0, last
            assert last["cut"] and last["output"].endswith("19999\n20000\n"), last["output"][-50:]
            assert len(last["output"]) < 40000, len(last["output"])
            endless = c.ok("snap_run", clone=name, wait_s=0, command="sleep 600")["run"]
            assert c.ok("snap_cancel", run=endless)["status"] == "cancelled"
            error = c.fails("snap_run", clone=name, net="host", command="true")
            assert "person" in error["message"], error
            c.fails("snap_run", "command", clone=name)
            c.fails("snap_run", "no clone", clone="nobody", command="true")
            # The beginning of an id could be somebody else's.
            for other in (run[:3], "", "0" * 12):
                c.fails("snap_logs", "no run", run=other)


TASKS = "io.modelcontextprotocol/tasks"


@test
def a_run_that_outlasts_its_call_is_a_task_for_a_client_that_declares_them(w):
    needs_fuse()
    with Client(w) as c:
        assert c.ask("server/discover")["result"]["capabilities"]["extensions"][TASKS] == {}
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            error = c.ask(method, taskId="0123456789ab")["error"]
            assert error["code"] == -32021, error
            assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}, error
        error = c.ask("subscriptions/listen", notifications={"taskIds": ["0123456789ab"]})["error"]
        assert error["code"] == -32021, error
        plain = c.ok("snap_run", command="sleep 60", wait_s=0)
        assert plain["status"] == "running", "no task for a client that declares none"
        c.ok("snap_cancel", run=plain["run"])
        c.capable = {"extensions": {TASKS: {}}}
        quick = c.ok("snap_run", command="echo quick")
        assert quick["status"] == "ended" and quick["ended"], "nor for what has ended"
        c.ok("snap_clone", name="try")
        made = c.call("snap_run", clone="try", command="while ! test -e gate; do sleep 0.05; done; echo through; exit 3", wait_s=0)
        assert made["resultType"] == "task" and made["status"] == "working" and "content" not in made, made
        assert made["ttlMs"] > 0 and made["pollIntervalMs"] > 0 and made["createdAt"].endswith("Z"), made
        one = {"taskId": made["taskId"]}
        got = c.ask("tasks/get", **one)["result"]
        assert got["resultType"] == "complete" and got["status"] == "working" and "result" not in got, got
        assert c.ask("tasks/update", **one, inputResponses={})["result"]["resultType"] == "complete"
        c.ok("snap_write", clone="try", path="gate", content="open")
        c.ok("snap_wait", run=made["taskId"])
        got = c.ask("tasks/get", **one)["result"]
        assert got["status"] == "completed" and got["createdAt"] == made["createdAt"] <= got["lastUpdatedAt"], got
        told = got["result"]["structuredContent"]
        assert told["exit_code"] == 3 and told["output"] == "through\n" and got["result"]["isError"] is False, got
        made = c.call("snap_run", command="sleep 60", wait_s=0)
        done = c.ask("tasks/cancel", taskId=made["taskId"])["result"]
        assert done["resultType"] == "complete" and "taskId" not in done, done
        assert c.ask("tasks/get", taskId=made["taskId"])["result"]["status"] == "cancelled"
        for params in ({"taskId": "0123456789ab"}, {"taskId": 7}, {}, {"taskId": "--help"}):
            assert c.ask("tasks/get", **params)["error"]["code"] == -32602, params
        assert c.ask("tasks/list")["error"]["code"] == -32601
    with Client(w, era="2025-11-25") as c:
        assert c.ask("tasks/get", taskId="0123456789ab")["error"]["code"] == -32601, "of the newer era alone"


@test
def several_changes_are_tried_at_once_and_waited_for_by_name(w):
    needs_fuse()
    hold = "until [ -e stop ]; do sleep 0.05; done; rm stop"
    for era in (VERSION, "2025-11-25"):
        with Client(w, era=era) as c:
            name = f"x-{era[:4]}"
            got = c.ok("snap_experiment", name=name, arms=["a=echo a > a", "b=echo bb > a", "c=exit 3"],
                       check=["test -e a"], score="cat a | wc -c", max=True)
            assert got["state"] == "ended" and got["winner"] == "b" and got["promoted"] == [], got
            assert [a["state"] for a in got["arms"]] == ["passed", "passed", "failed"], got
            assert c.ok("snap_read", clone=f"{name}-b", path="a")["content"] == "bb\n"
            got = c.ok("snap_experiment", name=f"{name}-l", wait_s=0, arms=[f"a={hold}"])
            assert got["state"] == "running" and got["winner"] is None, got
            assert c.ok("snap_experiment_wait", experiment=f"{name}-l", wait_s=0)["state"] == "running"
            assert c.ok("snap_experiment_wait", experiment=f"{name}-l", wait_s=1)["state"] == "running"
            c.ok("snap_write", clone=f"{name}-l-a", path="stop", content="")
            got = c.ok("snap_experiment_wait", experiment=f"{name}-l")
            assert got["state"] == "ended" and got["winner"] == "a", got
            listed = c.ok("snap_experiment_show")["experiments"]
            assert {f"{name}", f"{name}-l"} <= {x["experiment"] for x in listed}, listed
            c.ok("snap_experiment", name=f"{name}-c", wait_s=0, arms=["a=sleep 600"])
            assert c.ok("snap_experiment_cancel", experiment=f"{name}-c")["state"] == "interrupted"
            one, = c.ask("resources/read", uri=f"snap://experiment/{name}")["result"]["contents"]
            assert json.loads(one["text"])["winner"] == "b", one
            c.fails("snap_experiment", "arms")
            c.fails("snap_experiment", "NAME=COMMAND", arms=["a"])
            c.fails("snap_experiment", "person", arms=["a=true"], net="host")
            for wrong in ({"promote_best": True}, {"ro": ["/"]}, {"allow": ["x"]}):
                c.fails("snap_experiment", "no argument", arms=["a=true"], **wrong)
            c.fails("snap_experiment_wait", "no experiment", experiment="nobody")
            assert not (w.project / "a").exists()
    (w.top / "other").mkdir()
    w.ok("experiment", "-n", "theirs", "--arm", "a=true", cwd=w.top / "other")
    with Client(w) as c:
        c.fails("snap_experiment_wait", "no experiment", experiment="theirs")
        c.fails("snap_experiment_cancel", "no experiment", experiment="theirs")


@test
def a_call_that_is_cancelled_ends_its_experiment(w):
    needs_fuse()
    with Client(w) as c:
        number = c.start("tools/call", name="snap_experiment", arguments={"name": "gone", "arms": ["a=sleep 600"]})
        until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        until(lambda: not w.ok("ps", "--json").json("snap.ps/1")["runs"])
        assert c.ask("tools/list")["result"]


@test
def addresses_and_recipes_are_there_to_be_read(w):
    needs_fuse()
    w.ok("clone", "-n", "look")
    w.ok("write", "look:a b/\u00e4.txt", "--content", "here")
    for era in (VERSION, "2025-06-18"):
        with Client(w, era=era) as c:
            fixed = [r["uri"] for r in c.ask("resources/list")["result"]["resources"]]
            page = c.ask("resources/read", uri="ui://snap/experiment")["result"]["contents"][0]
            assert page["mimeType"] == "text/html;profile=mcp-app" and "<script>" in page["text"]
            assert "error" in c.ask("resources/read", uri="ui://snap/other")
            fixed.remove("ui://snap/experiment")
            forms = c.ask("resources/templates/list")["result"]["resourceTemplates"]
            assert "snap://clone/{from}/diff" in [t["uriTemplate"] for t in forms], forms

            def read(uri):
                got = c.ask("resources/read", uri=uri)["result"]
                one, = got["contents"]
                assert one["uri"] == uri and one["mimeType"] == "application/json", one
                assert era != VERSION or got["ttlMs"] == 0, got
                return json.loads(one["text"])

            for uri in fixed:
                assert read(uri)["schema"], uri
            assert "here" in read("snap://clone/look/diff")["patch"]
            assert read("snap://clone/look/tree/a%20b/%C3%A4.txt")["content"] == "here"
            assert read("snap://clone/look/tree/")["entries"]
            run = c.ok("snap_run", clone="look", command="echo told")["run"]
            assert read(f"snap://run/{run}/log")["output"] == "told\n"
            for uri in ("snap://nothing", "snap://clone//diff", "snap://clone/nobody/diff", "file:///etc",
                        "snap://clone/look/tree/%00", "snap://clone/look/tree/%g", "snap://clones/x"):
                error = c.ask("resources/read", uri=uri)["error"]
                assert error["code"] == (-32602 if era == VERSION else -32002), (uri, error)
            names = [p["name"] for p in c.ask("prompts/list")["result"]["prompts"]]
            assert len(names) == 3, names
            got = c.ask("prompts/get", name="try_three_fixes",
                        arguments={"problem": "it {check} fails", "check": "make test"})["result"]
            text = got["messages"][0]["content"]["text"]
            assert "it {check} fails" in text and "`make test`" in text, text
            assert c.ask("prompts/get", name="try_three_fixes")["error"]["code"] == -32602
            assert c.ask("prompts/get", name="nothing")["error"]["code"] == -32602


@test
def a_run_ends_with_the_call_that_a_client_cancels(w):
    needs_fuse()
    with Client(w) as c:
        c.ok("snap_clone", name="long")
        number = c.start("tools/call", name="snap_run",
                         arguments={"clone": "long", "command": "echo begun; sleep 600"})
        runs = until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": number}})
        got = w.snap("wait", "--json", "--timeout", "60s", runs[0]["run"])
        assert got.json("snap.wait/1", status=143)["runs"][0]["state"] == "cancelled", got
        assert c.ask("tools/list")["result"], "it was answered all the same"


def state_of(w):
    return {p: p.read_bytes() for p in sorted(w.project.rglob("*")) if p.is_file()}


@test
def an_agent_ships_as_far_as_it_may_and_only_a_person_approves(w):
    needs_fuse()
    stages = w.home / ".config" / "snapcow" / "pipeline.yaml"
    stages.parent.mkdir(parents=True, exist_ok=True)
    stages.write_text("- stages:\n    - {name: verified, checks: [test -e new]}\n    - {name: dev, target: .}\n")
    (stages.parent / "config.yaml").write_text("promote: {checks: ['test -s new']}\n")
    for i, era in enumerate((VERSION, "2025-06-18")):
        name, file = f"c{i}", w.project / "new"
        w.ok("clone", "-n", name)
        w.ok("write", f"{name}:new", "--content", f"{era}\n")
        before = state_of(w)
        with Client(w, "--allow-promote", era=era) as c:
            got = c.ok("snap_ship", clone=name)
            assert got["state"] == "waiting" and got["who"] == "agent" and got["stage"] == "dev", got
            assert [r["stage"] for r in got["receipts"]] == ["verified"], got
            assert got["receipts"][0]["checks"][0]["cmd"] == "test -e new", got
            assert [x["change"] for x in c.ok("snap_pipeline")["changes"]] == [got["change"]]
            c.fails("snap_approve", "approve", clone=name)
            assert state_of(w) == before, "no option of the server stands for a person"
        with Client(w, era=era, can_ask=True) as c:
            c.says_yes = False
            c.fails("snap_approve", "did not agree", clone=name)
            said = str(c.asked)
            for want in (got["change"], f"clone {name}", "stage dev", "asked for by agent", "no rule", "new"):
                assert want in said, (want, said)
            assert c.ok("snap_ship", clone=name)["state"] == "waiting"
            c.says_yes = True
            assert c.ok("snap_approve", clone=name, message="fine")["waits_for"]["approved"]
            assert state_of(w) == before, "an approval lands nothing"
            got = c.ok("snap_ship", clone=name)
            assert got["state"] == "shipped" and file.read_text() == f"{era}\n"
            assert [x["cmd"] for x in got["receipts"][1]["checks"]] == ["test -s new"], "checks for all agents"
            c.fails("snap_approve", "nothing to decide", clone=name)
        with Client(w, "--no-promote", era=era) as c:
            names = [t["name"] for t in c.ask("tools/list")["result"]["tools"]]
            assert "snap_ship" not in names and "snap_approve" not in names and "snap_pipeline" in names, names


@test
def an_agent_sees_what_the_watch_did(w):
    needs_fuse()
    file = w.home / ".config" / "snapcow" / "watch.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"rules:\n  - {{name: lint, project: {w.project}, on: fire, run: echo x > x, then: keep}}\n")
    w.ok("watch", "fire", "lint")
    w.ok("watch", "start", "--once")
    for era in (VERSION, "2025-06-18"):
        with Client(w, "--no-promote", era=era) as c:
            got = c.ok("snap_watch")
            assert [(r["rule"], r["state"]) for r in got["rules"]] == [("lint", "ready")], got
            assert [(f["rule"], f["result"]) for f in got["firings"]] == [("lint", "kept")] and not got["running"], got
            assert got == w.ok("watch", "status", "--json").json("snap.watch/1") and got["changes"] == [], got
            tool, = (t for t in c.ask("tools/list")["result"]["tools"] if t["name"] == "snap_watch")
            assert tool["annotations"]["readOnlyHint"] and "firings" in json.dumps(tool["outputSchema"]), tool
            assert "act" not in tool["inputSchema"]["properties"], "it only looks"


@test
def the_project_changes_only_after_a_persons_yes(w):
    needs_fuse()
    w.ok("clone", "-n", "x")
    w.ok("write", "x:README.md", "--content", "other\n")
    before = state_of(w)
    for era in (VERSION, "2025-06-18"):
        with Client(w, era=era, can_ask=True) as c:
            c.says_yes = False
            c.fails("snap_promote", "did not agree", clone="x")
            assert c.asked, "nobody was asked"
        with Client(w, era=era) as c:
            error = c.fails("snap_promote", "promote", " x", "type", clone="x")
            assert error["code"] == "E_REFUSED", error
            c.fails("snap_rollback", "type")
            c.fails("snap_undo", "type")
        with Client(w, "--no-promote", era=era, can_ask=True) as c:
            names = [t["name"] for t in c.ask("tools/list")["result"]["tools"]]
            assert "snap_promote" not in names and "snap_clone" in names, names
            assert c.ask("tools/call", name="snap_promote", arguments={"clone": "x"})["error"]
        with Client(w, "--read-only", era=era, can_ask=True) as c:
            names = [t["name"] for t in c.ask("tools/list")["result"]["tools"]]
            assert "snap_clone" not in names and "snap_diff" in names, names
            assert c.ask("tools/call", name="snap_write",
                         arguments={"clone": "x", "path": "a", "content": ""})["error"]
        assert state_of(w) == before, "the project changed"
    with Client(w, "--allow-promote") as c:
        assert c.ok("snap_promote", clone="x")["promotion"]
    assert (w.project / "README.md").read_text() == "other\n"


@test
def nothing_gets_past_the_names_of_this_projects_clones(w):
    needs_fuse()
    other = w.top / "work" / "other"
    other.mkdir()
    (other / "secret").write_text("of another project\n")
    w.ok("clone", "-n", "theirs", cwd=other)
    theirs = w.ok("-q", "snapshot", "theirs", cwd=other).out.decode().strip()
    w.ok("clone", "-n", "mine")
    mine = w.take()
    (w.project / "src" / "evil").symlink_to("/etc/passwd")
    before = state_of(w)
    with Client(w, can_ask=True) as c:
        c.says_yes = False
        for state in ("theirs", theirs, "theirs@"):
            c.fails("snap_read", "this project has no state", clone=state, path="secret")
        c.fails("snap_destroy", "no clone", clone="theirs")
        # What is no clone must not be taken for the project.
        for name in (".", mine, "--force", "-n", ""):
            c.fails("snap_rollback", clone=name)
            c.fails("snap_write", clone=name, path="a", content="a")
        for path in ("../x", "/etc/x", "a/../../x", "", "src/", "src//x"):
            c.fails("snap_write", clone="mine", path=path, content="x")
        c.fails("snap_write", "no state", clone=f"--store={w.top}/s", path="x", content="x")
        c.fails("snap_clone", "no argument", name="y", store="/tmp")
        c.fails("snap_clone", "must be a string", name=7)
        c.fails("snap_log", "integer", count=-1)
        c.fails("snap_promote", "one of", clone="mine", conflict="burn")
        c.fails("snap_edit", "needs 'old'", clone="mine", path="README.md", new="x")
        assert not c.asked, c.asked
    with Client(w) as c:
        c.ok("snap_clone", name="links")
        c.fails("snap_write", "symlink", clone="links", path="src/evil", content="x")
    assert state_of(w) == before, "the project changed"
    assert "theirs" in w.ok("list", cwd=other).out.decode()


@test
def an_edit_changes_exactly_one_place_or_nothing(w):
    needs_fuse()
    (w.project / "twice").write_text("a\nb\na\n")
    os.chmod(w.project / "twice", 0o751)
    with Client(w) as c:
        path = c.ok("snap_clone", name="e")["path"]
        c.fails("snap_edit", "2 times", clone="e", path="twice", old="a", new="c")
        c.fails("snap_edit", "does not hold", clone="e", path="twice", old="zz", new="c")
        c.fails("snap_edit", "No such file", clone="e", path="nowhere", old="zz", new="c")
        assert open(f"{path}/twice").read() == "a\nb\na\n"
        assert c.ok("snap_edit", clone="e", path="twice", old="a", new="c", all=True)["replaced"] == 2
        assert c.ok("snap_edit", clone="e", path="twice", old="c\nb", new="d")["replaced"] == 1
        assert open(f"{path}/twice").read() == "d\nc\n"
        assert os.stat(f"{path}/twice").st_mode & 0o7777 == 0o751


@test
def calls_run_beside_each_other_and_a_cancelled_one_is_never_answered(w):
    needs_fuse()
    with Client(w) as c:
        c.ok("snap_clone", name="busy")
        ids = [c.start("tools/call", name="snap_status", arguments={"clone": "busy"})
               for _ in range(20)]
        listen = c.start("subscriptions/listen", notifications={"toolsListChanged": True})
        first = c.start("tools/list")
        got = [c.read() for _ in range(22)]
        answered = {m["id"] for m in got if "id" in m}
        assert answered == {*ids, first}, answered
        told = [m for m in got if "method" in m]
        assert [m["method"] for m in told] == ["notifications/subscriptions/acknowledged"], told
        assert told[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listen
        stopped = c.start("tools/call", name="snap_status", arguments={"clone": "busy"})
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": stopped}})
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": listen}})
        # It was answered before the notification came, or not at all.
        last = c.start("tools/list")
        while (message := c.read())["id"] != last:
            assert message["id"] == stopped, message


@test
def it_touches_nothing_until_a_call_and_leaves_at_once(w):
    with Client(w) as c:
        c.ask("server/discover")
        c.ask("tools/list")
        assert not w.store.exists(), "a store was made"
        assert not w.daemons(), "a daemon was started"
    assert c.process.returncode == 0, c.process.returncode
    dead = Client(w)
    dead.ask("tools/list")
    dead.process.send_signal(signal.SIGKILL)
    dead.process.wait(10)
    # A client that has gone is no reason to die badly.
    r, write = os.pipe()
    os.close(r)
    gone = subprocess.run([SNAP, "mcp"], input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
                          stdout=write, cwd=w.project, env=w.env, timeout=30, check=False)
    os.close(write)
    assert gone.returncode == 0, gone.returncode


@test
def ten_thousand_broken_messages_get_an_error_each_or_nothing(w):
    rng = dice()
    meta = {"io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {}}
    # No five changes turn such an id into a number, which the mark has.
    good = [json.dumps({"jsonrpc": "2.0", "id": f"message {i}", "method": m, "params": {"_meta": meta, **p}}).encode()
            for i, (m, p) in enumerate((("server/discover", {}), ("prompts/list", {}),
                                        ("prompts/get", {"name": "x"}), ("resources/read", {"uri": "x"}),
                                        ("tools/call", {"name": "x", "arguments": {}})))]
    with Client(w) as c:
        for _ in range(100):
            batch = []
            for _ in range(100):
                line = bytearray(rng.choice(good))
                for _ in range(rng.randrange(1, 6)):
                    at = rng.randrange(len(line))
                    line[at:at + rng.randrange(3)] = rng.choice((b"", b"{", b'"', b"\xff", b"\0", b"]", b"9"))
                batch.append(bytes(line).replace(b"\n", b""))
            c.raw(b"\n".join(batch) + b"\n")
            mark = c.start("prompts/list")
            answers = 0
            while (got := c.read()).get("id") != mark or "result" not in got or answers < 0:
                answers += 1
                assert "error" in got or "result" in got, got
            assert answers <= 100, answers


def two_hundred_calls(name):
    """What an agent does in its clone, by numbers that tell the order."""
    for i in range(50):
        yield "snap_write", {"clone": name, "path": f"f{i}", "content": f"{name} {i}\n"}
        yield "snap_read", {"clone": name, "path": f"f{i}"}
        yield "snap_edit", {"clone": name, "path": f"f{i}", "old": name, "new": f"{name} edited"}
        yield "snap_snapshot", {"clone": name, "message": f"{name} {i}"}


@test
def two_agents_work_at_once_and_a_third_dies(w):
    """200 calls each.  Nothing is lost, nothing is left, and the events tell all of it in order."""
    needs_fuse()
    w.ok("clone", "-n", "dies")
    w.ok("write", "dies:f", "--content", "before")
    with Client(w) as one, Client(w) as two:
        third = Client(w)
        for c, name in ((one, "one"), (two, "two")):
            c.ok("snap_clone", name=name)
        for i, calls in enumerate(zip(two_hundred_calls("one"), two_hundred_calls("two"))):
            ids = [c.start("tools/call", name=tool, arguments=args) for c, (tool, args) in zip((one, two), calls)]
            if i == 100:
                third.start("tools/call", name="snap_write",
                            arguments={"clone": "dies", "path": "f", "content": "x" * 100000})
                third.process.kill()
                third.process.wait(10)
            for c, number in zip((one, two), ids):
                got = c.read()
                assert got["id"] == number and not got["result"]["isError"], got
    assert w.ok("show", "dies:f").out in (b"before", b"x" * 100000), "all of it or nothing"
    for name in ("one", "two"):
        top = w.store / "clones" / name
        for i in range(50):
            assert (top / f"f{i}").read_text() == f"{name} edited {i}\n"
        assert sorted(n for n in os.listdir(top) if n.startswith(".")) == [], "nothing is left behind"
        made = w.ok("log", name, "--json").json("snap.log/1")["snapshots"]
        assert [s["message"] for s in reversed(made)] == [f"{name} {i}" for i in range(50)], made
    events = [json.loads(line) for line in w.ok("events", "--json").out.splitlines()]
    assert [e["n"] for e in events] == list(range(1, len(events) + 1)), "without a gap"
    for name in ("one", "two"):
        told = [e["data"]["message"] for e in events if e["kind"] == "snapshot" and e["clone"] == name]
        assert told == [f"{name} {i}" for i in range(50)], told
        kept = w.ok("runs", "--agent", "--json", "-n", "1000").json("snap.runs/1")["calls"]
        tools = [c["tool"] for c in reversed(kept) if c["clone"] == name]
        assert tools == [tool for tool, _ in two_hundred_calls(name)], "and each call has its record"
    w.ok("check")


@test
def long_and_broken_lines_do_no_harm(w):
    with Client(w) as c:
        c.raw(b"\r\n\n")
        c.raw(b'{"jsonrpc":"2.0","id":1,')
        c.raw(b'"method":"tools/list","params":{}}\r\n')
        assert c.read()["error"]["code"] == -32602
        deep = b'{"jsonrpc":"2.0","id":2,"method":"x","params":{"a":' + b"[" * 5000
        c.raw(deep + b"\n")
        assert c.read()["error"]["code"] == -32700
        c.raw(b'{"jsonrpc":"2.0","id":3,"method":"\xff"}\n')
        assert c.read()["error"]["code"] == -32700
        text = json.dumps("x" * 2_000_000).encode()
        c.raw(b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":' + text + b"}}\n")
        assert c.read()["error"]["code"] == -32602


def children_of(pid):
    """The processes that a process started, by their ids."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(word) for word in f.read().split()]


@test
def a_subscriber_hears_of_what_happens_at_its_addresses_and_of_nothing_else(w):
    needs_fuse()
    w.ok("clone", "-n", "try")
    for era in ("2025-06-18", VERSION):
        with Client(w, era=era) as c:
            wanted = ["snap://clone/try/snapshots", "snap://clones"]
            if era == VERSION:
                number = c.start("subscriptions/listen", notifications={
                    "resourceSubscriptions": [*wanted, "snap://nowhere"], "toolsListChanged": True})
                ack = c.read()
                assert ack["params"]["notifications"] == {"resourceSubscriptions": wanted}, ack
            else:
                assert c.opened["capabilities"]["resources"] == {"subscribe": True}, c.opened
                for uri in wanted:
                    assert c.ask("resources/subscribe", uri=uri)["result"] == {}
                assert "error" in c.ask("resources/subscribe", uri="snap://nowhere")
            (w.project / "README.md").write_text(f"{era}\n")
            w.ok("snapshot")
            w.ok("snapshot", "try", "-m", era)
            heard = [c.read(), c.read()]
            assert [m["method"] for m in heard] == ["notifications/resources/updated"] * 2, heard
            assert sorted(m["params"]["uri"] for m in heard) == wanted, heard
            if era == VERSION:
                ids = {m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for m in heard}
                assert ids == {number}, heard
                c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            else:
                for uri in wanted:
                    assert c.ask("resources/unsubscribe", uri=uri)["result"] == {}
            w.ok("snapshot", "try")
            assert "result" in c.ask("tools/list"), "nothing comes before that answer"
            children = [p for p in children_of(c.process.pid)]
        assert all(gone(p, 10) for p in children), "what follows the store ends with its server"


@test
def a_subscriber_hears_of_its_experiment(w):
    needs_fuse()
    w.ok("snapshot")
    with Client(w, era="2025-06-18") as c:
        assert c.ask("resources/subscribe", uri="snap://experiment/mine")["result"] == {}
        w.ok("experiment", "-n", "other", "--arm", "a=true")
        assert "result" in c.ask("tools/list"), "nothing comes before that answer"
        w.ok("experiment", "-n", "mine", "--arm", "a=true")
        assert c.read()["params"]["uri"] == "snap://experiment/mine"


@test
def a_subscriber_hears_of_what_happens_after_what_follows_the_store_was_killed(w):
    w.ok("snapshot")
    with Client(w, era="2025-06-18") as c:
        assert c.ask("resources/subscribe", uri="snap://snapshots")["result"] == {}
        (first,) = children_of(c.process.pid)
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while children_of(c.process.pid) in ([], [first]):
            assert time.monotonic() < deadline, "it is not started again"
            time.sleep(0.01)
        assert len(children_of(c.process.pid)) == 1, "and the first is not left as a zombie"
        (w.project / "README.md").write_text("more\n")
        w.ok("snapshot")
        assert c.read()["params"]["uri"] == "snap://snapshots"


if __name__ == "__main__":
    sys.exit(main())
