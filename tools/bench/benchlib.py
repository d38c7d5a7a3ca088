"""What every benchmark shares: the data, fair rounds, the table, the JSON.

Contestants are interleaved and their order alternates, each round starts from a synced disk and
writes to a place of its own, and a first round does not count. Nothing is removed before the
last round: ext4 without a journal does not reuse an inode for a minute after its removal and
searches past every such one, which made a `cp -a` after the removal of its predecessor up to 25
times slower, in our favour.
No timing decides a status: a missed target is printed as such, and the figures go to
build/bench/NAME.json.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build"


def scratch_dir():
    path = Path(os.environ.get("SNAP_BENCH_DIR")
                or Path(os.environ.get("TMPDIR") or "/tmp") / "snap-bench")
    path.mkdir(parents=True, exist_ok=True)
    return path


def say(text):
    print(text, file=sys.stderr, flush=True)


def build_release():
    """Bring build/ up to date, as tools/quickstart would."""
    say("building in build/")
    done = subprocess.run(ROOT / "tools/lib/build-dir", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + "error: the build failed")


def tree(entries=80000, seed=1):
    """The path of a generated tree, made by make-tree unless it is there from last time."""
    maker = HERE / "make-tree"
    path = scratch_dir() / f"tree-{entries}"
    stamp = path.with_suffix(".stamp")
    want = f"{entries} {seed} {hashlib.sha256(maker.read_bytes()).hexdigest()}"
    if not (path.is_dir() and stamp.is_file() and stamp.read_text() == want):
        say(f"making a tree of {entries} entries in {path}")
        stamp.unlink(missing_ok=True)
        remove(path)
        subprocess.run([maker, path, "--entries", str(entries), "--seed", str(seed)],
                       stdout=sys.stderr, check=True)
        stamp.write_text(want)
    return path


def warm(path):
    """Read every file once, so that no contestant pays for the first time."""
    buffer = bytearray(1 << 20)
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            if not os.path.islink(full):
                with open(full, "rb", buffering=0) as f:
                    while f.readinto(buffer):
                        pass


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def disk_bytes(path):
    out = subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True, text=True,
                         check=True)
    return int(out.stdout.split()[0])


class Contestant:
    """One command to time: `command`, given a target that does not exist yet, makes it."""

    def __init__(self, name, command, prepare=None, check=None, env=None):
        self.name, self.command = name, command
        self.prepare, self.check, self.env = prepare, check, env
        self.ms, self.stdout, self.bytes = [], "", None

    def run(self, argv):
        argv = [str(a) for a in argv]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env={**os.environ, **(self.env or {})})
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}error: '{' '.join(argv)}' "
                     f"ended with status {done.returncode}")
        return done.stdout

    def round(self, target):
        if self.prepare:
            self.run(self.prepare(target))
        os.sync()
        start = time.monotonic()
        self.stdout = self.run(self.command(target))
        self.ms.append((time.monotonic() - start) * 1000)
        os.sync()
        self.bytes = disk_bytes(target)
        if self.check:
            self.check(self)

    def figures(self):
        return {"name": self.name, "disk_bytes": self.bytes,
                "median_ms": statistics.median(self.ms), "min_ms": min(self.ms), "ms": self.ms}


def compete(contestants, rounds):
    arena = scratch_dir() / "rounds"
    if arena.exists():  # an earlier run was interrupted
        say("removing what an earlier run left, and waiting until the disk has forgotten it")
        remove(arena)
        os.sync()
        time.sleep(70)
    arena.mkdir()
    try:
        for number in range(rounds + 1):
            order = contestants if number % 2 == 0 else contestants[::-1]
            for contestant in order:
                contestant.round(arena / f"{number}-{contestant.name.replace(' ', '-')}")
            label = f"round {number} of {rounds}" if number else "a round to warm up"
            say(f"{label}: " + ", ".join(f"{c.name} {c.ms[-1]:.0f} ms" for c in contestants))
            if number == 0:
                for contestant in contestants:
                    contestant.ms.clear()
    finally:
        remove(arena)


def verdict(target, *values):
    """Of several readings the worst one counts."""
    return "met" if max(values) <= target else "missed"


def table(header, rows):
    """Print rows of strings; the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


def write_markdown(name, header, rows, lines=()):
    """The same table for a page, and what stands below it."""
    path = BUILD / "bench" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    text.insert(1, "|" + "---|" * len(header))
    path.write_text("\n".join([*text, "", *(f"- {line}" for line in lines)]) + "\n")
    print(f"table: {path.relative_to(ROOT)}")


def mib(size):
    return f"{size / 2**20:.1f} MiB"


def machine(path):
    """What the figures depend on, without saying whose machine it is."""
    cpu = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "CPU part")):
                cpu = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    fs = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True,
                        check=False).stdout.strip()
    return {"cpu": cpu or platform.machine(), "arch": platform.machine(), "cores": os.cpu_count(),
            "kernel": re.match(r"[\d.]*", platform.release()).group(), "filesystem": fs}


def write_json(name, figures):
    path = BUILD / "bench" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"figures: {path.relative_to(ROOT)}")
