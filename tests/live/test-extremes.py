"""Large, many, deep, long: what a clone must bear at a sane cost. The figures are comments."""

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from livetest import (LONG, World, clone, daemon_pid, is_clean, kill_daemon, live_test, main,
                      memory, note, remount, timed)

NAMES = 100_000 if LONG else 10_000
LEVELS = 1_000
LINKS = 10_000 if LONG else 2_000
TIB = 1 << 40
MIB = 1 << 20


# --- large ----------------------------------------------------------------------------------

def data_ranges(path):
    """Where the file has data, as the file system tells it."""
    found, at = [], 0
    with open(path, "rb") as f:
        while True:
            try:
                start = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError as e:
                assert e.errno == errno.ENXIO, e
                return found
            at = os.lseek(f.fileno(), start, os.SEEK_HOLE)
            found.append((start, at))


def at(path, offset, size):
    with open(path, "rb") as f:
        return os.pread(f.fileno(), size, offset)


@live_test
def a_sparse_file_of_one_tebibyte_costs_what_is_in_it(w: World):
    path = clone(w, "-n", "try") / "sparse"
    written = {0: b"first" * 1000, TIB // 2 - 3: b"in the middle" * 10_000, TIB - 8: b"last one"}

    def is_whole():
        assert os.stat(path).st_size == TIB
        assert os.stat(path).st_blocks * 512 < 4 * MIB, os.stat(path)
        for offset, data in written.items():
            assert at(path, offset, len(data)) == data, f"at {offset}"
        assert at(path, TIB // 3, MIB) == bytes(MIB)
        ranges = data_ranges(path)
        for offset, data in written.items():
            assert any(a <= offset and offset + len(data) <= b for a, b in ranges), (offset, ranges)
        assert sum(b - a for a, b in ranges) < MIB, ranges

    with timed("1 TiB sparse: written at three places and synced"):
        with open(path, "wb") as f:
            for offset, data in written.items():
                os.pwrite(f.fileno(), data, offset)
            os.fsync(f.fileno())
    with timed("1 TiB sparse: stat, SEEK_DATA and SEEK_HOLE, read"):
        is_whole()
    with timed("1 TiB sparse: snapshot"):
        w.ok("snapshot", "try")
    remount(w, "try")
    with timed("1 TiB sparse: the same after umount and mount"):
        is_whole()
    kill_daemon(w)
    w.ok("list")
    is_whole()
    stored = sum(p.stat().st_size for p in w.store.glob("*.db*"))
    assert stored < 8 * MIB, f"{stored} bytes in the store"
    with timed("1 TiB sparse: cut to half, and removed"):
        os.truncate(path, TIB // 2)
        del written[TIB - 8]
        written[TIB // 2 - 3] = b"in"
        assert at(path, TIB // 2 - 3, 100) == b"in "
        os.unlink(path)
    is_clean(w)


# --- many -----------------------------------------------------------------------------------

def name_of(number):
    return f"a-name-like-those-of-a-cache-{number:06d}"


@live_test
def a_directory_may_have_very_many_names(w: World):
    path = clone(w, "-n", "try") / "many"
    path.mkdir()
    rng = random.Random(1)
    some = [rng.randrange(NAMES) for _ in range(1000)]

    def is_whole():
        with timed(f"{NAMES} names: listed"):
            names = os.listdir(path)
        assert len(names) == NAMES and set(names) == {name_of(i) for i in range(NAMES)}
        with timed(f"{NAMES} names: {len(some)} of them looked up"):
            for i in some:
                assert os.stat(path / name_of(i)).st_size == i % 7
        assert not (path / "no-such-name").exists()

    with timed(f"{NAMES} names: made, each with up to 6 bytes"):
        for i in range(NAMES):
            fd = os.open(path / name_of(i), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            if i % 7:
                os.write(fd, b"sixsix"[:i % 7])
            os.close(fd)
    with timed(f"{NAMES} names: synced"):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    is_whole()
    one = path / name_of(NAMES // 2)
    with timed(f"{NAMES} names: one changed and synced"):
        with open(one, "r+b", buffering=0) as f:
            f.write(b"x" * (NAMES // 2 % 7))
            os.fsync(f.fileno())
    remount(w, "try")
    note("after umount and mount:")
    is_whole()
    note(f"cowfsd: {memory(daemon_pid(w))[0] / MIB:.0f} MiB")
    with timed(f"{NAMES} names: ls -l"):
        subprocess.run(["ls", "-l", path], check=True, stdout=subprocess.DEVNULL)
    with timed(f"{NAMES} names: renamed away and back while listed"):
        with os.scandir(path) as listing:
            seen = set()
            for entry in listing:
                seen.add(entry.name)
                if entry.name.endswith("00"):
                    os.rename(path / entry.name, path / f"{entry.name}-moved")
                    os.rename(path / f"{entry.name}-moved", path / entry.name)
        assert seen >= {name_of(i) for i in range(NAMES) if i % 100}, "a name was not listed"
    with timed(f"{NAMES} names: rm -rf"):
        subprocess.run(["rm", "-rf", path], check=True)
    assert not path.exists()
    remount(w, "try")
    assert not path.exists()
    is_clean(w)


@live_test
def a_file_may_have_very_many_links(w: World):
    top = clone(w, "-n", "try") / "linked"
    top.mkdir()
    for i in range(10):
        (top / str(i)).mkdir()
    first = top / "first"
    first.write_bytes(b"content")

    def link(number):
        return top / str(number % 10) / f"link{number}"

    def is_whole(content):
        assert os.stat(first).st_nlink == LINKS + 1
        inos = {os.stat(link(i)).st_ino for i in range(0, LINKS, 97)}
        assert inos == {os.stat(first).st_ino}, "one file"
        assert link(LINKS - 1).read_bytes() == content

    with timed(f"{LINKS} links: made"):
        for i in range(LINKS):
            os.link(first, link(i))
    is_whole(b"content")
    with timed(f"{LINKS} links: synced"):
        w.ok("snapshot", "try")
    with timed(f"{LINKS} links: written through one, and synced"):
        with open(link(LINKS // 2), "wb") as f:
            f.write(b"other content")
            f.flush()
            os.fsync(f.fileno())
    is_whole(b"other content")
    remount(w, "try")
    with timed(f"{LINKS} links: looked at after umount and mount"):
        is_whole(b"other content")
    kill_daemon(w)
    w.ok("list")
    is_whole(b"other content")
    is_clean(w)
    with timed(f"{LINKS} links: removed"):
        for i in range(LINKS):
            os.unlink(link(i))
    assert os.stat(first).st_nlink == 1
    remount(w, "try")
    assert os.stat(first).st_nlink == 1 and first.read_bytes() == b"other content"
    is_clean(w)


# --- deep -----------------------------------------------------------------------------------

def descend(path, levels, step):
    """A descriptor of the directory that many levels below; a path would be too long."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        step(fd)
        below = os.open("level", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    return fd


@live_test
def directories_may_be_a_thousand_levels_deep(w: World):
    path = clone(w, "-n", "try")

    def read_bottom():
        fd = descend(path, LEVELS, lambda fd: None)
        file = os.open("bottom", os.O_RDONLY, dir_fd=fd)
        got = os.read(file, 100)
        os.close(file)
        os.close(fd)
        return got

    with timed(f"{LEVELS} levels: made"):
        fd = descend(path, LEVELS, lambda fd: os.mkdir("level", dir_fd=fd))
        file = os.open("bottom", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd)
        os.write(file, b"down here")
    with timed(f"{LEVELS} levels: synced from the bottom"):
        os.fsync(file)
    os.write(file, b", further")
    with timed(f"{LEVELS} levels: one change at the bottom, synced"):
        os.fsync(file)
    os.close(file)
    os.close(fd)
    remount(w, "try")
    with timed(f"{LEVELS} levels: read after umount and mount"):
        assert read_bottom() == b"down here, further"
    kill_daemon(w)
    w.ok("list")
    assert read_bottom() == b"down here, further"
    with timed(f"{LEVELS} levels: counted by status"):
        got = w.ok("status", "try", "--json").json("snap.status/1")
        assert got["changed"]["added"] == 1, got  # directories are not counted
    is_clean(w)
    w.ok("clone", "-n", "copy", "--from", "try")
    with timed(f"{LEVELS} levels: rm -rf"):
        subprocess.run(["rm", "-rf", path / "level"], check=True)
    assert not (path / "level").exists()
    is_clean(w)


# --- long and odd ---------------------------------------------------------------------------

@live_test
def names_may_be_long_and_of_any_bytes(w: World):
    path = os.fsencode(clone(w, "-n", "try"))
    names = [b"x" * 255, b"\xff" * 255, bytes(range(128, 256)), b"\xc3", b"a\xed\xa0\x80b",
             bytes(b for b in range(1, 128) if b != ord("/")), b" ", b"...", b"-rf",
             b"\n\t\r\x1b[31m", "\N{SNOWMAN}".encode() * 85, "e\N{COMBINING ACUTE ACCENT}".encode(),
             "\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), b"\\x41", b'"quoted\'']

    def is_whole():
        got = [n for n in os.listdir(path) if n not in (b"README.md", b"src", b"links", b"dirs")]
        assert sorted(got) == sorted(names), set(got) ^ set(names)
        for name in names:
            assert Path(os.fsdecode(path + b"/" + name)).read_bytes() == name
            assert os.readlink(path + b"/links/" + name) == name
            assert os.listdir(path + b"/dirs/" + name) == [name]

    os.mkdir(path + b"/links")
    os.mkdir(path + b"/dirs")
    for name in names:
        Path(os.fsdecode(path + b"/" + name)).write_bytes(name)
        os.symlink(name, path + b"/links/" + name)
        os.mkdir(path + b"/dirs/" + name)
        os.close(os.open(path + b"/dirs/" + name + b"/" + name, os.O_CREAT | os.O_WRONLY))
    for long in (b"x" * 256, b"\xff" * 300):
        try:
            os.mkdir(path + b"/" + long)
            raise AssertionError("a name of more than 255 bytes")
        except OSError as e:
            assert e.errno == errno.ENAMETOOLONG, e
    is_whole()
    remount(w, "try")
    is_whole()
    assert w.ok("status", "try", "--json").json("snap.status/1")["changed"]["added"] == \
        3 * len(names)
    kill_daemon(w)
    w.ok("list")
    is_whole()
    for name in names:
        os.rename(path + b"/" + name, path + b"/dirs/moved")
        os.rename(path + b"/dirs/moved", path + b"/" + name)
    is_whole()
    is_clean(w)
    for name in names:
        os.unlink(path + b"/" + name)
    shutil.rmtree(path + b"/dirs")
    shutil.rmtree(path + b"/links")
    assert sorted(os.listdir(path)) == [b"README.md", b"src"]
    is_clean(w)


if __name__ == "__main__":
    sys.exit(main())
