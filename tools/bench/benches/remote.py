"""A tree to another machine and back, through a directory, against tar | zstd -1 and rsync.

Both ends lie on one disk. The tree was captured before: what is timed is the transfer alone, as a
person waits for it. tar's archive is synced, as our packs are.
"""

import os
import shutil

import trees
from arena import Store, run, timed
from row import OURS, at_most

CHANGED = 10  # files
TAR, RSYNC = "tar, zstd -1", "rsync -a"


def shell(line, **words):
    run("sh", "-ec", line.format(**words))


def first(session):
    """All of it, to a place that has nothing."""
    source, store = session.tree(), session.store
    trees.warm(source)
    there = session.row("first push of the tree", "ms", at_most(1.2, TAR))
    back = session.row("first fetch of the tree", "ms", at_most(1.2, TAR))
    sent = session.row("bytes of a first push", "MiB", at_most(1.0, TAR))
    if not shutil.which("zstd"):
        there.skip("zstd is not installed", TAR)
        return
    top = session.arena.fresh_dir("remote")
    store.snap("snapshot", cwd=source)

    def tar(number):
        archive, target = top / f"{number}.tar.zst", top / f"tar-{number}"
        os.sync()
        there.add(TAR, timed(lambda: shell("tar -C '{s}' -cf - . | zstd -q -1 -o '{a}'; sync '{a}'",
                                           s=source, a=archive)))
        sent.add(TAR, archive.stat().st_size / 2**20)
        target.mkdir()
        os.sync()
        back.add(TAR, timed(lambda: shell("zstd -q -dc '{a}' | tar -C '{t}' -xf -", a=archive, t=target)))
        shutil.rmtree(target)
        archive.unlink()

    def ours(number):
        depot = top / f"depot-{number}"
        shutil.rmtree(store.path / "remote", ignore_errors=True)  # nothing is known of it
        os.sync()
        there.add(OURS, store.timed("push", "@", f"dir:{depot}:main", cwd=source))
        sent.add(OURS, sum(f.stat().st_size for f in (depot / "blobs" / "sha256").iterdir()) / 2**20)
        other = Store(session.arena, session.snapcow, f"remote/store-{number}")
        project = top / f"project-{number}"
        project.mkdir()
        os.sync()
        back.add(OURS, other.timed("fetch", f"dir:{depot}:main", cwd=project))
        other.end()
        for path in (other.path, depot, project):
            shutil.rmtree(path, ignore_errors=True)
    session.rounds("first transfer", {TAR: tar, OURS: ours}, [there, back, sent])
    shutil.rmtree(top, ignore_errors=True)


def again(session):
    """A few files changed since the last time."""
    source, store = session.tree(), session.store
    trees.warm(source)
    row = session.row(f"push and fetch with {CHANGED} changed files in {session.opts.entries:,}", "ms")
    row.targets = [at_most(0.2, RSYNC)]
    top = session.arena.fresh_dir("again")
    clone = session.number("again")
    work, files = session.clone_of(source, clone), trees.some_files(source, CHANGED)
    other, project, copy = Store(session.arena, session.snapcow, "again/store"), top / "project", top / "copy"
    project.mkdir()
    depot = f"dir:{top}/depot:main"
    store.snap("push", clone, depot, cwd=source)
    other.snap("fetch", depot, cwd=project)
    if shutil.which("rsync"):
        run("rsync", "-a", f"{work}/", copy)

    def ours(number):
        trees.write_some(work, files, f"ours {number}")
        row.add(OURS, timed(lambda: (store.snap("push", clone, depot, cwd=source),
                                     other.snap("fetch", depot, cwd=project))))

    def rsync(number):
        trees.write_some(work, files, f"rsync {number}")
        row.add(RSYNC, timed("rsync", "-a", f"{work}/", copy))
    acts = {OURS: ours}
    if shutil.which("rsync"):
        acts[RSYNC] = rsync
    else:
        row.skip("rsync is not installed", RSYNC)
    session.rounds("again", acts, [row])
    other.end()
    shutil.rmtree(top, ignore_errors=True)


PARTS = {"remote-first": first, "remote-again": again}
