"""kill -9 of cowfsd under a load that never rests: what was synced is there, the rest a prefix.

Six scribes (scribe.c) write into three clones, most with fsync now and then. After each death all
of them must have got an error; the next command brings the mounts back; and each scribe's
directory must be what it was after some number of its steps, not before its last fsync.
"""

import contextlib
import errno
import mmap
import os
import random
import shutil
import struct
import sys
import threading
import time
from pathlib import Path

from livetest import (LONG, USER, Worker, World, clone, daemon_pid, is_clean, kill_daemon,
                      live_test, main, note, remount, within)
from snaptest import stop_process

SCRIBE = os.environ["SNAP_SCRIBE"]
DEATHS = 100 if LONG else 6 if USER else 20
CHECK_EVERY, SNAPSHOT_EVERY = 10, 4
LIFE_S = (0.02, 0.3)  # how long a load may run before its daemon dies
DEADLINE_S = 60  # for what must not hang, on a machine that is busy

CLONES = ("a", "b", "c")
SYNC_EVERY = (7, 0, 3, 50, 20, 1)  # of each scribe, in things; 0: never
LINE = 64  # bytes of the board for each

DEAD = {errno.ENOTCONN, errno.ECONNABORTED}


class Load:
    """The scribes, what they said was done, and where."""

    def __init__(self, w, paths):
        self.paths = paths
        self.life = 0
        self.before = []  # what was found of the life before this one
        name = w.top / "board"
        name.write_bytes(bytes(LINE * len(SYNC_EVERY)))
        with open(name, "r+b") as f:
            self.board = mmap.mmap(f.fileno(), 0)
        self.board_path = name
        self.workers = []

    def clone_of(self, scribe):
        return CLONES[scribe // 2]

    def place(self, scribe, life, path=None):
        return (path or self.paths[self.clone_of(scribe)]) / f"life{life}-{scribe}"

    def board_line(self, scribe):
        """How many things it has done, and how many it has synced."""
        return struct.unpack_from("2Q", self.board, LINE * scribe)

    def begin(self):
        """All of them at once, while what is two lives old is removed."""
        self.life += 1
        self.board[:] = bytes(len(self.board))
        kept = (f"life{self.life}-", f"life{self.life - 1}-")
        old = [p / name for p in self.paths.values() for name in os.listdir(p)
               if name.startswith("life") and not name.startswith(kept)]
        if old:
            self.workers.append(Worker("rm", "-rf", *old))
        for i, every in enumerate(SYNC_EVERY):
            self.workers.append(Worker(SCRIBE, "write", self.place(i, self.life), self.board_path,
                                       i, 3 << (i & ~1), every))
        deadline = time.monotonic() + DEADLINE_S
        while not all(self.board_line(i)[0] for i in range(len(SYNC_EVERY))):
            assert time.monotonic() < deadline, "the scribes do not begin"
            assert all(p.process.poll() is None for p in self.workers if p.words[0] == SCRIBE), \
                [p.ends(1, 0, 1) for p in self.workers if p.process.poll() is not None]
            time.sleep(0.002)

    def end(self):
        """Each got an error, and soon."""
        for p in self.workers:
            said = p.ends(DEADLINE_S, *((0, 1) if p.words[0] == "rm" else (0,)))
            if p.words[0] != "rm":
                assert said.startswith("stopped ") and int(said.split()[1]) in DEAD, said
        self.workers = []

    def kill(self):
        for p in self.workers:
            p.kill()

    def found(self, scribe, life, path=None):
        """How many things of it are complete in a life, and how many of others it had seen."""
        said = Worker(SCRIBE, "verify", self.place(scribe, life, path)).ends(DEADLINE_S)
        return [int(word) for word in said.splitlines()[-1].split()[1:]]

    def verify(self, lines, path=None, scribes=None):
        """Each is a prefix, has what is promised to it in `lines`, and what others knew of it."""
        scribes = scribes or range(len(SYNC_EVERY))
        all_found = {i: self.found(i, self.life, path) for i in scribes}
        for i in scribes:
            complete = all_found[i][0]
            assert complete >= lines[i][1], f"scribe {i}: {complete} of {lines[i]}"
            assert complete <= lines[i][0] + 1, f"scribe {i}: {complete} of {lines[i]}"
            for other in scribes:
                known = all_found[other][1 + i]
                assert complete >= known, \
                    f"scribe {i}: {complete}, but {other} had been written after {known}"
        return all_found


class Snapshots(threading.Thread):
    """Taken of one clone as fast as possible, until its daemon dies."""

    def __init__(self, w, load):
        super().__init__()
        self.w, self.load = w, load
        self.taken = []  # (id, what the scribes of that clone had done before)
        self.enough = threading.Event()

    def run(self):
        while not self.enough.is_set():
            done = [(1 << 60, self.load.board_line(i)[0]) for i in range(2)]
            result = self.w.snap("-q", "snapshot", "a")
            if result.status != 0:
                break
            if self.enough.is_set():  # the next daemon may have taken it, of what came back
                done = [(1 << 60, 0)] * 2
            self.taken.append((result.out.decode().strip(), done))


def dead_mount_is_an_error(path, fd):
    """Whatever is asked of it, and soon."""
    def write_open():
        os.write(fd, b"more")

    def sync_open():
        os.fsync(fd)

    def create():
        os.close(os.open(path / "made-on-the-dead", os.O_CREAT | os.O_WRONLY))

    def rename():
        os.rename(path / "README.md", path / "elsewhere")

    for act, args in ((write_open, ()), (sync_open, ()), (create, ()), (rename, ()),
                      (os.statvfs, (path,)), (os.mkdir, (path / "dir",)),
                      (os.unlink, (path / "README.md",)), (os.stat, (path / "never-asked",))):
        got = within(DEADLINE_S, act, *args)
        assert got in DEAD, f"{act.__name__}: {os.strerror(got) if got else 'no error'}"


def close(fd):
    """Of what may be dead."""
    with contextlib.suppress(OSError):
        os.close(fd)


def one_death(w, load, rng, number):
    snapshots = Snapshots(w, load) if number % SNAPSHOT_EVERY == 0 else None
    held = {}
    for name, path in load.paths.items():
        held[name] = os.open(path / "held", os.O_CREAT | os.O_WRONLY)
    try:
        load.begin()
        if snapshots:
            snapshots.start()
        time.sleep(rng.uniform(*LIFE_S))
        if snapshots:
            snapshots.enough.set()
        kill_daemon(w)
        load.end()
        if snapshots:
            snapshots.join()  # its last command may have been the one that started the next daemon
        else:
            for name, path in load.paths.items():
                dead_mount_is_an_error(path, held[name])
        come_back(w, load, rng)
    finally:
        load.kill()
        for fd in held.values():
            close(fd)
    if snapshots:
        verify_snapshots(w, load, snapshots.taken)


def come_back(w, load, rng):
    """With the next command, whichever it is, at the same paths."""
    w.ok(*rng.choice((("list",), ("status", "b"), ("mount", "c"), ("start",), ("snapshot", "a"))))
    assert sorted(w.mounts()) == sorted(map(str, load.paths.values())), w.mounts()
    for path in load.paths.values():
        assert (path / "README.md").read_text() == "first\n"
        assert not (path / "made-on-the-dead").exists()


def verify_snapshots(w, load, taken):
    """What returned 0 is there, and the last one holds all that had been done before it."""
    there = w.ok("-q", "log", "a").out.decode().split()
    lost = [i for i, _ in taken if i not in there]
    assert not lost, f"lost: {lost} of {len(taken)}"
    if taken:
        last, done = taken[-1]
        path = clone(w, "-n", "from-snapshot", "--from", last)
        load.verify(done, path, range(2))
        w.ok("rm", "from-snapshot")


@live_test
def what_was_synced_survives_every_death_and_the_rest_is_a_prefix(w: World):
    seed = int(os.environ.get("SNAP_TEST_SEED", random.randrange(1 << 32)))
    note(f"SNAP_TEST_SEED={seed}")
    rng, start = random.Random(seed), time.monotonic()
    load = Load(w, {name: clone(w, "-n", name) for name in CLONES})
    done = synced = recovered = 0
    for number in range(1, DEATHS + 1):
        one_death(w, load, rng, number)
        lines = [load.board_line(i) for i in range(len(SYNC_EVERY))]
        found = load.verify(lines)
        for i, was in enumerate(load.before):
            assert load.found(i, load.life - 1) == was, f"scribe {i}: not what it was a life ago"
        load.before = [found[i] for i in range(len(SYNC_EVERY))]
        done += sum(d for d, _ in lines)
        synced += sum(s for _, s in lines)
        recovered += sum(f[0] for f in found.values())
        if number % CHECK_EVERY == 0:
            is_clean(w)
    note(f"{DEATHS} deaths: {done} things done, {synced} synced, {recovered} there afterwards; "
         f"{time.monotonic() - start:.1f} s")
    for name in CLONES:
        remount(w, name)
    for i, was in enumerate(load.before):
        assert load.found(i, load.life) == was, f"scribe {i}: not what it was before the remount"
    is_clean(w)
    w.ok("gc")
    is_clean(w)
    for path in load.paths.values():
        for name in os.listdir(path):
            if name.startswith("life"):
                shutil.rmtree(path / name)
        assert sorted(os.listdir(path)) == ["README.md", "held", "src"], os.listdir(path)


@live_test
def a_program_that_waits_for_the_daemon_gets_an_error_when_it_dies(w: World):
    path = clone(w, "-n", "try")
    fd = os.open(path / "file", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * 4096)
    pid = daemon_pid(w)
    stop_process(pid)  # it answers nobody from now on

    def waits():
        os.fsync(fd)

    killer = threading.Timer(0.5, kill_daemon, [w])
    killer.start()
    got = within(DEADLINE_S, waits)
    killer.join()
    close(fd)
    assert got in DEAD, os.strerror(got)
    w.ok("list")
    assert (path / "README.md").read_text() == "first\n"


if __name__ == "__main__":
    assert Path(SCRIBE).exists()
    sys.exit(main())
