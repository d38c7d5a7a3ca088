"""Whatever dies while a change is on its way, it lands at most once, and the next command goes on."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, live_test, note  # noqa: E402
from promotetest import clone  # noqa: E402
from snaptest import SNAP, Skip, dice  # noqa: E402

# Between two of these nothing is different outside of the process, so to die there is to die at the next one.
CALLS = ("rename", "renameat", "sendto", "fsync", "clone", "mkdir", "mkdirat", "unlinkat")


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def traced(w, *words, log="/dev/null"):
    done = subprocess.run(["strace", "-o", str(log), *words, str(SNAP), "ship", "--json", "try"], cwd=w.project,
                          env=w.env, capture_output=True, timeout=120, check=False)
    if b"ptrace" in done.stderr:
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    return done


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}


def git(w, *args):
    env = {**w.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(["git", *args], cwd=w.top / "repo", env=env, check=True, stdout=subprocess.PIPE).stdout.decode()


def outcome(w, there):
    """The projects, how often each was written, and what is left."""
    changes = w.ok("pipeline", "--all", "--json").json("snap.pipeline/1")["changes"]
    return {"project": tree(w.project), "there": tree(there),
            "branch": git(w, "log", "--format=%s", "release"), "files": git(w, "ls-tree", "-r", "release"),
            "states": sorted({c["state"] for c in changes}),
            "receipts": [len(w.ok("-C", str(p), "log", "--json").json("snap.log/1")["receipts"]) for p in
                         (w.project, there)],
            "clones": w.ok("-q", "list", "--all").out.split(),
            "verified": w.ok("pipeline", "verify", "--all").status}


def world(w):
    """A project, a directory that is a stage of it, and a clone with a change."""
    for old in (w.project, w.top / "staging", w.store, w.top / "repo", w.top / "store.branches"):
        shutil.rmtree(old, ignore_errors=True)
    put(w.top / "repo" / "README.md", "first\n")
    git(w, "init", "-q", "-b", "main")
    git(w, "add", "-A")
    git(w, "commit", "-qm", "first")
    git(w, "branch", "release")
    there = w.top / "staging"
    put(w.project / "README.md", "first\n")
    put(there / "README.md", "first\n")
    put(there / "own", "own\n")
    put(w.home / ".config" / "snapcow" / "pipeline.yaml",
        "- stages:\n    - {name: dev, target: ., approve: never, checks: [test -e a]}\n"
        f"    - {{name: staging, target: {there}, approve: never}}\n"
        f"    - {{name: release, target: 'git:{w.top}/repo#release', approve: never, checks: [test -e a]}}\n")
    c = clone(w)
    put(c / "a", "a\n")
    put(c / "README.md", "second\n")
    return there


def go_on(w):
    """What a person types next: ship it again; where it is through already there is nothing more to ship."""
    for _ in range(3):
        open_ones = w.ok("-q", "pipeline").out.split()
        for one in open_ones:
            w.ok("ship", "--continue", one.decode())
    if not w.ok("-q", "pipeline", "--all").out.split():
        w.ok("ship", "try")


@live_test
def killed_at_any_step_it_goes_on_and_lands_once(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    chance = dice()
    there = world(w)
    log = w.top / "trace"
    assert traced(w, "-e", "trace=" + ",".join("?" + c for c in CALLS), log=log).returncode == 0
    calls = [line.split("(", 1)[0] for line in log.read_text(errors="replace").splitlines()]
    want = outcome(w, there)
    assert want["states"] == ["shipped"] and want["receipts"] == [1, 1], want
    assert want["branch"].splitlines() == ["Changes of clone try", "first"], want
    places = [(c, n) for c in CALLS for n in range(1, calls.count(c) + 1)]
    note(f"{len(places)} places to die")
    killed = 0
    for call, n in places if LONG else chance.sample(places, 6):
        w.stop()
        there = world(w)
        done = traced(w, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        if done.returncode != 0:
            assert done.returncode == -signal.SIGKILL, (call, n, done)
            killed += 1
            go_on(w)
        got = outcome(w, there)
        assert got == want, f"{call} {n}:\n{got}\n{want}"
    assert killed > 0, "nothing died"


# --- approvals -------------------------------------------------------------------------------------

def waiting(w):
    """The id of a change that waits for a person."""
    for old in (w.project, w.store):
        shutil.rmtree(old, ignore_errors=True)
    put(w.project / "README.md", "first\n")
    put(w.home / ".config" / "snapcow" / "pipeline.yaml", "- stages:\n    - {name: dev, target: ., approve: always}\n")
    put(clone(w) / "a", "a\n")
    return w.snap("ship", "--json", "try").json("snap.ship/1", "change", status=14)["change"]


def change_of(w, change):
    return w.ok("pipeline", "status", change, "--json").json("snap.pipeline/1")["changes"][0]


def approve_at_last(w, change):
    """It was approved or it was not, and no other way; then it goes on and lands once."""
    said = w.snap("approve", change, "-m", "why")
    assert said.status in (0, 7), said
    if said.status == 7:
        assert b"is approved: there is nothing to decide" in said.err, said
    assert change_of(w, change)["waits_for"]["approved"]
    w.ok("ship", "--continue", change)
    got = change_of(w, change)
    assert got["state"] == "shipped" and len(got["receipts"]) == 1 and got["receipts"][0]["reason"] == "why", got
    assert (w.project / "a").read_text() == "a\n" and w.ok("pipeline", "verify", "--all").status == 0
    assert len(w.ok("log", "--json").json("snap.log/1")["receipts"]) == 1
    w.stop()


def places_of(log):
    calls = [line.split("(", 1)[0].split()[-1] for line in log.read_text(errors="replace").splitlines() if "(" in line]
    return [(c, n) for c in CALLS for n in range(1, calls.count(c) + 1)]


@live_test
def an_approval_is_made_once_or_not_wherever_it_dies(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    log, chance = w.top / "trace", dice()

    def approve(change, *words):
        return subprocess.run(["strace", "-o", str(log), *words, str(SNAP), "approve", change, "-m", "why"], cwd=w.project,
                              env=w.env, capture_output=True, timeout=120, check=False)

    change = waiting(w)
    done = approve(change, "-e", "trace=" + ",".join("?" + c for c in CALLS))
    if b"ptrace" in done.stderr:
        raise Skip("strace cannot trace here")
    assert done.returncode == 0, done
    places = places_of(log)
    approve_at_last(w, change)
    note(f"{len(places)} places to die")
    killed = 0
    for call, n in places if LONG else chance.sample(places, min(4, len(places))):
        change = waiting(w)
        done = approve(change, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}")
        killed += done.returncode == -signal.SIGKILL
        approve_at_last(w, change)
    assert killed > 0, "nothing died"


@live_test
def a_keeper_of_the_desk_that_dies_leaves_an_approval_or_none(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    log, chance = w.top / "trace", dice()
    w.top.chmod(0o755)

    def approve(change, *words):
        """Through the desk of a keeper that is traced."""
        with subprocess.Popen(["strace", "-o", str(log), *words, str(SNAP), "-q", "pipeline", "serve", "--at", str(w.top / "desk")],
                              cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            address = p.stdout.readline().decode().strip()
            if address:
                w.snap("approve", "--at", address, change, "-m", "why")
            for pid in Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGTERM)
            p.communicate(timeout=60)
            return p.returncode

    change = waiting(w)
    assert approve(change, "-e", "trace=" + ",".join("?" + c for c in CALLS)) == 0
    places = places_of(log)
    assert change_of(w, change)["waits_for"]["approved"]
    approve_at_last(w, change)
    note(f"{len(places)} places to die")
    killed = 0
    for call, n in places if LONG else chance.sample(places, min(4, len(places))):
        change = waiting(w)
        killed += approve(change, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}") == -signal.SIGKILL
        approve_at_last(w, change)
    assert killed > 0, "nothing died"


if __name__ == "__main__":
    sys.exit(livetest.main())
