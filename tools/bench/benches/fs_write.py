"""A clone that is worked in: small files, packages, whole trees, and a build."""

import os
import shutil
import statistics
import time

import trees
from arena import run, timed
from benches.fs_read import loop
from place import BARE, BINDFS, EXT4, FUSE_OVERLAY, OVERLAY, places
from row import OURS, PRIVATE, at_most

PACKAGES, FILES, SYNCS = 150, 2000, 200

SOURCE = trees.HERE.parents[1]
SOURCES = (".c", ".h", ".json", "embed-schemas.py", "embed.py", ".html", ".html.gz", "meson.build", "meson_options.txt")


class Pair:
    """A row, and one for a private clone without attributes beside the same peer."""

    def __init__(self, session, name, unit, *targets, private):
        self.row = session.row(name, unit, *targets)
        self.private = session.row(f"{name}, private and without attributes", unit, private)

    def add(self, who, value):
        if who == PRIVATE:
            self.private.add(OURS, value)
        else:
            self.row.add(who, value)
        if who in self.private.peers():
            self.private.add(who, value)


def each(rows):
    return [one for row in rows
            for one in ((row.row, row.private) if isinstance(row, Pair) else (row,))]


def meta(session):
    rows = {
        "stat": session.row("stat, warm", "us", at_most(1.1, EXT4)),
        "open": session.row("open+read 4 KiB+close, warm", "us", at_most(1.1, EXT4)),
        "missing": session.row("name that is not there, first time", "us"),
        "create": Pair(session, "create+write 4 KiB+close", "us", at_most(2.0, OVERLAY),
                       at_most(0.5, FUSE_OVERLAY), private=at_most(2.0, OVERLAY)),
        **{verb: Pair(session, verb, "us", at_most(1.3, OVERLAY), private=at_most(1.3, OVERLAY))
           for verb in ("rename", "mkdir", "rmdir", "symlink")},
        "unlink": Pair(session, "unlink", "us", at_most(1.5, OVERLAY), private=at_most(1.0, OVERLAY)),
    }

    def act(place):
        with place.work() as work:
            for what, value in loop(session, "meta", work, FILES).items():
                if place.name != PRIVATE or isinstance(rows[what], Pair):
                    rows[what].add(place.name, value)
    take_part(session, "small files", act, rows.values(),
              (EXT4, OVERLAY, FUSE_OVERLAY, BINDFS, BARE, PRIVATE))


def take_part(session, label, act, rows, names):
    """Each of these places in turn."""
    session.rounds(label, {name: lambda _, p=place: act(p)
                           for name, place in places(session, *names).items()}, each(rows))


def burst(session):
    row = Pair(session, f"`npm ci`-like burst, {PACKAGES} packages", "ms", at_most(2.0, OVERLAY),
               private=at_most(2.0, OVERLAY))

    def act(place):
        with place.work() as work:
            row.add(place.name, loop(session, "burst", work, PACKAGES)["burst_ms"])
    take_part(session, "burst", act, [row], (EXT4, OVERLAY, FUSE_OVERLAY, BINDFS, BARE, PRIVATE))


def remove(session):
    row = session.row("`rm -rf` of the whole tree", "ms", at_most(1.5, OVERLAY))

    def act(place):
        with place.fresh(copied=True) as tree:
            row.add(place.name, timed("sh", "-c", "rm -rf ./* ./.[!.]*", cwd=tree))
            if any(tree.iterdir()):
                raise SystemExit(f"error: rm -rf left something in {place.name}")
    take_part(session, "rm -rf", act, [row], (EXT4, OVERLAY, FUSE_OVERLAY))


def untar(session):
    row = Pair(session, "`tar x` of the whole tree", "ms", at_most(2.0, OVERLAY),
               private=at_most(2.0, OVERLAY))
    archive, empty = session.arena.path / "tree.tar", session.arena.fresh_dir("empty")
    run("tar", "-C", session.tree(), "-cf", archive, ".")

    def act(place):
        with place.fresh(of=empty, copied=True) as tree:
            row.add(place.name, timed("tar", "-C", tree, "-xf", archive))
    take_part(session, "tar x", act, [row], (EXT4, OVERLAY, FUSE_OVERLAY, BARE, PRIVATE))
    archive.unlink()


def copy_sources(target):
    """What a build needs, as it is now, so that it is the same in all rounds."""
    for path in SOURCE.rglob("*"):
        inner = path.relative_to(SOURCE)
        if inner.parts[0].startswith((".", "build")) or "node_modules" in inner.parts or not path.name.endswith(SOURCES):
            continue
        if path.is_file():
            (target / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / inner)


def compile(session):
    row = session.row("compile of this project (`meson setup`, `ninja`)", "ms", at_most(1.05, EXT4))
    for tool in ("meson", "ninja"):
        if not shutil.which(tool):
            row.skip(f"{tool} is not installed")
            return
    source = session.arena.fresh_dir("source")
    copy_sources(source)
    without = [f"-D{part}=false" for part in ("tests", "bench", "man", "completions", "systemd",
                                              "snap_name")]
    env = {"CCACHE_DISABLE": "1"}  # or who comes second has nothing to do

    targets = ["cowfs/libsnap-store.a"] if session.opts.quick else []

    def build(top):
        run("meson", "setup", *without, "-Dbuildtype=debug", top / "build", top / "source", env=env)
        run("ninja", "-C", top / "build", *targets, env=env)

    def act(place):
        with place.work() as work:
            shutil.copytree(source, work / "source")
            row.add(place.name, timed(lambda: build(work)))
    if targets:
        row.notes.append("only the store's library is compiled")
    take_part(session, "compile", act, [row],
              (EXT4,) if targets else (EXT4, OVERLAY, FUSE_OVERLAY, BARE))


def sync_each(path, fresh):
    """Microseconds that a sync takes, the median of many: of an appended 4 KiB, or of a new file."""
    taken, data = [], os.urandom(4096)
    fd = os.open(path / "log", os.O_WRONLY | os.O_CREAT)
    for n in range(SYNCS):
        if fresh:
            os.close(fd)
            fd = os.open(path / f"f{n}", os.O_WRONLY | os.O_CREAT)
        os.write(fd, n.to_bytes(4, "big") + data[4:])
        start = time.monotonic()
        os.fsync(fd)
        taken.append((time.monotonic() - start) * 1e6)
    os.close(fd)
    return statistics.median(taken)


def fsync(session):
    rows = {
        False: session.row("fsync of 4 KiB, appended", "us", at_most(1.5, EXT4)),
        True: session.row("fsync of a new file of 4 KiB", "us", at_most(1.5, EXT4)),
    }

    def act(place):
        for fresh, row in rows.items():
            with place.work() as work:
                row.add(place.name, sync_each(work, fresh))
    take_part(session, "fsync", act, rows.values(), (EXT4,))


PARTS = {"meta": meta, "fsync": fsync, "burst": burst, "remove": remove, "untar": untar, "compile": compile}
