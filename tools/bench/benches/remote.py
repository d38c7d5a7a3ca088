"""A tree to another machine and back, through a registry on loopback, against programs that carry trees.

All ends lie on one disk. snap and tar | zstd -1 share one docker-registry: tar's stream is a blob that
curl sends and fetches. rsync goes through sshd on loopback; restic and casync have their repositories
in directories, without a server. 'snap to a directory' is the same with a `dir:` remote. The tree
was captured before its first push, so a whole command is timed that does nothing but transfer. In the
round to warm up, what arrived is compared with what was sent.

Two floors: a pull cannot be faster than a fetch and a landing that is as safe, without a journal; nor a
push and a pull of two directories than a look at the times of each file in both.
"""

import os
import shutil
import time
from pathlib import Path

import trees
from arena import Store, run, timed
from carriers import CASYNC, DESYNC, RESTIC, RSYNC, TAR, Casync, Restic, Rsync, Tar
from row import OURS, at_most
from servers import Registry, Sshd, missing

CHANGED = 10  # files
OURS_DIR, OURS_CLONE = "snap to a directory", "snap from a clone"
LANDED, LOOKS = "a fetch, and files landed", "two bare looks"  # the floors


def is_same(tree, copy):
    run("diff", "-r", "--no-dereference", "-q", tree, copy)


class Place:
    """A remote of snap: a repository of a registry, or without one a directory."""

    def __init__(self, top, nick, registry=None):
        self.nick, self.registry, self.depot = nick, registry, top / "depot"
        self.address = registry.address(f"bench/{nick}") if registry else f"dir:{self.depot}"
        self.main = f"{self.address}:main"

    def size(self):
        if self.registry:
            return self.registry.size()
        return sum(f.stat().st_size for f in (self.depot / "blobs" / "sha256").iterdir())

    def wipe(self):
        if self.registry:
            self.registry.wipe()
        shutil.rmtree(self.depot, ignore_errors=True)


class Elsewhere:
    """Another machine: a store of its own, and a project in it with nothing inside."""

    def __init__(self, session, top, name):
        self.project = top / f"project-{name}"
        self.project.mkdir()
        self.store = Store(session.arena, session.snapcow, (top / f"store-{name}").relative_to(session.arena.path))

    def snap(self, *words):
        return self.store.snap(*words, cwd=self.project)

    def timed(self, *words):
        return self.store.timed(*words, cwd=self.project)

    def end(self):
        self.store.end()
        for path in (self.store.path, self.project):
            shutil.rmtree(path, ignore_errors=True)


def registry_of(session, rows=()):
    """The one that all share, or None: then these rows have nothing of ours."""
    why = missing(Registry.name)
    if why:
        for row in rows:
            row.skip(why)
        return None
    return session.once("registry", lambda: Registry(session.arena, session.arena.path / "registry"))


def carriers_of(session, top):
    """Those that are installed; why the others are not there is said below the table."""
    session.skipped[DESYNC] = "Debian has no package of it, and casync has the same format"
    found = []
    for kind in (Tar, Rsync, Restic, Casync):
        why = kind.missing()
        if why:
            session.skipped[kind.name] = why
            continue
        more = []
        if kind is Tar:
            more = [registry_of(session)]
        elif kind is Rsync:
            more = [session.once("sshd", lambda: Sshd(session.arena, session.arena.path / "sshd"))]
        found.append(kind(top / kind.name.split(",", maxsplit=1)[0], *more))
    return found


class First:
    """All of the tree, to a place that has nothing."""

    def __init__(self, session, top):
        self.session, self.top, self.source = session, top, session.tree()
        self.there = session.row("first push of the tree", "ms", at_most(1.2, TAR))
        self.back = session.row("first fetch of the tree, into a store", "ms", at_most(1.2, TAR))
        self.files = session.row("first pull of the tree, into a directory", "ms", at_most(1.2, TAR))
        self.sent = session.row("bytes of a first push", "MiB", at_most(1.0, TAR))
        self.look = session.row("`clone REMOTE/NAME` until `ls` works", "ms", at_most(300))
        self.rest = session.row("the rest of it, in the background", "ms")
        self.rows = [self.there, self.back, self.files, self.sent, self.look, self.rest]
        for row in (self.back, self.files):
            row.notes.append("the others write a directory")

    def peer(self, carrier):
        def turn(number):
            name, got = carrier.name, self.top / "got"
            carrier.wipe()
            os.sync()
            self.there.add(name, timed(lambda: carrier.send(self.source)))
            if carrier.size() is not None:
                self.sent.add(name, carrier.size() / 2**20)
            os.sync()
            took = timed(lambda: carrier.fetch(got))
            self.back.add(name, took)
            self.files.add(name, took)
            if number == 0:
                is_same(self.source, got)
            shutil.rmtree(got)
            carrier.wipe()
        return turn

    def ours(self, name, place):
        store = self.session.store
        store.snap("remote", "add", place.nick, place.address, cwd=self.source)

        def turn(number):
            place.wipe()
            shutil.rmtree(store.path / "remote", ignore_errors=True)  # nothing is known of it
            os.sync()
            self.there.add(name, store.timed("push", "@", place.main, cwd=self.source))
            self.sent.add(name, place.size() / 2**20)
            for act in (self.fetch, self.pull, self.clone):
                other = Elsewhere(self.session, self.top, number)
                os.sync()
                act(name, place, other, number)
                other.end()
            place.wipe()
        return turn

    def fetch(self, name, place, other, _):
        took = other.timed("fetch", place.main)
        self.back.add(name, took)
        if name == OURS:
            self.files.add(LANDED, took + self.land())

    def land(self):
        to = self.top / "landed"
        os.sync()
        took = float(run(self.session.helper("bench-land"), self.source, to))
        shutil.rmtree(to)
        return took

    def pull(self, name, place, other, number):
        self.files.add(name, other.timed("pull", place.main))
        if number == 0:
            is_same(self.source, other.project)

    def clone(self, name, place, other, number):
        start = time.monotonic()
        clone = other.snap("clone", f"{place.nick}/main", "look")
        run("ls", "-l", clone["path"])
        self.look.add(name, (time.monotonic() - start) * 1000)
        self.rest.add(name, other.timed("gc"))  # waits until everything has arrived
        if number == 0:
            is_same(self.source, clone["path"])
        if not clone["fetching"]:
            self.look.notes.append("the snapshot is so small that `clone` fetched all of it")


def first(session):
    top = session.arena.fresh_dir("remote")
    part = First(session, top)
    trees.warm(part.source)
    session.store.snap("snapshot", cwd=part.source)
    acts = {carrier.name: part.peer(carrier) for carrier in carriers_of(session, top)}
    registry = registry_of(session, part.rows)
    if registry:
        acts[OURS] = part.ours(OURS, Place(top, "first", registry))
    acts[OURS_DIR] = part.ours(OURS_DIR, Place(top, "first-dir"))
    session.rounds("first transfer", acts, part.rows)
    shutil.rmtree(top, ignore_errors=True)


class Again:
    """A few files changed since the last time, in a directory that all of them send."""

    def __init__(self, session, top):
        self.session, self.top, self.work = session, top, top / "work"
        run("cp", "-a", session.tree(), self.work)
        trees.warm(self.work)
        session.store.snap("init", cwd=self.work)
        self.files = trees.some_files(self.work, CHANGED)
        what = f"with {CHANGED} changed files in {session.opts.entries:,}"
        self.pulled = session.row(f"push and pull {what}", "ms", at_most(0.2, RSYNC))
        self.fetched = session.row(f"push and fetch {what}", "ms", at_most(0.2, RSYNC))
        self.pushed = session.row(f"push alone {what}", "ms")
        self.rows = [self.pulled, self.fetched, self.pushed]
        self.pulled.notes.append(f"'{OURS_CLONE}' pushes a clone; all others, a plain directory")

    def ours(self, name, place, clone=None):
        """Two machines, one that fetches and one that pulls."""
        store = self.session.store
        work, state = (clone, clone.name) if clone else (self.work, ".")
        one, two = (Elsewhere(self.session, self.top, self.session.number("again")) for _ in range(2))
        store.snap("push", state, place.main, cwd=self.work)
        one.snap("fetch", place.main)
        two.snap("pull", place.main)

        def turn(number):
            trees.write_some(work, self.files, f"{name} {number}")
            push = store.timed("push", state, place.main, cwd=self.work)
            self.pushed.add(name, push)
            self.fetched.add(name, push + one.timed("fetch", place.main))
            self.pulled.add(name, push + two.timed("pull", place.main))
            if number == 0:
                is_same(work, two.project)
        return turn

    def rsync(self, carrier):
        """One command does both, straight into the other directory."""
        carrier.send(self.work)

        def turn(number):
            trees.write_some(self.work, self.files, f"rsync {number}")
            took = timed(lambda: carrier.send(self.work))
            self.pulled.add(RSYNC, took)
            self.fetched.add(RSYNC, took)
            self.pulled.add(LOOKS, sum(float(run(self.session.helper("bench-walk"), top, "stat"))
                                       for top in (self.work, carrier.top / "there")))
            if number == 0:
                is_same(self.work, carrier.top / "there")
        return turn

    def restic(self, carrier):
        carrier.send(self.work)

        def turn(number):
            trees.write_some(self.work, self.files, f"restic {number}")
            self.pushed.add(RESTIC, timed(lambda: carrier.send(self.work)))
        return turn

    def casync(self, carrier):
        got = self.top / "casync-got"
        carrier.send(self.work)
        carrier.fetch(got)

        def turn(number):
            trees.write_some(self.work, self.files, f"casync {number}")
            push = timed(lambda: carrier.send(self.work))
            self.pushed.add(CASYNC, push)
            self.pulled.add(CASYNC, push + timed(lambda: carrier.fetch(got)))
            if number == 0:
                is_same(self.work, got)
        return turn


def again(session):
    top = session.arena.fresh_dir("again")
    part = Again(session, top)
    turns = {RSYNC: part.rsync, RESTIC: part.restic, CASYNC: part.casync}
    acts = {carrier.name: turns[carrier.name](carrier) for carrier in carriers_of(session, top)
            if carrier.name in turns}
    registry = registry_of(session, part.rows)
    if registry:
        acts[OURS] = part.ours(OURS, Place(top, "again", registry))
        clone = Path(session.store.snap("clone", "-n", session.number("again"), cwd=part.work)["path"])
        acts[OURS_CLONE] = part.ours(OURS_CLONE, Place(top, "clone", registry), clone)
    acts[OURS_DIR] = part.ours(OURS_DIR, Place(top, "again-dir"))
    session.rounds("again", acts, part.rows)
    shutil.rmtree(top, ignore_errors=True)


PARTS = {"remote-first": first, "remote-again": again}
