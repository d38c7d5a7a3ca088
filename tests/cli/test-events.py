"""The stream of events: all that happens in a store, in order, and resumable."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from mcptest import Client  # noqa: E402
from runtest import clone  # noqa: E402
from snaptest import SNAP, Skip  # noqa: E402


def events(w, *args):
    return [json.loads(line) for line in w.ok("events", "--json", *args).out.splitlines()]


def kinds(w, *args):
    return [e["kind"] for e in events(w, *args)]


def last(w):
    return events(w, "-n1")[0]["n"]


class Follower:
    """`events --follow` in a process of its own."""

    def __init__(self, w, *args):
        self.process = subprocess.Popen([SNAP, "events", "--json", "--follow", *args], cwd=w.project,
                                        env=w.env, stdout=subprocess.PIPE)

    def next(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.close()
        self.process.wait()


@live_test
def a_loop_is_told_in_order(w):
    path = clone(w)
    seen = last(w)
    w.ok("run", "try", "--", "sh", "-c", "echo more >> README.md")
    w.ok("promote", "try")
    w.ok("undo")
    (path / "README.md").write_text("clone\n")
    (w.project / "README.md").write_text("project\n")
    w.snap("promote", "try").ends(5)
    w.ok("rollback", "try")
    w.ok("rm", "--force", "try")
    got = events(w, "--since", str(seen))
    assert [e["kind"] for e in got if e["kind"] != "snapshot"] == [
        "run-started", "run-ended", "promotion", "undo", "conflict", "rollback",
        "clone-removed"], got
    assert [e["n"] for e in got] == list(range(seen + 1, seen + 1 + len(got))), got
    of = {e["kind"]: e for e in got}
    assert of["run-started"]["run"] == of["run-ended"]["run"], got
    assert of["run-ended"]["data"]["exit_code"] == 0, got
    assert of["promotion"]["data"]["paths"] == ["README.md"], got
    assert of["undo"]["data"]["undoes"] == of["promotion"]["data"]["receipt"], got
    assert of["conflict"]["data"]["conflicts"] == 1, got
    assert all(e["project"] == str(w.project) for e in got), got
    assert {e["clone"] for e in got} <= {"try", None}, got
    human = w.ok("events").out.decode()
    assert "1 path: README.md" in human and "ended with 0 after" in human, human


@live_test
def a_dry_run_and_a_question_are_no_events(w):
    path = clone(w)
    (path / "README.md").write_text("clone\n")
    seen = last(w)
    for args in (("promote", "-n", "try"), ("rebase", "-n", "try"), ("diff", "try"), ("status",),
                 ("list",), ("log",)):
        w.ok(*args)
    assert kinds(w, "--since", str(seen)) == []


@live_test
def what_a_run_is_refused_and_which_limit_it_meets_are_told(w):
    w.take()
    seen = last(w)
    w.snap("run", "--time", "1s", "--", "sleep", "60").ends(124)
    w.snap("run", "--", "sh", "-c", "mount -t tmpfs none /mnt; exit 3").ends(3)
    got = events(w, "--since", str(seen))
    assert [e["data"]["limit"] for e in got if e["kind"] == "limit"] == ["time"], got
    ends = [e["data"]["exit_code"] for e in got if e["kind"] == "run-ended"]
    assert ends == [124, 3], got


@live_test
def a_follower_hears_of_each_thing_once_and_goes_on_where_it_was(w):
    w.take()
    seen = last(w)
    f = Follower(w, "--since", str(seen))
    try:
        for i in range(3):
            (w.project / "README.md").write_text(f"{i}\n")
            w.ok("snapshot", "-m", f"number {i}")
            e = f.next()
            assert (e["n"], e["data"]["message"]) == (seen + 1 + i, f"number {i}"), e
    finally:
        f.end()
    assert [e["data"]["message"] for e in events(w, "--since", str(seen + 1))] == [
        "number 1", "number 2"]


@live_test
def a_run_whose_process_was_killed_ends_as_lost(w):
    w.take()
    f = Follower(w, "--since", str(last(w)))
    run = subprocess.Popen([SNAP, "run", "--", "sleep", "60"], cwd=w.project, env=w.env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        started = f.next()
        assert started["kind"] == "run-started", started
        run.kill()
        run.wait()
        ended = f.next()
    finally:
        f.end()
    assert (ended["kind"], ended["data"]["state"]) == ("run-ended", "lost"), ended
    assert ended["run"] == started["run"], ended


@live_test
def secrets_are_masked_in_events(w):
    w.take()
    w.ok("run", "--secret", "TOKEN", "--", "sh", "-c", ": s3cr3t-value", env={"TOKEN": "s3cr3t-value"})
    log = b"".join(p.read_bytes() for p in (Path(w.store) / "events").iterdir())
    assert b"run-started" in log and b"s3cr3t" not in log, log


@live_test
def other_projects_are_told_of_only_if_asked_for(w):
    w.take()
    other = w.top / "other"
    other.mkdir()
    (other / "f").write_text("f")
    w.ok("-C", str(other), "snapshot", cwd=w.top)
    assert {e["project"] for e in events(w)} == {str(w.project)}
    assert {e["project"] for e in events(w, "--all")} == {str(w.project), str(other)}


def of(w, kind, seen=0):
    return [e for e in events(w, "--since", str(seen)) if e["kind"] == kind]


@live_test
def a_refusal_is_told_with_its_rule_and_what_would_allow_it(w):
    w.take()
    w.snap("run", "--net", "one.test:80", "--", "python3", "-c",
           "import urllib.request as u\ntry: u.urlopen('http://two.test/', timeout=5)\nexcept OSError: pass")
    (e,) = of(w, "refusal")
    (run,) = of(w, "run-ended")
    assert e["run"] == run["run"] and "two.test" in e["data"]["what"], e
    assert e["data"]["rule"] and "two.test" in e["data"]["flag"] and e["data"]["count"] >= 1, e
    assert run["data"]["refusals"] == 1, run
    assert "two.test" in w.ok("events").out.decode()


@live_test
def what_the_guard_holds_is_told(w):
    path = clone(w)
    (path / ".github/workflows").mkdir(parents=True)
    (path / ".github/workflows/ci.yml").write_text("on: push\n")
    w.snap("promote", "try").ends(7)
    (e,) = of(w, "held")
    assert e["clone"] == "try" and ".github/workflows/ci.yml" in e["data"]["paths"], e
    assert e["data"]["held"] == len(e["data"]["paths"]), e


@live_test
def a_rebase_is_told_and_one_that_changes_nothing_is_not(w):
    path = clone(w)
    (path / "new").write_text("clone\n")
    (w.project / "README.md").write_text("project\n")
    w.ok("rebase", "try")
    (e,) = of(w, "rebase")
    got = w.ok("status", "try", "--json").json("snap.status/1")
    assert e["clone"] == "try" and e["data"]["onto"] == got["base"] and e["data"]["saved"], e
    seen = last(w)
    w.ok("rebase", "try")
    assert of(w, "rebase", seen) == [], events(w)


@live_test
def a_snapshot_that_was_removed_is_told(w):
    gone = w.take("-m", "first")
    (w.project / "README.md").write_text("more\n")
    w.take()
    w.ok("rm", "--force", gone)
    (e,) = of(w, "snapshot-removed")
    assert e["data"] == {"snapshot": gone} and e["project"] == str(w.project), e


@live_test
def a_clone_whose_time_is_over_is_told_as_expired(w):
    w.take()
    f = Follower(w, "--since", str(last(w)))
    try:
        w.ok("clone", "-n", "short", "--ttl", "1s")
        w.ok("umount", "short")
        e = f.next()
        while e["kind"] != "clone-removed":
            w.snap("list")
            e = f.next()
    finally:
        f.end()
    assert (e["clone"], e["data"]) == ("short", {"why": "expired"}), e


@live_test
def damage_is_told_with_what_it_is(w):
    (w.project / "big").write_bytes(b"a block that is damaged later" * 10)
    w.take()
    w.stop()
    store = Path(w.store) / "chunks.db"
    data = bytearray(store.read_bytes())
    at = data.find(b"a block that is damaged later")
    assert at >= 0
    data[at] ^= 1
    store.write_bytes(data)
    w.snap("rollback", "--path", "big", "--dry-run", "@")
    (w.project / "big").write_text("other\n")
    assert w.snap("rollback", "--path", "big", "@").status == 12
    found = [e for e in events(w, "--all") if e["kind"] == "damage"]
    assert found and "damaged" in found[-1]["data"]["problem"], events(w, "--all")


@live_test
def a_log_that_cannot_be_written_stops_no_act(w):
    w.take()
    w.ok("stop")
    folder = Path(w.store) / "events"
    for p in folder.iterdir():
        p.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    (w.project / "README.md").write_text("new\n")
    w.ok("snapshot")
    assert b"warning" in w.ok("run", "--", "true").err
    assert folder.read_text() == "in the way"


@live_test
def runs_calls_and_events_of_a_project_that_moved_are_still_its_own(w):
    """And those of another project that is at the old path since are not."""
    here, there = w.project, w.project.with_name("elsewhere")

    def runs(cwd, *args):
        return [r["run"] for r in w.ok("runs", "--json", *args, cwd=cwd).json("snap.runs/1", "runs")["runs"]]

    def kinds(cwd):
        done = w.ok("events", "--json", cwd=cwd)
        return [json.loads(line)["kind"] for line in done.out.splitlines()]

    def call():
        with Client(w) as c:
            c.call("snap_list")

    def calls(cwd):
        return len(w.ok("runs", "--agent", "--json", cwd=cwd).json("snap.runs/1", "calls")["calls"])

    w.ok("clone", "-n", "c")
    if w.snap("run", "c", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")
    call()
    old, told, called = runs(here), kinds(here), calls(here)
    assert old and "run-ended" in told and called, (old, told, called)
    here.rename(there)
    w.ok("projects", "mv", str(here), str(there), cwd=w.top)
    assert runs(there) == old and calls(there) == called
    assert kinds(there)[:len(told)] == told
    here.mkdir()
    (here / "file").write_text("of another one\n")
    w.ok("init", str(here))
    w.ok("clone", "-n", "other", cwd=here)
    w.ok("run", "other", "--", "true", cwd=here)
    assert len(runs(here)) == 1 and runs(here) != old and calls(here) == 0
    assert runs(there) == old and "run-ended" in kinds(here)
    # And back again, where the other one was meanwhile.
    shutil.rmtree(here)
    w.ok("rm", "--force", "other", cwd=w.top)
    w.ok("projects", "forget", str(here), cwd=w.top)
    there.rename(here)
    w.ok("projects", "mv", str(there), str(here), cwd=w.top)
    w.ok("run", "c", "--", "true", cwd=here)
    assert runs(here)[1:] == old and calls(here) == called, (runs(here), old)

if __name__ == "__main__":
    sys.exit(livetest.main())
