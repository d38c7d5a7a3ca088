"""A snapshot holds every write that returned before it was asked for, and no half of one.

Processes append numbered records to files, each with one write(2), and count in memory that all
share what has returned. A snapshot may hold more than had been counted when it was asked for,
never less, and ends with a whole record.
"""

import contextlib
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from livetest import LONG, SANITIZED, USER, Skip, clone, is_clean, live_test, main, note

WRITERS = 4
SNAPSHOTS = 200
AT_ONCE, ROUNDS_LATE = 4, 15
LATE_US = 100000
LOOK_US, ROUNDS_IDLE = 3000, 60
RECORD_MAX = 12000  # bytes; most are unaligned and cross pages and blocks
FILE_MAX = 2 << 20
HEAD = struct.Struct("<IIII")  # round of the file, number, length, crc of the rest


def record(turn, number, writer):
    body = (b"%d:%d;" % (writer, number)) * (1 + (number * 2654435761 >> 7) % (RECORD_MAX // 16))
    return HEAD.pack(turn, number, len(body), zlib.crc32(body)) + body


def append(path, counters, writer):
    """Until killed. Whenever the file is large it begins again, in one step by rename."""
    turn = 0
    while True:
        turn += 1
        fresh = path.with_name(path.name + ".new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        size = number = 0
        while size < FILE_MAX:
            data = record(turn, number, writer)
            assert os.write(fd, data) == len(data)
            if number == 0:
                os.rename(fresh, path)
            number += 1
            size += len(data)
            # Both in one aligned store, so that nobody reads one without the other.
            struct.pack_into("<Q", counters, 8 * writer, turn << 32 | number)
        os.close(fd)


def count_records(data, where):
    """The round of the file and how many whole records it has; it must have nothing else."""
    at = number = turn = 0
    while at < len(data):
        assert at + HEAD.size <= len(data), f"{where}: a torn head at {at} of {len(data)}"
        got, index, length, crc = HEAD.unpack_from(data, at)
        turn = turn or got
        assert (got, index) == (turn, number), f"{where}: record {index} where {number} belongs"
        body = data[at + HEAD.size:at + HEAD.size + length]
        assert len(body) == length, f"{where}: of record {index} {len(body)} of {length} bytes, at {at} of {len(data)}"
        assert zlib.crc32(body) == crc, f"{where}: record {index} is not what was written"
        at += HEAD.size + length
        number += 1
    return turn, number


class Writers:
    """Processes that append, until the block is left."""

    def __init__(self, path, count=WRITERS, policy=os.SCHED_OTHER):
        self.counters, self.pids = mmap.mmap(-1, 8 * count), []
        for i in range(count):
            pid = os.fork()
            if pid == 0:
                try:
                    os.sched_setscheduler(0, policy, os.sched_param(0))
                    append(path / f"records-{i}", self.counters, i)
                finally:
                    os._exit(1)
            self.pids.append(pid)

    def __enter__(self):
        while 0 in self.returned():
            pass
        return self

    def __exit__(self, *why):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def returned(self):
        return [struct.unpack_from("<Q", self.counters, 8 * i)[0] for i in range(len(self.pids))]

    def still_write(self):
        return all(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in self.pids)


def verify(w, snapshot, before):
    """How many records the longest file has."""
    most = 0
    for i, packed in enumerate(before):
        data = w.ok("show", f"{snapshot}:records-{i}").out
        turn, number = count_records(data, f"snapshot {snapshot}, file {i}")
        assert (turn, number) >= (packed >> 32, packed & 0xffffffff), \
            f"file {i}: {packed & 0xffffffff} of round {packed >> 32} had returned, " \
            f"and {number} of round {turn} are there"
        most = max(most, number)
    return most


@live_test
def a_snapshot_beside_writers_has_all_that_returned_and_nothing_torn(w):
    path = clone(w, "-n", "log")
    rounds = SNAPSHOTS if LONG or not SANITIZED else 30 if USER else 60
    with Writers(path) as writers:
        most = 0
        for _ in range(rounds):
            before = writers.returned()
            taken = w.ok("snapshot", "log", "--json").json("snap.snapshot/1", "snapshot")
            most = max(most, verify(w, taken["snapshot"], before))
        assert writers.still_write(), "a writer failed"
    note(f"{rounds} snapshots, up to {most} records in a file")
    is_clean(w)


@live_test
def nothing_is_torn_however_late_the_kernel_is_answered(w):
    """A write that had to wait for one snapshot is done, but not answered, when the next is taken."""
    if os.geteuid() != 0 or not shutil.which("strace"):
        raise Skip("cowfsd's answers are held up by strace, as root")
    path = clone(w, "-n", "log")
    with Writers(path, 2) as writers, late(w, "writev", LATE_US), ThreadPoolExecutor(AT_ONCE) as commands:
        for _ in range(ROUNDS_LATE):
            before = writers.returned()
            asked = [commands.submit(w.ok, "snapshot", "log", "--json") for _ in range(AT_ONCE)]
            for result in asked:
                taken = result.result().json("snap.snapshot/1", "snapshot")
                verify(w, taken["snapshot"], before)
        assert writers.still_write(), "a writer failed"
    is_clean(w)


@live_test
def nothing_is_torn_however_late_a_writer_gets_a_processor(w):
    """Between two pieces of a write it may have to wait for longer than cowfsd likes to."""
    if os.geteuid() != 0 or not shutil.which("strace"):
        raise Skip("cowfsd's looks are held up by strace, as root")
    path = clone(w, "-n", "log")
    with Hogs(), Writers(path, 2, os.SCHED_IDLE) as writers, late(w, "close", LOOK_US):
        for _ in range(ROUNDS_IDLE):
            before = writers.returned()
            taken = w.ok("snapshot", "log", "--json").json("snap.snapshot/1", "snapshot")
            if os.getloadavg()[0] > 4 * os.cpu_count():
                raise Skip("others want the processors, too: an idle writer waits longer than cowfsd does")
            verify(w, taken["snapshot"], before)
        assert writers.still_write(), "a writer failed"
    is_clean(w)


class Hogs:
    """As many as there are processors, so that an idle process has to wait for one."""

    def __enter__(self):
        self.list = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                     for _ in range(os.cpu_count())]

    def __exit__(self, *why):
        for hog in self.list:
            hog.kill()
            hog.wait()


@contextlib.contextmanager
def late(w, call, us):
    """Every such call of cowfsd begins that late."""
    (pid,) = w.daemons()
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid),
                               "-e", f"trace={call}", "-e", f"inject={call}:delay_enter={us}"])
    try:
        while "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text():
            assert tracer.poll() is None, "strace cannot trace cowfsd"
        yield
    finally:
        tracer.terminate()
        tracer.wait()


if __name__ == "__main__":
    sys.exit(main())
