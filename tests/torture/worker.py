"""One of those who use the program: a project of its own, clones of it, and an exact memory.

Nobody else writes into its project or its clones, so it knows what they must hold; the store,
cowfsd, and everything that disturbs them are shared with the other workers.
"""

import contextlib
import errno
import os
import random
import time
import traceback

from acts_clone import CloneActs
from acts_project import ProjectActs
from acts_store import StoreActs
from kept import Snapshot, judge
from scene import Broken, Interrupted
from script import QUIET, Script, apply, perform, touched
from tree import differs, picture, scan, without

PATIENCE = 200  # attempts at what was disturbed
DEAD = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENODEV}
DAMAGED = 12
KILLED = 0.04  # of the commands that change something
READ_AT_THE_END = 30  # snapshots

RUN, QUIESCE, DOUBT, EXACT = range(4)  # phases, counted on the board: the rest of its number
PHASES = 4

ACTS = {"burst": 30, "writer": 8, "collect": 4, "take": 12, "read": 8, "new_clone": 5, "clone_of": 3,
        "remove": 3, "back": 6, "remount": 2, "rebase": 4, "run": 3, "run_aside": 2, "edit": 8,
        "take_project": 5, "promote": 8, "undo": 3, "back_project": 3, "try": 2, "gc": 2, "forget": 1,
        "check": 2, "diff": 3, "show": 4, "tag": 2, "look": 2}


class Worker(CloneActs, ProjectActs, StoreActs):
    def __init__(self, number, seed, scene, board):
        self.number, self.scene, self.board = number, scene, board
        self.rng = random.Random(f"{seed}/{number}")
        self.counts, self.ack = board.counts[number], board.acks[number]
        self.path = scene.projects[number]
        self.small = scene.root and number == 0  # its project is on a disk that is soon full
        self.filler = self.path.parent / "filler"
        self.clones, self.snapshots, self.promotions, self.serial = [], [], [], 0
        self.notes = self.has_notes()
        self.script = Script(f"{seed}/{number}/project", QUIET, self.notes)
        self.state = {}
        self.said = open(scene.top / f"worker-{number}.log", "w", buffering=1,
                         errors="backslashreplace")  # names are any bytes

    def has_notes(self):
        try:
            os.setxattr(self.path, "user.probe", b"1")
            os.removexattr(self.path, "user.probe")
        except OSError:
            return False
        return True

    def log(self, *words):
        print(f"{time.monotonic():.3f}", *words, file=self.said)

    def name(self, kind):
        self.serial += 1
        return f"{kind}{self.number}-{self.serial}"

    def project(self):
        return picture(self.state)

    # --- from the first to the last ---------------------------------------------------------------------

    def work(self):
        """The status of its process."""
        try:
            os.umask(0o022)
            self.steps(self.path, 30)
            self.insist(self.act_take_project)
            acts, weights = zip(*ACTS.items())
            while not self.board.stop:
                if self.board.phase % PHASES != RUN:
                    self.pause()
                act = self.rng.choices(acts, weights)[0]
                try:
                    getattr(self, f"act_{act}")()
                except Interrupted as why:
                    self.counts.interrupted += 1
                    self.log("interrupted:", str(why).replace("\n", " | ")[:600])
            if not self.board.failed:
                self.end()
            status = 0
        except Exception:
            self.log(traceback.format_exc())
            (self.scene.top / f"failed-{self.number}").write_text(
                traceback.format_exc(), errors="backslashreplace")
            self.board.failed = 1
            self.board.stop = 1
            status = 1
        for clone in self.clones:
            for writer in clone.writers:
                writer.kill()
        return status

    def end(self):
        """Everything is what it should be, and can be removed."""
        self.collect_all()
        self.verify_project()
        chosen = self.snapshots[-READ_AT_THE_END // 2:]
        others = [s for s in self.snapshots if s not in chosen]
        for snapshot in chosen + self.rng.sample(others, min(len(others), READ_AT_THE_END // 2)):
            self.insist(self.read, snapshot)
        while self.clones:
            self.insist(self.remove, self.clones[0])

    # --- commands ---------------------------------------------------------------------

    def snap(self, *words, ok=(0,), cwd=None, kill=False):
        """A command that ends with one of these, or that somebody disturbed (Interrupted)."""
        mark = self.board.mark()
        after = self.rng.uniform(0.01, 0.4) if kill and self.rng.random() < KILLED else None
        self.log("snap", *words, "(to be killed)" if after else "")
        result = self.scene.snap(*words, cwd=cwd or self.path, kill_after=after)
        self.counts.commands += 1
        if result is None:
            self.counts.killed += 1
            time.sleep(0.5)  # what it asked for goes on; nobody can tell when it begins
            raise Interrupted("killed")
        self.log("  ends with", result.status, result.out[:200])
        if result.status in ok:
            return result
        if result.status == DAMAGED or not self.board.disturbed_since(mark):
            raise Broken(str(result))
        raise Interrupted(str(result))

    def insist(self, act, *args, **more):
        """Until nobody disturbs it."""
        for _ in range(PATIENCE):
            try:
                return act(*args, **more)
            except Interrupted as why:
                self.log("again:", str(why)[:300])
                time.sleep(0.3)
        raise Broken(f"{act.__name__} is interrupted for ever")

    def calm(self):
        """The number of deaths, at a moment when nobody is dying."""
        while (deaths := self.board.deaths) % 2:
            time.sleep(0.002)
        return deaths

    # --- steps ---------------------------------------------------------------------

    def steps(self, top, count):
        """In the project, where nothing may fail."""
        os.chdir(top)
        try:
            for _ in range(count):
                step = self.script.next(self.state)
                self.log("project", step)
                perform(step)
                self.state = apply(self.state, step)
                self.counts.steps += 1
        finally:
            os.chdir("/")

    def burst(self, clone, count):
        """In a clone, on the mount that was there when it was looked at."""
        os.fchdir(clone.fd)
        try:
            for _ in range(count):
                step = clone.script.next(without(clone.state, [w.folder for w in clone.writers]))
                self.log(clone.name, step)
                after = apply(clone.state, step)
                try:
                    perform(step)
                except OSError as e:
                    self.step_failed(clone, step, after, e)
                clone.step(after, step[0] == "fsync")
                self.counts.steps += 1
        finally:
            os.chdir("/")

    def step_failed(self, clone, step, after, error):
        no_room = error.errno == errno.ENOSPC and (clone.quota or self.board.is_full())
        if not no_room and not self.board.died_since(clone.seen):
            raise Broken(f"{clone.name}: {step} fails: {error}")
        if no_room:
            clone.doubt = touched(clone.state, step)
        clone.line.append(picture(after))
        clone.unsure = True
        raise Interrupted(f"{clone.name}: {step}: {error}")

    # --- what is, and what should be ---------------------------------------------------------------------

    def settle(self, clone, force=False):
        """Mounted, held, quiet, durable, and just what it should be."""
        if not force and clone.fd >= 0 and not clone.unsure and clone.seen == self.board.deaths:
            return
        self.insist(self.settle_once, clone)

    def settle_once(self, clone):
        try:
            self.look_again(clone)
        except Interrupted:
            clone.leave()  # the next attempt mounts it
            raise

    def look_again(self, clone):
        errors = [w.stop() for w in clone.writers]
        deaths = self.calm()
        died = clone.seen not in (-1, deaths)
        for e in errors:
            fine = {0} | (DEAD if died else set()) | \
                ({errno.ENOSPC} if clone.quota or self.board.is_full() else set())
            if e not in fine and not self.board.died_since(clone.seen):
                raise Broken(f"a writer in {clone.name} met {os.strerror(e)}")
        if died or clone.fd < 0:
            self.snap("mount", clone.name)
        try:
            clone.hold()
            os.fchdir(clone.fd)
            state = scan(".")
            os.fsync(clone.fd)
        except OSError as e:
            if self.board.died_since(deaths) or (e.errno == errno.ENOSPC and self.board.is_full()):
                raise Interrupted(f"looking at {clone.name}: {e}") from e
            raise Broken(f"looking at {clone.name}: {e}, deaths {deaths}") from e
        finally:
            os.chdir("/")
        if self.board.died_since(deaths):
            raise Interrupted(f"{clone.name} died while it was looked at")
        self.judge_clone(clone, state, died)
        clone.become(state)
        clone.seen, clone.writers = deaths, []

    def judge_clone(self, clone, state, died):
        found = picture(state)
        writers = [(w, w.slots.synced if died else w.slots.done, w.slots.done + 1)
                   for w in clone.writers]
        candidates = clone.line if died else clone.line[-2:]
        if clone.anything:
            self.counts.unjudged += 1
        else:
            why = judge(found, candidates + clone.extra, writers, clone.doubt)
            if why:
                raise Broken(f"clone {clone.name} after {'a death' if died else 'no death'}: {why}")
        clone.choose_base(found, candidates)

    def collect_all(self):
        for clone in self.clones:
            clone.unsure = True
            self.settle(clone)

    def verify_project(self):
        why = differs(picture(scan(self.path)), self.project())
        if why:
            raise Broken(f"project: {why}")

    def read(self, snapshot, tolerant=False):
        """Through a clone of it; its state, or None if it may be gone and is.

        With `tolerant`, what the store has lost may be missing, but nothing may be another: the
        paths that could not be read.
        """
        name = self.name("look")
        ok = (0, 4) + ((DAMAGED,) if tolerant else ())
        deaths = self.calm()
        try:
            result = self.snap("clone", "--json", "-n", name, "--from", snapshot.name, ok=ok)
            if result.status == 4:
                if not snapshot.may_be_gone(self.board.passes):
                    raise Broken(f"snapshot {snapshot.name} is gone: {snapshot.clone}\n{result}")
                self.forget(snapshot)
                return None
            if result.status == DAMAGED:
                return [b""]
            return self.compare(snapshot, result.json()["path"], tolerant, deaths)
        finally:
            self.insist(self.snap, "rm", "-f", name, ok=(0, 4))

    def compare(self, snapshot, path, tolerant, deaths):
        errors = []
        try:
            state = scan(path, errors if tolerant else None)
        except OSError as e:
            if self.board.died_since(deaths) or not os.path.ismount(path):
                raise Interrupted(f"reading {snapshot.name}: {e}") from e
            raise Broken(f"reading snapshot {snapshot.name}: {e}") from e
        if not os.path.ismount(path):
            raise Interrupted(f"snapshot {snapshot.name} was not mounted to the end")
        lost = [p for p, _ in errors]
        found = picture(state)
        if tolerant and snapshot.picture is not None:
            why = differs(strip_links(without(found, lost)),
                          strip_links(without(snapshot.picture, lost)))
        elif not errors:
            why = snapshot.judge(found)
        else:
            why = None
        if why:
            raise Broken(f"snapshot {snapshot.name} (of {snapshot.clone or 'the project'}): {why}")
        self.counts.readings += 1
        return lost if tolerant else state

    def keep(self, name, candidates, **more):
        """Remember a snapshot that was answered."""
        if name and not any(s.name == name for s in self.snapshots):
            self.snapshots.append(Snapshot(name, candidates, **more))
            self.counts.snapshots += 1

    def forget(self, snapshot):
        with contextlib.suppress(ValueError):
            self.snapshots.remove(snapshot)

    # --- pauses ---------------------------------------------------------------------

    def pause(self):
        """Quiet, while somebody damages the store; then look what is left of it."""
        done = RUN
        while (phase := self.board.phase) % PHASES != RUN and not self.board.stop:
            if phase == done:
                time.sleep(0.01)
                continue
            self.log("phase", phase)
            if phase % PHASES == QUIESCE:
                self.collect_all()
                for clone in self.clones:
                    clone.leave()
            else:
                self.look_through(tolerant=phase % PHASES == DOUBT)
            done = phase
            self.ack.phase = phase
        for clone in self.clones:
            self.settle(clone, force=True)

    def look_through(self, tolerant):
        """Whatever is read is what was written; without `tolerant`, all of it can be read."""
        lost = []
        chosen = self.rng.sample(self.snapshots, min(len(self.snapshots), 5))
        for snapshot in chosen:
            missing = self.insist(self.read, snapshot, tolerant)
            if tolerant:
                lost += [(f"snapshot {snapshot.name}", p) for p in missing or ()]
        for clone in self.clones:
            lost += [(f"clone {clone.name}", p) for p in self.look_at(clone, tolerant)]
        self.verify_project()
        with open(self.scene.top / f"lost-{self.number}", "wb") as f:
            f.write(b"".join(os.fsencode(what) + b":" + path + b"\0" for what, path in lost))

    def look_at(self, clone, tolerant):
        result = self.insist(self.snap, "mount", clone.name,
                             ok=(0, 1, DAMAGED) if tolerant else (0,))
        if result.status:
            return [b""]
        errors = []
        found = picture(scan(clone.path, errors if tolerant else None))
        lost = [p for p, _ in errors]
        why = differs(strip_links(without(found, lost)), strip_links(without(clone.picture(), lost)))
        if why:
            raise Broken(f"clone {clone.name} on a damaged store: {why}")
        return lost


def strip_links(pic):
    """Of a file with several names the first one may be lost."""
    return {p: what[:5] for p, what in pic.items()}
