"""A snapshot holds every write that returned before it was asked for, and no half of one.

Processes append numbered records to files, each with one write(2), and count in memory that all
share what has returned. A snapshot may hold more than had been counted when it was asked for,
never less, and ends with a whole record.
"""

import mmap
import os
import signal
import struct
import sys
import zlib

from livetest import LONG, clone, is_clean, live_test, main, note

WRITERS = 4
SNAPSHOTS = 200
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


@live_test
def a_snapshot_beside_writers_has_all_that_returned_and_nothing_torn(w):
    path = clone(w, "-n", "log")
    counters = mmap.mmap(-1, 8 * WRITERS)
    writers = []
    rounds = SNAPSHOTS if LONG or os.environ.get("SNAP_SANITIZED", "none") == "none" else 60
    try:
        for i in range(WRITERS):
            pid = os.fork()
            if pid == 0:
                try:
                    append(path / f"records-{i}", counters, i)
                finally:
                    os._exit(1)
            writers.append(pid)
        while any(struct.unpack_from("<Q", counters, 8 * i)[0] == 0 for i in range(WRITERS)):
            pass
        most = 0
        for _ in range(rounds):
            before = [struct.unpack_from("<Q", counters, 8 * i)[0] for i in range(WRITERS)]
            taken = w.ok("snapshot", "log", "--json").json("snap.snapshot/1", "snapshot")
            for i, packed in enumerate(before):
                data = w.ok("show", f"{taken['snapshot']}:records-{i}").out
                turn, number = count_records(data, f"snapshot {taken['snapshot']}, file {i}")
                assert (turn, number) >= (packed >> 32, packed & 0xffffffff), \
                    f"file {i}: {packed & 0xffffffff} of round {packed >> 32} had returned, " \
                    f"and {number} of round {turn} are there"
                most = max(most, number)
        for pid in writers:
            assert os.waitpid(pid, os.WNOHANG) == (0, 0), "a writer failed"
        note(f"{rounds} snapshots, up to {most} records in a file")
    finally:
        for pid in writers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    is_clean(w)


if __name__ == "__main__":
    sys.exit(main())
