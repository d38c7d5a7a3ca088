"""Capture, clone, snapshot, rollback, diff and promote, against cp -a, git, btrfs and xfs.

Commands are timed as a person waits for them, from the start of the process to its end; what a
clone costs in cowfsd is asked over its socket, and of btrfs by its ioctl.
"""

import fcntl
import os
import shutil
import struct
import time

import trees
from arena import Asking, Store, run, timed
from row import OURS, at_least, at_most

CHANGED = 10  # files, before each snapshot, rollback and diff
IN_A_ROW = 50  # clones, each round
BTRFS_IOC_SNAP_CREATE_V2 = 0x50009417  # linux/btrfs.h: _IOW(0x94, 23, 4096 bytes)


def capture(session):
    """The first one, into a store that is not there yet, against cp -a."""
    source = session.tree()
    trees.warm(source)
    first = session.row("first capture", "ms", at_most(0.6, "cp -a"))
    stored = session.row("stored bytes of a first capture", "MiB", at_most(0.35, "du"))
    stored.add("du", trees.disk_bytes(source) / 2**20)
    top = session.arena.fresh_dir("captures")

    def copy(number):
        os.sync()
        first.add("cp -a", timed("cp", "-a", source, top / f"copy-{number}"))

    def ours(number):
        os.sync()
        store = Store(session.arena, session.snapcow, f"captures/store-{number}")
        first.add(OURS, store.timed("snapshot", cwd=source))
        stored.add(OURS, store.stored(source) / 2**20)
        store.end()
    session.rounds("first capture", {"cp -a": copy, OURS: ours}, [first, stored])
    shutil.rmtree(top, ignore_errors=True)


def unchanged(session):
    """Nothing changed, in a git work tree, against git status."""
    row = session.row("capture with nothing changed", "ms", at_most(0.6, "git status"))
    if not shutil.which("git"):
        row.skip("git is not installed", "git status")
        return
    repo = session.repo()
    for _ in range(2):
        session.store.snap("snapshot", cwd=repo)

    def git(_):
        row.add("git status", timed("git", "-c", "core.fsmonitor=false", "status", cwd=repo))

    def ours(_):
        row.add(OURS, session.store.timed("snapshot", cwd=repo))
    session.rounds("nothing changed", {"git status": git, OURS: ours}, [row])


# --- clones ---------------------------------------------------------------------------------------

def disk_with_tree(session, name, *mkfs):
    """Another filesystem with the same tree in it, or why there is none."""
    if os.geteuid() != 0:
        return None, "mounting it needs root"
    if not shutil.which(mkfs[0]):
        return None, f"there is no {mkfs[0]}"
    try:
        top = session.arena.disk(name, 8 << 30, *mkfs)
    except SystemExit as e:  # a kernel without it
        return None, str(e).splitlines()[-1].removeprefix("error: ")
    if name == "btrfs":
        run("btrfs", "subvolume", "create", top / "base")
    run("cp", "-a", f"{session.tree()}/.", top / "base")
    os.sync()
    return top, None


def btrfs_ioctl(top, name):
    """A snapshot without a program that makes it; milliseconds."""
    base = os.open(top / "base", os.O_RDONLY | os.O_DIRECTORY)
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    words = bytearray(struct.pack("=qQQ32x4040s", base, 0, 0, os.fsencode(name)))
    try:
        return timed(lambda: fcntl.ioctl(folder, BTRFS_IOC_SNAP_CREATE_V2, words))
    finally:
        os.close(base)
        os.close(folder)


def add_clone_peers(session, inside, whole):
    """Acts of those that copy a tree in other ways; the command's peers are for comparison."""
    inside_acts, whole_acts = {}, {}
    btrfs, why = disk_with_tree(session, "btrfs", "mkfs.btrfs", "-q")
    if btrfs:
        inside_acts["btrfs snapshot"] = lambda _: inside.add(
            "btrfs snapshot", btrfs_ioctl(btrfs, session.number("ioctl")))
        whole_acts["btrfs"] = lambda _: whole.add("btrfs", timed(
            "btrfs", "subvolume", "snapshot", btrfs / "base", btrfs / session.number("command")))
    else:
        inside.skip(why, "btrfs snapshot")
        session.skipped["btrfs"] = why
    xfs, why = disk_with_tree(session, "xfs", "mkfs.xfs", "-q")
    if xfs:
        whole_acts["cp --reflink"] = lambda _: whole.add("cp --reflink", timed(
            "cp", "-a", "--reflink=always", xfs / "base", xfs / session.number("copy")))
    else:
        session.skipped["xfs"] = why
    if shutil.which("git"):
        repo = session.repo()
        whole_acts["git worktree"] = lambda _: whole.add("git worktree", timed(
            "git", "worktree", "add", "-q", "--detach",
            session.arena.path / session.number("worktree"), cwd=repo))
    else:
        session.skipped["git worktree"] = "git is not installed"
    return inside_acts, whole_acts


def clone(session):
    """Of a captured tree: in cowfsd against btrfs's ioctl, and the whole command."""
    project, store = session.tree(), session.store
    snapshot = session.snapshot_of(project)
    inside = session.row("clone of a captured tree, in cowfsd", "ms",
                         at_most(1.0, "btrfs snapshot"))
    whole = session.row("`snap clone --from SNAPSHOT`, whole command, mounted", "ms", at_most(10))
    rate = session.row("clones a second, whole commands one after the other", "/s", at_least(200),
                       rate=True)
    asking = Asking(store, project)

    def in_daemon(_):
        name = session.number("in")
        inside.add(OURS, asking.clone(name, snapshot))
        asking.ask("remove", clone=name, force=True)

    def command(_):
        name = session.number("command")
        whole.add(OURS, store.timed("clone", "-n", name, "--from", snapshot, cwd=project))
        asking.ask("remove", clone=name, force=True)

    def many(_):
        names = [session.number("row") for _ in range(IN_A_ROW)]
        start = time.monotonic()
        for name in names:
            store.timed("clone", "-n", name, "--from", snapshot, cwd=project)
        rate.add(OURS, IN_A_ROW / (time.monotonic() - start))
        for name in names:
            asking.ask("remove", clone=name, force=True)
    inside_acts, whole_acts = add_clone_peers(session, inside, whole)
    session.rounds("clone in cowfsd", {**inside_acts, OURS: in_daemon}, [inside])
    session.rounds("clone", {**whole_acts, OURS: command}, [whole])
    session.rounds("clones a second", {OURS: many}, [rate])


def idle(session):
    """What many clones weigh that nobody uses."""
    count = 200 if session.opts.quick else 1000
    project = session.tree()
    row = session.row(f"memory per idle clone, of {count:,}", "KiB", at_most(100))
    store = Store(session.arena, session.snapcow, "idle-clones")
    snapshot = store.snap("snapshot", cwd=project)["snapshot"]
    store.snap("clone", "-n", "first", "--from", snapshot, cwd=project)
    before = store.memory()
    store.snap("clone", "-n", "many", "--count", count, "--from", snapshot, cwd=project)
    row.add(OURS, (store.memory() - before) / count / 1024)
    store.end()


# --- changes --------------------------------------------------------------------------------------

def change(session):
    """Snapshot, rollback and diff of a clone with few changed files."""
    project, store = session.tree(), session.store
    of = f"of a clone with {CHANGED} changed files in {session.opts.entries:,}"
    rows = {verb: session.row(f"{verb} {of}", "ms", at_most(10))
            for verb in ("snapshot", "rollback", "diff")}
    name = session.number("change")
    top, files = session.clone_of(project, name), trees.some_files(project, CHANGED)

    def act(number):
        trees.write_some(top, files, 2 * number)
        rows["snapshot"].add(OURS, store.timed("snapshot", name, cwd=project))
        trees.write_some(top, files, 2 * number + 1)
        rows["diff"].add(OURS, store.timed("diff", name, cwd=project))
        rows["rollback"].add(OURS, store.timed("rollback", name, cwd=project))
    session.rounds("changed files", {OURS: act}, list(rows.values()))
    store.snap("rm", "--force", name, cwd=project)


def promote(session):
    """Few changes reach a large project, against looking at it; many, against cp -a of them."""
    project = session.arena.path / "promote"
    run("cp", "-a", session.tree(), project)
    promote_some(session, project, CHANGED, 1.3, "snap status",
                 lambda files: session.store.timed("status", cwd=project))
    source = session.arena.fresh_dir("many-files")

    def copy(files):
        for file in files:
            to = source / file
            if not to.exists():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / file, to)
        return timed("cp", "-a", source, session.arena.path / session.number("copied"))
    promote_some(session, project, session.opts.entries // 8, 2.0, "cp -a", copy)


def promote_some(session, project, count, most, peer, peer_ms):
    files = trees.some_files(project, count)
    of = f"{len(files):,} files in {session.opts.entries:,}"
    row = session.row(f"`snap promote` of {of}", "ms", at_most(most, peer))
    undone = session.row(f"`snap undo` of {of}", "ms")

    def act(_):
        name = session.number("promote")
        trees.write_some(session.clone_now(project, name), files, name)
        os.sync()
        value = peer_ms(files)
        row.add(peer, value)
        undone.add(peer, value)
        os.sync()  # or we would write the peer's files as well: what we wrote is durable at the end
        row.add(OURS, session.store.timed("promote", name, cwd=project))
        os.sync()
        undone.add(OURS, session.store.timed("undo", cwd=project))
        session.store.snap("rm", "--force", name, cwd=project)
    session.rounds(f"promote {len(files)}", {OURS: act}, [row, undone])


PARTS = {"capture": capture, "unchanged": unchanged, "clone": clone, "idle": idle,
         "change": change, "promote": promote}
