"""What a worker does to its clones."""

import contextlib
import os
import shutil

from kept import Clone
from merge import CLEAR, CONFLICT, foresee
from scene import Broken, Interrupted
from tree import Node, picture, scan
from writer import Writer

CLONES_MAX, WRITERS_MAX = 3, 2


class CloneActs:
    def some_clone(self):
        """One of them, as it should be; a new one if there is none."""
        if not self.clones:
            self.act_new_clone()
        clone = self.rng.choice(self.clones)
        self.settle(clone)
        return clone

    def act_burst(self):
        self.burst(self.some_clone(), self.rng.randrange(1, 40))

    def act_writer(self):
        clone = self.some_clone()
        if len(clone.writers) >= WRITERS_MAX:
            return
        folder = self.name("w")
        os.fchdir(clone.fd)
        try:
            os.mkdir(folder, 0o755)
            os.fsync(clone.fd)  # so that the folder is there in every state from now on
        except OSError as e:
            clone.doubt = [os.fsencode(folder)]
            clone.unsure = True
            self.excuse(clone, e)
        finally:
            os.chdir("/")
        clone.step({**clone.state, os.fsencode(folder): Node("dir", 0o755)}, durable=True)
        seed = self.rng.getrandbits(32)
        clone.writers.append(Writer(f"/proc/self/fd/{clone.fd}", folder, seed, self.notes))
        self.log(clone.name, "writer in", folder, "seed", seed)

    def excuse(self, clone, error):
        """A failure that somebody else is to blame for."""
        if self.board.died_since(clone.seen) or clone.quota or self.board.is_full():
            raise Interrupted(f"{clone.name}: {error}")
        raise Broken(f"{clone.name}: {error}")

    def act_collect(self):
        clone = self.some_clone()
        clone.unsure = True
        self.settle(clone)

    # --- their lives ---------------------------------------------------------------------

    def act_new_clone(self):
        """Of the project as it is now."""
        if len(self.clones) >= CLONES_MAX:
            return
        quota = self.rng.random() < 0.2
        self.new_clone(self.project(), dict(self.state), *(["--quota", "3M"] if quota else []))

    def act_clone_of(self):
        """Of a snapshot that was read back, or of another clone."""
        known = [s for s in self.snapshots if s.picture is not None]
        if len(self.clones) >= CLONES_MAX or not known:
            return
        snapshot = self.rng.choice(known)
        self.new_clone(snapshot.picture, None, "--from", snapshot.name, snapshot=snapshot)

    def new_clone(self, base, state, *words, snapshot=None):
        name = self.name("c")
        try:
            result = self.snap("clone", "--json", "-n", name, *words, kill=True,
                               ok=(0, 4) if snapshot else (0,))
        except Interrupted:
            self.insist(self.snap, "rm", "-f", name, ok=(0, 4))
            raise
        if result.status == 4:
            if not snapshot.may_be_gone(self.board.passes):
                raise Broken(f"snapshot {snapshot.name} is gone\n{result}")
            self.forget(snapshot)
            return
        got = result.json()
        clone = Clone(name, got["path"], base, state or {}, f"{self.number}/{name}",
                      "--quota" in words, self.notes)
        clone.line = [base]
        if snapshot and snapshot.clone:
            clone.lose_base()  # a state of the project that the other clone descends from
        self.clones.append(clone)
        if not snapshot:
            self.keep(got["base"], [base], passes=self.board.passes)
        self.settle(clone)

    def act_remove(self):
        if self.clones and self.rng.random() < 0.7:
            self.remove(self.rng.choice(self.clones))

    def remove(self, clone):
        for writer in clone.writers:
            writer.stop()
        clone.leave()
        self.insist(self.snap, "rm", "-f", clone.name, ok=(0, 4))
        self.clones.remove(clone)
        self.snapshots = [s for s in self.snapshots if s.clone != clone.name or s.tag]

    def act_remount(self):
        """What was written is there, although nobody synced it."""
        clone = self.some_clone()
        clone.unsure = True
        self.settle(clone)
        self.burst(clone, 5)
        clone.leave()
        clone.unsure = True  # from here on it must be looked at anew
        self.snap("umount", clone.name)
        self.settle(clone)

    # --- back and forth ---------------------------------------------------------------------

    def act_take(self):
        """A snapshot, maybe while others write."""
        clone = self.some_clone()
        if self.rng.random() < 0.3:
            self.burst(clone, 3)
        least = [w.slots.done for w in clone.writers]
        passes = self.board.passes
        got = self.snap("snapshot", "--json", clone.name, kill=True).json()
        died = self.board.died_since(clone.seen)
        writers = [(w, w.slots.synced if died else n, w.slots.done + 1)
                   for w, n in zip(clone.writers, least)]
        self.keep(got["snapshot"], list(clone.line) if died else [clone.picture()], writers=writers,
                  clone=clone.name, base=clone.base, passes=passes)
        if not died and not clone.writers:
            clone.line = clone.line[-1:]

    def act_back(self):
        """To one of its snapshots."""
        clone = self.some_clone()
        mine = [s for s in self.snapshots if s.clone == clone.name]
        if not mine:
            return
        snapshot = self.rng.choice(mine)
        if snapshot.picture is None and self.read(snapshot) is None:
            return
        clone.unsure = True
        self.settle(clone)
        before = clone.picture()
        was = None if clone.promoted else snapshot.base
        clone.begin(snapshot.picture, was)
        passes = self.board.passes
        got = self.snap("rollback", "--json", clone.name, snapshot.name, kill=True,
                        ok=(0, 9) if clone.quota else (0,))
        if got.status == 9:
            self.settle(clone)
            return
        got = got.json()
        self.counts.rollbacks += 1
        if not self.board.died_since(clone.seen):
            self.keep(got["saved"], [before], clone=clone.name, base=clone.base, passes=passes)
        clone.line, clone.extra = [snapshot.picture], []  # it was answered
        clone.base = was
        self.settle(clone)

    def act_rebase(self):
        clone = self.some_clone()
        clone.unsure = True
        self.settle(clone)
        before, project = clone.picture(), self.project()
        verdict, want = foresee(clone.base, project, before)
        if verdict not in (CLEAR, CONFLICT) and self.rng.random() < 0.5:
            return
        clone.begin(want if verdict == CLEAR else None, project)
        passes = self.board.passes
        result = self.snap("rebase", "--json", clone.name, ok=(0, 5, 9) if clone.quota else (0, 5), kill=True)
        if self.board.died_since(clone.seen):
            self.settle(clone)
            return
        clone.anything = clone.unsure = False
        if result.status != 0:
            if result.status == 5 and verdict == CLEAR:
                raise Broken(f"a conflict where there is none\n{result}")
            clone.extra = []
        else:
            self.rebased(clone, result, verdict, want, project, before, passes)
        clone.unsure = True
        self.settle(clone)

    def rebased(self, clone, result, verdict, want, project, before, passes):
        if verdict == CONFLICT:
            raise Broken(f"no conflict where there is one\n{result}")
        got = result.json()
        self.counts.rebases += 1
        self.keep(got["saved"], [before], clone=clone.name, base=clone.base, passes=passes)
        self.keep(got["onto"], [project], passes=passes)
        clone.extra, clone.base = [], project
        if verdict == CLEAR:
            clone.line = [want]
        else:
            self.counts.unjudged += 1
            clone.line = [self.picture_of(clone)]

    def picture_of(self, clone):
        """As it is, which nobody could foresee; if it dies meanwhile, it is looked at again."""
        with contextlib.suppress(OSError):
            return picture(scan(clone.path))
        clone.anything = True
        return clone.picture()

    # --- runs ---------------------------------------------------------------------

    def act_run(self):
        """A command in the sandbox, on the clone."""
        clone = self.some_clone()
        name = self.name("ran")
        path = os.fsencode(name)
        clone.doubt, clone.unsure = [path], True
        result = self.snap("run", "--json", clone.name, "--", "sh", "-c", f"printf %s {name} > {name}",
                           ok=(0, 1) if clone.quota else (0,), kill=True)
        got = result.json()
        if "error" in got:
            raise Interrupted(str(result))
        if clone.quota and got["limit"] == "disk":
            return self.settle(clone)
        if got["exit_code"] != 0:
            raise Broken(f"the command failed\n{result}")
        self.counts.runs += 1
        seen = clone.seen
        self.settle(clone)
        node = clone.state.get(path)
        if clone.seen == seen and (not node or node.data != path):
            raise Broken(f"{clone.name} does not hold what was run in it\n{result}")

    def act_run_aside(self):
        """On a throw-away clone: it sees the project, and changes nothing."""
        files = sorted(p for p, n in self.state.items() if n.kind == "file" and p.isalnum())
        if not files or not shutil.which("sha256sum"):
            return
        path = os.fsdecode(self.rng.choice(files))
        result = self.snap("run", "--json", "--", "sh", "-c", f"sha256sum {path}; rm -rf *", kill=True)
        want = self.state[os.fsencode(path)].digest()
        if not result.json()["stdout"].startswith(want):
            raise Broken(f"the run saw another '{path}', not {want}\n{result}")
        self.counts.runs += 1
        self.verify_project()

    def act_look(self):
        """What snap says of a clone; the number of its changes is at most what differs."""
        clone = self.some_clone()
        self.snap("status", "--json", clone.name)
        self.snap("list", "--json")
