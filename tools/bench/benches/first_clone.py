"""The first clone of a tree that was never captured: how long until it can be listed and read.

Each contestant starts with nothing and ends when `ls -R` of the copy has run and the first byte of
a file in its middle was read. The bare walk reads no file: it is what nobody can be faster than.

Two floors stand beside it. Whoever holds files must open, lease and examine each of them, and
stores nothing by that; and a file system that does nothing but know the names is listed through
FUSE. A clone that is exact and can be listed needs at least both.
A writer beside it opens files of the project while it is being captured, and each open is timed.
"""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import trees
from arena import Store, run, timed, unmount
from row import OURS, at_most

WALK, COPY, REFLINK, OVERLAY, CAPTURE = "bare walk", "cp -a", "cp --reflink on xfs", "overlayfs", "whole capture"
UNLISTED = "snap, not listed"
LEASES, LISTED = "each file leased", "bare FUSE listed"  # the two floors
MILLION = 1_000_000
LARGE_FILES = 200
ROUNDS = 3
WRITER_SECONDS = 60  # at most
LOOK_SECONDS = 0.05  # between two looks whether all is captured


def look(top):
    """All names, and a byte of a file."""
    run("ls", "-R", top)
    for folder, _, names in os.walk(top):
        if names:
            with open(os.path.join(folder, names[len(names) // 2]), "rb", buffering=0) as f:
                f.read(1)
            return


def walk(top):
    run("find", top, "-newermt", "@99999999999")  # asks for the times of every file, and prints none


def clone(store, project):
    """One that is there before the project is captured; where it is mounted."""
    return store.snap("clone", "--lazy", "-n", "first", cwd=project)["path"]


def is_complete(store, project):
    return store.snap("status", "first", cwd=project)["complete"]


class Contest:
    """One tree and those that make a second one of it."""

    def __init__(self, session, name, source, disk):
        self.session, self.source = session, source
        self.top = session.arena.fresh_dir(name)
        self.row = session.row(f"first clone of {disk}: until it is listed and read", "ms", at_most(1.5, WALK))
        self.whole = session.row(f"first clone of {disk}: until all of it is captured", "ms", at_most(1.2, CAPTURE))
        self.alone = session.row(f"first clone of {disk}: until all of it is captured, nobody lists it", "ms",
                                 at_most(1.2, CAPTURE))
        self.there = session.row(f"first clone of {disk}: until the command returns", "ms", at_most(1.5, LEASES))
        self.acts = {WALK: self.walk, LEASES: self.leases, LISTED: self.listed, COPY: self.copy,
                     CAPTURE: self.capture, OURS: self.ours, UNLISTED: self.unlisted}
        if os.geteuid() == 0:
            self.acts[OVERLAY] = self.overlay
            self.add_xfs(name)

    def add_xfs(self, name):
        if not shutil.which("mkfs.xfs"):
            self.row.notes.append("without xfs: there is no mkfs.xfs")
            return
        try:
            self.xfs = self.session.arena.disk(f"xfs-{name}", 48 << 30, "mkfs.xfs", "-q")
        except SystemExit as e:
            self.row.notes.append("without xfs: " + str(e).splitlines()[-1].removeprefix("error: "))
            return
        run("cp", "-a", self.source, self.xfs / "base")
        self.acts[REFLINK] = self.reflink

    def walk(self, _):
        self.row.add(WALK, timed(lambda: walk(self.source)))

    def leases(self, _):
        took = float(run(self.session.helper("bench-walk"), self.source, "lease"))
        self.row.add(LEASES, took)
        self.there.add(LEASES, took)

    def listed(self, number):
        top = self.top / f"bare-{number}"
        top.mkdir()
        run(self.session.helper("bare-fuse"), top, self.source)
        self.row.add(LISTED, timed(lambda: look(top)))
        unmount(top)
        top.rmdir()

    def copy(self, number):
        to = self.top / f"copy-{number}"
        self.row.add(COPY, timed(lambda: (run("cp", "-a", self.source, to), look(to))))
        shutil.rmtree(to)

    def reflink(self, number):
        to = self.xfs / f"copy-{number}"
        self.row.add(REFLINK, timed(lambda: (run("cp", "-a", "--reflink=always", self.xfs / "base", to), look(to))))
        shutil.rmtree(to)

    def overlay(self, number):
        place = self.top / f"overlay-{number}"
        for part in ("upper", "work", "mount"):
            (place / part).mkdir(parents=True)
        options = f"lowerdir={self.source},upperdir={place / 'upper'},workdir={place / 'work'}"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, place / "mount"]
        self.row.add(OVERLAY, timed(lambda: (run(*mount), look(place / "mount"))))
        unmount(place / "mount")
        shutil.rmtree(place)

    def fresh_store(self):
        """One with a daemon that runs and knows nothing of this tree."""
        store = Store(self.session.arena, self.session.snapcow, f"{self.top.name}/{self.session.number('store')}")
        empty = self.top / "empty"
        empty.mkdir(exist_ok=True)
        store.snap("snapshot", cwd=empty)
        return store

    def capture(self, _):
        """All of it in the foreground."""
        store = self.fresh_store()
        took = store.timed("snapshot", cwd=self.source)
        self.row.add(CAPTURE, took)
        self.whole.add(CAPTURE, took)
        self.alone.add(CAPTURE, took)
        self.remove(store)

    def ours(self, _):
        store = self.fresh_store()
        start = time.monotonic()
        path = clone(store, self.source)
        self.there.add(OURS, (time.monotonic() - start) * 1000)
        look(path)
        self.row.add(OURS, (time.monotonic() - start) * 1000)
        self.wait(store)
        self.whole.add(OURS, (time.monotonic() - start) * 1000)
        self.remove(store)

    def unlisted(self, _):
        """The capture has the machine for itself, as one in the foreground has."""
        store = self.fresh_store()
        start = time.monotonic()
        clone(store, self.source)
        self.wait(store)
        self.alone.add(OURS, (time.monotonic() - start) * 1000)
        self.remove(store)

    def wait(self, store):
        while not is_complete(store, self.source):
            time.sleep(LOOK_SECONDS)

    @staticmethod
    def remove(store):
        store.end()
        shutil.rmtree(store.path, ignore_errors=True)

    def run(self):
        trees.warm(self.source)
        self.session.rounds(self.row.name, self.acts, [self.row, self.there, self.whole, self.alone],
                            count=min(self.session.opts.rounds, ROUNDS))


def small(session):
    source = session.tree()
    Contest(session, "small", source, f"{session.opts.entries:,} small files").run()


def million(session):
    """Only where the run asks for trees of that size; making one takes minutes."""
    entries = max(session.opts.sizes)
    if entries < MILLION:
        session.row("first clone of 1,000,000 entries: until it is listed and read", "ms",
                    at_most(1.5, WALK)).skip("no tree of this run is that large")
        return
    Contest(session, "million", session.tree(entries), f"{entries:,} entries").run()


def large_files(session):
    """LARGE_FILES files of a tenth of --large each, or as many as fit four times; --quick has a tenth of them."""
    size = session.opts.large // 10

    def make():
        count = min(LARGE_FILES // 10 if session.opts.quick else LARGE_FILES,
                    shutil.disk_usage(session.arena.outside).free // 4 // size)
        top = session.arena.fresh_dir("large-files")
        pattern = random.Random(1)
        for i in range(count):
            with open(top / f"{i:03}.bin", "wb", buffering=0) as f:
                for _ in range(0, size, 1 << 20):
                    f.write(pattern.randbytes(min(size, 1 << 20)))
        return top, count
    top, count = session.once("large-files", make)
    return top if count else None, count, size


def large(session):
    top, count, size = large_files(session)
    text = f"{count} files of {size >> 20} MiB"
    if not top:
        session.row(f"first clone of {text}: until it is listed and read", "ms",
                    at_most(1.5, WALK)).skip("the disk has no room for it")
        return
    Contest(session, "large", top, text).run()


def writer_opens(project, until):
    """Open files of the project for writing, in a random order, until the function says so; seconds each."""
    names = sorted(p for p in Path(project).rglob("*") if p.is_file())
    order = random.Random(2)
    delays = []
    while not until():
        path = order.choice(names)
        start = time.monotonic()
        os.close(os.open(path, os.O_WRONLY))
        delays.append(time.monotonic() - start)
        time.sleep(0.001)
    return sorted(delays)


def writer(session):
    """What somebody who works in the project feels of it."""
    half = session.row("a writer's open in the project while it is captured, median", "ms")
    most = session.row("a writer's open in the project while it is captured, 99 of 100", "ms", at_most(50))
    rows = [half, most]
    top, count, size = large_files(session)
    if not top:
        for row in rows:
            row.skip("the disk has no room for it")
        return
    contest_top = session.arena.fresh_dir("writer")

    def measure(who, lazy):
        store = Store(session.arena, session.snapcow, f"writer/{session.number('store')}")
        contest_top.joinpath("empty").mkdir(exist_ok=True)
        store.snap("snapshot", cwd=contest_top / "empty")
        words = ["clone", "--lazy", "--wait"] if lazy else ["snapshot"]
        with subprocess.Popen([str(store.program), *words], cwd=top, env={**os.environ, **store.env},
                              stdout=subprocess.DEVNULL) as going:
            end = time.monotonic() + WRITER_SECONDS
            delays = writer_opens(top, lambda: going.poll() is not None or time.monotonic() > end)
        if delays:
            half.add(who, delays[len(delays) // 2] * 1000)
            most.add(who, delays[len(delays) * 99 // 100] * 1000)
            most.notes[:] = [f"{count} files of {size >> 20} MiB; {len(delays)} opens in the last round"]
        Contest.remove(store)
    session.rounds("a writer", {CAPTURE: lambda _: measure(CAPTURE, False), OURS: lambda _: measure(OURS, True)},
                   rows, count=min(session.opts.rounds, ROUNDS))


PARTS = {"first-clone-small": small, "first-clone-million": million, "first-clone-large": large,
         "first-clone-writer": writer}
