"""The data: generated trees, kept between runs, and what is asked about them."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rounds import say

HERE = Path(__file__).resolve().parent
MAKER = HERE / "make-tree"


def scratch_dir():
    path = Path(os.environ.get("SNAP_BENCH_DIR")
                or Path(os.environ.get("TMPDIR") or "/tmp") / "snap-bench")
    path.mkdir(parents=True, exist_ok=True)
    return path


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def tree(entries, seed=1):
    """The path of a generated tree, made by make-tree unless it is there from last time."""
    path = scratch_dir() / f"tree-{entries}"
    stamp = path.with_suffix(".stamp")
    want = f"{entries} {seed} {hashlib.sha256(MAKER.read_bytes()).hexdigest()}"
    if not (path.is_dir() and stamp.is_file() and stamp.read_text() == want):
        say(f"making a tree of {entries:,} entries; it is kept for the next time")
        stamp.unlink(missing_ok=True)
        remove(path)
        subprocess.run([MAKER, path, "--entries", str(entries), "--seed", str(seed)],
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


def disk_bytes(path):
    out = subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True, text=True,
                         check=True)
    return int(out.stdout.split()[0])


def some_files(project, count):
    """So many text files, or fewer, from all over the tree; the same ones each time."""
    names = sorted(os.path.join(folder, name) for folder, _, inner in os.walk(project)
                   for name in inner if name.endswith(".js"))
    step = max(1, len(names) // count)
    found = []
    for at in range(0, len(names), step):
        fit = (p for p in map(Path, names[at:at + step])
               if not p.is_symlink() and p.stat().st_size > 64)
        found += [p.relative_to(project) for p in [next(fit, None)] if p]
    return found[:count]


def write_some(top, files, stamp):
    """The first bytes of each become others than they ever were."""
    for at, file in enumerate(files):
        with open(top / file, "r+b") as f:
            f.write(b"%s %d\n" % (str(stamp).encode(), at))
