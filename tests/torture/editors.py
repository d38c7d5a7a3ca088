"""Editors of a project: processes that change its files in every way that programs do.

What each does depends on the seed alone; how they interleave does not. They are forked before the
moment that matters and wait at a gate, so that they begin at once when it opens.
"""

import ctypes
import errno
import mmap
import os
import random
import signal
import time

PUNCH_HOLE, KEEP_SIZE = 2, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def write_in_place(path, dice):
    fd = os.open(path, os.O_WRONLY)
    try:
        size = os.fstat(fd).st_size
        for _ in range(dice.randint(1, 3)):
            os.pwrite(fd, dice.randbytes(dice.randint(1, 700)), dice.randint(0, max(0, size - 1)))
    finally:
        os.close(fd)


def replace_by_rename(path, dice):
    beside = f"{path}.new-{os.getpid()}"
    with open(beside, "wb") as f:
        f.write(dice.randbytes(dice.randint(0, 20000)))
    os.rename(beside, path)


def truncate_path(path, dice):
    os.truncate(path, dice.randint(0, os.path.getsize(path)))


def open_and_truncate(path, dice):
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, dice.randbytes(dice.randint(0, 5000)))
    os.close(fd)


def unlink(path, _):
    os.unlink(path)


def move_away(path, _):
    os.rename(path, f"{path}.moved")


def grow(path, dice):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, dice.randbytes(dice.randint(1, 9000)))
    os.close(fd)


def punch(path, dice):
    fd = os.open(path, os.O_RDWR)
    try:
        size = os.fstat(fd).st_size
        if size and libc.fallocate(fd, PUNCH_HOLE | KEEP_SIZE, dice.randint(0, size - 1), 4096 * dice.randint(1, 40)):
            raise OSError(ctypes.get_errno(), "fallocate")
    finally:
        os.close(fd)


def write_mapped(path, dice):
    fd = os.open(path, os.O_RDWR)
    try:
        size = os.fstat(fd).st_size
        if not size:
            return
        with mmap.mmap(fd, size) as at:
            for _ in range(dice.randint(1, 5)):
                at[dice.randint(0, size - 1)] = dice.randint(0, 255)
    finally:
        os.close(fd)


def write_through_a_link(path, dice):
    other = f"{path}.link-{os.getpid()}"
    os.link(path, other)
    try:
        write_in_place(other, dice)
    finally:
        os.unlink(other)


def change_attributes(path, dice):
    """No byte of it changes, only what stat shows."""
    os.chmod(path, dice.choice((0o600, 0o644, 0o755)))
    os.utime(path, (dice.randint(0, 1 << 30), dice.randint(0, 1 << 30)))


def make_new(path, dice):
    with open(f"{path}.extra-{os.getpid()}", "wb") as f:
        f.write(dice.randbytes(dice.randint(0, 3000)))


ACTS = [write_in_place, replace_by_rename, truncate_path, open_and_truncate, unlink, move_away, grow, punch,
        write_mapped, write_through_a_link, change_attributes, make_new]
# The file may be gone, be a program that runs, or lie where no holes can be made.
EXPECTED = {errno.ENOENT, errno.ETXTBSY, errno.EEXIST, errno.EOPNOTSUPP, errno.ENOSPC, errno.EACCES}


def edit(paths, seed, acts, until):
    """Change files of the list until so many acts are done, or until that time."""
    dice = random.Random(seed)
    done = 0
    while (acts is None or done < acts) and (until is None or time.monotonic() < until):
        try:
            dice.choice(ACTS)(dice.choice(paths), dice)
        except ValueError:  # a mapping of a file that was emptied meanwhile
            pass
        except OSError as e:
            if e.errno not in EXPECTED:
                raise
        done += 1
    return done


class Editors:
    """`count` processes at a gate; open() lets them begin, join() waits until all have ended well."""

    def __init__(self, paths, seed, count, acts=None, seconds=None):
        self.pids = []
        gate, self.gate = os.pipe()
        for n in range(count):
            pid = os.fork()
            if pid:
                self.pids.append(pid)
                continue
            os.close(self.gate)
            status = 1
            try:
                os.read(gate, 1)
                signal.signal(signal.SIGBUS, lambda *_: os._exit(0))  # a mapped file was cut short by another
                edit(paths, f"{seed}/{n}", acts, time.monotonic() + seconds if seconds else None)
                status = 0
            except BaseException as e:  # a child has nobody else to tell
                print(f"# editor {n}: {type(e).__name__}: {e}", flush=True)
            finally:
                os._exit(status)
        os.close(gate)

    def open(self):
        os.close(self.gate)
        self.gate = -1

    def running(self):
        """Is one of them still at work?"""
        for pid in list(self.pids):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                self.pids.remove(pid)
                self.judge(status)
        return bool(self.pids)

    def join(self):
        while self.pids:
            self.judge(os.waitpid(self.pids.pop(), 0)[1])

    def kill(self):
        """Whatever became of the test."""
        if self.gate >= 0:
            self.open()
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.pids = []

    @staticmethod
    def judge(status):
        """A program that another program cut the mapped file of dies of SIGBUS; that is not our matter."""
        assert status == 0 or os.WTERMSIG(status) == signal.SIGBUS, f"an editor ended with status {status}"
