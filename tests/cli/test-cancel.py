"""Whoever asks for something may go at any moment: nothing of it appears later.

For every verb that takes a while, the command is killed at random points of its life. The act then
happened as a whole or not at all, the daemon soon does nothing any more, and has no descriptor and
no thread more than before. As root, and with --user as an ordinary user.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import is_clean, live_test, note  # noqa: E402
from promotetest import kept  # noqa: E402
from snaptest import LONG, SNAP, dice  # noqa: E402

FILES, SIZE = 150, 20_000
ROUNDS = 12 if LONG else 2  # kills of each verb
VERBS = 5  # of them in the middle lane
WORKERS = 29 + max(4, os.cpu_count())  # threads that serve clones, at most
READER = 4  # descriptors of a connection to the two databases
SECONDS = 60  # until the daemon must be idle, on a busy machine


def fill(top, text):
    """Every file of it, with other bytes."""
    for i in range(FILES):
        path = top / f"d{i % 20}" / f"f{i}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text} {i}\n" + "x" * SIZE)


def content(top):
    """What all files begin with: one word, or several if an act was done by halves."""
    return {path.read_text().split()[0] for path in top.glob("d*/f*")}


class Scene:
    """A project whose files all say one word, and a clone where they say another."""

    def __init__(self, w):
        self.w = w
        fill(w.project, "first")
        w.ok("snapshot", "-t", "good")
        w.ok("clone", "-n", "c")
        self.clone = w.store / "clones" / "c"
        self.number = 0
        w.ok("snapshot", "c")

    def edit(self, *tops):
        self.number += 1
        for top in tops:
            fill(top, f"word{self.number}")
        return f"word{self.number}"

    def names(self):
        got = self.w.ok("list", "--json").json("snap.list/1", "clones")["clones"]
        return sorted(c["clone"] for c in got)

    def snapshots(self):
        return self.w.ok("-q", "log", "--all").out.decode().split()

    def state(self):
        self.w.ok("mount", "c")
        runs = self.w.ok("runs", "--json").json("snap.runs/1", "runs")["runs"]
        return (self.names(), self.snapshots(), content(self.w.project), content(self.clone),
                self.w.ok("-q", "tag").out, [r["run"] for r in runs if r["state"] == "running"])


def opened(w):
    """Of the daemon: what its descriptors are, and the names of its threads."""
    pid, = w.daemons()
    links, names = [], []
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                names.append(Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip())
    return links, names


def walkers(w):
    found = subprocess.run(["pgrep", "-c", "-f", f"^cowfsd-walk {w.store} "], stdout=subprocess.PIPE, check=False)
    return int(found.stdout)


def held(w):
    """Of the daemon: descriptors, threads, and sockets, of which each connection is one.

    Threads that serve clones, and the connections to SQLite with which they read, are kept for the
    next request. There are as many as were ever at work at once: bounded, but not by what was seen.
    """
    links, names = opened(w)
    databases = [l for l in links if ".db" in l]
    workers = names.count("snap-worker")
    assert workers <= WORKERS and len(databases) <= READER * (WORKERS + 8), (databases, names)
    # Clones that stand by come and go: each has a thread and /dev/fuse, one to be woken by, and root's the mount.
    # A thread waits for each process that walks through one.
    stand_by = links.count("/dev/fuse")
    return (len(links) - len(databases) - (3 if os.geteuid() == 0 else 2) * stand_by,
            len(names) - workers - stand_by - walkers(w), sum(l.startswith("socket:") for l in links))


def becomes(w, which, most):
    """Wait until the daemon holds no more than that of these."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        now = held(w)
        if all(now[i] <= most[i] for i in which):
            return
        time.sleep(0.02)
    raise AssertionError(f"descriptors, threads, sockets: {held(w)}, want at most {most}; open: {opened(w)}")


def becomes_idle(w, most):
    """No connection is served any more: what an asker wanted is done, or was given up; its runs have ended."""
    becomes(w, (2,), most)
    for run in w.ok("ps", "--json").json("snap.ps/1", "runs")["runs"]:
        w.snap("wait", run["run"], "--timeout", f"{SECONDS}s")


def has_no_more(w, most):
    becomes(w, (0, 1, 2), most)


# What changes before it, and the command. Each leaves a scene in which any of them can follow.
ACTS = {
    "snapshot": (("project",), ["snapshot", "-m", "late"]),
    "snapshot of a clone": (("clone",), ["snapshot", "c", "-m", "late"]),
    "clone": (("project",), ["clone", "-n", "late"]),
    "clones": (("project",), ["clone", "-n", "late", "--count", "3"]),
    "clone of a clone": (("clone",), ["clone", "-n", "late", "--from", "c"]),
    "rollback": (("project",), ["rollback", "good"]),
    "rollback of a clone": (("clone",), ["rollback", "c"]),
    "promote": (("clone",), ["promote", "c", "--allow", "**", "--conflict", "theirs"]),
    "rebase": (("project",), ["rebase", "c", "--conflict", "ours"]),
    "undo": ((), ["undo"]),
    "run": (("clone",), ["run", "c", "--", "true"]),
    "try": (("project",), ["try", "--discard", "--", "true"]),
    "gc": ((), ["gc"]),
    "check": ((), ["check"]),
    "diff": (("clone",), ["diff", "c"]),
    "status": (("project",), ["status", "c"]),
    "compare": (("clone",), ["compare", "c", "."]),
    "write": ((), ["write", "c", "README.md", "--text", "late\n"]),
    "umount": ((), ["umount", "c"]),
    "rm": ((), ["rm", "--force", "gone"]),
}


def begin(scene, name):
    """The command, about to run; and what was there before it."""
    changed, words = ACTS[name]
    scene.edit(*({"project": scene.w.project, "clone": scene.clone}[what] for what in changed))
    if name == "rm":
        scene.w.ok("clone", "-n", "gone")
    return words


def restore(scene):
    """Mounted, and no clone but the one."""
    scene.w.ok("mount", "c")
    for extra in scene.names():
        if extra != "c":
            scene.w.ok("rm", "--force", extra)


def whole(scene, before, name):
    """Nothing was done by halves."""
    names, snapshots, project, clone, _, running = scene.state()
    new = set(names) - set(before[0])
    assert len(new) in (0, 3 if name == "clones" else 1), (name, new)
    assert not (new and name not in ("clone", "clones", "clone of a clone")), (name, new)
    assert len(project) == 1 and len(clone) == 1, (name, project, clone)
    assert not set(before[1]) - set(snapshots), (name, "a snapshot is gone")
    assert not running, (name, running)


def kill(w, words, after, how):
    process = subprocess.Popen([SNAP, *words], cwd=w.project, env=w.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
    out, err = process.communicate(timeout=SECONDS)
    assert b"anitizer" not in err, err
    return process.returncode, out


@live_test
def whenever_the_asker_goes_nothing_appears_later(w):
    random = dice()
    scene = Scene(w)
    chosen = list(ACTS) if LONG else sorted(random.sample(list(ACTS), VERBS))
    takes, limits = {}, [0, 0, 0]
    for name in chosen:  # first, each to its end: so long it takes, and so much an idle daemon has
        words = begin(scene, name)
        start = time.monotonic()
        w.snap(*words)
        takes[name] = time.monotonic() - start
        restore(scene)
        limits = [max(pair) for pair in zip(limits, held(w))]
    ended = unsaid = 0
    for name in chosen:
        for _ in range(ROUNDS):
            words = begin(scene, name)
            before = scene.state()
            how = random.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
            status, out = kill(w, words, random.uniform(0, takes[name] * 1.2), how)
            ended += status == -how or status == 128 + how
            becomes_idle(w, limits)
            whole(scene, before, name)
            then = scene.state()
            unsaid += not out and then != before  # killed after the answer, before it could print it
            assert scene.state() == then, (name, "it goes on changing")
            restore(scene)
            has_no_more(w, limits)
        is_clean(w)
    note(f"{len(chosen)} verbs, {len(chosen) * ROUNDS} askers, {ended} of them ended by the signal, "
         f"{unsaid} after their act was done")
    assert ended > 0, "none was killed while it was at it"


def interrupted(w, *words, by=signal.SIGINT):
    """What a command says that gets a signal once its check runs, which begins with making the file `begun`."""
    process = subprocess.Popen([SNAP, *words], cwd=w.project, env=w.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list((w.store / "clones").glob("run-*/begun")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(by)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + by, (process.returncode, out, err)
    return out, err


@live_test
def a_check_that_is_interrupted_ends_the_promotion_without_a_verdict(w):
    path = livetest.clone(w, "-n", "try")
    (path / "README.md").write_text("second\n")
    # No child of the shell's may end as the signal comes: the shell would go on with the next one.
    before, check = kept(w), "sleep 1000 & : >begun; wait"
    _, err = interrupted(w, "promote", "try", "--check", check)
    assert b"nothing is promoted: a signal ended check 'sleep 1000" in err, err
    out, _ = interrupted(w, "promote", "--json", "try", "--check", "trap 'exit 3' INT; touch begun; sleep 1000 & wait")
    assert "a signal ended check" in json.loads(out)["error"]["message"], out
    assert b"a signal ended check" in interrupted(w, "promote", "try", "--check", check, by=signal.SIGTERM)[1]
    assert b"a signal ended check" in interrupted(
        w, "try", "--promote-if-ok", "--check", check, "--", "sh", "-c", "echo third >README.md", by=signal.SIGTERM)[1]
    (made,) = [c for c in w.ok("list", "--json").json("snap.list/1")["clones"] if c["clone"] != "try"]
    assert w.ok("run", made["clone"], "--", "cat", "README.md").out == b"third\n"
    w.ok("rm", made["clone"])
    assert kept(w) == before and w.ok("ps", "--json").json("snap.ps/1")["runs"] == []
    assert (w.project / "README.md").read_text() == "first\n"


if __name__ == "__main__":
    sys.exit(livetest.main())
