"""Clones of a project that is edited from the moment that `snap clone` returns.

A copy of the project is made while nobody is at work in it, then the clone, and then editors change
the project in every way (editors.py). Every byte of the clone must be that of the copy, or the read
must fail with EIO and the file be listed; files that we own, on a file system with leases, never
fail. Both are counted.
"""

import errno
import itertools
import mmap
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from editors import Editors  # noqa: E402
from snaptest import LONG, Skip, main, needs_fuse, test  # noqa: E402

SEED = int(os.environ.get("SNAP_TEST_SEED") or 1)
EDITORS = 3
ACTS = 400  # of each, in the short run
SECONDS = 60  # in the long one
DISK = 1 << 30
BLOCK = 1 << 16
SHOWN = 10  # lost files that `snap status` names


def make_project(top, seed, files, large):
    """Small files, some large and sparse ones, links of both kinds; the paths that editors use."""
    dice = random.Random(seed)
    paths = []
    for i in range(files):
        path = top / f"d{i % 37}" / f"e{i % 5}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = dice.choice((0, 1, 100, 1500, 1500, 4096, 9000, 70000, 200000))
        path.write_bytes(dice.randbytes(dice.randint(0, size)))
        paths.append(str(path))
        if i % 50 == 0:
            (path.parent / f"link{i}").hardlink_to(path)
            (path.parent / f"symlink{i}").symlink_to(path.name)
    for i in range(large):
        path = top / f"large{i}"
        with open(path, "wb") as f:
            f.write(dice.randbytes(dice.randint(1 << 20, 4 << 20)))
            if i % 3 == 0:
                f.seek(1 << 20, os.SEEK_CUR)
                f.write(b"after a hole")
        paths.append(str(path))
    return paths


class Compared:
    """What became of each file: equal, or lost."""

    def __init__(self):
        self.equal, self.lost = set(), set()

    def file(self, ours, copy, name):
        """The bytes of one file, which is read with no more than open, fstat and read."""
        with open(copy, "rb") as want, open(ours, "rb", buffering=0) as got:
            here, there = os.fstat(want.fileno()), os.fstat(got.fileno())
            for field in ("st_size", "st_mode", "st_mtime_ns", "st_uid"):
                assert getattr(here, field) == getattr(there, field), f"{name}: {field} differs"
            while True:
                expected = want.read(BLOCK)
                try:
                    read = read_fully(got)
                except OSError as e:
                    assert e.errno == errno.EIO, f"{name}: {e}"
                    self.lost.add(name)
                    return
                assert read == expected, f"{name}: other bytes than when the clone was made, at {want.tell()}"
                if not expected:
                    break
        self.equal.add(name)

    def tree(self, clone, copy):
        """All names, and all that is behind them."""
        for folder, folders, names in os.walk(copy):
            below = os.path.relpath(folder, copy)
            assert sorted(os.listdir(clone / below)) == sorted(folders + names), f"{below}: other names"
            for name in names:
                here, there = os.path.join(folder, name), clone / below / name
                if stat.S_ISLNK(os.lstat(here).st_mode):
                    assert os.readlink(here) == os.readlink(there), f"{below}/{name}: another target"
                else:
                    self.file(there, here, os.path.normpath(f"{below}/{name}"))


def read_fully(f):
    """A whole block, or what there is before the end."""
    parts, left = [], BLOCK
    while left:
        part = f.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def listed(w, project, copy, lost):
    """`snap status` counts the files that cannot be read and names the first; one with several names is one."""
    got = w.ok("--json", "status", "edited", cwd=project).json("snap.status/1", "lost")["lost"]
    lines = w.ok("status", "edited", cwd=project).out.decode().splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("lost:")), len(lines))
    names = [line[5:] for line in itertools.takewhile(lambda line: line.startswith("  D  "), lines[begin + 1:])]
    unread = {os.stat(copy / name).st_ino: name for name in lost}
    named = {os.stat(copy / name).st_ino for name in names}
    assert got == len(unread), f"{got} are listed, and these cannot be read: {sorted(unread.values())[:20]}"
    assert len(names) == len(named) == min(got, SHOWN), names
    assert named <= set(unread), f"listed, and can be read: {[n for n in names if n not in lost]}"
    return got


def settle(w, project):
    """Wait until the clone is complete."""
    while not w.ok("--json", "status", "edited", cwd=project).json("snap.status/1")["complete"]:
        time.sleep(0.1)


def edited_clone(w, project, files, large, label, leases, paused=True):
    """
    One clone with editors at work; how many files were equal and how many lost. Unless it is paused, the
    background reads as it always does, and much of it before the editors come.
    """
    needs_fuse()
    copy = project.parent / "copy"
    paths = make_project(project, SEED, files, large)
    time.sleep(0.1)  # what was changed just now is read at once
    subprocess.run(["cp", "-a", "--", project, copy], check=True)
    pause = w.top / "pause"  # nothing is captured but what somebody needs
    if paused:
        pause.write_text("0")
        w.env["SNAPCOW_LAZY_PAUSE"] = str(pause)
    how = {"seconds": SECONDS} if LONG else {"acts": ACTS}
    editors = Editors(paths, SEED, EDITORS, **how)
    dice, compared = random.Random(SEED), Compared()
    try:
        path = Path(w.ok("--json", "clone", "--lazy", "-n", "edited", cwd=project).json("snap.clone/1")["path"])
        editors.open()
        while editors.running():
            name = os.path.relpath(dice.choice(paths), project)
            compared.file(path / name, copy / name, name)
        pause.unlink(missing_ok=True)
        compared.tree(path, copy)
        settle(w, project)
        compared.tree(path, copy)
    finally:
        editors.kill()
    lost = compared.lost
    told = listed(w, project, copy, lost)
    print(f"# {label}: {len(compared.equal - lost)} files as they were, {len(lost)} lost, {told} of them listed")
    if leases:
        assert not lost and told == 0, f"lost although they can be leased: {sorted(lost)[:5]}"
    elif paused:
        assert lost, "nothing was lost: the editors come too late to show anything"
    w.ok("rm", "--force", "edited", cwd=project)
    w.ok("check", cwd=project)


FILES = (6000, 40) if LONG else (1200, 8)


@test
def a_clone_shows_what_was_there_when_it_was_made_whatever_is_edited(w):
    edited_clone(w, w.project, *FILES, "own files", leases=True)


@test
def so_it_does_while_the_background_reads_many_files_at_a_time(w):
    edited_clone(w, w.project, *FILES, "own files, beside the background", leases=True, paused=False)


@test
def so_it_does_beside_the_background_without_leases(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    edited_clone(w, w.project, *FILES, "without leases, beside the background", leases=False, paused=False)


@test
def without_leases_a_file_is_as_it_was_or_lost_and_listed(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    edited_clone(w, w.project, 1200, 8, "without leases", leases=False)


class Writer:
    """A process that writes into one file after the other, and counts those that it was let into."""

    def __init__(self, paths):
        self.count = mmap.mmap(-1, 8)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for i, path in enumerate(paths):
                    fd = os.open(path, os.O_WRONLY)
                    self.count[:8] = struct.pack("q", i + 1)
                    os.pwrite(fd, b"written since", 0)
                    os.close(fd)
            finally:
                os._exit(0)

    def let_into(self):
        return struct.unpack("q", self.count[:8])[0]

    def end(self):
        os.waitpid(self.pid, 0)


@test
def whenever_the_daemon_is_killed_it_has_what_it_let_writers_into(w):
    needs_fuse()
    dice = random.Random(SEED)
    copy = w.project.parent / "copy"
    paths = [p for p in make_project(w.project, SEED, 300, 4) if os.path.getsize(p) > 0]
    gate = w.top / "gate"
    into = lost_of = 0
    for i in range(50 if LONG else 4):
        # Every other capture stops after some files, so that the kill finds the rest still promised.
        w.env["SNAPCOW_LAZY_PAUSE"] = str(gate)
        if i % 2:
            del w.env["SNAPCOW_LAZY_PAUSE"]
        w.snap("stop", "--force")
        gate.write_text(f"{dice.randint(0, len(paths) // 2)}\n")
        for path in paths:  # none is as it was captured before
            os.utime(path, (SEED + i, SEED + i))
        time.sleep(0.1)
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-a", "--", w.project, copy], check=True)
        path = Path(w.ok("--json", "clone", "--lazy", "-n", "edited").json("snap.clone/1")["path"])
        victims = dice.sample(paths, 80)
        victims, after = victims[:40], victims[40:]
        writer = Writer(victims)
        want, until = dice.randint(1, 20), time.monotonic() + 60
        while writer.let_into() < want and time.monotonic() < until:
            time.sleep(0.001)
        done = writer.let_into()
        w.kill_daemon()
        writer.end()
        for path_after in after:
            with open(path_after, "r+b") as f:
                f.write(b"written while there was no daemon")
        gate.unlink()
        w.ok("mount", "edited")
        compared = Compared()
        compared.tree(path, copy)
        settle(w, w.project)
        compared.tree(path, copy)
        inodes = {os.stat(copy / name).st_ino for name in compared.lost}
        mine = {os.stat(copy / os.path.relpath(p, w.project)).st_ino for p in victims[done:] + after}
        assert inodes <= mine, f"round {i}: lost, though nobody wrote to it or its writer had waited: {compared.lost}"
        listed(w, w.project, copy, compared.lost)
        w.ok("check")
        w.ok("rm", "--force", "edited")
        into, lost_of = into + done, lost_of + len(inodes)
    print(f"# {into} writers were let in before the kill and cost nothing; {lost_of} files lost that changed after it")
    assert into > 0 and lost_of > 0


def on_disk(w, name, *mkfs):
    """The same on another file system, in an image file."""
    if not LONG:
        raise Skip("only in the long run (SNAP_TESTS_LONG=1)")
    if os.geteuid() != 0:
        raise Skip("only root can mount an image")
    if mkfs and not shutil.which(mkfs[0]):
        raise Skip(f"there is no {mkfs[0]}")
    image, disk = w.top / "image", w.top / "disk"
    disk.mkdir()
    if mkfs:
        with open(image, "wb") as f:
            f.truncate(DISK)
        subprocess.run([*mkfs, image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mount = ["mount", "-o", "loop", image, disk]
    else:
        mount = ["mount", "-t", name, "-o", f"size={DISK}", name, disk]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"{name} cannot be mounted: {done.stderr.strip()}")
    try:
        project = disk / "project"
        project.mkdir()
        edited_clone(w, project, 4000, 30, name, leases=True)
        shutil.rmtree(project)
        shutil.rmtree(disk / "copy")
        project.mkdir()
        w.stop()
        w.env["SNAPCOW_LAZY_HOLD"] = "no"
        edited_clone(w, project, 4000, 30, f"{name}, without leases", leases=False)
        w.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@test
def the_same_on_ext4(w):
    on_disk(w, "ext4", "mkfs.ext4", "-q", "-F")


@test
def the_same_on_xfs(w):
    on_disk(w, "xfs", "mkfs.xfs", "-q")


@test
def the_same_on_btrfs(w):
    on_disk(w, "btrfs", "mkfs.btrfs", "-q")


@test
def the_same_on_tmpfs(w):
    on_disk(w, "tmpfs")


if __name__ == "__main__":
    sys.exit(main())
