"""What the tests of experiments share."""

import json
import os
import subprocess

from runtest import clones
from snaptest import SNAP


def experiment(w, *args, status=0, **more):
    return w.snap("experiment", "--json", *args, **more).json(
        "snap.experiment/1", "experiment", "arms", "winner", "tie", "verdict", status=status)


def plan(w, name, text):
    """A file of the project that plans one."""
    file = w.project / ".snap" / "experiments" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def states(got):
    return {a["arm"]: a["state"] for a in got["arms"]}


def arm(got, name):
    return next(a for a in got["arms"] if a["arm"] == name)


def popen(w, *args, **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
            "cwd": w.project, "env": w.env, **more}
    return subprocess.Popen([SNAP, *args], **more)


def detached(w):
    """The runs that go on without their askers.  Until its walls stand, one is there and ends with its asker."""
    def is_alone(run):
        try:
            return os.readlink(f"/proc/{run['pid']}/fd/1") == "/dev/null"
        except OSError:  # it has ended
            return False
    return [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if is_alone(r)]


def receipts(w, kind="promotion"):
    got = [json.loads(line) for line in w.ok("events", "--json").out.splitlines()]
    return [e for e in got if kind in (None, e["kind"])]


def nothing_is_left(w, *kept):
    """No clone but these, no run, no mount of an arm."""
    assert sorted(clones(w)) == sorted(kept), clones(w)
    assert [m for m in w.mounts() if m.rsplit("/", 1)[1] not in kept and "/clones/" in m] == [], w.mounts()
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


def most_at_once(w, name):
    """How many arms ran at the same time, by the events."""
    now, most = 0, 0
    for e in receipts(w, None):
        if e["kind"] in ("run-started", "run-ended") and (e["clone"] or "").startswith(f"{name}-"):
            now += 1 if e["kind"] == "run-started" else -1
            most = max(most, now)
    assert now == 0, "a run that began has ended"
    return most
