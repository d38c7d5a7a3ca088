"""A promotion that meets a fault: whatever it is, the project is before it or after it, and the answer is true.

strace lets cowfsd meet the n-th call of a kind: it is killed as it enters it, so what it was about to do is not
done; or the call fails, with EIO or with ENOSPC. SNAP_TESTS_LONG=1: every n of every kind, by two workers for
each processor; otherwise a sample that is the same each time.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from promotetest import (ATTRIBUTE, change, clone, daemon, differs, fill, has_attributes, log, picture, promote,
                         same, undo)
from snaptest import SNAP, Skip, World, gone, main, test, until as wait_for

LONG = os.environ.get("SNAP_TESTS_LONG") == "1"
# All by which apply, the journal and the store change something or promise that it is kept: between two of
# them nothing is different on a disk, so to die there is to die at the next one.
CHANGING = ("openat", "pwrite64", "write", "renameat", "renameat2", "linkat", "unlinkat", "mkdirat",
            "symlinkat", "mknodat", "fchmod", "fchmodat", "fchown", "fchownat", "utimensat", "ftruncate",
            "fsync", "fdatasync", "syncfs", "fsetxattr", "setxattr", "fremovexattr", "fallocate", "unlink",
            "rename", "mkdir", "sendto")
LOOKING = ("pread64", "read", "fstat", "newfstatat", "statx", "getdents64", "lseek", "readlinkat",
           "openat2", "flistxattr", "fgetxattr", "getxattr", "listxattr", "fcntl", "statfs", "fstatfs")
GROWING = ("openat", "pwrite64", "write", "renameat", "renameat2", "linkat", "mkdirat", "symlinkat",
           "mknodat", "ftruncate", "fsync", "fdatasync", "syncfs", "fsetxattr", "setxattr", "fallocate")
FAULTS = {"kill": ("signal=KILL", CHANGING), "EIO": ("error=EIO", CHANGING + LOOKING),
          "ENOSPC": ("error=ENOSPC", GROWING)}
SAMPLE = {"kill": 18, "EIO": 12, "ENOSPC": 8}
FOUND = [("kill", "renameat", 1), ("kill", "fdatasync", 2)]  # something was left there once: always tried
CHANGES = 200


# --- strace -----------------------------------------------------------------------------------

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
    """It lets go of what still lives; asked to, it may wait for ever for a process that is dead or a new one."""
    act.kill()
    act.communicate()


def counted(w):
    """How often a promotion makes each call, in the thread that makes most of them."""
    path = w.top / "trace"
    act = trace(daemon(w), path, "-e", "trace=?" + ",?".join(CHANGING + LOOKING))
    promote(w, "try", "--allow", "pipe")
    end(act)
    threads = {}
    for line in path.read_text(errors="replace").splitlines():
        words = line.split(None, 1)
        name = words[1].split("(", 1)[0] if len(words) > 1 else ""
        if name in CHANGING + LOOKING:
            calls = threads.setdefault(words[0], {})
            calls[name] = calls.get(name, 0) + 1
    return max(threads.values(), key=lambda c: sum(c.values()))


# --- a project and what happens to it ---------------------------------------------------------

def fill_more(top):
    """What change() has no use for."""
    for i in range(40, CHANGES):
        (top / "lib" / f"d{i % 8}" / f"f{i}").write_text(f"{i}\n" * 20)
    for name in ("to-move", "to-move-dir/a", "to-move-dir/b/c", "noted", "apart", "to-link"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"{name}\n" * 9)
    os.link(top / "apart", top / "apart-2")
    (top / "link-then-file").symlink_to("README.md")
    (top / "file-then-link").write_text("a file\n")
    (top / "closed").mkdir(mode=0o700)


def change_more(top):
    change(top, CHANGES)
    (top / "to-move").rename(top / "moved")
    (top / "to-move-dir").rename(top / "moved-dir")
    (top / "apart-2").unlink()
    (top / "apart-2").write_text("a file of its own\n")
    (top / "linked").hardlink_to(top / "to-link")
    (top / "link-then-file").unlink()
    (top / "link-then-file").write_text("a file now\n")
    (top / "file-then-link").unlink()
    (top / "file-then-link").symlink_to("closed")
    (top / "closed").chmod(0o750)
    (top / "closed" / "in").write_text("in\n")
    if has_attributes(top / "noted"):
        os.setxattr(top / "noted", "user.second", b"\0\xff")
        os.setxattr(top / "closed", ATTRIBUTE, b"of a directory")


class Bench:
    """A project, a clone with some 200 changes, and what the project looks like before and after."""

    def __init__(self, w, points=True):
        self.w = w
        fill(w.project)
        fill_more(w.project)
        change_more(clone(w))
        w.take("try")  # what was not synced may be lost with cowfsd, and there would be less to promote
        self.before = picture(w.project)
        if points:
            self.calls = counted(w)
        else:
            promote(w, "try", "--allow", "pipe")
        self.after = picture(w.project)
        self.sha256 = log(w)["receipts"][0]["sha256"]
        undo(w)
        same(picture(w.project), self.before)
        assert self.before != self.after

    def which(self, where):
        """Exactly one of the two."""
        now = picture(self.w.project)
        assert now in (self.before, self.after), \
            f"{where}: {differs(now, self.before)}, {differs(now, self.after)}"
        return "after" if now == self.after else "before"

    def meet(self, fault, name, n):
        """Where that leaves the project; it is brought back afterwards."""
        w, where = self.w, f"{fault} {name} {n}"
        known = {r["receipt"] for r in log(w)["receipts"]}
        pid = daemon(w)
        act = trace(pid, "/dev/null", "-e", f"trace={name}",
                    "-e", f"inject={name}:{FAULTS[fault][0]}:when={n}")
        done = subprocess.run([SNAP, "promote", "try", "--json", "--allow", "pipe"], cwd=w.project, env=w.env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        end(act)
        if fault == "kill":
            assert done.returncode == 0 or gone(pid, 20), f"{where}: {done}"
            w.ok("start")
        else:
            self.compare(where, done, gone(pid, 0))
            w.stop()
            w.ok("start")
        state = self.which(where)
        journals = list((w.store / "journal").iterdir())
        assert not journals, f"{where}: {journals}"
        taken = list((w.store / "trash").glob("taken-*"))
        assert not taken, f"{where}: {taken}"
        receipts = [r for r in log(w)["receipts"] if r["receipt"] not in known]
        assert all(r["sha256"] == self.sha256 for r in receipts), f"{where}: {receipts}"
        new = [r["receipt"] for r in receipts]
        assert len(new) == (state == "after"), f"{where}: {new}, {state}"
        self.answer(where, done, state, new)
        if fault == "kill" and done.returncode != 0:
            says_what_is_open(where, json.loads(done.stdout)["error"])
        if state == "after":
            undo(w)
            assert self.which(where) == "before", f"{where}: after its undo"
        return state

    def compare(self, where, done, died):
        """Before anybody recovers: all is done or taken back, unless it is said that it could not be."""
        if not died and b"next command" not in done.stdout + done.stderr:
            state = self.which(where + ", at once")
            assert (done.returncode == 0) == (state == "after") or is_open(done), f"{where}: {done}"

    @staticmethod
    def answer(where, done, state, new):
        """What the command said is so."""
        said = json.loads(done.stdout)
        if done.returncode == 0:
            assert state == "after" and said["promotion"] == new[0], f"{where}: {said} but {state}"
        else:
            assert state == "before" or is_open(done), f"{where}: {said} but {state}"


def is_open(done):
    """It says itself that it does not know, or that all is done."""
    said = done.stdout + done.stderr
    return any(s in said for s in (b"ended unexpectedly", b"all is done", b"next command"))


def says_what_is_open(where, error):
    """Who only reads that cowfsd died would look at a project that may be half done."""
    assert "not known yet" in error["message"] and "ended unexpectedly" in error["message"], f"{where}: {error}"
    assert [h.split()[-1] for h in error["hints"]] == ["start", "log"], f"{where}: {error}"


# --- all of them ------------------------------------------------------------------------------

class Workers:
    """Each takes the next point on a bench of its own; what failed is collected."""

    def __init__(self, points, benches):
        self.points, self.ends, self.failures = list(points), {}, []
        self.lock, self.benches = threading.Lock(), benches

    def run(self):
        threads = [threading.Thread(target=self.work, args=(b,)) for b in self.benches]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def work(self, bench):
        while True:
            with self.lock:
                if not self.points or len(self.failures) > 20:
                    return
                point = self.points.pop(0)
            try:
                state = bench.meet(*point)
            except Exception as e:  # every failure is reported, and the others go on with a new bench
                with self.lock:
                    self.failures.append(f"{point}: {type(e).__name__} {e}")
                bench.w.snap("stop", "--force")  # that one may be half done
                bench = another(bench.w)
                continue
            with self.lock:
                key = point[0], state
                self.ends[key] = self.ends.get(key, 0) + 1


def another(w):
    """One more bench, in the world of a test."""
    return Bench(World(Path(tempfile.mkdtemp(prefix="bench-", dir=w.top))), points=False)


def over(bench):
    assert bench.w.ok("check", "--json").json("snap.check/1")["errors"] == []
    bench.w.end()


def walk(w, fault):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    bench = Bench(w)
    points = [(fault, name, n) for name, total in sorted(bench.calls.items())
              if name in FAULTS[fault][1] for n in range(1, total + 1)]
    total = len(points)
    benches = [bench]
    if LONG:
        random.Random(6).shuffle(points)
        benches += [another(w) for _ in range(2 * (os.cpu_count() or 1) - 1)]
    else:
        points = random.Random(6).sample(points, min(SAMPLE[fault], total))
        points += [p for p in FOUND if p[0] == fault and p not in points]
    workers = Workers(points, benches)
    workers.run()
    print(f"# {len(points)} of {total} calls: {workers.ends}")
    assert not workers.failures, "\n".join(workers.failures)
    assert workers.ends.get((fault, "before"), 0) > 0, workers.ends
    for b in benches:
        over(b)


@test
def whenever_cowfsd_is_killed_the_project_is_before_or_after(w):
    walk(w, "kill")


@test
def whichever_call_fails_with_eio_the_project_is_before_or_after(w):
    walk(w, "EIO")


@test
def whichever_call_finds_the_disk_full_the_project_is_before_or_after(w):
    walk(w, "ENOSPC")


def can_read(path):
    try:
        os.statvfs(path)  # that is asked every time; what was read before may be in the cache
        return bool(path.read_bytes())
    except OSError:  # "Transport endpoint is not connected"
        return False


def dies_amid(w, name, n):
    """cowfsd is killed as a promotion makes its n-th call of that name; its keeper starts another one."""
    pid = daemon(w)
    act = trace(pid, "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={n}")
    done = w.snap("promote", "try", "--allow", "pipe")
    end(act)
    assert done.status != 0 and gone(pid, 20), done


@test
def mounts_come_back_before_a_promotion_is_taken_back(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    bench = Bench(w)
    dies_amid(w, "renameat", bench.calls["renameat"] // 2)
    w.ok("start")  # it answers when both are done
    lines = (w.store / "cowfsd.log").read_text().splitlines()
    mounted = max(i for i, line in enumerate(lines) if line.endswith("1 clone is mounted"))
    ended = [i for i, line in enumerate(lines) if "1 interrupted change of a project ended" in line]
    assert ended and mounted < ended[-1], lines
    assert bench.which("taken back") == "before"
    over(bench)


@test
def mounts_come_back_after_a_death_amid_taking_a_promotion_back(w):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    bench = Bench(w)
    path = w.store / "clones" / "try"
    keeper, = w.keepers()
    act = trace(keeper, "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL:when=2")
    dies_amid(w, "renameat", bench.calls["renameat"] // 2)
    second = wait_for(w.daemons)[0]
    # Its keeper has taken note: a signal that strace is handing over when it is killed is lost.
    wait_for(lambda: not Path(f"/proc/{second}").exists())
    end(act)  # the next one is not killed, or the one after it
    wait_for(lambda: can_read(path / "README.md"))  # and no command was given meanwhile
    w.ok("start")
    assert bench.which("taken back") == "before"
    over(bench)


@test
def what_a_clone_may_have_lost_with_cowfsd_is_said_with_its_promotion(w):
    path, here = clone(w), picture(w.project)
    (path / "README.md").write_text("not synced\n")
    pid = daemon(w)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    done = w.ok("promote", "try", "--json", "--allow", "pipe")
    assert b"unsynced writes of its last seconds may be lost" in done.err, done
    changed = {p["path"] for p in done.json("snap.promote/1")["changed"]}
    assert changed <= {"README.md"} and (changed or picture(w.project) == here), done


if __name__ == "__main__":
    sys.exit(main())
