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

from livetest import LONG, Skip, live_test, main, note, test
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


# --- many of everything -------------------------------------------------------------------

MANY = {"snapshots": 10000, "clones": 500, "runs": 2000} if LONG else {"snapshots": 400, "clones": 16, "runs": 80}
STEPS = 4  # times as much of each in the second store
MEMORY_MAX = 160 << 20  # bytes of a command
COMMANDS = {
    "list": ("list",),
    "list --json": ("list", "--json"),
    "log": ("log",),
    "first screen of the timeline": ("log", "--graph", "--json", "--count", "200"),
    "first screen of the runs": ("runs", "--json", "--last", "100"),
    "ps": ("ps", "--json"),
    "metrics": ("metrics",),
    "top": ("top", "-n", "1", "--json"),
}


def copy_runs(w, count, rng):
    """Records like that of a real run."""
    w.ok("run", "--", "true")
    (one,) = (w.store / "runs").glob("*.json")
    for _ in range(count - 1):
        shutil.copy(one, one.with_name(f"{rng.getrandbits(48):012x}.json"))


def cost(w, words):
    """Processor seconds of a command and of the daemon for it, and the memory that it took."""
    daemon = int((w.store / "lock").read_text().split()[0])

    def ticks():
        fields = open(f"/proc/{daemon}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = ticks()
    process = subprocess.Popen([SNAP, *words], cwd=w.project, env=w.env, stdout=subprocess.DEVNULL)
    _, status, use = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, words
    return use.ru_utime + use.ru_stime + ticks() - before, use.ru_maxrss << 10


def costs_of(w, scale, rng):
    fill(w, MANY["snapshots"] * scale // STEPS, 10)
    copy_runs(w, MANY["runs"] * scale // STEPS, rng)
    w.ok("clone", "--count", str(MANY["clones"] * scale // STEPS))
    costs = {}
    for name, words in COMMANDS.items():
        cost(w, words)
        costs[name] = min(cost(w, words) for _ in range(3))
    return costs


@live_test
def many_snapshots_clones_and_runs_cost_no_more_than_in_proportion(w):
    rng = dice()
    few = costs_of(w, 1, rng)
    w.ok("stop", "--force")
    shutil.rmtree(w.store)
    shutil.rmtree(w.project / "src")
    many = costs_of(w, STEPS, rng)
    for name, (seconds, memory) in many.items():
        note(f"{name}: {1000 * seconds:.0f} ms of processor, {memory >> 20} MiB; "
             f"{1000 * few[name][0]:.0f} ms of a quarter")
        # What is quadratic costs STEPS times STEPS as much; a tenth of a second may be noise.
        assert seconds < 2 * STEPS * few[name][0] + 0.1, f"{name}: {few[name]} became {many[name]}"
        assert memory < MEMORY_MAX, f"{name}: {memory >> 20} MiB"
    # Looking again and again reads no record of a run that has ended.
    assert reads(w, "ps") < MANY["runs"], "ps reads every record"


if __name__ == "__main__":
    sys.exit(main())
