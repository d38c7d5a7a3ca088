"""Many clones of one tree, all mounted, written by a crowd (crowd.c) that knows its own bytes."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from livetest import (LONG, SANITIZED, USER, Worker, World, clone, clones, daemon_pid, is_clean,
                      kill_daemon, live_test, main, memory, note, python)

CROWD = os.environ["SNAP_CROWD"]
MAKE_TREE = Path(__file__).resolve().parents[2] / "tools" / "bench" / "make-tree"
PROCESSES = 8
ENTRIES, CLONES, SECONDS = (80_000, 50, 60) if LONG else (2_000, 4, 3) if USER else (2_000, 8, 5)
DEADLINE_S = 120
MIB = 1 << 20

# Changes that wait to be persisted (layers.h).
DIRTY_MAX = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8, 2048 * MIB)


def memory_max(written):
    """What may be in memory: changes that wait, the caches, and for each clone what the kernel knows of it."""
    return min(written, DIRTY_MAX) + 256 * MIB + CLONES * 8 * MIB


class Crowd:
    """Its processes, and the lines that they say."""

    def __init__(self, w, paths, seed, seconds):
        listed = w.top / "list"
        self.workers = [Worker(CROWD, i, PROCESSES, seconds, seed, w.project, listed, *paths)
                        for i in range(PROCESSES)]
        self.lines = [None] * PROCESSES

    def _read(self, number):
        self.lines[number] = self.workers[number].process.stdout.readline()

    def said(self, word, seconds):
        """The next line of each."""
        readers = [threading.Thread(target=self._read, args=[i], daemon=True)
                   for i in range(PROCESSES)]
        deadline = time.monotonic() + seconds
        for reader in readers:
            reader.start()
        for number, reader in enumerate(readers):
            reader.join(max(deadline - time.monotonic(), 0))
            assert not reader.is_alive(), f"process {number} said nothing for {seconds} s"
        for number, line in enumerate(self.lines):
            assert line.startswith(word), f"process {number}: {line!r}"
        return [[int(n) for n in line.split()[1:]] for line in self.lines]

    def ask(self):
        for p in self.workers:
            p.process.stdin.write("again\n")
            p.process.stdin.flush()
        return self.said("intact", DEADLINE_S)

    def end(self):
        for p in self.workers:
            p.ends(DEADLINE_S)

    def kill(self):
        for p in self.workers:
            p.kill()


def make_tree(w):
    """The project becomes a tree like a real one."""
    w.project.rename(w.top / "first-project")
    subprocess.run([python(), "-B", MAKE_TREE, w.project, "--entries", str(ENTRIES)],
                   check=True, stdout=subprocess.DEVNULL)
    files = sorted(str(Path(top, name).relative_to(w.project))
                   for top, _, names in os.walk(w.project) for name in names
                   if not Path(top, name).is_symlink()
                   and Path(top, name).stat().st_size <= 256 << 10)
    (w.top / "list").write_text("".join(f"{name}\n" for name in files))


@live_test
def a_crowd_in_many_clones_finds_every_byte(w: World):
    seed = int(os.environ.get("SNAP_TEST_SEED", random.randrange(1 << 32)))
    note(f"SNAP_TEST_SEED={seed}")
    make_tree(w)
    start = time.monotonic()
    paths = clones(w, CLONES)
    note(f"{CLONES} clones of {ENTRIES} entries: {time.monotonic() - start:.2f} s")
    crowd = Crowd(w, paths, seed, SECONDS)
    try:
        totals = [sum(column) for column in zip(*crowd.said("done", SECONDS + DEADLINE_S))]
        now, most = memory(daemon_pid(w))
        allowed = memory_max(totals[1])
        note(f"{totals[0]} operations, {totals[1] / MIB:.0f} MiB written, {totals[2] / MIB:.0f} "
             f"MiB compared; cowfsd: {most / MIB:.0f} MiB at most, {now / MIB:.0f} at the end, "
             f"{allowed / MIB:.0f} allowed")
        if not SANITIZED:
            assert most <= allowed, f"{most} bytes of memory"
        start = time.monotonic()
        w.ok("stop")
        w.ok("start")
        note(f"stop and start: {time.monotonic() - start:.2f} s")
        crowd.ask()
        kill_daemon(w)
        start = time.monotonic()
        w.ok("list")
        note(f"back after kill -9: {time.monotonic() - start:.2f} s")
        crowd.ask()
        crowd.end()
    finally:
        crowd.kill()
    start = time.monotonic()
    objects = is_clean(w)
    note(f"check of {objects} objects: {time.monotonic() - start:.1f} s")


@live_test
def what_one_clone_does_no_other_sees(w: World):
    paths = clones(w, PROCESSES)
    for number, path in enumerate(paths):
        (path / "README.md").write_text(str(number) * 70_000)
    for number, path in enumerate(paths):
        assert (path / "README.md").read_text() == str(number) * 70_000
    later = clone(w, "-n", "later")
    assert (later / "README.md").read_text() == "first\n"


if __name__ == "__main__":
    sys.exit(main())
