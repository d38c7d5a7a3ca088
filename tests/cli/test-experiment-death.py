"""experiment, when something dies: the command, cowfsd, an arm; what is resumed, promoted and left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, experiment, nothing_is_left, popen, receipts, states  # noqa: E402
from livetest import LONG, live_test, note  # noqa: E402
from runtest import clone, clones, until  # noqa: E402
from snaptest import SNAP, Skip, dice, gone  # noqa: E402


# --- what is remembered ----------------------------------------------------------------------

@live_test
def what_kept_it_from_promoting_is_told_again(w):
    for name, script, code in (("g", "echo x > .envrc", 7), ("c", "echo mine > README.md", 5)):
        process = popen(w, "experiment", "-n", name, "--arm", f"a={script}; until [ -e stop ]; do sleep 0.05; done; "
                        "rm stop", "--promote-best")
        until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
        (w.project / "README.md").write_text(f"theirs {name}\n")
        w.ok("run", "--no-snapshot", f"{name}-a", "--", "touch", "stop")
        process.communicate(timeout=60)
        assert process.returncode == code, (name, process.returncode)
        w.snap("experiment", "resume", name).ends(code)
        w.snap("experiment", "wait", name).ends(code)
        got = experiment(w, "wait", name, status=code)
        assert got["winner"] == "a" and "not promoted" in arm(got, "a")["why"], got
        w.snap("experiment", "promote", name, "a").ends(code)
        w.snap("experiment", "wait", name).ends(code)
    assert (w.project / "README.md").read_text() == "theirs c\n" and not (w.project / ".envrc").exists()


@live_test
def all_that_is_compatible_has_the_same_code_afterwards(w):
    got = experiment(w, "-n", "h", "--arm", "a=echo x > .envrc", "--promote-all-compatible", status=5)
    assert got["promoted"] == [] and "guard" in arm(got, "a")["why"], got
    assert experiment(w, "wait", "h", status=5)["promoted"] == []
    got = experiment(w, "-n", "i", "--arm", "a=echo x > .envrc", "--arm", "b=echo b > b", "--promote-all-compatible")
    assert experiment(w, "resume", "i")["promoted"] == ["b"] == got["promoted"]


# --- whose clone it is -----------------------------------------------------------------------

def stopped_before(w, *words):
    """As a kill -9 leaves it that comes when the state names the clone of `b`, and nobody has made it."""
    process = popen(w, "experiment", *words)
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    process.kill()
    process.communicate(timeout=60)
    path = w.store / "experiments" / "o" / "state.json"
    state = json.loads(path.read_text())
    state["arms"][1].update(has_clone=True, state=1, attempts=1)
    path.write_text(json.dumps(state))


OWNER = ("-n", "o", "--jobs", "1", "--arm", "a=until [ -e stop ]; do sleep 0.05; done", "--arm", "b=true")


@live_test
def a_name_that_somebody_took_before_the_arm_had_its_clone_stays_theirs(w):
    stopped_before(w, *OWNER)
    (clone(w, "o-b") / "mine").write_text("mine\n")
    w.snap("experiment", "rm", "o").ends(0)
    assert clones(w) == ["o-b"] and (w.store / "clones" / "o-b" / "mine").exists()
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


@live_test
def a_clone_that_was_finished_after_its_maker_died_is_used_again(w):
    stopped_before(w, *OWNER)
    path = w.store / "experiments" / "o" / "state.json"
    state = json.loads(path.read_text())
    state["arms"][0].update(has_clone=False, state=0, now=None)
    path.write_text(json.dumps(state))
    assert clones(w) == ["o-a"]
    before = [r["run"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"]]
    process = popen(w, "experiment", "resume", "--json", "o")
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] not in before])
    w.ok("run", "--no-snapshot", "o-a", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and states(got) == {"a": "passed", "b": "passed"}, got
    w.ok("experiment", "rm", "o")
    nothing_is_left(w)


# --- deaths ----------------------------------------------------------------------------------
WALK = ("-n", "w", "--arm", "a=echo a > a; echo a > README.md", "--arm", "b=echo b > a", "--arm", "c=exit 1",
        "--check", "test -e a", "--score", "cat README.md | wc -c", "--jobs", "2", "--promote-best")
# Between two of these nothing is different outside of the process, so to die there is to die at the next one.
CALLS = ("renameat", "sendto", "fsync", "clone", "inotify_add_watch", "mkdir")


def strace(w, *words, log="/dev/null"):
    return subprocess.run(["strace", "-o", str(log), *words, str(SNAP), "experiment", "--json", *WALK],
                          cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)


def counted(w):
    path = w.top / "trace"
    done = strace(w, "-e", "trace=" + ",".join("?" + c for c in CALLS), log=path)
    if b"ptrace" in done.stderr or not path.exists():
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    assert done.returncode == 0, done
    calls = {}
    for line in path.read_text(errors="replace").splitlines():
        name = line.split("(", 1)[0]
        if name in CALLS:
            calls[name] = calls.get(name, 0) + 1
    return calls


def put_back(w):
    if b"w" in w.ok("-q", "exp", "list").out.split():
        w.ok("exp", "rm", "w")
    (w.project / "a").unlink(missing_ok=True)
    (w.project / "README.md").write_text("first\n")


def die_and_resume(w, call, n):
    before = len(receipts(w))
    done = strace(w, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
    if done.returncode == 0:
        return put_back(w)
    assert done.returncode == -signal.SIGKILL, done
    result = w.snap("experiment", "resume", "--json", "w")
    if result.status == 4:  # it died before the state was there
        result = w.snap("experiment", "--json", *WALK)
    got = result.json("snap.experiment/1", "winner", status=0)
    assert got["winner"] == "a" and got["promoted"] == ["a"], (call, n, got)
    assert len(receipts(w)) == before + 1, f"{call} {n}: promoted {len(receipts(w)) - before} times"
    assert (w.project / "README.md").read_text() == "a\n", (call, n)
    nothing_is_left(w)
    return put_back(w)


@live_test
def killed_at_any_step_it_is_resumed_and_promotes_once(w):
    w.ok("init")
    calls = counted(w)
    put_back(w)
    walk = [(call, n) for call, count in calls.items() for n in range(1, count + 1)]
    note(f"{len(walk)} places to die: {calls}")
    for call, n in walk if LONG else dice().sample(walk, 5):
        note(f"killed at {call} {n}")
        die_and_resume(w, call, n)


@live_test
def a_signal_after_the_last_run_keeps_it_from_promoting(w):
    words = [SNAP, "experiment", "-n", "s", "--arm", "a=echo a > a", "--score", "echo 1"]
    more = {"cwd": w.project, "env": w.env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "timeout": 120, "check": False}
    path = w.top / "trace"
    done = subprocess.run(["strace", "-o", path, "-e", "trace=renameat", *words], **more)
    if b"ptrace" in done.stderr or not path.exists():
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    saves = [line for line in path.read_text().splitlines() if line.startswith("renameat(")]
    w.ok("exp", "rm", "s")
    # The last one says that it has ended, the one before that all scores are there.
    done = subprocess.run(["strace", "-o", path, "-e", "trace=renameat", "-e",
                           f"inject=renameat:signal=INT:when={len(saves) - 1}", *words, "--promote-best"], **more)
    assert done.returncode == 130 and not (w.project / "a").exists(), done
    assert experiment(w, "resume", "s")["promoted"] == ["a"]


@live_test
def a_death_gives_no_time_back_and_leaves_no_measuring_run(w):
    process = popen(w, "experiment", "-n", "m", "--arm", "a=sleep 2",
                    "--score", "time", "--all-time", "600s")
    state = w.store / "experiments" / "m" / "state.json"
    until(lambda: state.exists() and json.loads(state.read_text())["state"] == 1
          and json.loads(state.read_text())["arms"][0]["now"])
    process.kill()
    process.communicate(timeout=60)
    assert json.loads(state.read_text())["spent_ms"] > 0
    w.ok("exp", "rm", "m")
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


@live_test
def an_arm_whose_holder_is_killed_begins_again(w):
    process = popen(w, "experiment", "--json", "-n", "k", "--arm",
                    "a=echo once > a; until [ -e stop ]; do sleep 0.05; done; rm stop")
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    run = w.ok("ps", "--json").json("snap.ps/1")["runs"][0]
    os.kill(run["pid"], signal.SIGKILL)
    assert gone(run["pid"], 20)
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] != run["run"]])
    w.ok("run", "--no-snapshot", "k-a", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and got["winner"] == "a", got


@live_test
def the_death_of_the_daemon_loses_no_decision(w):
    process = popen(w, "experiment", "--json", "-n", "d", "--arm", "a=echo a > a; sleep 1; cat README.md",
                    "--arm", "b=echo b > b", "--check", "true", "--score", "lines", "--max", "--jobs", "2")
    until(lambda: (w.store / "clones" / "d-a" / "a").exists())
    w.kill_daemon(keeper=False)
    process.communicate(timeout=120)
    got = experiment(w, "resume", "d")
    assert set(states(got).values()) == {"passed"}, got


if __name__ == "__main__":
    sys.exit(livetest.main())
