"""A clone whose run takes all that it can get (neighbour.c), and honest work in the clone beside it.

No figure of time is judged: honest work must come to its end beside each abuse that goes on for
ever, and afterwards the store and the memory of cowfsd are what they were. By default some of the
abuses are tried, by a seed that is printed; SNAP_TESTS_LONG=1 tries each.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time

from livetest import (LONG, SANITIZED, World, clone, daemon_pid, is_clean, live_test, main, memory,
                      note, within)
from snaptest import SNAP

NEIGHBOUR = os.environ["SNAP_NEIGHBOUR"]
KINDS = ["rewrite", "sparse", "syncs", "xattrs", "empty", "deep", "storm", "hold", "list"]
RESTLESS = ["xattrs", "empty", "deep", "storm", "list"]  # they wait for no disk
SOME = len(KINDS) if LONG else 2
FOR_EVER_S = 900
DEADLINE_S = 120
MIB = 1 << 20

# Garbage that is not worth a gc, and what a few KiB of records and logs take; the caches of SQLite.
STORE_MORE = 17 * MIB
MEMORY_MORE = 48 * MIB


def some_kinds():
    seed = int(os.environ.get("SNAP_TEST_SEED") or random.SystemRandom().randrange(1 << 30))
    chosen = random.Random(seed).sample(KINDS, SOME)
    note(f"seed {seed}: {' '.join(chosen)}")
    return chosen


class Hostile:
    """Its run, once each of the abuses has begun."""

    def __init__(self, w, path, kinds, *options):
        self.process = subprocess.Popen(
            [SNAP, "run", "hostile", "--disk", "100M", "--time", "1h", *options, "--",
             "./neighbour", ".", str(FOR_EVER_S), *kinds],
            cwd=w.project, env=w.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + DEADLINE_S
        while not all((path / kind).is_dir() and os.listdir(path / kind) for kind in kinds):
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < end, "the neighbour does nothing"
            time.sleep(0.01)

    def end(self):
        assert self.process.poll() is None, f"it ended by itself: {self.process.stdout.read()}"
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=DEADLINE_S)


def work(path):
    """What a program does that saves its files."""
    for n in range(10):
        name = path / f"file{n}"
        fd = os.open(name, os.O_CREAT | os.O_RDWR, 0o644)
        os.write(fd, b"honest" * 1000)
        os.fsync(fd)
        os.close(fd)
        os.rename(name, path / "saved")
        assert (path / "saved").read_bytes() == b"honest" * 1000
        os.listdir(path)
    os.unlink(path / "saved")


def stored(w):
    return sum(p.stat().st_size for p in w.store.glob("*.db*"))


def settles(what, get, most):
    """Some time after the last work cowfsd gives back what nobody needs."""
    end = time.monotonic() + DEADLINE_S
    while get() > most:
        assert time.monotonic() < end, f"{what}: {get() / MIB:.1f} MiB, more than {most / MIB:.1f}"
        time.sleep(0.1)
    note(f"{what}: {get() / MIB:.1f} MiB")


def make_clones(w):
    (w.project / "neighbour").write_bytes(open(NEIGHBOUR, "rb").read())
    (w.project / "neighbour").chmod(0o755)
    return clone(w, "-n", "hostile"), clone(w, "-n", "victim")


@live_test
def honest_work_goes_on_beside_each_abuse_and_what_it_took_is_given_back(w: World):
    path, victim = make_clones(w)
    work(victim)
    before, used = stored(w), memory(daemon_pid(w))[0]
    for kind in some_kinds():
        one = Hostile(w, path, [kind])
        assert within(DEADLINE_S, work, victim) == 0, kind
        w.ok("status", "hostile")
        w.ok("diff", "--name-status", "hostile")
        one.end()
    one = Hostile(w, path, KINDS)
    assert within(DEADLINE_S, work, victim) == 0
    one.end()
    note(f"cowfsd beside it: {memory(daemon_pid(w))[1] / MIB:.0f} MiB at most, "
         f"{used / MIB:.0f} before; the store: {stored(w) / MIB:.0f} MiB, {before / MIB:.0f} before")
    w.ok("rm", "--force", "hostile")
    settles("the store", lambda: stored(w), before + STORE_MORE)
    if not SANITIZED:
        settles("the memory of cowfsd", lambda: memory(daemon_pid(w))[0], used + MEMORY_MORE)
    is_clean(w)


def rests(w, name):
    text = w.ok("metrics").out.decode()
    return int(re.search(rf'^snapcow_clone_rests_total\{{clone="{name}"\}} (\d+)$', text, re.M)[1])


@live_test
def a_clone_that_takes_more_of_cowfsd_than_its_part_rests_for_the_others(w: World):
    path, victim = make_clones(w)
    # A machine on which nothing is idle, or nobody need rest; but cowfsd gets what it asks for.
    loops = [subprocess.Popen(["nice", "-n", "19", "sh", "-c", "while :; do :; done"])
             for _ in range(os.cpu_count() + 1)]
    one = Hostile(w, path, RESTLESS)
    end = time.monotonic() + DEADLINE_S
    try:
        while rests(w, "hostile") == 0:
            assert time.monotonic() < end, "it never rests"
            (victim / "asked").write_bytes(b"asked" * 200_000)  # less is no use of a clone, on a fast machine
        assert rests(w, "victim") == 0
    finally:
        one.end()
        for loop in loops:
            loop.kill()
            loop.wait()
    is_clean(w)


if __name__ == "__main__":
    sys.exit(main())
