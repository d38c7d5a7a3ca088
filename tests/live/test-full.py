"""A full disk under the store, a full quota: writers get an error, nothing is hurt, deleting helps.

The store lies on a file system of some hundred MiB of its own: a tmpfs, and ext4 on a loop device.
"""

import contextlib
import errno
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from livetest import (LONG, USER, Skip, World, clone, is_clean, kill_daemon, live_test, main, note,
                      remount, within)

MIB = 1 << 20
PIECE = 65536
DISK = 384 * MIB if LONG else 128 * MIB
DEADLINE_S = 60  # for a write that waits for room, on a machine that is busy
WRITERS = 3


# --- disks ----------------------------------------------------------------------------------

@contextlib.contextmanager
def mounted(words, place):
    place.mkdir()
    done = subprocess.run(["mount", *words, place], check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Skip(f"cannot mount {words}: {done.stderr.strip()}")
    try:
        yield
    finally:
        end = time.monotonic() + DEADLINE_S  # a process that is ending keeps it busy
        while subprocess.run(["umount", place], check=False).returncode:
            assert time.monotonic() < end, f"{place} stays busy"
            time.sleep(0.05)


@contextlib.contextmanager
def store_on(w, words):
    """The store of this world on a disk of its own, and no daemon on it afterwards."""
    with mounted(words, w.store):
        for left in w.store.iterdir():  # lost+found
            left.rmdir()
        w.store.chmod(0o700)
        try:
            yield
        finally:
            w.snap("-q", "stop", "--force")


def disk_test(fn):
    """Root's alone: who runs as somebody else on purpose has been here as root."""
    def run(w):
        if os.geteuid() != 0:
            raise Skip("only root can mount a disk")
        fn(w)
    run.__name__ = fn.__name__
    return fn if USER else live_test(run)


def tmpfs(w):
    return store_on(w, ["-t", "tmpfs", "-o", f"size={DISK}", "none"])


def ext4(w):
    image = w.top / "disk.img"
    with open(image, "wb") as f:
        f.truncate(DISK)
    made = subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum", image], check=False,
                          stderr=subprocess.PIPE, text=True)
    if made.returncode:
        raise Skip(f"mkfs.ext4: {made.stderr.strip()}")
    return store_on(w, ["-o", "loop", str(image)])


# --- files that are known -------------------------------------------------------------------

def noise(seed, size):
    return random.Random(seed).randbytes(size)


class Kept:
    """Files whose bytes were synced, by path."""

    def __init__(self):
        self.sums = {}

    def write(self, path, size):
        data = noise(str(path), size)
        with open(path, "wb", buffering=0) as f:
            f.write(data)
            os.fsync(f.fileno())
        self.sums[path] = hashlib.sha256(data).digest()

    def intact(self):
        for path, want in self.sums.items():
            got = hashlib.sha256(path.read_bytes()).digest()
            assert got == want, f"'{path}' is not what was synced"


def fill(path, report):
    """Write noise until there is no room; say how much was written and synced. In a process."""
    number = written = synced = 0
    rng = random.Random(str(path))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        while True:
            data = rng.randbytes(PIECE)
            while data:  # a write may be cut short where there is no room for the rest
                done = os.write(fd, data)
                data = data[done:]
                written += done
            number += 1
            if written > 4 * DISK:  # nothing stops it: spare the machine's own disk
                raise OSError(errno.EFBIG, "no limit")
            if number % 16 == 0:
                os.fsync(fd)
                synced = written
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)
        Path(report).write_text(f"{written} {synced}")


def is_prefix(path, written, synced):
    """Of what fill() wrote there."""
    data, rng = path.read_bytes(), random.Random(str(path))
    assert synced <= len(data) <= written, f"'{path}': {len(data)} of {synced} to {written} bytes"
    for at in range(0, len(data), PIECE):
        want = rng.randbytes(PIECE)[:len(data) - at]
        assert data[at:at + PIECE] == want, f"'{path}' differs near byte {at}"


def fill_all(w, paths):
    """Writers at once, each until it gets an error; what each had written and synced."""
    pids = []
    for number, path in enumerate(paths):
        pid = os.fork()
        if pid == 0:
            code = 255
            try:
                fill(path, w.top / f"report-{number}")
            except OSError as e:
                code = e.errno
            finally:
                os._exit(code)
        pids.append(pid)
    for pid in pids:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code == errno.ENOSPC, f"a writer ended with {code}, not ENOSPC"
    return [[int(n) for n in (w.top / f"report-{i}").read_text().split()]
            for i in range(len(paths))]


def room_comes_back(path, size, seconds=DEADLINE_S):
    """Somebody who tries again and again may write as much at last; after how long."""
    start = time.monotonic()
    data = noise(str(path), size)

    def attempt():
        with open(path, "wb", buffering=0) as f:
            rest = memoryview(data)
            while rest:
                rest = rest[f.write(rest):]
            os.fsync(f.fileno())

    while True:
        got = within(DEADLINE_S, attempt)
        if got == 0:
            break
        assert got == errno.ENOSPC, os.strerror(got)
        assert time.monotonic() < start + seconds, f"no room for {size} bytes after {seconds} s"
        time.sleep(0.1)
    assert path.read_bytes() == data
    return time.monotonic() - start


# --- a full disk ----------------------------------------------------------------------------

def a_disk_runs_full(w):
    one, two = clone(w, "-n", "one"), clone(w, "-n", "two")
    kept = Kept()
    for i in range(8):
        kept.write((one, two)[i % 2] / f"kept{i}", MIB // 2 + i)
    snapshot = w.ok("-q", "snapshot", "one").out.decode().strip()
    places = [(one, two)[i % 2] / f"fill{i}" for i in range(WRITERS)]
    start = time.monotonic()
    reports = fill_all(w, places)
    note(f"{sum(r[0] for r in reports) / MIB:.0f} MiB written by {WRITERS} on {DISK // MIB} MiB "
         f"before ENOSPC, {time.monotonic() - start:.1f} s")
    room = os.statvfs(w.store)
    left = room.f_bavail * room.f_frsize
    assert left > room.f_blocks * room.f_frsize // 20 * 3 // 4, f"only {left} bytes were left free"

    kept.intact()
    for place, report in zip(places, reports):
        assert os.stat(place).st_size == report[0], f"'{place}' lost what was accepted"
        is_prefix(place, *report)
    for words in (("list",), ("status", "one"), ("log",), ("stats",)):
        w.ok(*words)
    is_clean(w)

    kill_daemon(w)
    w.ok("list")
    kept.intact()
    for place, report in zip(places, reports):
        is_prefix(place, *report)
    is_clean(w)
    w.stop()
    w.ok("start")
    kept.intact()

    for place in places:
        place.unlink()
    took = room_comes_back(two / "again", 24 * MIB)
    note(f"room again {took:.1f} s after deleting")
    kept.intact()
    for name in ("one", "two"):
        remount(w, name)
    kept.intact()
    assert (two / "again").read_bytes() == noise(str(two / "again"), 24 * MIB)
    saved = clone(w, "-n", "saved", "--from", snapshot)
    assert (saved / "kept0").read_bytes() == (one / "kept0").read_bytes()
    w.ok("gc")
    is_clean(w)


@disk_test
def a_full_tmpfs_hurts_nothing_and_deleting_helps(w: World):
    with tmpfs(w):
        a_disk_runs_full(w)


@disk_test
def a_full_ext4_hurts_nothing_and_deleting_helps(w: World):
    with ext4(w):
        a_disk_runs_full(w)


@disk_test
def removing_a_clone_makes_room_for_another(w: World):
    with tmpfs(w):
        one, two = clone(w, "-n", "one"), clone(w, "-n", "two")
        kept = Kept()
        kept.write(two / "kept", MIB)
        fill_all(w, [one / "fill"])
        w.ok("rm", "one")
        note(f"room again {room_comes_back(two / 'again', 24 * MIB):.1f} s after rm of a clone")
        kept.intact()
        is_clean(w)


@disk_test
def names_alone_fill_a_disk_too_and_can_be_removed(w: World):
    with tmpfs(w):
        path = clone(w, "-n", "one")
        kept = Kept()
        kept.write(path / "kept", MIB)
        # Others take most of the room. Names may have a little beyond what must stay free.
        ballast = w.store / "ballast"
        room = os.statvfs(w.store)
        with open(ballast, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, room.f_bavail * room.f_frsize - DISK // 20 - 6 * MIB)

        def make_names():
            rng = random.Random("names")
            for number in range(300_000):  # more than would fit
                if number % 1000 == 0:
                    os.mkdir(path / f"d{number // 1000}")
                name = rng.randbytes(100).hex()
                os.close(os.open(path / f"d{number // 1000}" / name, os.O_CREAT | os.O_WRONLY))

        start = time.monotonic()
        got = within(4 * DEADLINE_S, make_names)
        assert got == errno.ENOSPC, os.strerror(got) if got else "all of them were accepted"
        made = sum(len(names) for _, _, names in os.walk(path))
        note(f"{made} names before ENOSPC, {time.monotonic() - start:.1f} s")
        kept.intact()
        is_clean(w)
        before = [p for p in path.iterdir() if p.name.startswith("d")]
        for top in before:
            for name in top.iterdir():
                name.unlink()
            top.rmdir()
        note(f"room again {room_comes_back(path / 'again', MIB):.1f} s after removing them")
        ballast.unlink()
        kept.intact()
        is_clean(w)


# --- a limit of the store -------------------------------------------------------------------

def configure(w, text):
    """Write config.yaml; a daemon that runs obeys it within seconds."""
    place = w.home / ".config" / "snapcow"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.yaml").write_text(text)


def diagnosis(w):
    """What doctor finds, by name; its exit code tells of the machine."""
    return {c["name"]: c for c in json.loads(w.snap("doctor", "--json").out)["checks"]}


def store_bytes(w):
    return sum(f.stat().st_blocks * 512 for f in w.store.glob("*.db*"))


@live_test
def a_store_stops_at_its_limit_and_deleting_helps(w: World):
    limit = 64 * MIB
    configure(w, "store:\n  limit: 64M\n")
    one, two = clone(w, "-n", "one"), clone(w, "-n", "two")
    kept = Kept()
    kept.write(two / "kept", MIB)
    reports = fill_all(w, [one / "fill", two / "fill"])
    taken, wrote = store_bytes(w), sum(r[0] for r in reports)
    note(f"{wrote / MIB:.0f} MiB written, the store takes {taken / MIB:.0f} of {limit // MIB} MiB")
    assert 10 * MIB < wrote and taken <= limit, (wrote, taken)
    kept.intact()
    is_clean(w)
    log = (w.store / "cowfsd.log").read_text()
    assert "has reached its limit of 64.0 MiB ('store.limit' in config.yaml)" in log, log
    assert os.statvfs(one).f_blocks * os.statvfs(one).f_frsize <= limit, "df shows it"

    # Commands meet the same limit, and say so.
    (w.project / "large").write_bytes(noise("large", 48 * MIB))
    error = w.snap("snapshot", "--json").fails_json(9, "E_LIMIT")
    assert "store.limit" in error["message"], error
    (w.project / "large").unlink()
    got = w.ok("stats", "--json").json("snap.stats/1")
    assert got["limit"] == limit and got["disk"] <= limit, got
    assert "these files may take (store.limit)" in w.ok("stats").out.decode()
    found = diagnosis(w)
    assert "64.0 MiB" in found["limit"]["detail"], found["limit"]

    (one / "fill").unlink()
    w.ok("rm", "two")
    note(f"room again {room_comes_back(one / 'again', 16 * MIB):.1f} s after deleting")
    is_clean(w)

    # More room by the file alone.
    assert within(DEADLINE_S, fill, one / "more", w.top / "report-more") == errno.ENOSPC
    configure(w, "store: {limit: 1G}\n")
    room_comes_back(one / "later", 48 * MIB)
    is_clean(w)


@live_test
def a_configuration_that_cannot_be_understood_stops_the_start(w: World):
    for text, words in (("store: 5\n", "as 'limit: 20G'"), ("store: {limit: many}\n", "a size"),
                        ("store: {limit: 1M}\n", "at least 32M"), ("stoer: {}\n", "'stoer'"),
                        ("store: {size: 1G}\n", "'store.size'"), ("- store\n", "expected keys")):
        configure(w, text)
        error = w.snap("snapshot", "--json").fails_json(2, "E_USAGE")
        assert "config.yaml:1:" in error["message"] and words in error["message"], error
        found = diagnosis(w)["config"]
        assert words in found["detail"] and found["level"] == "error", found
    configure(w, "store: {limit: 0}\n")
    w.ok("snapshot")
    configure(w, "nonsense: 1\n")
    w.ok("snapshot")  # the daemon that runs goes on as it was
    configure(w, "")
    w.stop()
    w.ok("snapshot")


# --- a full quota ---------------------------------------------------------------------------

def status(w, name):
    return w.ok("status", name, "--json").json("snap.status/1", "quota", "used")


@live_test
def a_full_quota_stops_its_clone_only(w: World):
    quota = 8 * MIB
    path = clone(w, "-n", "small", "--quota", "8M")
    other = clone(w, "-n", "other")
    kept = Kept()
    for i in range(4):
        kept.write(path / f"kept{i}", MIB // 2)
    places = [path / f"fill{i}" for i in range(WRITERS)]
    reports = fill_all(w, places)
    assert 4 * MIB < sum(r[0] for r in reports) <= quota - 2 * MIB, reports
    used = status(w, "small")["used"]
    assert quota - 2 * PIECE - MIB // 4 < used <= quota, used
    room = os.statvfs(path)
    assert room.f_blocks * room.f_frsize == quota, "df shows the quota"
    assert room.f_bavail * room.f_frsize < MIB, "and that it is full"
    kept.write(other / "fits", 2 * quota)
    kept.intact()
    for place, report in zip(places, reports):
        is_prefix(place, report[0], report[0])

    remount(w, "small")
    assert within(DEADLINE_S, fill, path / "more", w.top / "report-more") == errno.ENOSPC
    kill_daemon(w)
    w.ok("list")
    kept.intact()
    for place, report in zip(places, reports):
        is_prefix(place, *report)

    for name in ["more", *(p.name for p in places)]:
        (path / name).unlink(missing_ok=True)  # the last one was not synced
    took = room_comes_back(path / "again", 4 * MIB)
    note(f"room again {took:.2f} s after deleting in a clone with a quota")
    kept.intact()
    is_clean(w)


@live_test
def overwriting_in_a_full_quota_works(w: World):
    path = clone(w, "-n", "small", "--quota", "4M")
    with open(path / "file", "wb", buffering=0) as f:
        f.write(noise("first", 2 * MIB))
    within(DEADLINE_S, fill, path / "rest", w.top / "report-rest")
    data = noise("second", 2 * MIB)
    with open(path / "file", "r+b", buffering=0) as f:
        rest = memoryview(data)
        while rest:
            rest = rest[f.write(rest):]
        os.fsync(f.fileno())
    remount(w, "small")
    assert (path / "file").read_bytes() == data
    is_clean(w)


if __name__ == "__main__":
    sys.exit(main())
