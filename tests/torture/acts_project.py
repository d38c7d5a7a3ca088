"""What a worker does to its project: edits, and the three commands that may write it."""

import contextlib
import os

from kept import judge
from merge import CLEAR, CONFLICT, UNCLEAR, changed, foresee, linked
from scene import Broken, Interrupted
from script import NAMES
from tree import differs, picture, scan, without

FILL_PIECE = 1 << 16


def allow(*pictures):
    """All that is there, pipes and circles of links too."""
    names = {*NAMES, *(path.split(b"/")[0] for pic in pictures for path in pic)} - {b""}
    return [word for name in sorted(names) for word in ("--allow", os.fsdecode(name))]


class ProjectActs:
    def act_edit(self):
        self.steps(self.path, self.rng.randrange(1, 12))

    def act_take_project(self):
        passes = self.board.passes
        got = self.snap("snapshot", "--json", kill=True).json()
        self.keep(got["snapshot"], [self.project()], passes=passes)

    # --- promote, undo, rollback ---------------------------------------------------------------------

    def act_promote(self):
        clone = self.some_clone()
        if self.rng.random() < 0.5:
            clone.unsure = True
            self.settle(clone)
        before = self.project()
        folders = [w.folder for w in clone.writers]
        now = clone.picture()
        verdict, want = foresee(clone.base, before, now)
        if any(p in before for p in folders):
            verdict = UNCLEAR
        how = self.rng.choice(("stop", "stop", "stop", "ours", "theirs", "markers"))
        least = [w.slots.done for w in clone.writers]
        with self.little_room():
            result = self.land(before, want if verdict == CLEAR and not folders else None,
                               "promote", "--json", "--conflict", how, *allow(now, before, folders),
                               clone.name)
        if result is None or result.status != 5:
            clone.lose_base()
        if result is None:
            return
        if self.board.died_since(clone.seen):
            verdict = UNCLEAR
        if result.status == 5:
            self.counts.conflicts += 1
            if verdict == CLEAR:
                raise Broken(f"a conflict where there is none\n{result}")
            return self.verify_project()
        if verdict == CONFLICT and how == "stop":
            raise Broken(f"no conflict where there is one\n{result}")
        writers = [(w, n, w.slots.done + 1) for w, n in zip(clone.writers, least)]
        self.landed(result, before, want if verdict == CLEAR else None, writers)
        self.counts.promotions += 1

    def act_undo(self):
        if not self.promotions:
            return
        receipt, was, became, passes = self.promotions.pop(
            self.rng.choice((-1, -1, self.rng.randrange(len(self.promotions)))))
        before = self.project()
        verdict, want = foresee(became, before, was)
        if verdict == CLEAR and linked((was, became), changed(was, became)):
            verdict, want = UNCLEAR, None  # docs/design/promote.md, "Not there": names of one file
        gone = passes != self.board.passes
        result = self.land(before, want, "undo", "--json", receipt,
                           ok=(0, 1, 4, 5) if gone else (0, 5))
        if result is None:
            return
        if result.status:
            if result.status == 5 and verdict == CLEAR:
                raise Broken(f"a conflict where there is none\n{result}")
            return self.verify_project()
        if verdict == CONFLICT:
            raise Broken(f"no conflict where there is one\n{result}")
        self.landed(result, before, want)
        self.counts.undos += 1

    def act_back_project(self):
        mine = [s for s in self.snapshots if s.clone is None and s.picture is not None]
        if not mine:
            return
        snapshot, before = self.rng.choice(mine), self.project()
        passes = self.board.passes
        with self.little_room():
            result = self.land(before, snapshot.picture, "rollback", "--json", snapshot.name, ok=(0, 4))
        if result is None:
            return
        if result.status == 4:
            if not snapshot.may_be_gone(self.board.passes):
                raise Broken(f"snapshot {snapshot.name} is gone\n{result}")
            return self.forget(snapshot)
        self.adopt(snapshot.picture)
        got = result.json()
        self.keep(got["saved"], [before], passes=passes)
        if got["receipt"]:
            self.promotions.append((got["receipt"], before, self.project(), passes))
        self.counts.rollbacks += 1

    def act_try(self):
        name, before = self.name("tried"), self.project()
        path = os.fsencode(name)
        result = self.land(before, None, "try", "--json", "--promote-if-ok", "--", "sh", "-c",
                           f"printf %s {name} > {name}", ok=(0,))
        if result is None:
            return
        state = scan(self.path)
        why = differs(without(picture(state), [path]), before)
        if why or path not in state or state[path].data != path:
            raise Broken(f"after a try: {why or 'what it made is missing'}\n{result}")
        self.state = state
        self.counts.tries += 1

    # --- all or nothing ---------------------------------------------------------------------

    def land(self, before, want, *words, ok=(0, 5)):
        """The result of a command that writes the project; None if that was disturbed and is settled."""
        try:
            result = self.snap(*words, ok=ok + self.no_room(), kill=True)
            if result.status == 1 and result.json()["error"]["code"] == "E_DAEMON":
                raise Interrupted(str(result))  # it may have landed, whatever else it may fail for
            if result.status in self.no_room():
                self.verify_project()
                return None
            return result
        except Interrupted as why:
            self.log("interrupted:", str(why)[:300])
            self.counts.interrupted += 1
            self.insist(self.settle_project, before, want)
            return None

    def settle_project(self, before, want):
        """Whatever was begun has ended; the project is as before, or as the receipt says."""
        passes = self.board.passes
        got = self.snap("snapshot", "--json").json()  # waits for its turn, and ends what a crash left
        state = scan(self.path)
        found = picture(state)
        if found != before and (want is None or found != want):
            self.explained(found, before)
        self.state = state
        self.keep(got["snapshot"], [found], passes=passes)

    def explained(self, found, before):
        """Neither before nor what was foreseen: then a receipt must lead to just that."""
        receipts = self.snap("log", "--json").json()["receipts"]
        for receipt in receipts[:3]:
            with contextlib.suppress(KeyError):
                probe = _Probe(receipt["after"])
                self.read(probe)
                if probe.found == found:
                    return
        raise Broken(f"the project is neither before nor after: {differs(found, before)}\n"
                     f"receipts: {receipts[:3]}")

    def landed(self, result, before, want, writers=()):
        """It was answered: the project is what was foreseen, and what the receipt says."""
        state = scan(self.path)
        found = picture(state)
        if want is not None:
            why = judge(found, [want], writers)
            if why:
                raise Broken(f"after a promotion: {why}\n{result}")
        self.state = state
        got, passes = result.json(), self.board.passes
        self.keep(got["before"], [before], passes=passes)
        self.keep(got["after"], [found], passes=passes)
        if got["promotion"]:
            self.promotions.append((got["promotion"], before, found, passes))

    def adopt(self, want):
        state = scan(self.path)
        why = differs(picture(state), want)
        if why:
            raise Broken(f"project: {why}")
        self.state = state

    # --- a disk that is full ---------------------------------------------------------------------

    def no_room(self):
        """How a command may fail while the project's disk is full; it has changed nothing then."""
        return (1,) if self.filler.exists() else ()

    @contextlib.contextmanager
    def little_room(self):
        """Now and then, for a project on a small disk; what failed is looked at afterwards."""
        if not self.small or self.rng.random() > 0.3:
            yield
            return
        self.log("the project's disk is full")
        with open(self.filler, "wb", buffering=0) as f:
            with contextlib.suppress(OSError):
                while True:
                    f.write(bytes(FILL_PIECE))
            with contextlib.suppress(OSError):
                f.truncate(max(0, f.tell() - self.rng.choice((0, 1 << 14, 1 << 18))))
        try:
            yield
        finally:
            self.filler.unlink()


class _Probe:
    """A snapshot that nothing is known of yet."""

    def __init__(self, name):
        self.name, self.clone, self.picture, self.found = name, None, None, None

    def judge(self, found):
        self.found = found

    def may_be_gone(self, _):
        return True
