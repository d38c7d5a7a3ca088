"""What the tests of push, fetch and gc share: a second store, a directory between them, and deaths at chosen calls."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess

from snaptest import SNAP, Skip


class Other:
    """A second store with an empty project, for the same user."""

    def __init__(self, w, name="other"):
        self.world, self.store, self.project = w, w.top / f"store-{name}", w.top / "work" / name
        self.project.mkdir()

    def snap(self, *args, **more):
        return self.world.snap(*args, cwd=self.project, env={"SNAPCOW_STORE": str(self.store)}, **more)

    def ok(self, *args, **more):
        return self.snap(*args, **more).ends(0)

    def end(self):
        self.ok("-q", "stop", "--force")


def depot(w):
    return f"dir:{w.top}/depot"


def blobs(w):
    return {p.name: p.stat().st_size for p in (w.top / "depot" / "blobs" / "sha256").iterdir()}


def pushed(result):
    return result.json("snap.push/1")


# All by which a push or a fetch changes something on a disk or promises that it is kept.
CALLS = "?openat,?write,?pwrite64,?renameat,?renameat2,?fdatasync,?fsync"


def traced(words, args, cwd, env, log="/dev/null"):
    env = {**env, "ASAN_OPTIONS": f"{env.get('ASAN_OPTIONS', '')}:detect_leaks=0"}
    done = subprocess.run(["strace", "-f", "-qq", "-o", log, *words, SNAP, "-q", *args], cwd=cwd, env=env, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if b"PTRACE" in done.stderr or b"ptrace" in done.stderr:
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    return done.returncode


def deaths(w, args, cwd, env, last, calls=CALLS, jobs=True):
    """Where it can be killed: calls and how often the main thread makes them, up to the last one of `last`."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    log = w.top / "calls"
    assert traced(["-e", f"trace={calls}"], [*args, *["--jobs", "1"] * jobs], cwd, env, log) == 0
    lines = [line.split(None, 1) for line in log.read_text(errors="replace").splitlines()]
    points, counts = [], {}
    for pid, text in lines:
        name = text.split("(", 1)[0]
        if pid == lines[0][0] and name.isalnum():
            counts[name] = counts.get(name, 0) + 1
            points.append((name, counts[name], text))
    end = max(i for i, point in enumerate(points) if last in point[2])
    # Libraries are loaded first.
    points = [p[:2] for p in points[:end + 1] if p[0] != "openat" or str(w.top) in p[2]]
    few = [p for p in points if p[0] not in ("write", "openat")]
    some = 60 if os.environ.get("SNAP_TESTS_LONG") else 4
    sample = random.Random(7).sample(points, min(some, len(points)))
    return list(dict.fromkeys(few[-12:] + sample))


# How many deaths a test must have seen: of a few points, and in the long lane of at least 50 in all.
LEAST = {"push": (6, 30), "fetch": (3, 15), "pull": (1, 20)}


def died_enough(act, died):
    least = LEAST[act][bool(os.environ.get("SNAP_TESTS_LONG"))]
    assert died >= least, f"{act} died at {died} points, and not at {least}"


def dies(point, args, cwd, env, jobs=True):
    name, n = point
    r = traced(["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={n}"],
               [*args, *["--jobs", "1"] * jobs], cwd, env)
    return r in (-signal.SIGKILL, 128 + signal.SIGKILL)


def names_are_complete(w):
    """Every blob that a name reaches is there, whole and right."""
    top = w.top / "depot"
    if not (top / "index.json").exists():
        return 0
    n = 0
    for entry in json.loads((top / "index.json").read_text())["manifests"]:
        todo = [entry]
        while todo:
            d = todo.pop()
            data = (top / "blobs" / "sha256" / d["digest"].removeprefix("sha256:")).read_bytes()
            assert len(data) == d["size"] and hashlib.sha256(data).hexdigest() == d["digest"][7:], d
            if d is entry:
                manifest = json.loads(data)
                todo = [manifest["config"], *manifest["layers"]]
            n += 1
    return n
