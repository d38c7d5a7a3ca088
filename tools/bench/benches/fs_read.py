"""A clone that is looked at: warm, for the first time, by git, and what that takes of memory."""

import json
import os
import shutil
import time
from pathlib import Path

from arena import run, timed
from place import BARE, BINDFS, EXT4, FUSE_OVERLAY, OVERLAY, places
from row import OURS, at_most


def loop(session, *words):
    """What bench-fs tells."""
    return json.loads(run(session.helper("bench-fs"), *words))


def warm(session):
    rows = {
        "walk": session.row("warm stat walk", "ms", at_most(1.1, EXT4)),
        "list": session.row("warm readdir", "ms", at_most(1.1, EXT4)),
        "read": session.row("warm open+read of every file", "ms", at_most(1.1, EXT4)),
    }
    found = places(session, EXT4, OVERLAY, FUSE_OVERLAY, BINDFS, BARE)
    for place in found.values():
        for _ in range(2):
            loop(session, "all", place.tree)

    def act(place):
        for what, row in rows.items():
            row.add(place.name, loop(session, what, place.tree)["pass_ms"])
    session.rounds("warm", {name: lambda _, p=place: act(p) for name, place in found.items()},
                   list(rows.values()))


def fresh_look(session, label, row, cold, look, of):
    """Acts that look at a fresh one: ours once with a warm clone, and at once again without."""
    found = places(session, EXT4, OVERLAY, FUSE_OVERLAY)

    def act(place):
        if place.name == OURS and not place.wait_for_warm_clone():
            row.notes.append("no warm clone became warm, the machine is busy")
        with place.fresh(of=of) as tree:
            row.add(place.name, look(tree))
        if place.name == OURS:
            with place.fresh(of=of) as tree:
                cold.add(OURS, look(tree))
    session.rounds(label, {name: lambda _, p=place: act(p) for name, place in found.items()},
                   [row, cold])


def first(session):
    row = session.row("first read of the whole tree in a fresh clone", "ms", at_most(2.0, EXT4))
    cold = session.row("the same, before there is a spare", "ms")
    fresh_look(session, "first read", row, cold,
               lambda tree: loop(session, "all", tree)["pass_ms"], session.tree())


def git(session):
    row = session.row("first `git status` in a fresh clone of a git work tree", "ms",
                      at_most(1.2, EXT4))
    cold = session.row("the same, before there is a spare clone", "ms")
    if not shutil.which("git"):
        row.skip("git is not installed")
        cold.skip("git is not installed")
        return
    fresh_look(session, "git status", row, cold,
               lambda tree: timed("git", "-c", "core.fsmonitor=false", "status", cwd=tree),
               session.repo(max(session.opts.entries // 5, 500)))


def memory(session):
    """A daemon of its own: resident after the tree was read, and after all was forgotten."""
    read = session.row("cowfsd resident after reading the tree", "MiB", at_most(150))
    forgotten = session.row("cowfsd resident after forget", "MiB", at_most(0.9, "after reading"))
    ours = places(session)[OURS]
    ours.stack.close()
    ours.shown = None
    session.store.snap("stop", "--force", cwd=ours.source)
    with ours.fresh() as tree:
        read.add("idle", session.store.memory() / 2**20)
        loop(session, "all", tree)
        read.add(OURS, session.store.memory() / 2**20)
        forgotten.add("after reading", session.store.memory() / 2**20)
        if os.geteuid() != 0:
            forgotten.skip("making the kernel forget needs root")
            return
        for _ in range(3):
            Path("/proc/sys/vm/drop_caches").write_text("2\n")
            time.sleep(1)
        forgotten.add(OURS, session.store.memory() / 2**20)


PARTS = {"warm": warm, "first": first, "git": git, "memory": memory}
