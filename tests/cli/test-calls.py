"""Calls of agents: each is written down, without secrets, and the user's checks are never left out."""

import os
import sys

from mcptest import VERSION, Client
from snaptest import World, main, needs_fuse, test


def calls(w, *args):
    return w.ok("runs", "--agent", "--json", *args).json("snap.runs/1", "runs", "calls")["calls"]


def configure(w, text):
    path = w.home / ".config/snapcow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@test
def every_call_is_written_down_in_both_eras(w: World):
    needs_fuse()
    for era in ("2025-06-18", VERSION):
        with Client(w, era=era) as c:
            c.ok("snap_clone", name=f"c{era}")
            c.ok("snap_write", clone=f"c{era}", path="new", content="x" * 100)
            c.fails("snap_read", "", clone=f"c{era}", path="nowhere")
            c.fails("snap_promote", "a person must agree", clone=f"c{era}")
            c.fails("snap_status", "", nonsense=1)
        got = [(x["tool"], x["outcome"], x["clone"]) for x in reversed(calls(w, "-n", "5"))]
        assert got == [("snap_clone", "ok", None), ("snap_write", "ok", f"c{era}"),
                       ("snap_read", "failed", f"c{era}"), ("snap_promote", "refused", f"c{era}"),
                       ("snap_status", "refused", None)], got
    newest = calls(w)
    assert len(newest) == 10
    assert newest[3]["arguments"] == {"clone": f"c{VERSION}", "path": "new", "content": "(100 bytes)"}, newest[3]
    assert newest[2]["status"] == 4 and newest[2]["code"] == "E_NOT_FOUND", newest[2]
    assert newest[9]["client"] == "test" and newest[9]["version"] == "1", newest[9]
    assert "snap_write" in w.ok("runs", "--agent").out.decode()
    assert b'"call"' not in w.ok("events", "--json").out, "they are in a log of their own"


@test
def a_run_is_named_and_secrets_are_masked(w: World):
    needs_fuse()
    with Client(w) as c:
        run = c.ok("snap_run", command="TOKEN=abcdef123 true", env=["API_KEY=abcdef123", "A=b"])["run"]
        c.ok("snap_run", command=["true", "--password", "abcdef123"])
        for odd in (r'true "{\"a\": {\"token\": \"abcdef123\"}}"', "true '-----BEGIN PRIVATE KEY-----\nabcdef123\n-----END PRIVATE KEY-----'",
                    "true /usr/share/Some/Path/With/Letters/And9/Digits8/More7/x " + "q1W" * 20):
            c.ok("snap_run", command=odd)
    odd = calls(w)[0]["arguments"]["command"]
    assert odd == "true /usr/share/Some/Path/With/Letters/And9/Digits8/More7/x ***", "a path is none"
    calls_before = 3
    got = calls(w)[calls_before:]
    assert got[1]["run"] == run and got[1]["arguments"]["env"] == ["API_KEY=***", "A=b"], got
    assert got[1]["arguments"]["command"] == "TOKEN=*** true", got
    assert got[0]["arguments"]["command"] == ["true", "--password", "***"], got
    for path in (w.store / "calls").iterdir():
        assert b"abcdef123" not in path.read_bytes()


@test
def a_server_that_is_asked_nothing_writes_nothing(w: World):
    with Client(w) as c:
        c.ask("tools/list")
        c.call("snap_list")
    assert not w.store.exists() or not (w.store / "calls").exists()


@test
def the_users_checks_run_before_every_promotion_of_an_agent(w: World):
    needs_fuse()
    configure(w, "promote:\n  checks: [\"test -f good\", \"true\"]\n")
    with Client(w, "--allow-promote") as c:
        c.ok("snap_clone", name="try")
        c.ok("snap_write", clone="try", path="new", content="x")
        error = c.fails("snap_promote", "test -f good", clone="try")
        assert error["code"] == "E_CHECK_FAILED", error
        assert c.fails("snap_promote", clone="try", check=["true"])["code"] == "E_CHECK_FAILED"
        assert not (w.project / "new").exists()
        c.ok("snap_write", clone="try", path="good", content="x")
        done = c.ok("snap_promote", clone="try", check=["test -f new"])
        assert [x["cmd"] for x in done["checks"]] == ["test -f good", "true", "test -f new"], done
        c.ok("snap_write", clone="try", path="more", content="x")
    configure(w, "promote: {checks: test}\n")
    with Client(w, "--allow-promote") as c:
        c.fails("snap_promote", "'checks' expects a list", clone="try")
    w.ok("promote", "try")


@test
def a_rollback_of_an_agent_leaves_out_no_check(w: World):
    needs_fuse()
    configure(w, "promote:\n  checks: [\"false\"]\n")
    own = w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]
    with Client(w, "--allow-promote") as c:
        c.ok("snap_clone", name="try")
        c.ok("snap_write", clone="try", path="new", content="x")
        taken = c.ok("snap_snapshot", clone="try", tag="done")["snapshot"]
        for state in ("try@", taken, "done"):
            error = c.fails("snap_rollback", "by a promotion with its checks", snapshot=state)
            assert error["code"] == "E_REFUSED", error
        assert not (w.project / "new").exists()
        (w.project / "README.md").write_text("changed\n")
        c.ok("snap_rollback", snapshot=own)
        assert (w.project / "README.md").read_text() == "first\n"
        c.ok("snap_rollback", clone="try")


@test
def what_an_agent_says_drives_no_terminal_and_keeps_no_call_out(w: World):
    w.ok("snapshot")
    evil = "é" * 7 + "\x1b[2J\x9b\u202e"
    with Client(w) as c:
        c.call("snap_status", clone=evil + "é" * 60)
        c.call("snap_status", clone="é" * 9000)
        c.call("snap_run", command=["x" * 400] * 24, env=["A=" + "x" * 398] * 24, clone="none")
    shown = w.ok("runs", "--agent").out.decode()
    assert not any(bad in shown for bad in ("\x1b", "\x9b", "\u202e")), shown
    got = calls(w)
    assert [x["tool"] for x in got] == ["snap_run", "snap_status", "snap_status"], got
    assert got[0]["arguments"] == {"cut": True} and got[1]["clone"] is None, got


@test
def conflicts_are_settled_by_a_tool_and_promoted(w: World):
    needs_fuse()
    with Client(w, "--allow-promote") as c:
        c.ok("snap_clone", name="try")
        c.ok("snap_write", clone="try", path="README.md", content="clone\n")
        (w.project / "README.md").write_text("project\n")
        assert c.fails("snap_promote", clone="try")["code"] == "E_CONFLICT"
        listed = c.ok("snap_resolve", clone="try", with_hunks=True)["conflicts"]
        assert [(x["path"], x["resolved"]) for x in listed] == [("README.md", False)], listed
        c.fails("snap_resolve", clone="try", path="README.md", take="/etc/passwd")
        c.ok("snap_resolve", clone="try", path="README.md", take="theirs")
        c.ok("snap_promote", clone="try")
    assert (w.project / "README.md").read_text() == "clone\n"


@test
def a_run_has_the_options_that_harm_nobody_and_no_others(w: World):
    needs_fuse()
    with Client(w) as c:
        limits = {"cpus": "1", "pids": 64} if os.geteuid() == 0 else {}
        done = c.ok("snap_run", command="pwd; nproc", **limits, disk="10M", workdir="src",
                    durability="full", hide=["README.md"], net_out="1M")
        assert done["exit_code"] == 0 and done["output"].startswith(f"{w.project}/src\n"), done
        labelled = c.ok("snap_snapshot", meta=["step=1"])["snapshot"]
        assert [s["snapshot"] for s in c.ok("snap_log", meta=["step"])["snapshots"]] == [labelled]
        for name in ("ro", "rw", "pass_env", "secret", "secret_for", "tls_inspect", "allow_missing"):
            c.fails("snap_run", name, command="true", **{name: ["/"]})


@test
def an_agent_finds_the_tasks_of_a_project_and_runs_one(w: World):
    needs_fuse()
    (w.project / "Makefile").write_text("test:\n\t@echo all is well\n")
    with Client(w) as c:
        (task,) = c.ok("snap_tasks")["tasks"]
        assert task == {"task": "test", "command": "make test", "source": "Makefile"}, task
        assert c.ok("snap_run", command=["@test"])["output"] == "all is well\n"


if __name__ == "__main__":
    sys.exit(main())
