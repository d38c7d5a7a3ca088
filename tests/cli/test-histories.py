"""Random histories of a project and its clones, compared with a model after each step.

The model: a project, clones of it and clones of clones, each a few files of one line. It knows what
a bare rollback goes to (never an automatic snapshot), what a promotion lands and when it conflicts,
that a clone does not fight what it promoted before, that `diff . CLONE` shows what differs, that a
dry run ends as the act would, and that hints of a failure repeat what was typed.

SNAP_SEED chooses a history, SNAP_TESTS_LONG=1 makes it longer.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time

from snaptest import LONG, SNAP, World, main, test

SECONDS = 120 if LONG else 10
CLONES_MAX = 4
NAMES = ["a", "b", "c", "dir/d", "dir/e", ".envrc"]
HELD = {".envrc"}


def seeded():
    seed = int(os.environ.get("SNAP_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# SNAP_SEED={seed}")
    return random.Random(seed)


def differing(a, b):
    return {name for name in a.keys() | b.keys() if a.get(name) != b.get(name)}


class Tree:
    """A directory and what must be in it."""

    def __init__(self, path, files):
        self.path, self.files, self.saved = path, dict(files), []

    def save(self):
        """As one of yours: you asked for it, or a promotion led to it."""
        self.saved.append(dict(self.files))

    def back(self):
        self.files = dict(self.saved[-1])

    def seen(self):
        return {name: (self.path / name).read_text() for name in NAMES if (self.path / name).exists()}

    def edit(self, dice, mark):
        name = dice.choice(NAMES)
        if name in self.files and dice.random() < 0.3:
            (self.path / name).unlink()
            del self.files[name]
            return f"rm {name}"
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(f"{mark}\n")
        self.files[name] = f"{mark}\n"
        return f"write {name}"


class Clone(Tree):
    def __init__(self, name, path, files, base):
        super().__init__(path, files)
        self.name, self.base = name, dict(base)

    def save(self):
        self.saved.append((dict(self.files), self.base))

    def back(self):
        """It is again a change of what it was one of then."""
        self.files, self.base = dict(self.saved[-1][0]), self.saved[-1][1]

    def changes(self):
        return differing(self.base, self.files)

    def conflicts(self, project):
        return {n for n in self.changes() & differing(self.base, project) if
                self.files.get(n) != project.get(n)}

    def landing(self, project):
        """The project with the changes of the clone."""
        got = dict(project)
        for name in self.changes():
            got.pop(name, None)
            if name in self.files:
                got[name] = self.files[name]
        return got


class History:
    def __init__(self, w, dice):
        self.w, self.dice, self.steps, self.count = w, dice, [], 0
        for path in sorted(w.project.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        self.project = Tree(w.project, {})
        for name in NAMES[:4]:
            (w.project / name).parent.mkdir(exist_ok=True)
            (w.project / name).write_text("first\n")
            self.project.files[name] = "first\n"
        self.clones, self.undo_to = [], None
        self.save(self.project)

    def mark(self):
        self.count += 1
        return f"mark {self.count}"

    def some_clone(self):
        return self.dice.choice(self.clones) if self.clones else None

    def some_tree(self):
        return self.dice.choice([self.project, *self.clones])

    def of(self, tree):
        return [] if tree is self.project else [tree.name]

    # --- acts: each returns what it was, or None if it cannot be done now ---------------------

    def edit(self):
        tree = self.some_tree()
        if tree is self.project:
            self.undo_to = None
        return f"{self.of(tree)}: {tree.edit(self.dice, self.mark())}"

    def save(self, tree=None):
        tree = tree or self.some_tree()
        self.w.ok("snapshot", *self.of(tree), "-m", self.mark())
        tree.save()
        return f"snapshot {self.of(tree)}"

    def rollback(self):
        tree = self.some_tree()
        if not tree.saved:
            return None
        before = dict(tree.files)
        self.w.ok("rollback", *self.of(tree))
        tree.back()
        if tree is self.project:
            self.undo_to = (before, None) if differing(before, tree.files) else None
        return f"rollback {self.of(tree)}"

    def clone(self):
        if len(self.clones) == CLONES_MAX:
            return None
        parent, name = self.some_tree(), f"clone{self.count}"
        self.count += 1
        words = ["--from", parent.name] if parent is not self.project else []
        got = self.w.ok("clone", "--json", "-n", name, *words).json("snap.clone/1", "path")
        base = parent.base if words else parent.files
        self.clones.append(Clone(name, type(self.w.project)(got["path"]), parent.files, base))
        return f"clone -n {name} {words}"

    def remove(self):
        clone = self.some_clone()
        if not clone or self.dice.random() < 0.7:
            return None
        self.w.ok("rm", "--force", clone.name)
        self.clones.remove(clone)
        if self.undo_to and self.undo_to[1] and self.undo_to[1][0] is clone:
            self.undo_to = None
        return f"rm {clone.name}"

    def diff(self):
        clone = self.some_clone()
        if not clone:
            return None
        got = self.w.ok("diff", "--json", ".", clone.name).json("snap.diff/1", "files")
        paths = {p for f in got["files"] for p in (f["path"], f.get("old_path")) if p in NAMES}
        assert paths == differing(self.project.files, clone.files), (paths, clone.name)
        if not differing(self.project.files, clone.base):
            plan = self.w.snap("promote", "-n", "--json", clone.name).out
            assert {n for n in NAMES if f'"path":"{n}"'.encode() in plan.replace(b" ", b"")} == paths, plan
        return f"diff . {clone.name}"

    def promote(self):
        clone = self.some_clone()
        if not clone:
            return None
        project = self.project.files
        lands = {n for n in clone.changes() if project.get(n) != clone.files.get(n)}
        code = 5 if clone.conflicts(project) else 7 if lands & HELD else 0
        words = [] if code == 0 else ["--check", "exit 3"]
        dry = self.w.snap("promote", "-n", clone.name)
        assert dry.status == code, f"model says {code}: {dry}"
        self.matches(self.project)
        got = self.w.snap("promote", *words, clone.name)
        assert got.status == code, f"model says {code}: {got}"
        if code:
            hints = [h for h in got.err.decode().splitlines() if re.match(r"hint: \S+ promote ", h)]
            hints = [h for h in hints if "--rules" not in h and "--continue" not in h]
            assert hints and all("--check 'exit 3'" in h for h in hints), got
        else:
            self.undo_to = (dict(project), (clone, clone.base)) if lands else None
            self.project.files = clone.landing(project)
            if lands:
                clone.base = dict(clone.files)
                self.project.save()
        return f"promote {clone.name}: {code}"

    def undo(self):
        if not self.undo_to:
            return None
        files, landed = self.undo_to
        self.w.ok("undo")
        self.project.files, self.undo_to = dict(files), None
        if landed:
            landed[0].base = landed[1]
            self.project.save()
        return "undo"

    def interrupt(self):
        """^C at any time: the snapshot or clone is there at once, or never."""
        what = self.dice.choice([["snapshot", "-m", "interrupted"], ["clone", "-n", f"cut{self.count}"]])
        self.count += 1
        asked = subprocess.Popen([SNAP, *what], cwd=self.w.project, env=self.w.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.dice.random() * 0.02)
        asked.send_signal(signal.SIGINT)
        asked.wait()
        names = self.w.ok("list", "-q").out.decode().split()
        newest = self.w.ok("log", "-q").out.decode().split()
        assert self.w.ok("list", "-q").out.decode().split() == names
        if what[0] == "clone" and what[-1] in names:
            self.w.ok("rm", "--force", what[-1])
        if len(newest) > self.users():
            self.project.save()
        assert len(newest) == self.users(), (newest, self.users())
        return f"interrupted {what}"

    def users(self):
        return len(self.project.saved)

    # --- after each ---------------------------------------------------------------------------

    def matches(self, tree):
        assert tree.seen() == tree.files, f"{self.of(tree)}: {tree.seen()}, want {tree.files}"

    def step(self):
        acts = [self.edit, self.edit, self.edit, self.save, self.rollback, self.clone, self.diff,
                self.promote, self.promote, self.undo, self.remove, self.interrupt]
        did = self.dice.choice(acts)()
        if did:
            self.steps.append(did)
        for tree in [self.project, *self.clones]:
            self.matches(tree)


@test
def random_histories_are_as_the_model_says(w: World):
    history = History(w, seeded())
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            history.step()
    except AssertionError:
        print("".join(f"# {step}\n" for step in history.steps[-40:]), end="")
        raise
    print(f"# {len(history.steps)} steps")
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())
