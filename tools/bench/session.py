"""What the parts of one group share: a fresh disk, one store, the trees on it, and their rows."""

import os
import time
from pathlib import Path

import trees
from arena import Arena, Store, run
from rounds import say, take_turns
from row import Row

DISK = 48 << 30  # sparse; room for a million entries and their copies

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]


class Session:
    """`opts` has rounds, entries, sizes, large, quick; `programs` is a build directory."""

    def __init__(self, opts, programs):
        self.opts, self.programs = opts, programs
        self.arena = Arena(trees.scratch_dir(), DISK, os.geteuid() == 0 and not opts.no_loop)
        self.rows, self.curves = [], []
        self.skipped = {}  # peer: reason
        self.made = {}
        self.numbers = iter(range(1 << 30))

    def close(self):
        self.arena.close()

    def once(self, key, make):
        """What is made by the first part that needs it."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    @property
    def snapcow(self):
        return self.programs / "cli" / "snapcow"

    def helper(self, name):
        return self.programs / "tools" / "bench" / name

    @property
    def store(self):
        return self.once("store", lambda: Store(self.arena, self.snapcow))

    def row(self, name, unit, *targets, rate=False):
        """A row that is in the table from now on, whatever becomes of it."""
        self.rows.append(Row(name, unit, *targets, rate=rate))
        return self.rows[-1]

    def rounds(self, label, acts, rows, count=None, sync=True):
        take_turns(label, count or self.opts.rounds, acts, rows, sync)

    def number(self, prefix):
        """A name that nothing has had."""
        return f"{prefix}-{next(self.numbers)}"

    # --- data -----------------------------------------------------------------------------------

    def tree(self, entries=None):
        """That tree, on this disk."""
        entries = entries or self.opts.entries
        path = self.arena.path / f"tree-{entries}"
        if not path.exists():
            run("cp", "-a", trees.tree(entries), path)
        return path

    def repo(self, entries=None):
        """A git work tree with the files of that tree, packed and at rest."""
        entries = entries or self.opts.entries
        return self.once(f"repo-{entries}", lambda: self.make_repo(entries))

    def make_repo(self, entries):
        say(f"  a git work tree of {entries:,} entries")
        path = self.arena.path / f"repo-{entries}"
        run("cp", "-a", self.tree(entries), path)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"],
                      ["repack", "-adq"], ["prune-packed", "-q"]):
            run(*GIT, *words, cwd=path)
        time.sleep(2.1)  # or nobody could believe the times of what was written just now
        run("git", "status", cwd=path)
        return path

    def snapshot_of(self, project):
        """Its snapshot in the store."""
        return self.once(f"snapshot {project}",
                         lambda: self.store.snap("snapshot", cwd=project)["snapshot"])

    def clone_of(self, project, name, *words):
        """A clone of that project; where it is mounted."""
        return Path(self.store.snap("clone", "-n", name, "--from", self.snapshot_of(project), *words,
                                    cwd=project)["path"])

    def clone_now(self, project, name):
        """The same of the project as it is now."""
        return Path(self.store.snap("clone", "-n", name, cwd=project)["path"])
