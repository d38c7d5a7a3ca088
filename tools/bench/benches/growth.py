"""Does it cost more of a larger tree, among many clones, after many snapshots?

Each part draws curves, and the first also has the rows that ask for flatness: what the largest
tree takes, against the smallest.
"""

from pathlib import Path

import trees
from arena import Asking, Store
from benches.states import CHANGED
from curve import Curve
from row import OURS, at_most

FLAT = 1.3  # as performance asks of a clone of a million entries
VERBS = ("snapshot", "rollback", "diff")


def new_curves(session, panel, *labels):
    curves = {label: Curve(panel, label) for label in labels}
    session.curves += curves.values()
    return curves


class Sized:
    """A tree of that size in a store of its own, with a clone whose files change."""

    def __init__(self, session, entries, curves):
        self.session, self.entries, self.curves = session, entries, curves
        self.project = session.tree(entries)
        self.store = Store(session.arena, session.snapcow, f"growth-{entries}")
        curves["first capture"].add(entries, self.store.timed("snapshot", cwd=self.project))
        self.snapshot = self.store.snap("snapshot", cwd=self.project)["snapshot"]
        self.asking = Asking(self.store, self.project)
        self.clone = Path(self.store.snap("clone", "-n", "grows", "--from", self.snapshot,
                                          cwd=self.project)["path"])
        self.files = trees.some_files(self.project, CHANGED)

    def act(self, number, rows, who):
        def note(what, value):
            if number > 0:  # the first round is to warm up
                self.curves[what].add(self.entries, value)
            if what in rows:
                rows[what].add(who, value)
        name = self.session.number("clone")
        note("clone, in cowfsd", self.asking.clone(name, self.snapshot))
        self.asking.ask("remove", clone=name, force=True)
        change_and_look(self.store, self.project, "grows", self.clone, self.files, number, note)
        note("capture, nothing changed", self.store.timed("snapshot", cwd=self.project))


def change_and_look(store, project, name, top, files, number, note):
    """Few files change, and a snapshot, a diff and a rollback are taken of it."""
    trees.write_some(top, files, f"{number} a")
    note("snapshot", store.timed("snapshot", name, cwd=project))
    trees.write_some(top, files, f"{number} b")
    note("diff", store.timed("diff", name, cwd=project))
    note("rollback", store.timed("rollback", name, cwd=project))


def entries(session):
    sizes = session.opts.sizes
    least, most = f"{min(sizes):,} entries", f"{max(sizes):,} entries"
    rows = {what: session.row(f"{what}, {most}", "ms", at_most(FLAT, least))
            for what in ("clone, in cowfsd", *VERBS)}
    curves = new_curves(session, "entries in the tree", "first capture",
                        "capture, nothing changed", "diff", "snapshot", "rollback",
                        "clone, in cowfsd")
    acts = {}
    for size in sizes:
        who = OURS if size == max(sizes) else f"{size:,} entries"
        sized = Sized(session, size, curves)
        acts[who] = lambda number, s=sized, w=who: s.act(number, rows, w)
    session.rounds("sizes", acts, list(rows.values()))


def steps(session):
    return (1, 10, 100) if session.opts.quick else (1, 10, 100, 1000)


def small_project(session):
    """A project in a store of its own, and its snapshot."""
    project = session.tree(min(session.opts.sizes))
    store = Store(session.arena, session.snapcow, session.number("growth"))
    return project, store, store.snap("snapshot", cwd=project)["snapshot"]


def clones(session):
    curves = new_curves(session, "clones, mounted", "`snap list`", "`snap clone`",
                        "clone, in cowfsd")
    project, store, snapshot = small_project(session)
    asking = Asking(store, project)
    there = 0
    for count in steps(session):
        store.snap("clone", "-n", session.number("many"), "--count", count - there,
                   "--from", snapshot, cwd=project)
        there = count
        for _ in range(session.opts.rounds):
            curves["`snap list`"].add(count, store.timed("list", cwd=project))
            name = session.number("one")
            curves["`snap clone`"].add(count, store.timed("clone", "-n", name, "--from", snapshot,
                                                          cwd=project))
            asking.ask("remove", clone=name, force=True)
            curves["clone, in cowfsd"].add(count, asking.clone(name, snapshot))
            asking.ask("remove", clone=name, force=True)
    store.end()


def snapshots(session):
    curves = new_curves(session, "snapshots of one clone", "`snap log`", "diff", "snapshot",
                        "rollback")
    project, store, snapshot = small_project(session)
    top = Path(store.snap("clone", "-n", "grows", "--from", snapshot, cwd=project)["path"])
    files = trees.some_files(project, CHANGED)
    there = 0
    for count in steps(session):
        for number in range(there, count):
            trees.write_some(top, files, number)
            store.snap("snapshot", "grows", cwd=project)
        there = count
        for number in range(session.opts.rounds):
            curves["`snap log`"].add(count, store.timed("log", "grows", cwd=project))
            change_and_look(store, project, "grows", top, files, f"{count} {number}",
                            lambda verb, value, at=count: curves[verb].add(at, value))
        there += session.opts.rounds
    store.end()


PARTS = {"entries": entries, "clones": clones, "snapshots": snapshots}
