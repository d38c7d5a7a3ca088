"""Long histories: what reads one file of them must not pay for all that others changed.

Figures are in counts of calls, which do not depend on the load of the machine; times are only printed.
SNAP_TESTS_LONG=1 asks for 20,000 snapshots of 80,000 files.
"""

import json
import os
import shutil
import subprocess
import sys
import time

from livetest import LONG, Skip, main, note, test
from snaptest import SNAP, dice

CHRONICLE = os.environ["SNAP_CHRONICLE"]
SNAPSHOTS, VERSIONS = (20000, 1000) if LONG else (1500, 60)
FOLDERS = 800 if LONG else 20
PATH = "src/d7/file7"


def fill(w, snapshots=SNAPSHOTS, versions=VERSIONS, neighbours=10):
    """A project of many files with a long history, of which PATH has `versions`."""
    for d in range(FOLDERS):
        folder = w.project / "src" / f"d{d}"
        folder.mkdir(parents=True)
        for f in range(100):
            (folder / f"file{f}").write_text(f"{d} {f}\n")
    (w.project / PATH).write_text("first\n")
    w.ok("snapshot")
    w.ok("stop")
    began = time.monotonic()
    subprocess.run([CHRONICLE, str(w.store), str(snapshots), PATH, str(versions), str(neighbours)], check=True)
    note(f"{snapshots} snapshots of {FOLDERS * 100} files written in {time.monotonic() - began:.1f} s")
    (w.project / PATH).write_bytes(w.ok("show", f"@:{PATH}").out)


def blame(w, path=PATH):
    """Lines without what depends on when it was asked."""
    began = time.monotonic()
    got = w.ok("blame", path, "--json").json("snap.blame/1", "lines", "versions")
    note(f"blame: {1000 * (time.monotonic() - began):.0f} ms")
    return got["lines"], got["versions"]


def reads(w, *words):
    """How many system calls read from files."""
    if not shutil.which("strace"):
        raise Skip("reads are counted by strace")
    log = w.home / "reads"
    subprocess.run(["strace", "-f", "-c", "-o", str(log), "-e", "trace=pread64,read", str(SNAP), *words],
                   cwd=w.project, env=w.env, check=True, stdout=subprocess.DEVNULL)
    rows = [line.split() for line in log.read_text().splitlines()]
    return sum(int(row[3]) for row in rows if len(row) >= 5 and row[-1] in ("pread64", "read"))


@test
def steps_that_left_a_file_alone_cost_no_read(w):
    fill(w)
    trails = w.store / "trails"
    cold = reads(w, "blame", PATH)
    kept = next(trails.iterdir()).stat().st_size
    warm = reads(w, "blame", PATH)
    lines, versions = blame(w)
    note(f"{cold} reads the first time, {warm} then; {kept / SNAPSHOTS:.0f} bytes kept for a snapshot")
    assert len(versions) == VERSIONS and len(lines) == VERSIONS, (len(versions), len(lines))
    assert warm < cold / 3, f"{warm} reads where all of it took {cold}"
    assert next(trails.iterdir()).stat().st_size == kept, "nothing was new, and yet something was kept"
    # Another file of the same directory, whose steps are the same ones.
    few = reads(w, "blame", "src/d7/file8")
    assert few < cold / 3, f"{few} reads for a file that nothing changed"


@test
def what_is_kept_of_steps_may_be_damaged_or_gone(w):
    fill(w, 300, 30)
    rng, trails = dice(), w.store / "trails"
    want = blame(w)
    whole = next(trails.iterdir()).read_bytes()
    for _ in range(30 if LONG else 12):
        file = next(trails.iterdir())
        at = rng.randrange(len(whole))
        kind = rng.choice(("flip", "cut", "insert", "double"))
        bad = bytearray(whole)
        if kind == "flip":
            bad[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del bad[at:]
        elif kind == "insert":
            bad[at:at] = rng.randbytes(rng.randint(1, 60))
        else:
            bad += whole[:at]
        file.write_bytes(bad)
        assert blame(w) == want, f"after {kind} at {at}"
        assert blame(w) == want, f"after {kind} at {at}, a second time"
        if kind == "double":
            file.write_bytes(whole)
        assert sorted(records(file.read_bytes())) == sorted(records(whole)), f"{kind} at {at} was not mended"
    shutil.rmtree(trails)
    assert blame(w) == want
    shutil.rmtree(trails)
    trails.write_text("no directory")
    assert blame(w) == want


def records(data):
    """Each step that a file holds."""
    found, at = [], 0
    while at < len(data):
        n = int.from_bytes(data[at + 4:at + 6], "little")
        end = at + 38 + (0 if n == 0xffff else n)
        assert end <= len(data), "the file ends within a record"
        found.append(data[at:end])
        at = end
    return found


@test
def each_snapshot_that_is_taken_adds_its_step(w):
    texts = []
    for i in range(6):
        texts.append(f"line {i}")
        (w.project / "a").write_text("\n".join(texts) + "\n")
        w.ok("snapshot")
    file = next((w.store / "trails").iterdir())
    assert len(records(file.read_bytes())) == 5, "one for each snapshot but the first"
    before = file.read_bytes()
    assert len(blame(w, "a")[1]) == 6
    assert file.read_bytes() == before, "a reader had to find out a step"
    # Nothing changed: no snapshot with another root, and no step.
    w.ok("snapshot")
    assert file.read_bytes() == before
    # So much that only that is kept.
    for i in range(500):
        (w.project / f"many{i}").write_text("x\n")
    w.ok("snapshot")
    last = records(file.read_bytes())[-1]
    assert last[4:6] == b"\xff\xff" and len(last) == 38, last
    assert [line["by"] for line in blame(w, "many7")[0]] == ["snapshot"]
    # A directory that came with what is in it, and one that went.
    (w.project / "dir" / "sub").mkdir(parents=True)
    (w.project / "dir" / "sub" / "file").write_text("1\n")
    came = w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]
    (w.project / "a").write_text("other\n")
    w.ok("snapshot")
    assert [line["snapshot"] for line in blame(w, "dir/sub/file")[0]] == [came]
    shutil.rmtree(w.project / "dir")
    w.ok("snapshot")
    rows = json.loads(w.ok("log", "--json", "--", "dir/sub/file").out)["versions"]
    assert "".join(v["status"] for v in rows) == "DA", rows
    w.ok("projects", "forget", "--force", str(w.project))
    assert not file.exists(), "the project is forgotten, and not its steps"


if __name__ == "__main__":
    sys.exit(main())
