"""Whatever dies while a rule acts, the next process goes on, the decision is made once, and it lands once."""

import shutil
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, live_test, note  # noqa: E402
from snaptest import SNAP, Skip, dice  # noqa: E402
from watchtest import fire, firings, once, put, rules, stages, status, until  # noqa: E402

# Between two of these nothing is different outside of the process, so to die there is to die at the next one.
CALLS = ("renameat", "sendto", "fsync", "mkdir", "mkdirat", "unlinkat")


def traced(w, *words, log="/dev/null"):
    """The process and its actions, but not what these run."""
    done = subprocess.run(["strace", "-f", "-b", "execve", "-o", str(log), *words, str(SNAP), "watch", "start", "--once"],
                          cwd=w.project, env=w.env, capture_output=True, timeout=120, check=False)
    if b"ptrace" in done.stderr:
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    return done


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}


def outcome(w, there):
    return {"project": tree(w.project), "there": tree(there),
            "firings": [(f["result"], f["state"]) for f in firings(w)],
            "changes": [c["state"] for c in status(w)["changes"]],
            "receipts": [len(w.ok("-C", str(p), "log", "--json").json("snap.log/1")["receipts"]) for p in
                         (w.project, there)],
            "clones": w.ok("-q", "list", "--all").out.split(),
            "verified": w.ok("pipeline", "verify", "--all").status}


def world(w):
    """A rule whose file changed, and two stages."""
    for old in (w.project, w.top / "staging", w.store):
        shutil.rmtree(old, ignore_errors=True)
    there = w.top / "staging"
    put(w.project / "README.md", "first\n")
    put(there / "README.md", "first\n")
    stages(w, "{name: dev, target: ., approve: never}", f"{{name: staging, target: {there}, approve: never}}")
    rules(w, "name: a, on: {files: '*.c', debounce: 1ms}, run: cp one.c two.h, then: ship, "
             "budget: {runs_per_hour: 100, backoff: 0s}")
    once(w)
    put(w.project / "one.c", "one\n")
    return there


@live_test
def killed_at_any_step_it_goes_on_decides_once_and_lands_once(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    chance = dice()
    there = world(w)
    log = w.top / "trace"
    assert traced(w, "-e", "trace=" + ",".join("?" + c for c in (*CALLS, "pivot_root")), log=log).returncode == 0
    lines = [line.split(None, 1) for line in log.read_text(errors="replace").splitlines()]
    # A sandbox that is killed while it is made is a command that was killed: the action failed, and is decided.
    inside = {pid for pid, rest in lines if rest.startswith("pivot_root(")}
    counts = {}
    for pid, rest in lines:
        call = rest.split("(", 1)[0]
        if pid not in inside and call in CALLS:
            counts[pid, call] = counts.get((pid, call), 0) + 1
    want = outcome(w, there)
    assert want["firings"] == [("shipped", "done")] and want["receipts"] == [1, 1], want
    places = [(c, n) for c in CALLS for n in range(1, max([k for (_, d), k in counts.items() if d == c] or [0]) + 1)]
    note(f"{len(places)} places to die")
    for call, n in places if LONG else chance.sample(places, 6):
        w.stop()
        there = world(w)
        traced(w, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        for _ in range(3):
            once(w)
        got = outcome(w, there)
        assert got == want, f"{call} {n}:\n{got}\n{want}"


@live_test
def killed_with_all_that_it_started_it_goes_on_as_well(w):
    """The daemon of the store dies at the same moment."""
    there = world(w)
    once(w)
    want = outcome(w, there)
    for moment in (0.02, 0.1, 0.2, 0.35):
        w.stop()
        there = world(w)
        p = subprocess.Popen([str(SNAP), "watch", "start", "--once"], cwd=w.project, env=w.env,
                             stdout=subprocess.DEVNULL)
        try:
            p.wait(moment)
        except subprocess.TimeoutExpired:
            p.kill()
        for pid in w.daemons():
            subprocess.run(["kill", "-9", str(pid)], check=False)
        p.wait()
        for _ in range(3):
            once(w)
        got = outcome(w, there)
        assert [f for f in got["firings"] if f[0] != "failed"] == want["firings"], got
        assert {k: v for k, v in got.items() if k != "firings"} == \
            {k: v for k, v in want.items() if k != "firings"}, (got, want)


@live_test
def what_an_action_wrote_is_not_taken_for_nothing_when_cowfsd_dies(w):
    stages(w, "{name: dev, target: ., approve: never}")
    (w.project / "hold").touch()
    rest = f"sleep {100000 + os.getpid()}"
    rules(w, f"name: a, on: fire, run: 'echo x > made; echo written; test -e hold && {rest}; true', then: ship")
    fire(w, "a")
    w.ok("watch", "start")
    run = until(lambda: firings(w)[0]["run"])
    until(lambda: b"written" in w.ok("logs", run).out)
    (w.project / "hold").unlink()  # the next attempt finds none
    w.kill_daemon()
    subprocess.run(["pkill", "-x", "-f", rest], check=True)
    until(lambda: firings(w)[0]["state"] == "done")
    w.ok("watch", "stop")
    got = firings(w)
    assert [f["result"] for f in got] == ["shipped"] and got[0]["attempts"] == 2, got
    assert (w.project / "made").read_text() == "x\n"


if __name__ == "__main__":
    sys.exit(livetest.main())
