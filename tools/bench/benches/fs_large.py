"""One large file: written, written again, read, and changed here and there."""

import contextlib
import os

from arena import timed
from benches.fs_read import loop
from benches.fs_write import take_part
from place import BARE, BINDFS, EXT4, FUSE_OVERLAY, OVERLAY, places
from row import OURS, at_least, at_most

CHUNK = 65536
REQUEST = 131072
RANDOM_WRITES = 4000


def size_text(size):
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"


def sequential(session):
    size = session.opts.large
    rows = {key: session.row(f"sequential {name} of {size_text(size)}", "MiB/s",
                             at_least(least, FUSE_OVERLAY), rate=True)
            for key, name, least in (("write_ms", "write", 1.2), ("rewrite_ms", "rewrite", 1.2),
                                     ("read_ms", "warm read", 1.1))}

    def act(place):
        with place.work() as work:
            figures = loop(session, "sequential", work / "file", size, REQUEST)
        for key, row in rows.items():
            row.add(place.name, size / 2**20 / (figures[key] / 1000))
    take_part(session, "sequential", act, rows.values(),
              (EXT4, OVERLAY, FUSE_OVERLAY, BINDFS, BARE))


def passthrough(session):
    """A large file that was captured and is only read, which the kernel may do by itself."""
    size = session.opts.large
    row = session.row(f"warm read of a captured file of {size_text(size)}, as root", "MiB/s",
                      at_least(0.9, EXT4), rate=True)
    if os.geteuid() != 0:
        row.skip("passthrough needs root")
        return
    project = session.arena.fresh_dir("large")
    loop(session, "random", project / "file", size, 0)
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(place.fresh(of=project)) / "file"
                 for name, place in places(session, EXT4, OVERLAY, FUSE_OVERLAY, BARE).items()}

        def act(place):
            figures = loop(session, "reread", files[place.name], REQUEST)
            row.add(place.name, size / 2**20 / (figures["read_ms"] / 1000))
        take_part(session, "captured file", act, [row], (EXT4, OVERLAY, FUSE_OVERLAY, BARE))


def random(session):
    """Pages of a large file, and what they and a snapshot add to the store."""
    size = session.opts.large
    time = session.row(f"4 KiB random write into {size_text(size)}", "us")
    grown = session.row(f"stored by {RANDOM_WRITES:,} of them and a snapshot", "MiB",
                        at_most(1.2, "touched chunks"))
    took = session.row("that snapshot", "ms")
    blocks = size // CHUNK
    touched = blocks * (1 - (1 - 1 / blocks) ** RANDOM_WRITES) * CHUNK
    grown.add("touched chunks", touched / 2**20)
    grown.notes.append(f"a copy of the file would be {size >> 20} MiB")
    found = places(session, EXT4, OVERLAY, FUSE_OVERLAY)
    project = session.arena.fresh_dir("random")
    ours = session.number("random")
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(place.work()) / "file" for name, place in found.items()
                 if name != OURS}
        files[OURS] = session.clone_of(project, ours) / "file"
        for path in files.values():
            loop(session, "random", path, size, 0)
        session.store.snap("snapshot", ours, cwd=project)

        def act(place, number):
            before = session.store.stored(project)
            figures = loop(session, "random", files[place.name], size, RANDOM_WRITES, number + 1)
            time.add(place.name, figures["random_write"])
            if place.name == OURS:
                took.add(OURS, timed(lambda: session.store.snap("snapshot", ours, cwd=project)))
                grown.add(OURS, (session.store.stored(project) - before) / 2**20)
        session.rounds("random writes", {name: lambda n, p=place: act(p, n)
                                         for name, place in found.items()}, [time, grown, took])
        session.store.snap("rm", "--force", ours, cwd=project)


PARTS = {"sequential": sequential, "passthrough": passthrough, "random": random}
