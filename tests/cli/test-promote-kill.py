"""kill -9 of cowfsd in the midst of a promotion: afterwards the project is before it or after it.

strace ends the daemon as it enters the n-th call of a kind that changes something on a disk, so what it was
about to do is not done. SNAP_TESTS_LONG=1: every n of every kind; otherwise a sample that is the same each time.
"""

import os
import random
import shutil
import subprocess
import sys

from promotetest import change, clone, daemon, differs, fill, log, picture, promote, undo
from snaptest import SNAP, Skip, gone, main, test

# All by which apply, the journal and the store change something or promise that it is kept.
CALLS = ("openat", "pwrite64", "write", "renameat", "renameat2", "linkat", "unlinkat", "mkdirat",
         "symlinkat", "mknodat", "fchmod", "fchown", "utimensat", "ftruncate", "fsync", "fdatasync",
         "syncfs", "fsetxattr", "fallocate")
SAMPLE = 24
CHANGES = 200


def trace(pid, log_file, *words):
    """strace of all threads of a process, once it has hold of them."""
    act = subprocess.Popen(["strace", "-f", "-p", str(pid), "-o", str(log_file), *words],
                           stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    said = act.stderr.readline()
    if b"attached" not in said:
        act.communicate()
        raise Skip(f"strace cannot attach here: {said.decode().strip()}")
    return act


def end(act):
    """It lets go of what still lives; of a process that is dead it may wait for ever."""
    act.terminate()
    try:
        act.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        act.kill()
        act.communicate()


def count(w):
    """How often a promotion makes each call, in the thread that makes most of them."""
    path = w.top / "trace"
    act = trace(daemon(w), path, "-e", "trace=" + ",".join(CALLS))
    promote(w, "try")
    end(act)
    threads = {}
    for line in path.read_text(errors="replace").splitlines():
        words = line.split(None, 1)
        name = words[1].split("(", 1)[0] if len(words) > 1 else ""
        if name in CALLS:
            calls = threads.setdefault(words[0], {})
            calls[name] = calls.get(name, 0) + 1
    return max(threads.values(), key=lambda c: sum(c.values()))


def strays(w):
    return [*w.project.glob(".snapcow-stage-*"), *(w.store / "journal").iterdir()]


@test
def whenever_cowfsd_is_killed_the_project_is_before_or_after(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    fill(w.project)
    for i in range(40, CHANGES):
        (w.project / "lib" / f"d{i % 8}" / f"f{i}").write_text(f"{i}\n" * 20)
    path = clone(w)
    change(path, CHANGES)
    w.take("try")  # what was not synced may be lost with cowfsd, and there would be nothing to promote
    before = picture(w.project)
    calls = count(w)
    after = picture(w.project)
    sha256 = log(w)["receipts"][0]["sha256"]
    undo(w)
    assert picture(w.project) == before != after
    points = [(name, n) for name, total in sorted(calls.items()) for n in range(1, total + 1)]
    if os.environ.get("SNAP_TESTS_LONG") != "1":
        points = random.Random(6).sample(points, min(SAMPLE, len(points)))
    ends = {"before": 0, "after": 0, "not met": 0}
    for name, n in points:
        ends[one(w, name, n, before, after, sha256)] += 1
    print(f"# {len(points)} of {sum(calls.values())} calls: {ends}")
    assert ends["before"] > 0, ends
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


def one(w, name, n, before, after, sha256):
    """Die there; say where that left the project, and bring it back."""
    where = f"{name} {n}"
    known = {r["receipt"] for r in log(w)["receipts"]}
    pid = daemon(w)
    act = trace(pid, "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={n}")
    done = subprocess.run([SNAP, "promote", "try", "--json"], cwd=w.project, env=w.env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    died = gone(pid, 0)
    end(act)
    w.ok("start")
    now = picture(w.project)
    assert now in (before, after), f"{where}: {differs(now, before)}, {differs(now, after)}"
    assert not strays(w), f"{where}: {strays(w)}"
    new = [r for r in log(w)["receipts"] if r["receipt"] not in known]
    assert len(new) == (now == after), f"{where}: {new}"
    assert all(r["sha256"] == sha256 for r in new), f"{where}: {new}"
    if done.returncode == 0:
        assert now == after, f"{where}: it said that it was done: {done.stdout[:600]}"
    if now == after:
        undo(w)
        assert picture(w.project) == before, f"{where}: {differs(picture(w.project), before)}"
    return "not met" if not died else "after" if now == after else "before"


if __name__ == "__main__":
    sys.exit(main())
