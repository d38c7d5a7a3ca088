"""What was fsynced survives a power cut.

The store lies on an ext4 of its own, on a disk that logs every write and sync (logdisk.c). Programs
write and sync in a clone, and note how long the log was when a sync had returned. Then the power is
cut at random places of the log: the disk has all writes before the last sync, and a random choice of
those after it, some of them torn. The file system is mounted, the store opened, and everything that
was synced before the cut must be there; of the rest a prefix.
"""

import contextlib
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import time

from livetest import LONG, Skip, clone, is_clean, live_test, main, note

CUTS = 200 if LONG else 10
ROUNDS = 300 if LONG else 60
SIZE = 4 << 30  # sparse; below 1 GiB of room the store takes more care
HEAD = struct.Struct("<QQQ")
SECTOR = 512


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout.strip()


@contextlib.contextmanager
def mounted(disk, where):
    """Its file system, through a loop device."""
    loop = run("losetup", "-f", "--show", disk)
    try:
        run("mount", "-t", "ext4", loop, where)
        try:
            yield
        finally:
            run("umount", where)
    finally:
        run("losetup", "-d", loop)


@contextlib.contextmanager
def logged(w, image, log):
    folder = w.top / "logdisk"
    folder.mkdir()
    with subprocess.Popen([os.environ["SNAP_LOGDISK"], image, log, folder]) as p:
        try:
            for _ in range(500):
                if (folder / "disk").exists():
                    break
                assert p.poll() is None
                time.sleep(0.01)
            yield folder / "disk"
        finally:
            run("umount", folder)
            p.wait(20)


# --- what is written ------------------------------------------------------------------------

def line(n):
    return f"{n:06d} {'x' * (n * 7919 % 5000)}\n"


class Work:
    """What programs do in a clone, and what each has been promised."""

    def __init__(self, w, path, log, rng):
        self.w, self.path, self.log, self.rng = w, path, log, rng
        self.promised = {"records": [], "sqlite": [], "git": [], "rename": []}

    def promise(self, what, n):
        self.promised[what].append((os.stat(self.log).st_size, n))

    def git(self, *words):
        return run("git", "-C", self.path / "repo", "-c", "user.name=a", "-c", "user.email=a@b",
                   "-c", "core.fsync=all", "-c", "gc.auto=0", *words, env=self.w.env)

    def begin(self):
        (self.path / "repo").mkdir()
        self.git("init", "-q", "-b", "main")
        self.db = sqlite3.connect(self.path / "db", isolation_level=None)
        self.db.execute("pragma synchronous=extra")  # full lets the removal of its journal be lost
        self.db.execute("create table t(n integer)")
        self.files = [open(self.path / name, "w") for name in ("first", "second")]

    def append(self, n):
        """Two files, one after the other: the second never has more than the first."""
        for f in self.files:
            f.write(line(n))
            f.flush()
        if self.rng.random() < 0.5:
            os.fsync(self.files[self.rng.randrange(2)].fileno())
            self.promise("records", n)

    def commit(self, n):
        self.db.execute("insert into t values(?)", (n,))
        self.promise("sqlite", n)

    def replace(self, n):
        """As careful programs save: a new file, synced, renamed; then its directory."""
        fresh = self.path / "saved.new"
        with open(fresh, "w") as f:
            f.write(line(n))
            f.flush()
            os.fsync(f.fileno())
        os.rename(fresh, self.path / "saved")
        fd = os.open(self.path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        self.promise("rename", n)

    def save(self, n):
        (self.path / "repo" / "file").write_text(line(n))
        self.git("add", "file")
        self.git("commit", "-q", "-m", str(n))
        fd = os.open(self.path / "repo" / ".git", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        self.promise("git", n)

    def go_on(self):
        self.begin()
        for n in range(ROUNDS):
            self.append(n)
            if n % 5 == 1:
                self.commit(n)
            if n % 7 == 2:
                self.replace(n)
            if n % 20 == 3:
                self.save(n)
        self.db.close()
        for f in self.files:
            f.close()

    # --- what is left -----------------------------------------------------------------------

    def due(self, what, at):
        return max((n for pos, n in self.promised[what] if pos <= at), default=-1)

    def count(self, name):
        """How many records a file has; it must have nothing else, but the last may be torn."""
        path = self.path / name
        text = path.read_text() if path.exists() else ""
        n = text.count("\n")
        want = "".join(line(i) for i in range(n + 1))
        assert want.startswith(text), f"{name} is no prefix"
        return n

    def must_be_there(self, at):
        first, second = self.count("first"), self.count("second")
        assert second > self.due("records", at), ("records", second, self.due("records", at))
        assert second <= first <= second + 1, (first, second)
        if self.due("sqlite", at) >= 0:
            with contextlib.closing(sqlite3.connect(self.path / "db")) as db:
                assert db.execute("pragma integrity_check").fetchone() == ("ok",)
                newest, = db.execute("select max(n) from t").fetchone()
            assert newest is not None and newest >= self.due("sqlite", at), ("sqlite", newest)
        if self.due("rename", at) >= 0:
            saved = int((self.path / "saved").read_text()[:6])
            assert saved >= self.due("rename", at), ("rename", saved)
        if self.due("git", at) >= 0:
            assert int(self.git("log", "-1", "--format=%s")) >= self.due("git", at), "git"
            self.git("fsck", "--strict", "--no-dangling")


# --- cuts -----------------------------------------------------------------------------------

def records(log):
    """Type, offset, length, and where the bytes are, of each; and where it ends."""
    with open(log, "rb") as f:
        end = 0
        while len(head := f.read(HEAD.size)) == HEAD.size:
            kind, off, n = HEAD.unpack(head)
            at, end = end + HEAD.size, end + HEAD.size + n
            f.seek(n, os.SEEK_CUR)
            yield chr(kind), off, n, at, end


class Disk:
    """What is safe on it, as the log goes on, and what may be there besides."""

    def __init__(self, image, log):
        self.image, self.log = open(image, "r+b"), open(log, "rb")
        self.rest, self.todo = [], records(log)
        self.next = next(self.todo, None)

    def put(self, to, off, n, at):
        self.log.seek(at)
        to.seek(off)
        to.write(self.log.read(n))

    def go_to(self, cut):
        while self.next and self.next[4] <= cut:
            kind, off, n, at, _ = self.next
            if kind == "W":
                self.rest.append((off, n, at))
            else:
                for r in self.rest:
                    self.put(self.image, *r)
                self.rest = []
            self.next = next(self.todo, None)
        self.image.flush()

    def cut(self, image, rng):
        """A disk that lost its power here; how many of how many writes it has that nobody waited for."""
        run("cp", "--sparse=always", self.image.name, image)
        kept = 0
        with open(image, "r+b") as to:
            for off, n, at in self.rest:
                if rng.random() < 0.5:
                    continue
                kept += 1
                if rng.random() < 0.1:
                    n = rng.randrange(n // SECTOR + 1) * SECTOR
                self.put(to, off, n, at)
        return f"{kept} of {len(self.rest)}"


def prepare(w):
    """A disk, and the store on it."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a disk")
    for tool in ("losetup", "mkfs.ext4", "git"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")
    image, log, where = w.top / "image", w.top / "log", w.top / "disk"
    where.mkdir()
    with open(image, "wb") as f:
        f.truncate(SIZE)
    run("mkfs.ext4", "-q", "-J", "size=8", "-E", "nodiscard,lazy_itable_init=1", image)
    run("cp", "--sparse=always", image, w.top / "before")
    w.store = where / "store"
    w.env["SNAPCOW_STORE"] = str(w.store)
    return image, log, where


def work(w, rng):
    image, log, where = prepare(w)
    with logged(w, image, log) as disk:
        with mounted(disk, where):
            done = Work(w, clone(w, "-n", "work"), log, rng)
            begun = os.stat(log).st_size
            done.go_on()
            ended = os.stat(log).st_size
            w.stop()
    return done, begun, ended


@live_test
def what_was_synced_survives_power_cuts(w):
    seed = int(os.environ.get("SNAP_TEST_SEED", 0)) or random.randrange(1 << 32)
    note(f"SNAP_TEST_SEED={seed}")
    rng = random.Random(seed)
    done, begun, ended = work(w, rng)
    note("promises:", {k: len(v) for k, v in done.promised.items()}, "log:", ended)
    disk = Disk(w.top / "before", w.top / "log")
    for cut in sorted(rng.randint(begun, ended) for _ in range(CUTS)):
        disk.go_to(cut)
        kept = disk.cut(w.top / "cut", rng)
        with mounted(w.top / "cut", w.top / "disk"):
            try:
                is_clean(w)
                # Before the first promise the clone itself may be gone.
                if any(done.due(what, cut) >= 0 for what in done.promised):
                    w.ok("mount", "work")
                    done.must_be_there(cut)
            except AssertionError as e:
                raise AssertionError(f"cut at {cut}, {kept} unsynced writes: {e}") from e
            finally:
                w.stop()
    note(f"{CUTS} cuts")


if __name__ == "__main__":
    sys.exit(main())
